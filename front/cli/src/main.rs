//! The `ranpace` command.
#![forbid(unsafe_code)]

mod cell;
mod common;
mod compare;
#[cfg(target_os = "linux")]
mod emulate;
mod failure;
#[cfg(target_os = "linux")]
mod fetch;
#[cfg(all(target_os = "linux", any(feature = "fetch", feature = "kernel")))]
mod hint_source;
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
mod lab;
mod list;
#[cfg(all(target_os = "linux", any(feature = "rnis", feature = "kernel")))]
mod log;
mod model;
mod output;
#[cfg(target_os = "linux")]
mod pep;
#[cfg(target_os = "linux")]
mod proxy;
mod record;
mod reproduce;
#[cfg(target_os = "linux")]
mod rnis;
mod run;
mod say;
#[cfg(target_os = "linux")]
mod screen;
#[cfg(target_os = "linux")]
mod serve;
mod sweep;
mod trace;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Compare transport protocols over cellular networks: which one is fast, and at what delay
#[derive(Parser)]
#[command(name = "ranpace", version = ranpace_lab::VERSION, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ranpace compare                                        the default algorithms on the built-in link\n  \
    ranpace compare --trace FILE --cc cubic,c2tcp:target=50ms --rtt 20ms --buffer 150KB\n  \
    ranpace run scenario.toml --out results/\n  \
    ranpace lab                                            play, change and compare links and cells in the browser\n  \
    ranpace emulate scenario.toml -- PROGRAM                real programs behind its links and cells\n  \
    ranpace rnis serve --source lines=unix:cell.sock        radio information of cells, by ETSI MEC 012\n  \
    ranpace proxy --config proxy.toml                       share users' radio among their real connections\n  \
    ranpace serve FOLDER --cc newreno+meld-me               files over HTTP/3 with any congestion control\n  \
    ranpace fetch https://server/file                       download over HTTP/3, and measure\n  \
    ranpace reproduce --list")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(compare::Compare),
    Run(run::Run),
    #[cfg(target_os = "linux")]
    Emulate(emulate::Emulate),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EmulateInside(emulate::Inside),
    #[cfg(target_os = "linux")]
    Kernel(kernel::Kernel),
    #[cfg(target_os = "linux")]
    Pep(pep::Pep),
    #[cfg(target_os = "linux")]
    Rnis(Box<rnis::Rnis>),
    #[cfg(target_os = "linux")]
    Proxy(proxy::Proxy),
    #[cfg(target_os = "linux")]
    Serve(Box<serve::Serve>),
    #[cfg(target_os = "linux")]
    Fetch(Box<fetch::Fetch>),
    Sweep(sweep::Sweep),
    Reproduce(reproduce::Reproduce),
    Validate(validate::Validate),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    ValidateKernel(validate::Inside),
    Cell(cell::Cell),
    Model(model::Model),
    Trace(trace::Trace),
    List(list::List),
    Lab(lab::Lab),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Compare(command) => command.run(),
        Command::Run(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Emulate(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::EmulateInside(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Kernel(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Pep(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Rnis(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Proxy(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Serve(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Fetch(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Reproduce(command) => command.run(),
        Command::Validate(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::ValidateKernel(command) => command.run(),
        Command::Cell(command) => command.run(),
        Command::Model(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Lab(command) => command.run(),
    };
    match outcome.and_then(|()| output::end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
