//! The interface: `/api`, and the page.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ws::{CloseFrame, Message as Packet, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::SinkExt as _;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{StatusCode, Uri};
use ranpace_lab::TraceLibrary;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::TaskTracker;

use crate::about::about;
use crate::gate::{Gate, HEADERS};
use crate::handle::{Event, Handle, Joined, Viewer};
use crate::live::address::Address;
use crate::live::source::{self, Source};
use crate::page::{ASSETS, Asset};
use crate::paths::Root;
use crate::problem::Refusal;
use crate::protocol::{
    Action, Attach, Build, Checked, Edit, Message, NewSession, ScenarioText, ServerInfo, Session, Subject,
};
use crate::results::{self, Form};
use crate::session::prepare;
use crate::sessions::Sessions;
use crate::{catalogue, compose, gallery, limits};

/// The description of this interface.
const DESCRIPTION: &str = include_str!("../openapi.json");
/// Time for a client to send a request's body, and to take a message. Ours.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time for the run that is saved. Ours.
const SAVING: Duration = Duration::from_secs(300);
/// Requests that may be computing at a time: the others wait.
const WORKERS: usize = 4;

/// What requests share.
#[derive(Debug)]
pub struct Lab {
    /// Who may ask.
    pub gate: Gate,
    /// The folder of results.
    pub root: Root,
    /// The same, as the user wrote it.
    pub shown: String,
    /// Folders of recordings.
    pub traces: Vec<PathBuf>,
    /// Addresses of live sources beyond this machine's own that may be watched.
    pub attach: Vec<Address>,
    /// The runs.
    pub sessions: Arc<Sessions>,
    /// Work that takes long.
    pub workers: Arc<Semaphore>,
    /// Connections and streams.
    pub tasks: TaskTracker,
}

type Shared = State<Arc<Lab>>;
type Answer = Result<Response, Refusal>;

/// The parts of an address that are not fixed.
struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let found = Path::from_request_parts(parts, state).await;
        found.map(|Path(id)| Self(id)).map_err(|error| Refusal::not_found(error.body_text()))
    }
}

/// The parameters of an address.
struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.uri))
    }
}

impl Query {
    fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.find(name).ok_or_else(|| Refusal::bad(format!("expected the parameter {name:?} in the address")))
    }
}

/// An answer of bytes.
fn content(body: impl Into<Body>, kind: &'static str) -> Response {
    let mut answer = Response::new(body.into());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// An answer that the browser keeps as a file.
fn download(mut answer: Response, name: &str) -> Response {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    // Only letters, digits and a few signs are left.
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{plain}\"")) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(Refusal::ours)?;
    Ok(content(body, "application/json"))
}

/// The body of a request, of this kind and at most so long.
async fn body(request: Request, kind: &str, most: usize) -> Result<Bytes, Refusal> {
    let found = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let found = found.map(|value| value.split(';').next().unwrap_or_default().trim());
    if !found.is_some_and(|found| found.eq_ignore_ascii_case(kind)) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Type: expected {kind}, found {found:?}"),
        ));
    }
    let read = tokio::time::timeout(PATIENCE, to_bytes(request.into_body(), most)).await;
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive");
    read.map_err(late)?
        .map_err(|error| Refusal::too_large(format!("expected a body of at most {most} bytes: {error}")))
}

async fn parsed<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    // A text grows when it is written as JSON.
    let body = body(request, "application/json", 2 * limits::SCENARIO + 65_536).await?;
    serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad(format!("the body is not as described: {error}")))
}

impl Lab {
    /// The library of a scenario that comes from a browser.
    fn trace_library(&self) -> TraceLibrary {
        TraceLibrary::new(self.traces.iter().cloned()).confined()
    }

