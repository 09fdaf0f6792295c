//! Reads a file in parts, so that one fault does not hide the others.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml_edit::Document;

use crate::faults::{ConfigError, Fault, Faults, Inconsistency};

/// Most faults that one reading reports: a screen of them. Ours.
const MOST: usize = 50;
/// How alike (Jaro) an unknown key and a known one are, so that it may be meant. Ours.
const ALIKE: f64 = 0.75;
/// How the parser's message on a key that is missing begins.
const MISSING: &str = "missing field `";

/// The content of a configuration file.
pub trait Configuration: DeserializeOwned {
    /// Takes the names of files in it as relative to the folder of the configuration.
    fn relative_to(&mut self, folder: &Path);

    /// Values that can be read but not used, and those that do not fit together.
    fn inconsistencies(&self) -> Vec<Inconsistency>;
}

/// Reads and checks a file; files that it names are relative to its folder.
///
/// # Errors
///
/// If it cannot be read, or something in it is wrong.
pub fn read<T: Configuration>(file: &Path) -> Result<T, ConfigError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::Unreadable { file: name.clone(), error })?;
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(parse_with(&name, &text, |config: &mut T| config.relative_to(folder))?)
}

/// Parses and checks the text of a file; `name` is the file's in errors.
///
/// # Errors
///
/// All that is wrong in it.
pub fn parse<T: Configuration>(name: &str, text: &str) -> Result<T, Faults> {
    parse_with(name, text, |_| {})
}

/// Checks a configuration that is no file's; `name` says where it comes from.
///
/// # Errors
///
/// All its inconsistencies.
pub fn check<T: Configuration>(config: &T, name: &str) -> Result<(), Faults> {
    let fault = |found: Inconsistency| Fault { line: None, key: found.key.to_owned(), reason: found.reason };
    let faults: Vec<Fault> = config.inconsistencies().into_iter().map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(Faults { file: name.to_owned(), faults }) }
}

/// Parses a text, changes what it says, and checks that.
fn parse_with<T: Configuration>(name: &str, text: &str, change: impl FnOnce(&mut T)) -> Result<T, Faults> {
    let (config, mut faults) = read_parts::<T>(text);
    let config = config.map(|mut config| {
        change(&mut config);
        config
    });
    if let Some(config) = &config {
        let document = Document::parse(text).ok();
        let table = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
        let broken: Vec<String> = faults.iter().map(|fault| table(&fault.key)).collect();
        for found in config.inconsistencies() {
            // What is missing there may be what could not be read.
            if broken.contains(&table(found.key)) {
                continue;
            }
            let span = document.as_ref().and_then(|document| found.span(document.as_table()));
            let line = span.map(|span| line_of(text, span.start));
            faults.push(Fault { line, key: found.key.to_owned(), reason: found.reason });
        }
    }
    faults.sort_by_key(|fault| fault.line);
    match config {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(Faults { file: name.to_owned(), faults }),
    }
}

