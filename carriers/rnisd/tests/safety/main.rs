//! Who may ask, where callbacks may go, what hostile clients cannot do, what survives, and whether answers are as described.
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

mod auth;
mod bounds;
mod conformance;
mod forgery;
mod kept;
#[path = "../support/mod.rs"]
mod support;
