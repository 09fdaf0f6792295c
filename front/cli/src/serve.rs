//! `ranpace serve`: files over HTTP/3 and HTTP/1.1, with any congestion control.

#[cfg(feature = "serve")]
mod options;

use crate::failure::Failure;

/// Serve a folder's files over HTTP/3 (QUIC) and, for comparison, HTTP/1.1 (the kernel's TCP), until Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace serve files                                        to this host, with CUBIC and a certificate of its own\n  \
    ranpace serve files --listen '[::]:443' --certificate fullchain.pem --key privkey.pem\n  \
    ranpace serve files --cc newreno+meld-me --feed rnis:http://127.0.0.1:8012\n  \
    ranpace serve files --cc bbr1 --cc /low=cubic+c2tcp:target=50ms --tcp-cc /low=reno\n  \
    ranpace serve files --bytes 1GB --metrics 127.0.0.1:9106 --qlog logs     to measure: /bytes/N is N bytes\n\n\
    Files are those that are below the folder, also by links; nothing that is outside is served. `ranpace list cc` lists the controls.\n\
    docs/serve.md says more.\n\
    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 a fault in the options, 1 anything else, such as a port in use.")]
pub struct Serve {
    #[cfg(feature = "serve")]
    #[command(flatten)]
    options: options::Options,
    /// What would be done
    #[cfg(not(feature = "serve"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

impl Serve {
    /// Runs the command.
    #[cfg(feature = "serve")]
    pub fn run(self) -> Result<(), Failure> {
        self.options.run()
    }

    /// Says how to get the command.
    #[cfg(not(feature = "serve"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without `ranpace serve`, so that its first build is short; `make install` builds it whole",
        ))
    }
}
