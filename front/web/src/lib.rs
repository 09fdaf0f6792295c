//! The server of `ranpace lab`: runs that are played and changed in the browser, folders of results, and the page itself.
//!
//! [`protocol`] has what page and server say to each other. A run is a thread (`session.rs`) that steps the simulation, as the
//! environments of the Python package do. `gate.rs` decides who may ask.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod about;
mod api;
mod catalogue;
mod compose;
mod frame;
mod gallery;
mod gate;
mod grid;
mod handle;
mod limits;
mod live;
mod page;
mod paths;
mod problem;
pub mod protocol;
mod results;
mod server;
mod session;
mod sessions;

#[cfg(test)]
mod generated;

pub use compose::{Change, edit};
pub use live::address::Address;
pub use problem::Refusal;
pub use server::{LabError, Options, Server};
