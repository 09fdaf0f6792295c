//! Registration at a MEC platform: ETSI GS MEC 011 V2.2.1, `mec_service_mgmt/v1`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use url::Url;

use crate::config::Mp1;
use crate::core::Core;
use crate::deliver::client::{Answer, Client, RequestError};
use crate::deliver::guard::Guard;

/// Wait before the first retry, and the longest. Ours.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often the registration is checked: a platform that was restarted has forgotten it. Ours.
const CHECK: Duration = Duration::from_secs(30);

/// The service as the platform lists it: `ServiceInfo`.
fn service(core: &Core) -> Value {
    let encrypted = core.config.tls.is_some();
    let mut security = json!({});
    if core.config.auth.is_some() {
        security =
            json!({ "oAuth2Info": { "grantTypes": ["OAUTH2_CLIENT_CREDENTIALS"], "tokenEndpoint": "" } });
    }
    json!({
        "serName": "rnis",
        "serCategory": { "href": "/rni", "id": "rni", "name": "RNI", "version": "v2" },
        "version": core.config.version.name(),
        "state": "ACTIVE",
        "transportInfo": {
            "id": "rnis-rest",
            "name": "REST",
            "description": "ETSI GS MEC 012 Radio Network Information API",
            "type": "REST_HTTP",
            "protocol": if encrypted { "HTTPS" } else { "HTTP" },
            "version": "1.1",
            "endpoint": { "uris": [format!("{}/rni/v2", core.root())] },
            "security": security,
        },
        "serializer": "JSON",
        "scopeOfLocality": "MEC_HOST",
        "consumedLocalOnly": false,
        "isLocal": true,
    })
}

struct Platform {
    client: Client,
    mp1: Mp1,
}

impl Platform {
    async fn ask(&self, method: Method, url: &str, body: Option<&Value>) -> Result<Answer, String> {
        let url: Url = url.parse().map_err(|error: url::ParseError| error.to_string())?;
        let mut headers = vec![("Accept", "application/json".to_owned())];
        if let Some(token) = &self.mp1.token {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let answer = self.client.request(&mut None, method, &url, &headers, body).await;
        answer.map_err(|error: RequestError| error.to_string())
    }

    fn services(&self) -> String {
        let root = self.mp1.url.as_str().trim_end_matches('/');
        format!("{root}/mec_service_mgmt/v1/applications/{}/services", self.mp1.application)
    }

    /// Registers; returns the address of the registration.
    async fn register(&self, service: &Value) -> Result<String, String> {
        let services = self.services();
        let answer = self.ask(Method::POST, &services, Some(service)).await?;
        if !answer.status.is_success() {
            let reason = String::from_utf8_lossy(&answer.body).chars().take(200).collect::<String>();
            return Err(format!("the platform answered {}: {reason}", answer.status));
        }
        if let Some(location) = answer.headers.get("location").and_then(|value| value.to_str().ok()) {
            let joined = self.mp1.url.join(location).map_err(|error| error.to_string())?;
            return Ok(joined.to_string());
        }
        let body: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let id =
            body["serInstanceId"].as_str().ok_or("expected a Location, or serInstanceId in the answer")?;
        Ok(format!("{services}/{id}"))
    }
}

/// Keeps the service registered, until the server stops; then removes it.
pub async fn run(core: Arc<Core>, mp1: Mp1) {
    let callbacks = &core.config.callbacks;
    // The operator names the platform's address.
    let client = match Client::new(Guard::everywhere(), callbacks.ca.as_deref(), callbacks.answer_time) {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(%error, "no registration at the platform");
            return;
        }
    };
    let platform = Platform { client, mp1 };
    let service = service(&core);
    let mut at: Option<String> = None;
    let mut pause = RETRY.0;
    loop {
        let is_there = match &at {
            Some(url) => match platform.ask(Method::GET, url, None).await {
                Ok(answer) => answer.status != hyper::StatusCode::NOT_FOUND,
                // A platform that does not answer has not said that it forgot.
                Err(_) => true,
            },
            None => false,
        };
        let wait = if is_there {
            CHECK
        } else {
            match platform.register(&service).await {
                Ok(url) => {
                    tracing::info!(%url, "registered at the platform");
                    at = Some(url);
                    pause = RETRY.0;
                    CHECK
                }
                Err(reason) => {
                    tracing::warn!(%reason, "the platform did not register the service; it is asked again");
                    at = None;
                    let wait = pause;
                    pause = (pause * 2).min(RETRY.1);
                    wait
                }
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = core.stop.cancelled() => break,
        }
    }
    if let Some(url) = at
        && let Err(reason) = platform.ask(Method::DELETE, &url, None).await
    {
        tracing::warn!(%reason, "the service could not be removed from the platform");
    }
}
