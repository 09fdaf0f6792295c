//! Running commands that can be watched, by their own interfaces: `GET /show` at the control socket of `ranpace proxy`, and the
//! extension (`/rni/v2/vendor`) of `ranpace rnis serve`. Requests only read.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ranpace_rnis::etsi::vendor::{CellConfig, LinkMeas, TtiMeas};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::problem::Refusal;
use crate::protocol::{CellAbout, ColumnAbout, FlowAbout, LiveSource, Subject, UserAbout};

/// Where a proxy answers unless it is told otherwise (`control.socket`).
const PROXY: &str = "/run/ranpace-proxy.sock";
/// Where an RNIS server answers unless it is told otherwise (`listen`).
const RNIS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8012);
/// Time for a source to answer. Ours.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer. Ours: several times what a proxy with its 1000 listed connections says.
const ANSWER: usize = 4 << 20;
/// Flows and users that are shown. Ours: more lines cannot be told apart.
const MOST: usize = 32;

/// Where a running command answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// By HTTP over TCP.
    Tcp(SocketAddr),
    /// By HTTP at a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected an address and a port such as {RNIS}, or unix:/PATH of a socket, found {text:?}"
            )
        };
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') && !path.contains('\0') => Ok(Self::Unix(path.into())),
            Some(_) => Err(expected()),
            None => text.parse().map(Self::Tcp).map_err(|_| expected()),
        }
    }
}

impl Address {
    /// The address that a page names, if it may be read: loopback, the usual sockets, and what the user of the command allows. The lab is
    /// no way into other machines.
    pub fn permitted(text: &str, allowed: &[Self]) -> Result<Self, Refusal> {
        let address: Self = text.parse().map_err(Refusal::impossible)?;
        let is_own = match &address {
            Self::Tcp(of) => of.ip().to_canonical().is_loopback(),
            Self::Unix(path) => path == Path::new(PROXY),
        };
        if is_own || allowed.contains(&address) {
            return Ok(address);
        }
        Err(Refusal::forbidden(format!(
            "{address} is neither at loopback nor a usual socket; `ranpace lab --attach {address}` allows it"
        )))
    }
}

/// Sources that answer now: those at the usual addresses, and those that are allowed.
pub fn found(allowed: &[Address]) -> Vec<LiveSource> {
    let usual = [(Address::Unix(PROXY.into()), "a proxy"), (Address::Tcp(RNIS), "an RNIS server")];
    let allowed = allowed.iter().map(|address| (address.clone(), "allowed by --attach"));
    let all = usual.into_iter().chain(allowed);
    all.filter(|(address, _)| Source::new(address.clone()).read().is_ok())
        .map(|(address, what)| LiveSource { address: address.to_string(), what: what.to_owned() })
        .collect()
}

/// What a source says at a moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What it is.
    pub name: String,
    /// Its cells.
    pub cells: Vec<CellAbout>,
    /// Its users.
    pub users: Vec<UserAbout>,
    /// Its flows.
    pub flows: Vec<FlowAbout>,
    /// Its figures; each column at most once.
    pub values: Vec<(ColumnAbout, f64)>,
    /// PRBs of each user, downlink and uplink, in the order of `users`; `None` if it does not know.
    pub prbs: Option<Vec<[f64; 2]>>,
}

impl Reading {
    fn push(&mut self, of: Subject, name: &str, column: &str, value: Option<f64>) {
        let about = ColumnAbout { of, name: name.to_owned(), column: column.to_owned() };
        self.values.push((about, value.unwrap_or(f64::NAN)));
    }
}

/// The part of a proxy's `/show` that is drawn; docs/proxy-server.md describes it.
#[derive(Deserialize)]
struct Proxy {
    name: String,
    users: Vec<ProxyUser>,
    flows: Vec<ProxyFlow>,
}

#[derive(Deserialize)]
struct ProxyUser {
    address: std::net::IpAddr,
    capacity_bits_per_s: Option<u64>,
    passing_bits_per_s: u64,
}

#[derive(Deserialize)]
struct ProxyFlow {
    client: SocketAddr,
    server: SocketAddr,
    down_bytes: u64,
    category: String,
    server_window_bytes: u32,
    user_rate_bits_per_s: Option<u64>,
    user_window_bytes: Option<u64>,
    server_rtt_us: u64,
    user_rtt_us: Option<u64>,
    backlog_bytes: u64,
}

/// A source that is read.
#[derive(Debug)]
pub struct Source {
    /// Where it answers.
    pub address: Address,
    /// Bytes of each flow at the reading before, from which rates follow.
    before: BTreeMap<String, (Instant, u64)>,
}

