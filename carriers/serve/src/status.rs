//! What the server tells whoever looks after it: `/metrics` and `/show`, by HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;
use crate::open::OpenConnections;

/// Serves the text at `/metrics`, and what is open at `/show`, until the runtime ends. Clients' addresses are in the latter: it is for
/// this machine alone.
///
/// # Errors
///
/// If nobody can listen there.
pub async fn serve(
    metrics: Arc<Metrics>,
    open: Arc<OpenConnections>,
    address: SocketAddr,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let answer = move || {
        let text = metrics.text();
        async move { ([(CONTENT_TYPE, kind)], text) }
    };
    let show = move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        if !peer.ip().to_canonical().is_loopback() {
            let words = "/show is for this machine alone: ask it from loopback\n";
            return (StatusCode::FORBIDDEN, words).into_response();
        }
        match serde_json::to_string(&open.show()) {
            Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    };
    let routes = axum::Router::new().route("/metrics", get(answer)).route("/show", get(show));
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "metrics are served no longer");
        }
    });
    Ok(address)
}
