//! Who may ask, where callbacks may go, what hostile clients cannot do, and what survives.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod auth;
mod bounds;
mod forgery;
mod kept;
#[path = "../support/mod.rs"]
mod support;