    /// Computes something on a thread that may take its time.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = Arc::clone(&self.workers).acquire_owned().await.map_err(Refusal::ours)?;
        let lab = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let outcome = work(&lab);
            drop(permit);
            outcome
        });
        done.await.map_err(|error| Refusal::ours(format!("this is a bug, please report it: {error}")))?
    }

    /// All addresses.
    pub fn router(self: &Arc<Self>) -> Router {
        let api = Router::new()
            .route("/server", get(server))
            .route("/openapi.json", get(async || content(DESCRIPTION, "application/json")))
            .route("/controls", get(async || catalogue::controls().and_then(|list| json(&list))))
            .route("/controls/check", get(check_control))
            .route("/sources", get(sources))
            .route("/recordings", post(upload))
            .route("/scenarios/build", post(build))
            .route("/scenarios/check", post(check))
            .route("/sessions", get(sessions).post(begin))
            .route("/sessions/{id}", get(session).delete(end))
            .route("/sessions/{id}/scenario", get(scenario))
            .route("/sessions/{id}/control", post(control))
            .route("/sessions/{id}/edits", post(edit))
            .route("/sessions/{id}/save", post(save))
            .route("/sessions/{id}/table", get(table))
            .route("/sessions/{id}/stream", get(stream))
            .route("/results", get(folder))
            .route("/results/run", get(run))
            .route("/results/series", get(series))
            .route("/results/file", get(file))
            .route("/live", get(live_sources).post(attach))
            .route("/reproductions", get(reproductions));
        let mut router = Router::new().nest("/api", api);
        for asset in ASSETS {
            router = router.route(asset.path, get(async move || page(asset)));
        }
        router
            .fallback(async || Refusal::not_found("there is nothing at this address"))
            .method_not_allowed_fallback(async || {
                Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "the address does not have this method")
            })
            .layer(middleware::from_fn_with_state(Arc::clone(self), gate))
            .with_state(Arc::clone(self))
    }
}

/// What every request passes.
async fn gate(State(lab): Shared, request: Request, next: Next) -> Response {
    let (uri, method) = (request.uri().clone(), request.method().clone());
    let token = Query::of(&uri).find("token").map(str::to_owned);
    let mut answer =
        match (token, lab.gate.check(&method, &uri, request.headers())) {
            (_, Ok(())) => next.run(request).await,
            // The address that was printed: the token becomes a cookie, and leaves the address.
            (Some(token), Err(refusal))
                if uri.path() == "/" && refusal.status == StatusCode::UNAUTHORIZED =>
            {
                if lab.gate.is_token(&token) { welcome(&lab.gate, &token) } else { refusal.into_response() }
            }
            (_, Err(refusal)) => refusal.into_response(),
        };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        answer.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

fn welcome(gate: &Gate, token: &str) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let cookie = format!("{}={token}; HttpOnly; SameSite=Strict; Path=/", gate.cookie());
    // Both are hexadecimal digits and a few signs.
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    answer
}

fn page(asset: &'static Asset) -> Response {
    content(asset.content, asset.kind)
}

async fn server(State(lab): Shared) -> Answer {
    let can_write = lab.root.path().metadata().is_ok_and(|data| !data.permissions().readonly());
    json(&ServerInfo {
        version: ranpace_lab::VERSION.to_owned(),
        folder: lab.shown.clone(),
        can_write,
        limits: limits::all(),
    })
}

async fn check_control(query: Query) -> Answer {
    json(&catalogue::check_control(query.need("cc")?))
}

async fn sources(State(lab): Shared) -> Answer {
    json(&lab.work(|lab| Ok(catalogue::sources(&lab.traces))).await?)
}

async fn upload(State(lab): Shared, query: Query, request: Request) -> Answer {
    let name = query.need("name")?.to_owned();
    let content = body(request, "application/octet-stream", limits::UPLOAD).await?;
    json(&lab.work(move |lab| catalogue::upload(&lab.root, &name, &content)).await?)
}

/// Reads a scenario, and says what is in it.
async fn checked(lab: &Arc<Lab>, text: String) -> Answer {
    let checked = lab.work(move |lab| {
        let job = prepare(text, &mut lab.trace_library())?;
        Ok(Checked { about: about(&job.text, &job.scenario), text: job.text })
    });
    json(&checked.await?)
}

async fn build(State(lab): Shared, request: Request) -> Answer {
    let parts: Build = parsed(request).await?;
    checked(&lab, compose::build(&parts)?).await
}

