//! Answers that say what went wrong: `application/problem+json`, RFC 7807 (MEC 009, 5.x; MEC 012's `ProblemDetails`).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::{StatusCode, header};
use ranpace_rnis::etsi::ProblemDetails;

/// An answer that says what went wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    authenticate: Option<String>,
}

impl Problem {
    /// With a status, and what was expected and came.
    pub fn new(status: StatusCode, detail: impl ToString) -> Self {
        Self { status, detail: detail.to_string(), authenticate: None }
    }

    /// 400.
    pub fn bad(detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 404.
    pub fn not_found(detail: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 422.
    pub fn impossible(detail: impl ToString) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// With the header field `WWW-Authenticate`.
    #[must_use]
    pub fn authenticate(mut self, value: String) -> Self {
        self.authenticate = Some(value);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let details = ProblemDetails {
            kind: Some("about:blank".to_owned()),
            title: self.status.canonical_reason().map(str::to_owned),
            status: Some(self.status.as_u16()),
            detail: Some(self.detail),
            instance: None,
        };
        // Texts and a number always become JSON.
        let body = serde_json::to_string(&details).unwrap_or_default();
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/problem+json"));
        if let Some(value) = self.authenticate.and_then(|value| header::HeaderValue::try_from(value).ok()) {
            headers.insert(header::WWW_AUTHENTICATE, value);
        }
        answer
    }
}