impl Source {
    /// One that has not been read.
    pub fn new(address: Address) -> Self {
        Self { address, before: BTreeMap::new() }
    }

    /// Asks it what it does; the error is a sentence for people.
    pub fn read(&mut self) -> Result<Reading, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot ask {}: {error}", self.address))?;
        runtime.block_on(async {
            let asked = async {
                match &self.address {
                    Address::Unix(_) => {
                        let proxy = ask(&self.address, "/show").await?;
                        Ok(self.proxy(proxy, Instant::now()))
                    }
                    Address::Tcp(_) => {
                        let cells: Vec<CellConfig> = ask(&self.address, "/rni/v2/vendor/cell_config").await?;
                        let users = ask(&self.address, "/rni/v2/vendor/tti_meas").await?;
                        Ok(radio(&cells, users))
                    }
                }
            };
            let late = |_| format!("no answer for {} s", PATIENCE.as_secs());
            let outcome: Result<Reading, String> =
                tokio::time::timeout(PATIENCE, asked).await.map_err(late).and_then(|outcome| outcome);
            outcome.map_err(|reason| format!("{}: {reason}", self.address))
        })
    }

    fn proxy(&mut self, proxy: Proxy, now: Instant) -> Reading {
        let mut reading = Reading { name: format!("proxy {}", proxy.name), ..Reading::default() };
        let mut bytes = BTreeMap::new();
        for flow in proxy.flows.into_iter().take(MOST) {
            let name = format!("{}→{}", flow.server, flow.client);
            let rate = self.before.get(&name).and_then(|(then, before)| {
                let seconds = now.duration_since(*then).as_secs_f64();
                let more = flow.down_bytes.checked_sub(*before)?;
                (seconds > 0.0).then(|| more as f64 * 8.0 / seconds)
            });
            bytes.insert(name.clone(), (now, flow.down_bytes));
            let category = match flow.category.as_str() {
                "fast" => 1.0,
                "slow" => 2.0,
                _ => 0.0,
            };
            let rtt = |micros: u64| micros as f64 / 1e6;
            for (column, value) in [
                ("goodput_bit_s", rate),
                ("pacing_bit_s", flow.user_rate_bits_per_s.map(|rate| rate as f64)),
                ("cwnd_bytes", flow.user_window_bytes.map(|window| window as f64)),
                ("proxy_server_window_bytes", Some(flow.server_window_bytes.into())),
                ("srtt_s", Some(rtt(flow.server_rtt_us))),
                ("proxy_user_rtt_s", flow.user_rtt_us.map(rtt)),
                ("proxy_backlog_bytes", Some(flow.backlog_bytes as f64)),
                ("proxy_category", Some(category)),
            ] {
                reading.push(Subject::Flow, &name, column, value);
            }
            reading.flows.push(FlowAbout {
                entry: name.clone(),
                name,
                from: flow.server.to_string(),
                to: flow.client.to_string(),
                cc: "rapid".to_owned(),
                start_s: 0.0,
                stop_s: None,
                workload: "a split connection".to_owned(),
            });
        }
        self.before = bytes;
        for user in proxy.users.into_iter().take(MOST) {
            let name = user.address.to_string();
            let capacity = user.capacity_bits_per_s.map(|rate| rate as f64);
            reading.push(Subject::User, &name, "capacity_bit_s", capacity);
            reading.push(Subject::User, &name, "passing_bit_s", Some(user.passing_bits_per_s as f64));
        }
        reading
    }
}

/// Cells and users of an RNIS server.
fn radio(cells: &[CellConfig], users: Vec<TtiMeas>) -> Reading {
    let mut reading = Reading { name: "RNIS server".to_owned(), ..Reading::default() };
    reading.cells = (cells.iter())
        .map(|cell| CellAbout {
            name: cell.ecgi.cell_id.clone(),
            host: String::new(),
            prbs: cell.prbs.into(),
            slot_s: cell.tti_ns as f64 / 1e9,
            x_m: 0.0,
            y_m: 0.0,
        })
        .collect();
    let mut prbs = Vec::new();
    for user in users {
        let name = user.associate_id.value.clone();
        if reading.users.len() == MOST || reading.users.iter().any(|known| known.name == name) {
            continue;
        }
        let cell = cells.iter().position(|cell| cell.ecgi == user.ecgi).unwrap_or_default();
        reading.push(Subject::User, &name, "cqi", user.cqi.map(f64::from));
        let mut link = |way: &str, of: &LinkMeas| {
            for (column, value) in [
                ("mcs", f64::from(of.mcs)),
                ("queue_bytes", of.queue_bytes as f64),
                ("prbs", of.prbs),
                ("unused_prbs", of.unused_prbs),
            ] {
                reading.push(Subject::User, &name, &format!("{way}{column}"), Some(value));
            }
        };
        link("", &user.dl);
        link("uplink_", &user.ul);
        prbs.push([user.dl.prbs, user.ul.prbs]);
        reading.users.push(UserAbout { name, cell: cell as u32, position_m: None, can_move: false });
    }
    reading.prbs = Some(prbs);
    reading
}

