//! `ranpace lab`: runs and results in the browser.

#[cfg(feature = "lab")]
mod options;

use crate::failure::Failure;

/// Play links and cells in the browser, change them while they run, and look at results, until Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace lab                                    results of the folder results, at http://127.0.0.1:8020/\n  \
    ranpace lab measurements --no-open             another folder, and no browser is opened\n  \
    ranpace lab --listen 0.0.0.0:8020              for a classroom: the address that is printed has a token\n\n\
    What was played is a scenario, which the page downloads and `ranpace run` plays again. docs/lab.md says more.\n\
    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 a fault in the options, 1 anything else, such as a port in use.")]
pub struct Lab {
    #[cfg(feature = "lab")]
    #[command(flatten)]
    options: options::Options,
    /// What would be done
    #[cfg(not(feature = "lab"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

impl Lab {
    /// Runs the command.
    #[cfg(feature = "lab")]
    pub fn run(self) -> Result<(), Failure> {
        self.options.run()
    }

    /// Says how to get the command.
    #[cfg(not(feature = "lab"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without `ranpace lab`, so that its first build is short; `make install` builds it whole",
        ))
    }
}
