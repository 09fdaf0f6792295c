//! All that can be wrong with a configuration: each fault with its line, its key, and what was expected.

use std::fmt;
use std::ops::Range;

use toml_edit::{Item, TableLike};

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// What is in it is wrong.
    #[error(transparent)]
    Faults(#[from] Faults),
}

/// All faults of a configuration, by line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    /// The file.
    pub file: String,
    /// At least one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Fault { line, key, reason }) in self.faults.iter().enumerate() {
            if number > 0 {
                formatter.write_str("\n")?;
            }
            formatter.write_str(&self.file)?;
            if let Some(line) = line {
                write!(formatter, ", line {line}")?;
            }
            if !key.is_empty() {
                write!(formatter, ": `{key}`")?;
            }
            write!(formatter, ": {reason}")?;
        }
        Ok(())
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1; `None` for keys that are missing altogether or came from elsewhere.
    pub line: Option<usize>,
    /// The key with its table, such as `limits.body`; empty if the line has none.
    pub key: String,
    /// What was expected, what was found, and what to do.
    pub reason: String,
}

/// A value that can be read but not used, or does not fit another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The key with its table.
    pub(crate) key: &'static str,
    /// The entry, from 0, where the table is an array of tables.
    entry: Option<usize>,
    pub(crate) reason: String,
}

impl Inconsistency {
    /// At a key, such as `limits.body`.
    pub fn at(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, entry: None, reason: reason.into() }
    }

    /// In an entry of an array of tables, counted from 0: at the whole entry (`source`), or at one of its keys (`server.address`).
    pub fn in_entry(key: &'static str, entry: usize, reason: impl Into<String>) -> Self {
        Self { key, entry: Some(entry), reason: reason.into() }
    }

    /// Where the key is, or the innermost of its tables that the file has.
    pub(crate) fn span(&self, document: &dyn TableLike) -> Option<Range<usize>> {
        let (mut table, mut span) = (document, None);
        for key in self.key.split('.') {
            let Some((key, item)) = table.get_key_value(key) else { break };
            span = key.span().or_else(|| item.span()).or(span);
            table = match item {
                Item::ArrayOfTables(entries) => {
                    let Some(entry) = self.entry.and_then(|entry| entries.get(entry)) else { break };
                    span = entry.span().or(span);
                    entry
                }
                item => {
                    let Some(table) = item.as_table_like() else { break };
                    table
                }
            };
        }
        span
    }
}