/// What can be read, and what cannot: each fault is left out, and the rest read again.
fn read_parts<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<Fault>) {
    let (mut rest, mut faults) = (text.to_owned(), Vec::<Fault>::new());
    loop {
        let error = match toml_edit::de::from_str::<T>(&rest) {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        let message = error.message().trim_end();
        let missing = message.strip_prefix(MISSING).and_then(|rest| rest.split('`').next());
        let span = error.span().map(|span| span.start.min(text.len())..span.end.min(text.len()));
        // What is missing outside all tables is nowhere.
        let span = span.filter(|span| missing.is_none() || !span.is_empty());
        let key = span.as_ref().map(|span| key_at(text, span.start)).unwrap_or_default();
        // A key with a wrong value is not missing, too.
        let of_missing =
            missing.map(|missing| [key.as_str(), missing].join(".").trim_start_matches('.').to_owned());
        if !of_missing.is_some_and(|missing| faults.iter().any(|fault| fault.key == missing)) {
            let line = span.as_ref().map(|span| line_of(text, span.start));
            faults.push(Fault { line, key, reason: in_terms_of_keys(message) });
        }
        let can_go_on = span.is_some_and(|span| blank(&mut rest, span, missing.is_some()));
        if !can_go_on || faults.len() >= MOST {
            return (None, faults);
        }
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

/// The parser's message in the words of a configuration: it speaks of fields and variants. An unknown name comes with the known one that
/// it is closest to.
fn in_terms_of_keys(message: &str) -> String {
    if let Some(rest) = message.strip_prefix(MISSING) {
        return format!("missing key `{rest}");
    }
    let unknown = |of| message.strip_prefix(of).and_then(|rest: &str| rest.split_once("`, "));
    let near = |found: &str, known: &str| -> Option<String> {
        let names = known.split('`').skip(1).step_by(2);
        let alike = names.map(|name| (strsim::jaro(name, found), name)).filter(|(alike, _)| *alike > ALIKE);
        let (_, near) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!("did you mean `{near}`?"))
    };
    if let Some((found, known)) = unknown("unknown field `") {
        let near = near(found, known).map(|near| near + " ");
        return format!("unknown key; {}{known}", near.unwrap_or_default());
    }
    if let Some((found, known)) = unknown("unknown variant `") {
        let near = near(found, known).map(|near| format!("; {near}"));
        return format!("{known}, found \"{found}\"{}", near.unwrap_or_default());
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::path::PathBuf;

    use ipnet::IpNet;
    use serde::Deserialize;

    use super::*;
    use crate::LogFormat;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Server {
        id: u8,
        #[serde(default)]
        log: Option<PathBuf>,
        #[serde(default)]
        user: Vec<User>,
        #[serde(default, deserialize_with = "crate::addresses")]
        peer: Vec<IpNet>,
        #[serde(default)]
        form: LogFormat,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct User {
        name: String,
        age: u8,
    }

    impl Configuration for Server {
        fn relative_to(&mut self, folder: &Path) {
            self.log.iter_mut().for_each(|log| *log = folder.join(&log));
        }

        fn inconsistencies(&self) -> Vec<Inconsistency> {
            let mut found = Vec::new();
            if self.id == 0 {
                found.push(Inconsistency::at("id", "expected at least 1"));
            }
            for (number, user) in self.user.iter().enumerate() {
                if user.name.is_empty() {
                    found.push(Inconsistency::in_entry("user", number, "expected a name"));
                }
                if user.age > 150 {
                    found.push(Inconsistency::in_entry("user.age", number, "expected at most 150"));
                }
            }
            found
        }
    }

    #[test]
    fn each_fault_has_its_line_and_its_key() {
        for (text, expected) in [
            ("", "s.toml: missing key `id`"),
            ("# a comment\n[[user]]\nname = \"a\"\nage = 1", "s.toml: missing key `id`"),
            ("\nid = 0", "s.toml, line 2: `id`: expected at least 1"),
            ("id = \"a\"", "s.toml, line 1: `id`: invalid type: string \"a\", expected u8"),
            (
                "id = 1\nlogs = \"a\"",
                "s.toml, line 2: `logs`: unknown key; did you mean `log`? expected one of `id`, `log`, `user`, `peer`, `form`",
            ),
            (
                "id = 1\nx = 1",
                "s.toml, line 2: `x`: unknown key; expected one of `id`, `log`, `user`, `peer`, `form`",
            ),
            (
                "id = 1\nform = \"jsn\"",
                "s.toml, line 2: `form`: expected `text` or `json`, found \"jsn\"; did you mean `json`?",
            ),
            (
                "id = 1\npeer = [\"10.0.0.0/8\", \"10.45.0.0\"]",
                "s.toml, line 2: `peer`: expected a network, such as \"10.45.0.0/16\" or \"2001:db8::/32\", found \"10.45.0.0\"",
            ),
            (
                "id = 1\npeer = [7]",
                "s.toml, line 2: `peer`: invalid type: integer `7`, expected a network, such as \"10.45.0.0/16\" or \"2001:db8::/32\"",
            ),
            ("id = 1\n[[user]]\nname = \"a\"", "s.toml, line 2: `user`: missing key `age`"),
            (
                "id = 1\n[[user]]\nage = \"old\"\nname = \"a\"",
                "s.toml, line 3: `user.age`: invalid type: string \"old\", expected u8",
            ),
            (
                "id = 1\n[[user]]\nage = 9\nname = \"a\"\n[[user]]\nname = \"b\"\nage = 200",
                "s.toml, line 7: `user.age`: expected at most 150",
            ),
            (
                "id = 1\n[[user]]\nage = 9\nname = \"a\"\n[[user]]\nname = \"\"\nage = 2",
                "s.toml, line 5: `user`: expected a name",
            ),
            (
                "user = [{ name = \"a\", age = 200 }]\nid = 0",
                "s.toml, line 1: `user.age`: expected at most 150\ns.toml, line 2: `id`: expected at least 1",
            ),
        ] {
            let told = parse::<Server>("s.toml", text).unwrap_err().to_string();
            assert_eq!(told, expected, "{text:?}");
        }
    }

    #[test]
    fn right_file_is_read() {
        let server = parse::<Server>("s.toml", "id = 1\nform = \"json\"\npeer = [\"10.0.0.0/8\"]").unwrap();
        assert!(matches!(server.form, LogFormat::Json));
        assert_eq!(server.peer, ["10.0.0.0/8".parse().unwrap()]);
    }

    #[test]
    fn files_are_relative_to_the_folder_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "id = 1\nlog = \"a.log\"\npeer = [\"10.0.0.0/8\"]\nform = \"json\"").unwrap();
        let server: Server = read(&file).unwrap();
        assert_eq!((server.peer.len(), server.form), (1, LogFormat::Json));
        assert_eq!(server.log, Some(folder.path().join("a.log")));
        let error = read::<Server>(&folder.path().join("none.toml")).unwrap_err();
        assert!(error.to_string().contains("none.toml: No such file"), "{error}");
    }

    #[test]
    fn a_configuration_without_a_file_is_checked_too() {
        let server = Server { id: 0, log: None, user: Vec::new(), peer: Vec::new(), form: LogFormat::Text };
        assert_eq!(
            check(&server, "the options").unwrap_err().to_string(),
            "the options: `id`: expected at least 1"
        );
    }
}
