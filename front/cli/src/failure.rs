//! Failures of a command, and their exit statuses.

use std::fmt::Display;
use std::process::ExitCode;

use crate::say::say;

/// Reason for which a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The user asked for something that cannot be done: exit status 2.
    Asked(String),
    /// Ranpace or the machine failed: exit status 1.
    Ours(String),
    /// Ctrl-C: exit status 130, as shells expect; what was computed is kept.
    Interrupted(String),
    /// Another exit status, with or without a message.
    Status(u8, Option<String>),
}

impl Failure {
    /// A mistake of the user.
    pub fn asked(error: impl Display) -> Self {
        Self::Asked(error.to_string())
    }

    /// A failure of Ranpace or of the machine.
    pub fn ours(error: impl Display) -> Self {
        Self::Ours(error.to_string())
    }

    /// Prints the message to standard error and returns the exit status.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Self::Asked(text) => (Some(text), 2),
            Self::Ours(text) => (Some(text), 1),
            Self::Interrupted(text) => (Some(text), 130),
            Self::Status(code, text) => (text.as_ref(), *code),
        };
        if let Some(text) = text {
            say(&format!("ranpace: {text}"));
        }
        ExitCode::from(code)
    }
}

impl From<ranpace_lab::StoreError> for Failure {
    /// A folder without write permission fails when it is opened, so later errors are the machine's.
    fn from(error: ranpace_lab::StoreError) -> Self {
        Self::ours(error)
    }
}

#[cfg(all(target_os = "linux", any(feature = "rnis", feature = "kernel")))]
impl From<ranpace_config::ConfigError> for Failure {
    fn from(error: ranpace_config::ConfigError) -> Self {
        Self::asked(error)
    }
}

impl From<ranpace_scenario::ScenarioError> for Failure {
    fn from(error: ranpace_scenario::ScenarioError) -> Self {
        Self::asked(error)
    }
}

impl From<ranpace_lab::TraceLoadError> for Failure {
    fn from(error: ranpace_lab::TraceLoadError) -> Self {
        Self::asked(error)
    }
}
