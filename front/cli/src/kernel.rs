//! `ranpace kernel`: congestion controls inside the running kernel.

#[cfg(feature = "kernel")]
mod exec;
#[cfg(feature = "kernel")]
pub mod feed;
#[cfg(feature = "kernel")]
mod manage;
#[cfg(feature = "kernel")]
mod show;

use crate::failure::Failure;

/// Congestion controls inside this Linux kernel: load, choose for programs, look at, remove
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ranpace kernel check                                          what this kernel offers\n  \
    ranpace kernel exec --cc c2tcp:target=50ms -- nginx -g 'daemon off;'\n  \
    ranpace kernel exec --cc c2tcp:target=50ms --to 192.0.2.0/24 -- iperf3 -s\n  \
    ranpace kernel load c2tcp:target=50ms --cgroup /sys/fs/cgroup/system.slice/nginx.service\n  \
    ranpace kernel show --live\n  \
    ranpace kernel set c2tcp target=80ms\n  \
    ranpace kernel feed dcic --from hints.pipe --user phone\n  \
    ranpace kernel unload c2tcp\n\n\
    What they need is root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; docs/kernel.md says more.")]
pub struct Kernel {
    #[cfg(feature = "kernel")]
    #[command(subcommand)]
    command: Command,
    /// What would be done
    #[cfg(not(feature = "kernel"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

#[cfg(feature = "kernel")]
#[derive(clap::Subcommand)]
enum Command {
    Check(manage::Check),
    Load(manage::Load),
    List(manage::List),
    Show(show::Show),
    Set(manage::Set),
    Unload(manage::Unload),
    Exec(exec::Exec),
    Feed(feed::Feed),
}

impl Kernel {
    /// Runs the command.
    #[cfg(feature = "kernel")]
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Check(command) => command.run(),
            Command::Load(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Set(command) => command.run(),
            Command::Unload(command) => command.run(),
            Command::Exec(command) => command.run(),
            Command::Feed(command) => command.run(),
        }
    }

    /// Says why there is nothing to run.
    #[cfg(not(feature = "kernel"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(not_built())
    }
}

/// What a build without the commands says.
#[cfg(not(feature = "kernel"))]
pub fn not_built() -> Failure {
    Failure::asked(
        "this ranpace was built without `ranpace kernel` and `ranpace pep`. They need clang and the headers of libelf and zlib \
             (Debian, Ubuntu: apt install clang libelf-dev zlib1g-dev; Fedora: dnf install clang elfutils-libelf-devel zlib-devel); \
             where these are, `make install` builds them",
    )
}

#[cfg(feature = "kernel")]
impl From<ranpace_kernel::KernelError> for Failure {
    fn from(error: ranpace_kernel::KernelError) -> Self {
        use ranpace_kernel::KernelError as E;
        match error {
            E::Algorithm(_)
            | E::Option(_)
            | E::NotInKernel { .. }
            | E::OptionNotInKernel { .. }
            | E::TooLong { .. }
            | E::BadName(_)
            | E::Exists(_)
            | E::NoRadio(_)
            | E::NotLoaded { .. }
            | E::BadPrefix(_) => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}
