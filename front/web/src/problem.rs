//! Answers that say what went wrong.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::{StatusCode, header};
use ranpace_scenario::ScenarioError;

use crate::protocol::{Mistake, Problem};

/// A problem and the status of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub problem: Problem,
}

impl Refusal {
    /// With a status, and what was expected and came.
    pub fn new(status: StatusCode, detail: impl ToString) -> Self {
        Self { status, problem: Problem { detail: detail.to_string(), mistakes: Vec::new() } }
    }

    /// 400: the request cannot be read.
    pub fn bad(detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 403: it is not for this sender.
    pub fn forbidden(detail: impl ToString) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 404: there is nothing of that name.
    pub fn not_found(detail: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 409: not now.
    pub fn conflict(detail: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 413: it is larger than is allowed.
    pub fn too_large(detail: impl ToString) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 422: it is understood, and impossible.
    pub fn impossible(detail: impl ToString) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// 429: there are too many.
    pub fn too_many(detail: impl ToString) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
    }

    /// 500: the machine or Ranpace failed.
    pub fn ours(detail: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Self {
        let mut refusal = Self::impossible(&error);
        refusal.problem.mistakes = (error.diagnostics.iter())
            .map(|found| Mistake {
                line: found.position.map(|position| position.line as u32),
                column: found.position.map(|position| position.column as u32),
                problem: found.message.clone(),
            })
            .collect();
        refusal
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        // Texts and numbers always become JSON.
        let body = serde_json::to_string(&self.problem).unwrap_or_default();
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = self.status;
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        answer
    }
}
