//! Questions to a running proxy, by HTTP: at a Unix socket for its operator (`/show`, `/drain`, `/hand-over`, `/metrics`, `/health`),
//! and at a port for collectors of metrics (`/metrics`, `/health`).

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use hyper::Method;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, oneshot};

use crate::client::{ask, runtime};
use crate::config::Control;
use crate::error::ProxyError;
use crate::metrics::Metrics;
use crate::proxy::{Asker, Command};
use crate::snapshot::Snapshot;

/// What answers are made of.
#[derive(Clone)]
struct Shared {
    asker: Asker,
    metrics: Arc<Metrics>,
    /// Another process answers from now on.
    handed_over: Arc<Notify>,
}

/// Answers until this is dropped.
pub struct ControlServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ControlServer {
    /// Begins to answer.
    ///
    /// # Errors
    ///
    /// The socket or the port cannot be had.
    pub fn start(control: &Control, asker: Asker, metrics: Arc<Metrics>) -> Result<Self, ProxyError> {
        let runtime = runtime()?;
        let handed_over = Arc::new(Notify::new());
        let shared = Shared { asker, metrics, handed_over: Arc::clone(&handed_over) };
        let public = Router::new().route("/metrics", get(show_metrics)).route("/health", get(health));
        let own = public
            .clone()
            .route("/show", get(show))
            .route("/drain", post(drain))
            .route("/hand-over", post(hand_over));
        let own = own.with_state(shared.clone());
        let public = public.with_state(shared);
        let path = control.socket.clone();
        let (unix, tcp) = runtime
            .block_on(async { Ok::<_, ProxyError>((own_socket(&path)?, port(control.metrics).await?)) })?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async move {
                if let Some(tcp) = tcp {
                    // It ends with the runtime; accepting goes on after errors.
                    tokio::spawn(async move { axum::serve(tcp, public).await });
                }
                let to_end = async move { handed_over.notified().await };
                tokio::select! {
                    // The file is another process's from then on.
                    _ = axum::serve(unix, own).with_graceful_shutdown(to_end) => {}
                    // Its sender is dropped, never used. A file that is left is replaced by the next proxy.
                    _ = stopped => { let _ = fs::remove_file(&path); }
                }
            });
        };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(serve);
        let thread = thread.map_err(ProxyError::system("start a thread"))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// A socket in the file system for this user alone. One that a killed process left is replaced.
fn own_socket(path: &Path) -> Result<UnixListener, ProxyError> {
    let what = || format!("listen at {}", path.display());
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(ProxyError::Setup(format!(
            "another proxy answers at {}; `control.socket` of each must differ",
            path.display()
        )));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            fs::remove_file(path).map_err(ProxyError::system(what()))?;
        }
        // What is there is no socket, and is not removed: it cannot be listened at.
        Ok(_) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(ProxyError::system(what()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(ProxyError::system(what()))?;
    Ok(listener)
}

async fn port(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ProxyError> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).map_err(ProxyError::system(format!("listen at {address} for collectors of metrics")))
}

async fn snapshot(shared: &Shared) -> Option<Snapshot> {
    let (answer, answered) = oneshot::channel();
    shared.asker.ask(Command::Show(answer));
    answered.await.ok()
}

async fn show(State(shared): State<Shared>) -> Response {
    match snapshot(&shared).await {
        Some(snapshot) => match serde_json::to_string(&snapshot) {
            Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        },
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn drain(State(shared): State<Shared>) -> StatusCode {
    if shared.asker.ask(Command::Drain) { StatusCode::ACCEPTED } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn hand_over(State(shared): State<Shared>) -> (StatusCode, String) {
    let (answer, answered) = oneshot::channel();
    shared.asker.ask(Command::HandOver(answer));
    match answered.await {
        Ok(Ok(())) => {
            // This answer is the last one.
            shared.handed_over.notify_one();
            (StatusCode::OK, String::new())
        }
        Ok(Err(why)) => (StatusCode::CONFLICT, why),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the proxy ends".to_owned()),
    }
}

async fn show_metrics(State(shared): State<Shared>) -> Response {
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], shared.metrics.text())
        .into_response()
}

/// The thread of the proxy answers.
async fn health(State(shared): State<Shared>) -> StatusCode {
    let (answer, answered) = oneshot::channel();
    shared.asker.ask(Command::Answer(answer));
    let answered = tokio::time::timeout(Duration::from_secs(1), answered).await;
    if matches!(answered, Ok(Ok(()))) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// Asks the proxy at this socket what it does.
///
/// # Errors
///
/// None is there, or it does not answer within five seconds.
pub fn ask_snapshot(socket: &Path) -> Result<Snapshot, ProxyError> {
    let body = ask(socket, Method::GET, "/show")?;
    serde_json::from_slice(&body).map_err(|error| {
        ProxyError::Setup(format!("the proxy's answer is not understood ({error}): is it of this version?"))
    })
}
