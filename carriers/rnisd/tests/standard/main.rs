//! The interface of ETSI GS MEC 012, as a client sees it: queries, subscriptions, notifications, and the registration at a platform.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod mp1;
mod notifications;
mod queries;
mod subscriptions;
#[path = "../support/mod.rs"]
mod support;
