//! Why a line is not used, and the checks of its values.

use core::fmt;

use super::{LONGEST, USERS, VERSION};

/// Longest name or identifier in bytes. Ours.
const TEXT: usize = 128;

/// Why a line was not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is too long.
    #[error("a line of {found} bytes; expected at most {LONGEST}")]
    TooLong {
        /// Its length.
        found: usize,
    },
    /// It is not such an object.
    #[error("{0}")]
    Form(String),
    /// Another version of the format.
    #[error("version {found} of the format; expected {VERSION}")]
    Version {
        /// The version.
        found: u32,
    },
    /// A value is outside its range.
    #[error("{what} is {found}; expected {expected}")]
    Value {
        /// The member.
        what: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        expected: String,
    },
    /// A cell that no line described.
    #[error(
        "cell {cell} is not described; expected a line {{\"cell\":{{\"cell\":{cell},...}}}} before this one"
    )]
    Cell {
        /// Its number.
        cell: u16,
    },
    /// A user has two rows in a slot.
    #[error("user {user} has two rows; expected one for each user")]
    Twice {
        /// Its number.
        user: u32,
    },
}

pub(super) fn wrong<T>(
    what: &'static str,
    found: impl fmt::Display,
    expected: impl fmt::Display,
) -> Result<T, LineError> {
    Err(LineError::Value { what, found: found.to_string(), expected: expected.to_string() })
}

/// An integer of at most `most`.
pub(super) fn at_most<T: PartialOrd + Copy + fmt::Display>(
    what: &'static str,
    found: T,
    most: T,
) -> Result<T, LineError> {
    if found <= most { Ok(found) } else { wrong(what, found, format_args!("at most {most}")) }
}

/// A number within bounds; NaN is not.
pub(super) fn within(what: &'static str, found: f64, least: f64, most: f64) -> Result<f64, LineError> {
    if (least..=most).contains(&found) {
        Ok(found)
    } else {
        wrong(what, found, format_args!("a number from {least} to {most}"))
    }
}

pub(super) fn user_number(user: u32) -> Result<u32, LineError> {
    at_most("user", user, USERS - 1)
}

pub(super) fn text(what: &'static str, found: &str) -> Result<(), LineError> {
    if found.len() <= TEXT && !found.chars().any(char::is_control) {
        return Ok(());
    }
    wrong(
        what,
        format_args!("{} bytes", found.len()),
        format_args!("at most {TEXT}, without control characters"),
    )
}