async fn check(State(lab): Shared, request: Request) -> Answer {
    let ScenarioText { text } = parsed(request).await?;
    checked(&lab, text).await
}

async fn sessions(State(lab): Shared) -> Answer {
    let mut all: Vec<Session> = Vec::new();
    for handle in lab.sessions.all() {
        // One may just have ended.
        all.extend(handle.describe().await.ok());
    }
    json(&all)
}

async fn begin(State(lab): Shared, request: Request) -> Answer {
    let NewSession { text, speed, paused } = parsed(request).await?;
    let begun = lab.work(move |lab| {
        let mut library = lab.trace_library();
        let job = prepare(text, &mut library)?;
        lab.sessions.begin(job, library, speed, paused)
    });
    json(&begun.await?.describe().await?)
}

async fn session(State(lab): Shared, Id(id): Id) -> Answer {
    json(&lab.sessions.get(&id)?.describe().await?)
}

async fn end(State(lab): Shared, Id(id): Id) -> Answer {
    lab.sessions.get(&id)?.end();
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn scenario(State(lab): Shared, Id(id): Id, query: Query) -> Answer {
    let handle = lab.sessions.get(&id)?;
    let answer = content(handle.text().await?, "text/plain; charset=utf-8");
    Ok(if query.find("download").is_some() { download(answer, "scenario.toml") } else { answer })
}

async fn control(State(lab): Shared, Id(id): Id, request: Request) -> Answer {
    let action: Action = parsed(request).await?;
    json(&lab.sessions.get(&id)?.control(action).await?)
}

async fn edit(State(lab): Shared, Id(id): Id, request: Request) -> Answer {
    let edit: Edit = parsed(request).await?;
    json(&lab.sessions.get(&id)?.edit(edit).await?)
}

async fn save(State(lab): Shared, Id(id): Id, request: Request) -> Answer {
    let _: serde_json::Map<String, serde_json::Value> = parsed(request).await?;
    let text = lab.sessions.get(&id)?.text().await?;
    let saved = lab.work(move |lab| {
        let job = prepare(text, &mut lab.trace_library())?;
        let begun = Instant::now();
        results::save(&lab.root, &job, &mut |_| begun.elapsed() < SAVING)
    });
    json(&saved.await?)
}

async fn table(State(lab): Shared, Id(id): Id, query: Query) -> Answer {
    let of = match query.need("of")? {
        "flow" => Subject::Flow,
        "link" => Subject::Link,
        "user" => Subject::User,
        other => return Err(Refusal::bad(format!("of: expected flow, link or user, found {other:?}"))),
    };
    let (name, form) = (query.need("name")?.to_owned(), Form::parse(query.find("format"))?);
    let series = lab.sessions.get(&id)?.table(of, name.clone()).await?;
    let bytes = lab.work(move |_| results::played(&series, form)).await?;
    Ok(table_answer(bytes, &name, form))
}

fn table_answer(bytes: Bytes, name: &str, form: Form) -> Response {
    let answer = content(bytes, form.kind());
    match form {
        Form::Columns => answer,
        Form::Csv => download(answer, &format!("{name}.csv")),
        Form::Parquet => download(answer, &format!("{name}.parquet")),
    }
}

async fn folder(State(lab): Shared, query: Query) -> Answer {
    let path = query.find("path").unwrap_or_default().to_owned();
    json(&lab.work(move |lab| results::folder(&lab.root, &path)).await?)
}

async fn run(State(lab): Shared, query: Query) -> Answer {
    let path = query.need("path")?.to_owned();
    json(&lab.work(move |lab| results::run(&lab.root, &path)).await?)
}

async fn series(State(lab): Shared, query: Query) -> Answer {
    let (path, table) = (query.need("path")?.to_owned(), query.need("table")?.to_owned());
    let form = Form::parse(query.find("format"))?;
    let name = table.clone();
    let bytes = lab.work(move |lab| results::stored(&lab.root, &path, &table, form)).await?;
    Ok(table_answer(bytes, &name, form))
}

async fn file(State(lab): Shared, query: Query) -> Answer {
    let path = query.need("path")?.to_owned();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let (bytes, kind) = lab.work(move |lab| results::file(&lab.root, &path)).await?;
    let mut answer = content(bytes, kind);
    if kind.starts_with("text/html") {
        // A report runs in an origin of its own, and reaches nobody: a file in the folder may come from anywhere.
        let policy = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      frame-ancestors 'self'";
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        return Ok(answer);
    }
    Ok(download(answer, &name))
}

async fn reproductions(State(lab): Shared) -> Answer {
    json(&lab.work(|_| gallery::reproductions()).await?)
}

async fn live_sources(State(lab): Shared) -> Answer {
    json(&lab.work(|lab| Ok(source::found(&lab.attach))).await?)
}

async fn attach(State(lab): Shared, request: Request) -> Answer {
    let Attach { address } = parsed(request).await?;
    let address = Address::permitted(&address, &lab.attach, lab.gate.is_local())?;
    if let Some(handle) = lab.sessions.attached(&address) {
        return json(&handle.describe().await?);
    }
    let handle = lab.work(move |lab| {
        let mut source = Source::new(address);
        let first = source.read().map_err(Refusal::conflict)?;
        lab.sessions.attach(source, first)
    });
    json(&handle.await?.describe().await?)
}

async fn stream(
    State(lab): Shared,
    Id(id): Id,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Answer {
    let handle = lab.sessions.get(&id)?;
    let upgrade =
        upgrade.map_err(|error| Refusal::bad(format!("expected a WebSocket: {}", error.body_text())))?;
    if lab.sessions.viewers() >= limits::VIEWERS {
        return Err(Refusal::too_many(format!("{} tabs watch runs, the most that may", limits::VIEWERS)));
    }
    let viewer = handle.enter();
    let tasks = lab.tasks.clone();
    // The page sends nothing.
    let upgrade = upgrade.max_message_size(1_024);
    Ok(upgrade.on_upgrade(move |socket| tasks.track_future(watch(socket, handle, viewer))))
}

/// Sends a run to a viewer until one of them goes.
async fn watch(mut socket: WebSocket, handle: Handle, viewer: Viewer) {
    let ended = follow(&mut socket, &handle).await;
    drop(viewer);
    if let Ended::Run(detail) = ended {
        let gone = serde_json::to_string(&Message::Gone { detail }).unwrap_or_default(); // a text always becomes JSON
        let reason = CloseFrame { code: close_code::NORMAL, reason: "the run is gone".into() };
        // The viewer may have gone meanwhile.
        let _ = send(&mut socket, [Packet::Text(gone.into()), Packet::Close(Some(reason))]).await;
    }
}

/// Why a stream ended.
enum Ended {
    /// The viewer went, or takes nothing.
    Viewer,
    /// The run.
    Run(String),
}

/// Sends packets together.
async fn send(socket: &mut WebSocket, packets: impl IntoIterator<Item = Packet>) -> Result<(), Ended> {
    let all = async {
        for packet in packets {
            socket.feed(packet).await?;
        }
        socket.flush().await
    };
    match tokio::time::timeout(PATIENCE, all).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Ended::Viewer),
    }
}

async fn follow(socket: &mut WebSocket, handle: &Handle) -> Ended {
    loop {
        let Joined { session, frames, mut events } = match handle.join().await {
            Ok(joined) => joined,
            Err(refusal) => return Ended::Run(refusal.problem.detail),
        };
        let packets = std::iter::once(Packet::Text(session)).chain(frames.into_iter().map(Packet::Binary));
        if let Err(ended) = send(socket, packets).await {
            return ended;
        }
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                received = socket.recv() => match received {
                    Some(Ok(Packet::Close(_)) | Err(_)) | None => return Ended::Viewer,
                    Some(Ok(_)) => continue,
                },
            };
            let news = match event {
                Ok(Event::News(news)) => news,
                // It begins anew, or this viewer is too far behind.
                Ok(Event::Again) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return Ended::Run("the run has ended".to_owned()),
            };
            if let Err(ended) = send(socket, news.iter().cloned()).await {
                return ended;
            }
        }
    }
}

/// A semaphore for [`Lab::workers`].
pub fn workers() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WORKERS))
}