/// The answer to a request, of a bounded size.
async fn ask<T: DeserializeOwned>(address: &Address, path: &str) -> Result<T, String> {
    let nobody = |error: std::io::Error| format!("nothing answers there ({error}): does it run?");
    let body = match address {
        Address::Tcp(of) => exchange(TcpStream::connect(of).await.map_err(nobody)?, address, path).await,
        Address::Unix(of) => exchange(UnixStream::connect(of).await.map_err(nobody)?, address, path).await,
    }?;
    parse(&body)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        format!("expected what `ranpace rnis serve` or `ranpace proxy` of this version says, found another answer ({error})")
    })
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &Address,
    path: &str,
) -> Result<Bytes, String> {
    let failed = |error: hyper::Error| format!("it does not speak HTTP as expected: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let host = match address {
        Address::Tcp(of) => of.to_string(),
        Address::Unix(_) => "localhost".to_owned(),
    };
    let request = Request::get(path).header("Host", host).body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.map_err(|error| error.to_string())?).await.map_err(failed)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Err("it wants a token, and the lab has none: watch one that answers without".to_owned());
        }
        status => {
            return Err(format!("expected an RNIS server or a proxy; {path} was answered with {status}"));
        }
    }
    let body = Limited::new(answer.into_body(), ANSWER).collect().await;
    body.map(|body| body.to_bytes())
        .map_err(|error| format!("expected an answer of at most {ANSWER} bytes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_this_machine_and_what_is_allowed_is_read() {
        let allowed = ["192.0.2.1:80".parse().unwrap(), "unix:/tmp/a.sock".parse().unwrap()];
        for (text, status) in [
            ("127.0.0.1:8012", None),
            ("[::1]:8012", None),
            ("[::ffff:127.0.0.1]:1", None),
            ("unix:/run/ranpace-proxy.sock", None),
            ("192.0.2.1:80", None),
            ("unix:/tmp/a.sock", None),
            ("192.0.2.1:81", Some(StatusCode::FORBIDDEN)),
            ("0.0.0.0:80", Some(StatusCode::FORBIDDEN)),
            ("unix:/run/docker.sock", Some(StatusCode::FORBIDDEN)),
            ("unix:relative", Some(StatusCode::UNPROCESSABLE_ENTITY)),
            ("localhost:80", Some(StatusCode::UNPROCESSABLE_ENTITY)),
            ("", Some(StatusCode::UNPROCESSABLE_ENTITY)),
        ] {
            let found = Address::permitted(text, &allowed).err().map(|refusal| refusal.status);
            assert_eq!(found, status, "{text}");
        }
    }

    #[test]
    fn the_rate_of_a_flow_is_what_came_between_two_readings() {
        let show = |bytes: u64| -> Proxy {
            let text = format!(
                r#"{{"name":"edge","users":[],"flows":[{{"client":"10.0.0.2:5","server":"10.0.0.1:80","down_bytes":{bytes},
                "category":"fast","server_window_bytes":1,"user_rate_bits_per_s":null,"user_window_bytes":null,
                "server_rtt_us":20000,"user_rtt_us":null,"backlog_bytes":7}}]}}"#
            );
            parse(text.as_bytes()).unwrap()
        };
        let mut source = Source::new(Address::Unix(PROXY.into()));
        let begun = Instant::now();
        assert!(source.proxy(show(1_000), begun).values[0].1.is_nan());
        let reading = source.proxy(show(126_000), begun + Duration::from_millis(100));
        assert_eq!(reading.values[0].1, 10e6);
        assert_eq!(reading.values[4].1, 0.02);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse::<Proxy>(&body).map(|proxy| Source::new(Address::Tcp(RNIS)).proxy(proxy, Instant::now()));
            let _ = parse::<Vec<TtiMeas>>(&body).map(|users| radio(&[], users));
        }
    }
}
