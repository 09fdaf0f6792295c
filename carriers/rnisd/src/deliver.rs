//! Delivery of notifications: each subscription has a task and a queue of its own, so that none waits for another.

pub mod callback;
pub mod client;
pub mod guard;
