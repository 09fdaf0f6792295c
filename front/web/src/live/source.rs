//! A running command that is read, by its own interface. Requests only read.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ranpace_rnis::etsi::vendor::CellConfig;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::live::address::{Address, STATUS};
use crate::live::reading::{Counters, Reading};
use crate::live::{emulation, proxy, radio, serve};
use crate::protocol::LiveSource;

/// Time for a source to answer. Ours.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer. Ours: several times what a proxy or a server with its 1000 listed connections says.
const ANSWER: usize = 4 << 20;

/// What answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Emulation,
    Proxy,
    Serve,
    Rnis,
}

/// A source that is read.
#[derive(Debug)]
pub struct Source {
    /// Where it answers.
    pub address: Address,
    /// What it is: at a port, that is known after an answer.
    kind: Option<Kind>,
    counters: Counters,
}

impl Source {
    /// One that has not been read.
    pub fn new(address: Address) -> Self {
        let kind = match &address {
            Address::Unix(path) if Address::of_emulation(path) == Some(STATUS) => Some(Kind::Emulation),
            Address::Unix(_) => Some(Kind::Proxy),
            Address::Tcp(_) => None,
        };
        Self { address, kind, counters: Counters::default() }
    }

    /// Asks it what it does; the error is a sentence for people.
    pub fn read(&mut self) -> Result<Reading, String> {
        let runtime = runtime().map_err(|error| format!("cannot ask {}: {error}", self.address))?;
        runtime.block_on(self.ask())
    }

    async fn ask(&mut self) -> Result<Reading, String> {
        let late = |_| format!("no answer for {} s", PATIENCE.as_secs());
        let asked = tokio::time::timeout(PATIENCE, self.ask_kind()).await.map_err(late);
        asked.and_then(|outcome| outcome).map_err(|reason| format!("{}: {reason}", self.address))
    }

    async fn ask_kind(&mut self) -> Result<Reading, String> {
        let address = &self.address;
        match self.kind {
            Some(Kind::Emulation) => Ok(emulation::reading(parse(&line(address).await?)?)),
            Some(Kind::Proxy) => {
                let answer = parse(&get(address, "/show").await?)?;
                Ok(proxy::reading(answer, &mut self.counters, Instant::now()))
            }
            Some(Kind::Serve) => {
                let answer = parse(&get(address, "/show").await?)?;
                Ok(serve::reading(answer, &mut self.counters, Instant::now()))
            }
            Some(Kind::Rnis) => {
                let cells: Vec<CellConfig> = parse(&get(address, "/rni/v2/vendor/cell_config").await?)?;
                Ok(radio::reading(&cells, &parse::<Vec<_>>(&get(address, "/rni/v2/vendor/tti_meas").await?)?))
            }
            None => {
                let is_server = exchange_at(address, "/show").await?.0 == StatusCode::OK;
                self.kind = Some(if is_server { Kind::Serve } else { Kind::Rnis });
                let reading = Box::pin(self.ask_kind()).await;
                if reading.is_err() {
                    self.kind = None;
                }
                reading
            }
        }
    }
}

/// Sources that answer now: those at the usual addresses, and those that are allowed. They are asked at the same time.
pub fn found(allowed: &[Address]) -> Vec<LiveSource> {
    let Ok(runtime) = runtime() else { return Vec::new() };
    let usual = Address::usual().into_iter();
    let allowed = allowed.iter().map(|address| (address.clone(), "allowed by --attach".to_owned()));
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (place, (address, what)) in usual.chain(allowed).enumerate() {
            asked.spawn(async move {
                let reading = Source::new(address.clone()).ask().await.ok()?;
                let what = if reading.name.starts_with("emulation") { reading.name } else { what };
                Some((place, LiveSource { address: address.to_string(), what }))
            });
        }
        let mut found: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, source)| source).collect()
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn nobody(error: std::io::Error) -> String {
    format!("nothing answers there ({error}): does it run?")
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        format!(
            "expected what `ranpace emulate`, `proxy`, `serve` or `rnis serve` of this version says, found another answer ({error})"
        )
    })
}

async fn unix(path: &Path) -> Result<UnixStream, String> {
    UnixStream::connect(path).await.map_err(nobody)
}

/// All that a socket says to whoever connects.
async fn line(address: &Address) -> Result<Vec<u8>, String> {
    let Address::Unix(path) = address else { return Err("it is no socket".to_owned()) };
    let mut body = Vec::new();
    let read = unix(path).await?.take(ANSWER as u64 + 1).read_to_end(&mut body).await;
    read.map_err(|error| format!("it could not be read: {error}"))?;
    if body.len() > ANSWER {
        return Err(format!("expected an answer of at most {ANSWER} bytes"));
    }
    Ok(body)
}

/// The answer to a request, of a bounded size.
async fn get(address: &Address, path: &str) -> Result<Bytes, String> {
    match exchange_at(address, path).await? {
        (StatusCode::OK, body) => Ok(body),
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            Err("it wants a token, and the lab has none: watch one that answers without".to_owned())
        }
        (status, _) => Err(format!(
            "expected an RNIS server, a proxy, or the metrics' address of a server; {path} was answered with {status}"
        )),
    }
}

async fn exchange_at(address: &Address, path: &str) -> Result<(StatusCode, Bytes), String> {
    match address {
        Address::Tcp(of) => exchange(TcpStream::connect(of).await.map_err(nobody)?, address, path).await,
        Address::Unix(of) => exchange(unix(of).await?, address, path).await,
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &Address,
    path: &str,
) -> Result<(StatusCode, Bytes), String> {
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
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER).collect().await;
    let body = body.map_err(|error| format!("expected an answer of at most {ANSWER} bytes: {error}"))?;
    Ok((status, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ranpace_rnis::etsi::vendor::TtiMeas;

    use super::*;
    use crate::live::emulation::Emulation;
    use crate::live::proxy::Proxy;
    use crate::live::serve::Serve;

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
        let (mut counters, begun) = (Counters::default(), Instant::now());
        assert!(proxy::reading(show(1_000), &mut counters, begun).values[0].1.is_nan());
        let reading = proxy::reading(show(126_000), &mut counters, begun + Duration::from_millis(100));
        assert_eq!(reading.values[0].1, 10e6);
        let of = |column: &str| reading.values.iter().find(|(about, _)| about.column == column).unwrap().1;
        assert_eq!(of("proxy_server_rtt_s"), 0.02);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut counters, now) = (Counters::default(), Instant::now());
            let _ = parse::<Proxy>(&body).map(|proxy| proxy::reading(proxy, &mut counters, now));
            let _ = parse::<Serve>(&body).map(|serve| serve::reading(serve, &mut counters, now));
            let _ = parse::<Emulation>(&body).map(emulation::reading);
            let _ = parse::<Vec<TtiMeas>>(&body).map(|users| radio::reading(&[], &users));
        }
    }
}
