//! Configuration files of servers: TOML, in which an unknown key or a wrong value is an error that names the file, the line and the key.
//! All faults are told at once.
//!
//! A server describes its file by a type that implements [`Configuration`]; [`read()`] and [`parse()`] check it. Here are, too, the forms
//! that such files share: [`time()`] and [`bytes()`] with their units, an [`address()`], and the [`Log`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod faults;
mod log;
mod read;
mod values;

pub use faults::{ConfigError, Fault, Faults, Inconsistency};
pub use log::{Log, LogFormat, LogLevel};
pub use read::{Configuration, check, parse, read};
pub use values::{Address, address, addresses, bytes, optional_address, parsed, time};
