//! A server in this process: two LTE cells and two users, described by lines over a socket as a base station writes them.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use ranpace_rnisd::config::Config;
use ranpace_rnisd::server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::eventually;
use super::http::{Connection, Reply};

/// Panics in threads of servers.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts them from now on.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            if ["rnis", "source", "store"].iter().any(|part| name.starts_with(part)) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(info);
        }));
    });
}

/// The server, its folder and its base station.
pub struct Bed {
    pub folder: TempDir,
    server: Option<Server>,
    station: Option<UnixStream>,
    /// The bearer token of all requests.
    pub token: Option<String>,
}

/// A cell's identity.
pub fn ecgi(cell: u32) -> Value {
    json!({ "cellId": format!("000000{}", cell + 1), "plmn": { "mcc": "001", "mnc": "01" } })
}

/// Identifiers of a user.
pub fn ids(user: u32) -> Value {
    json!([
        { "type": 1, "value": format!("10.77.0.{}", user + 2) },
        { "type": 2, "value": format!("fd00::{}", user + 2) },
        { "type": 3, "value": format!("192.0.2.{}", user + 2) },
        { "type": 4, "value": format!("{}", user + 100) },
    ])
}

/// The line of a completed handover, from the other cell.
pub fn handover(user: u32, to: u32) -> Value {
    json!({ "event": { "cell": to, "user": user, "kind": "handover_completed", "from": 1 - to } })
}

/// Writes one line.
pub fn say(station: &mut UnixStream, line: &Value) {
    station.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Describes both cells and users, and attaches the users to the first cell.
pub fn describe(station: &mut UnixStream) {
    say(station, &json!({ "stream": { "version": 1, "clock": "arrival" } }));
    for cell in 0..2 {
        say(
            station,
            &json!({ "cell": { "cell": cell, "ecgi": ecgi(cell), "technology": "lte", "prbs": 50 } }),
        );
    }
    for user in 0..2 {
        say(station, &json!({ "user": { "user": user, "name": format!("phone {user}"), "ids": ids(user) } }));
        say(station, &json!({ "event": { "cell": 0, "user": user, "kind": "attached" } }));
        say(station, &json!({ "event": { "cell": 0, "user": user, "kind": "bearer_set_up", "bearer": 0 } }));
    }
}

/// Connects to a source that listens.
pub fn station(socket: &Path) -> UnixStream {
    eventually("the source listens", || UnixStream::connect(socket).ok())
}

/// The whole configuration, with a folder for its files.
pub fn configuration(folder: &Path, more: &str) -> Config {
    let socket = folder.join("cell.sock");
    // Keys of the top come first in TOML.
    let text = format!(
        "listen = \"127.0.0.1:0\"\n{more}\n[[source]]\nlines = \"unix-listen:{}\"\n",
        socket.display()
    );
    Config::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

impl Bed {
    /// With this in the configuration; `FOLDER` stands for the bed's folder.
    pub fn new(more: &str) -> Self {
        Self::with(more, |_| {})
    }

    /// Likewise, with files that `prepare` puts into the folder.
    pub fn with(more: &str, prepare: impl FnOnce(&Path)) -> Self {
        watch_panics();
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let mut bed = Self { folder, server: None, station: None, token: None };
        bed.start(more);
        bed
    }

    /// Starts a server in the folder.
    pub fn start(&mut self, more: &str) {
        let folder = self.folder.path().to_owned();
        let config = configuration(&folder, &more.replace("FOLDER", &folder.display().to_string()));
        let sources = config.source.iter().map(|source| source.open().unwrap()).collect();
        let server = Server::start(config, sources, None).unwrap_or_else(|error| panic!("{error}"));
        let mut station = station(&folder.join("cell.sock"));
        describe(&mut station);
        eventually("both users have a bearer", || {
            (server.core().state().counts() == (2, 2, 2)).then_some(())
        });
        self.server = Some(server);
        self.station = Some(station);
    }

    /// Stops the server, as it should be stopped.
    pub fn stop(&mut self) {
        self.station = None;
        self.server = None;
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.server().address()
    }

    /// The base station says something.
    pub fn say(&mut self, line: Value) {
        say(self.station.as_mut().unwrap(), &line);
    }

    /// The base station closes its connection.
    pub fn hang_up(&mut self) {
        self.station = None;
    }

    /// A user goes to a cell, from the other one.
    pub fn hand_over(&mut self, user: u32, to: u32) {
        self.say(handover(user, to));
    }

    pub fn connect(&self) -> Connection {
        Connection::to(self.address())
    }

    /// A request over a connection of its own.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let token = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            token.iter().map(|token| ("Authorization", token.as_str())).collect();
        let body = body.map(Value::to_string);
        self.connect().ask(method, &format!("/rni/v2{path}"), &headers, body.as_ref().map(String::as_bytes))
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, None)
    }

    /// Subscribes to completed handovers with a callback; returns the subscription's path.
    #[track_caller]
    pub fn subscribe(&self, callback: &str) -> String {
        self.path_of(&self.ask("POST", "/subscriptions", Some(&cell_change(callback))).expect(201))
    }

    /// The path of a subscription that was just made.
    pub fn path_of(&self, reply: &Reply) -> String {
        let location = reply.header("location").unwrap();
        location.strip_prefix(&format!("{}/rni/v2", self.server().root())).unwrap().to_owned()
    }

    /// A value of `/metrics`, summed over its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.connect().ask("GET", "/metrics", &[], None).body;
        let text = String::from_utf8(text).unwrap();
        let lines = text
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }
}

/// A subscription to completed handovers.
pub fn cell_change(callback: &str) -> Value {
    json!({
        "subscriptionType": "CellChangeSubscription",
        "callbackReference": callback,
        "filterCriteriaAssocHo": {},
    })
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop();
        if !std::thread::panicking() {
            assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a thread of a server panicked: see the output");
        }
    }
}
