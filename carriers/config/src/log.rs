//! The table `[log]`.

use serde::Deserialize;

/// The log.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Form.
    pub format: LogFormat,
    /// Least important messages that are written.
    pub level: LogLevel,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Importance of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only failures.
    Error,
    /// And what may become one.
    Warn,
    /// And what happens rarely.
    #[default]
    Info,
    /// And what happens often, such as every request.
    Debug,
}
