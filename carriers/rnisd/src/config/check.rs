//! Reading a configuration, and all that can be wrong with it: each fault with its line, its key, and what was expected.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml_edit::{Document, Item};

use super::Config;
use crate::viewer::Viewer;

/// Most faults that one reading reports. Ours.
const MOST: usize = 50;

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

/// A fault whose line is still to be found: the path of its key, with the number of the entry in arrays of tables.
struct Located {
    path: Vec<Step>,
    reason: String,
}

enum Step {
    Key(&'static str),
    Entry(usize),
}

impl Located {
    fn at(key: &'static str, reason: impl Into<String>) -> Self {
        Self { path: key.split('.').map(Step::Key).collect(), reason: reason.into() }
    }

    fn of_entry(table: &'static str, entry: usize, reason: impl Into<String>) -> Self {
        Self { path: vec![Step::Key(table), Step::Entry(entry)], reason: reason.into() }
    }

    fn key(&self) -> String {
        let keys = self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(*key),
            Step::Entry(_) => None,
        });
        keys.collect::<Vec<_>>().join(".")
    }

    /// Where the key is, or the innermost of its tables that the file has.
    fn span(&self, document: &Item) -> Option<Range<usize>> {
        let (mut item, mut span) = (document, None);
        for step in &self.path {
            let found = match step {
                Step::Key(key) => item.as_table_like().and_then(|table| {
                    let (key, item) = table.get_key_value(key)?;
                    span = key.span().or_else(|| item.span()).or(span.take());
                    Some(item)
                }),
                Step::Entry(number) => match item {
                    Item::ArrayOfTables(tables) => {
                        let table = tables.get(*number)?;
                        span = table.span().or(span.take());
                        // The entry's own keys are not looked for.
                        None
                    }
                    _ => None,
                },
            };
            let Some(found) = found else { break };
            item = found;
        }
        span
    }
}

/// The number of the line, from 1, that a byte is on.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The beginning of the line that a byte is on; the byte may be inside a character.
fn begin_of_line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1)
}

