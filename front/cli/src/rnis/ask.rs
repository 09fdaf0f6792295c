//! Requests to a server of ETSI MEC 012, ours or another's.

use std::path::PathBuf;
use std::time::Duration;

use ranpace_rnis::etsi::ProblemDetails;
use ranpace_rnisd::bytes::Bytes;
use ranpace_rnisd::config::Version;
use ranpace_rnisd::deliver::client::{Answer, Client, Connection};
use ranpace_rnisd::deliver::guard::Guard;
use ranpace_rnisd::hyper::{Method, StatusCode};
use ranpace_rnisd::tokio::runtime::{self, Runtime};
use ranpace_rnisd::url::Url;
use serde_json::Value;

use crate::failure::Failure;

/// Time for an answer. Ours.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest answer: records of thousands of users. Ours.
const LONGEST: usize = 64 << 20;

/// The server, and how to reach it.
#[derive(clap::Args)]
pub struct Target {
    /// The server's address, without /rni/v2
    #[arg(default_value = "http://127.0.0.1:8012")]
    url: Url,
    /// Bearer token, or @FILE that contains one
    #[arg(long)]
    token: Option<String>,
    /// PEM file of the authority that signed the server's certificate, if that is no public one
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Version of the standard to ask for [default: the server's]
    #[arg(long, value_name = "VERSION", value_parser = version)]
    api_version: Option<Version>,
}

fn version(name: &str) -> Result<Version, String> {
    Version::by_name(name).ok_or_else(|| "expected 2.1.1 or 2.2.1".to_owned())
}

/// Asks a server.
pub struct Asker {
    /// What requests run on.
    pub runtime: Runtime,
    /// Makes connections.
    pub client: Client,
    /// Header fields of every request.
    pub headers: Vec<(&'static str, String)>,
    /// Before `/rni/v2`, without a slash at its end.
    root: String,
    connection: Option<Connection>,
}

impl Target {
    /// Makes ready to ask; nothing is sent yet.
    pub fn asker(&self) -> Result<Asker, Failure> {
        if !matches!(self.url.scheme(), "http" | "https") || self.url.host_str().is_none() {
            return Err(Failure::asked(format!(
                "expected an address such as http://127.0.0.1:8012, found {}",
                self.url
            )));
        }
        let mut headers = vec![("Accept", "application/json".to_owned())];
        if let Some(token) = &self.token {
            let token = match token.strip_prefix('@') {
                Some(file) => std::fs::read_to_string(file)
                    .map_err(|error| Failure::asked(format!("--token {token}: {error}")))?,
                None => token.clone(),
            };
            headers.push(("Authorization", format!("Bearer {}", token.trim())));
        }
        if let Some(version) = self.api_version {
            headers.push(("Version", version.name().to_owned()));
        }
        let root = self.url.as_str().trim_end_matches('/');
        let root = root.strip_suffix("/rni/v2").unwrap_or(root).to_owned();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
        let client = Client::new(Guard::everywhere(), self.ca.as_deref(), PATIENCE)
            .map_err(Failure::asked)?
            .with_longest(LONGEST);
        Ok(Asker { runtime, client, headers, root, connection: None })
    }
}

impl Asker {
    /// The address of a path.
    pub fn url(&self, path: &str) -> Result<Url, Failure> {
        let text = format!("{}{path}", self.root);
        text.parse().map_err(|error| Failure::asked(format!("{text}: {error}")))
    }

    /// Sends a request, and returns its answer whatever it says.
    pub fn send(
        &mut self,
        method: Method,
        url: &Url,
        more: &[(&'static str, String)],
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let headers: Vec<(&str, String)> = self.headers.iter().chain(more).cloned().collect();
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let asked = self.client.request(&mut self.connection, method, url, &headers, body);
        self.runtime
            .block_on(asked)
            .map_err(|error| Failure::ours(format!("{error}; `ranpace rnis serve` starts a server")))
    }

    /// Sends a request, and returns the answer if it is what was asked for.
    pub fn ask(
        &mut self,
        method: Method,
        url: &Url,
        more: &[(&'static str, String)],
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let answer = self.send(method, url, more, body)?;
        if answer.status.is_success() { Ok(answer) } else { Err(refusal(url, answer.status, &answer.body)) }
    }
}

/// What a server's refusal means to the user.
pub fn refusal(url: &Url, status: StatusCode, body: &[u8]) -> Failure {
    let detail = match serde_json::from_slice::<ProblemDetails>(body) {
        Ok(ProblemDetails { detail: Some(detail), .. }) => detail,
        _ => String::from_utf8_lossy(body).chars().take(200).collect(),
    };
    let advice = match status {
        StatusCode::UNAUTHORIZED => "; --token gives one",
        _ => "",
    };
    let text = format!("{url}: the server answered {status}: {detail}{advice}");
    if status.is_client_error() { Failure::asked(text) } else { Failure::ours(text) }
}

/// The JSON of an answer.
pub fn json(answer: &Answer) -> Result<Value, Failure> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        Failure::ours(format!("the answer is no JSON ({error}); is this a server of MEC 012?"))
    })
}
