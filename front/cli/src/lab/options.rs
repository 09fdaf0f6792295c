//! The options of `ranpace lab`, and what it does.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ranpace_web::{Address, LabError, Server};

use crate::failure::Failure;
use crate::{common, interrupt, output};

/// The port unless another is asked for. Ours.
const PORT: u16 = 8020;
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a token: 128 bits.
const TOKEN: usize = 16;
/// A token of the user's own, which others cannot see in the list of processes.
const VARIABLE: &str = "RANPACE_LAB_TOKEN";

#[derive(clap::Args)]
pub struct Options {
    /// Folder of results; runs that are kept and recordings that are uploaded go there
    #[arg(value_name = "DIR", default_value = "results")]
    folder: PathBuf,
    /// Address to listen at [default: 127.0.0.1:8020, or another port if that is taken]. Beyond this machine a token is needed, which is
    /// part of the address that is printed [env: RANPACE_LAB_TOKEN]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Open no browser
    #[arg(long)]
    no_open: bool,
    /// Folder of recorded traces [env: RANPACE_TRACES] [default: traces]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Also let the page watch the RNIS server, proxy, emulation or metrics of `ranpace serve` at this address, such as 192.0.2.1:8012 or
    /// unix:/run/edge.sock; without it, only those at loopback and at the usual sockets. Can be repeated
    #[arg(long, value_name = "ADDRESS")]
    attach: Vec<Address>,
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Folder { .. } | LabError::NoToken(_) => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}

impl Options {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        interrupt::flag();
        // There is nothing to say when it stops.
        interrupt::at_exit(|| {});
        let server = self.start()?;
        let url = server.url();
        output::line(format!("{} at {url} (Ctrl-C stops it)", self.folder.display()))?;
        output::end()?;
        if !self.no_open {
            open(&url);
        }
        while !interrupt::is_set() {
            thread::sleep(LOOK);
        }
        drop(server);
        Ok(())
    }

    fn start(&self) -> Result<Server, Failure> {
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let listen = self.listen.unwrap_or(usual);
        let token = match std::env::var(VARIABLE) {
            Ok(token) => Some(checked(token)?),
            Err(_) if listen.ip().is_loopback() => None,
            Err(_) => Some(random_token()?),
        };
        let folder = self.folder.clone();
        let traces = common::trace_folders(self.traces.as_ref());
        let options = ranpace_web::Options { listen, folder, traces, token, attach: self.attach.clone() };
        match Server::start(options.clone()) {
            Err(LabError::Listen { .. }) if self.listen.is_none() => {
                let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                Ok(Server::start(ranpace_web::Options { listen, ..options })?)
            }
            started => Ok(started?),
        }
    }
}

/// A token that can stand in an address and a cookie.
fn checked(token: String) -> Result<String, Failure> {
    let is_plain = token.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if is_plain && token.len() >= TOKEN {
        return Ok(token);
    }
    Err(Failure::asked(format!(
        "{VARIABLE}: expected {TOKEN} or more letters, digits, '-', '_' and '.'; without it a token is made at the start"
    )))
}

fn random_token() -> Result<String, Failure> {
    let mut bytes = [0; TOKEN];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| {
        Failure::ours(format!("/dev/urandom: {error}; set {VARIABLE} to a token of your own"))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens the page where there is a screen. The address is printed, so that a browser that does not open is no failure.
fn open(url: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        _ if has_screen => "xdg-open",
        _ => return,
    };
    let begun = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut browser) = begun {
        // It ends soon after it has handed the address on; somebody has to take its status.
        thread::spawn(move || browser.wait());
    }
}
