//! The log of commands that serve until they are stopped.

use std::io::stderr;

use ranpace_config::{Log, LogFormat, LogLevel};
use tracing_subscriber::filter::LevelFilter;

/// Writes the log to standard error.
pub fn to_standard_error(to: &Log) {
    let level = match to.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // Where nobody reads the log, there is nobody to tell that it cannot be written.
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(stderr)
        .with_target(false)
        .log_internal_errors(false);
    match to.format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