/// The key on the line of a byte, with its table.
fn key_at(text: &str, at: usize) -> String {
    let header = |line: &str| {
        let line = line.trim();
        let inner = line.strip_prefix('[')?.split(']').next()?;
        Some(inner.trim_start_matches('[').trim().to_owned())
    };
    let begin = begin_of_line(text, at);
    let line = text[begin..].lines().next().unwrap_or_default();
    if let Some(table) = header(line) {
        return table;
    }
    let table = text[..begin].lines().rev().find_map(header);
    let key = line.split_once('=').map(|(key, _)| key.trim().to_owned());
    [table, key].into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// Replaces what a fault is about by spaces, so that the rest can be read; false if nothing is left to replace.
fn blank(text: &mut String, at: Range<usize>, whole_table: bool) -> bool {
    let begin = begin_of_line(text, at.start);
    let mut end =
        text.bytes().skip(at.end).position(|byte| byte == b'\n').map_or(text.len(), |rest| at.end + rest);
    if whole_table && text[begin..].starts_with('[') {
        end = text[end..].find("\n[").map_or(text.len(), |rest| end + rest);
    }
    let replaced: String =
        text[begin..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect();
    let is_new = text[begin..end] != replaced;
    text.replace_range(begin..end, &replaced);
    is_new
}

/// Adds the known name that an unknown one is closest to.
fn with_nearest(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let (Some(found), true) = (names.next(), message.starts_with("unknown field")) else {
        return message.to_owned();
    };
    let near = names
        .map(|name| (strsim::jaro(name, found), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, near)) => format!("unknown key; did you mean `{near}`? {}", &message["unknown ".len()..]),
        None => message.to_owned(),
    }
}

/// What can be read, and what cannot: each fault is left out, and the rest read again.
pub fn read_parts<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<Fault>) {
    let (mut rest, mut faults) = (text.to_owned(), Vec::new());
    loop {
        let error = match toml_edit::de::from_str::<T>(&rest) {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        let message = error.message().trim_end();
        let span = error.span().map(|span| span.start.min(text.len())..span.end.min(text.len()));
        faults.push(Fault {
            line: span.as_ref().map(|span| line_of(text, span.start)),
            key: span.as_ref().map(|span| key_at(text, span.start)).unwrap_or_default(),
            reason: with_nearest(message),
        });
        let is_missing = message.starts_with("missing field");
        let can_go_on = span.is_some_and(|span| blank(&mut rest, span, is_missing));
        if !can_go_on || faults.len() >= MOST {
            return (None, faults);
        }
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or something in it is wrong.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::Unreadable { file: name.clone(), error })?;
        let mut config = Self::parse(&name, &text)?;
        config.relative_to(file.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    /// Parses the text of a file; `name` is the file's in errors.
    ///
    /// # Errors
    ///
    /// All that is wrong in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        let (config, mut faults) = read_parts::<Self>(text);
        if let Some(config) = &config {
            let document = Document::parse(text.to_owned()).ok();
            let broken: Vec<String> = faults
                .iter()
                .map(|fault| fault.key.split('.').next().unwrap_or_default().to_owned())
                .collect();
            for located in config.inconsistencies() {
                let key = located.key();
                // What is missing there may be what could not be read.
                if broken.iter().any(|table| key.split('.').next() == Some(table)) {
                    continue;
                }
                let span = document.as_ref().and_then(|document| located.span(document.as_item()));
                let line = span.map(|span| line_of(text, span.start));
                faults.push(Fault { line, key, reason: located.reason });
            }
        }
        faults.sort_by_key(|fault| fault.line);
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(Faults { file: name.to_owned(), faults }),
        }
    }

    /// Checks keys that have to fit together; `name` says where they come from.
    ///
    /// # Errors
    ///
    /// If they do not fit.
    pub fn check(&self, name: &str) -> Result<(), Faults> {
        let fault = |located: Located| Fault { line: None, key: located.key(), reason: located.reason };
        let faults: Vec<Fault> = self.inconsistencies().into_iter().map(fault).collect();
        if faults.is_empty() { Ok(()) } else { Err(Faults { file: name.to_owned(), faults }) }
    }

    /// Keys that do not fit together.
    fn inconsistencies(&self) -> Vec<Located> {
        let Self { limits, auth, tls, client, callbacks, subscriptions, measures, source, .. } = self;
        let mut found = Vec::new();
        for (number, source) in source.iter().enumerate() {
            if let Err(reason) = source.open() {
                found.push(Located::of_entry("source", number, reason));
            }
            if let Some(period) = source.period.filter(|period| *period >= measures.silence) {
                let reason = format!(
                    "expected a `period` of less than `measures.silence` ({:?}), or its users leave between two metrics; found {period:?}",
                    measures.silence
                );
                found.push(Located::of_entry("source", number, reason));
            }
        }
        if let Some(auth) = auth
            && auth.keys.is_some() == auth.jwks.is_some()
        {
            let reason = "expected `keys` (a file) or `jwks` (an address), one of the two";
            found.push(Located::at("auth", reason));
        }
        if !client.is_empty() && auth.is_none() && tls.as_ref().is_none_or(|tls| tls.client_ca.is_none()) {
            let reason =
                "expected [auth], or `client_ca` in [tls], beside it: without them no client has a name";
            found.push(Located::of_entry("client", 0, reason));
        }
        if tls.as_ref().is_some_and(|tls| tls.require_client_certificate && tls.client_ca.is_none()) {
            let reason = "expected `client_ca` beside it";
            found.push(Located::at("tls.require_client_certificate", reason));
        }
        for (key, number, least) in [
            ("limits.body", limits.body, 1024),
            ("limits.header", limits.header, 8192),
            ("limits.uri", limits.uri, 256),
            ("limits.connections", limits.connections, 1),
            ("limits.connections_per_address", limits.connections_per_address, 1),
            ("callbacks.queue", callbacks.queue, 1),
            ("subscriptions.most", subscriptions.most, 1),
            ("subscriptions.most_per_client", subscriptions.most_per_client, 1),
            ("subscriptions.periods", subscriptions.periods, 1),
        ] {
            if number < least {
                found.push(Located::at(key, format!("expected at least {least}, found {number}")));
            }
        }
        for (key, time) in [
            ("limits.head_time", limits.head_time),
            ("limits.body_time", limits.body_time),
            ("limits.write_time", limits.write_time),
            ("callbacks.answer_time", callbacks.answer_time),
            ("callbacks.retry", callbacks.retry),
            ("measures.period", measures.period),
            ("measures.silence", measures.silence),
        ] {
            if time < Duration::from_millis(1) {
                found.push(Located::at(key, format!("expected at least 1ms, found {time:?}")));
            }
        }
        if let Some(root) = &self.api_root
            && !matches!(root.scheme(), "http" | "https")
        {
            found.push(Located::at("api_root", format!("expected http:// or https://, found {root}")));
        }
        found.extend(self.feed.faults().into_iter().map(|(key, reason)| Located::at(key, reason)));
        let is_protected = auth.is_some() || tls.as_ref().is_some_and(|tls| tls.require_client_certificate);
        if !is_protected && !self.listen.ip().is_loopback() {
            let reason = format!(
                "expected [auth], or [tls] with `require_client_certificate`, because anybody who reaches {} could read \
                 where users are; or listen on 127.0.0.1",
                self.listen
            );
            found.push(Located::at("listen", reason));
        }
        found
    }

    /// What a client with an entry of its own may see; `None` if it has none.
    pub fn viewer(&self, client: &str) -> Option<Viewer> {
        let client = self.client.iter().find(|one| one.id == client)?;
        let kinds = client.identifiers.as_ref().map(|of| of.iter().map(|kind| *kind as u8 + 1).collect());
        Some(Viewer { users: client.users.clone(), kinds })
    }

    /// Files are named relative to the configuration's folder.
    fn relative_to(&mut self, folder: &Path) {
        let resolve = |path: &mut PathBuf| *path = folder.join(&path);
        self.data.iter_mut().for_each(resolve);
        self.feed.relative_to(folder);
        if let Some(tls) = &mut self.tls {
            resolve(&mut tls.certificate);
            resolve(&mut tls.key);
            tls.client_ca.iter_mut().for_each(resolve);
        }
        if let Some(auth) = &mut self.auth {
            auth.keys.iter_mut().for_each(resolve);
        }
        self.callbacks.ca.iter_mut().for_each(resolve);
        self.source.iter_mut().filter_map(|source| source.replay.as_mut()).for_each(resolve);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Version;
    use super::*;

    #[test]
    fn an_empty_file_is_the_defaults() {
        let config = Config::parse("rnis.toml", "").unwrap();
        assert_eq!((config.listen.port(), config.version), (8012, Version::V221));
        let some = "version = \"2.1.1\"\n[callbacks]\nallow = [\"10.0.0.0/8\"]\nretry = \"250ms\"\n[limits]\nbody = \"16KB\"";
        let config = Config::parse("rnis.toml", some).unwrap();
        assert_eq!(config.version, Version::V211);
        assert_eq!(
            (config.callbacks.retry, config.limits.body, config.callbacks.allow.len()),
            (Duration::from_millis(250), 16_000, 1)
        );
    }

    #[test]
    fn faults_name_the_file_the_line_and_the_key() {
        for (text, expected) in [
            ("lisen = \"127.0.0.1:1\"", "rnis.toml, line 1: `lisen`: unknown key; did you mean `listen`?"),
            (
                "\n[limits]\nbody = 7",
                "line 3: `limits.body`: invalid type: integer `7`, expected a size with its unit",
            ),
            ("\n[limits]\nbody = \"7\"", "line 3: `limits.body`: expected a size"),
            ("[callbacks]\n\nretry = \"1 fortnight\"", "line 3: `callbacks.retry`: "),
            ("[callbacks]\nallow = [\"10.0.0.0/40\"]", "line 2: `callbacks.allow`: "),
            ("listen = ", "line 1: `listen`: "),
            ("version = \"3\"", "line 1: `version`: unknown variant `3`, expected `2.1.1` or `2.2.1`"),
            ("[limits]\n\nuri = \"1B\"", "line 3: `limits.uri`: expected at least 256, found 1"),
            ("\n[auth]\nissuer = \"a\"", "line 2: `auth`: expected `keys` (a file) or `jwks`"),
            (
                "\n[[source]]\nname = \"a\"",
                "line 2: `source`: expected one of `lines`, `replay` and `srsran`",
            ),
            (
                "[[source]]\nlines = \"-\"\n[[source]]\nlines = \"a\"",
                "line 3: `source`: \"a\" is no address; expected unix:PATH",
            ),
            ("[[source]]\nsrsran = \"ws://a:1\"", "[[source.cell]]"),
            (
                "[[source]]\nsrsran = \"ws://a:1\"\n[[source.cell]]\npci = 1\ncell = 0\nprbs = 0\ntechnology = \"nr\"\n\
                 ecgi = { cellId = \"1\", plmn = { mcc = \"001\", mnc = \"01\" } }",
                "pci 1: ",
            ),
            ("[[client]]\nid = \"a\"", "line 1: `client`: expected [auth]"),
            ("listen = \"0.0.0.0:80\"", "line 1: `listen`: expected [auth]"),
            ("[mp1]\nurl = \"http://a\"", "line 1: `mp1`: missing field `application`"),
        ] {
            let error = Config::parse("rnis.toml", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let text = "listen = \"0.0.0.0:80\"\nversion = \"3\"\n[tls]\nkey = \"k.pem\"\n[limits]\nbody = 7\nuri = \"1B\"\n\
                    [[source]]\nlines = \"a\"\n[log]\nlevel = \"loud\"\n";
        let faults = Config::parse("rnis.toml", text).unwrap_err().faults;
        let found: Vec<(Option<usize>, &str)> =
            faults.iter().map(|fault| (fault.line, fault.key.as_str())).collect();
        // Other bounds of a table with a fault are not checked before that is mended.
        let expected =
            [(1, "listen"), (2, "version"), (3, "tls"), (6, "limits.body"), (8, "source"), (11, "log.level")];
        assert_eq!(found, expected.map(|(line, key)| (Some(line), key)));
    }

    #[test]
    fn files_that_are_not_there_are_faults() {
        let text = "data = \"d\"\n[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n[auth]\nkeys = \"keys.json\"\n[[source]]\nreplay = \"r.jsonl\"";
        let faults =
            crate::server::check_files(&Config::parse("rnis.toml", text).unwrap(), "rnis.toml").unwrap_err();
        let keys: Vec<&str> = faults.faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["tls", "auth.keys", "source.replay"]);
    }

    /// The keys of a table, as the parser names them when it meets an unknown one.
    fn keys_of(table: &str) -> Vec<String> {
        let error = toml_edit::de::from_str::<Config>(&format!("{table}\nno_such_key = 1")).unwrap_err();
        let names = error.message().split('`').skip(3).step_by(2);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn the_page_lists_every_key() {
        let page = include_str!("../../../../docs/rnis-server.md");
        let (_, rest) = page.split_once("<!-- configuration -->").unwrap();
        let (table, _) = rest.split_once("<!-- end of keys -->").unwrap();
        let first_columns = table.lines().skip(3).filter_map(|line| line.split('|').nth(1));
        let mut listed: Vec<&str> =
            first_columns.flat_map(|column| column.split('`').skip(1).step_by(2)).collect();
        let tables = [
            "",
            "[limits]",
            "[tls]",
            "[auth]",
            "[[client]]",
            "[[source]]",
            "[callbacks]",
            "[subscriptions]",
            "[measures]",
            "[mp1]",
            "[log]",
        ];
        let mut known = Vec::new();
        for table in tables {
            let prefix = table.trim_matches(['[', ']']);
            let keys = keys_of(table);
            assert!(!keys.is_empty(), "{table}");
            // Tables are listed by their keys.
            let is_key = |key: &String| {
                !table.is_empty() || !tables.iter().any(|of| of.trim_matches(['[', ']']) == key)
            };
            let name = |key: String| if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
            known.extend(keys.into_iter().filter(is_key).map(name));
        }
        // The feed has a page of its own.
        known.retain(|key| key != "feed");
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }
}
