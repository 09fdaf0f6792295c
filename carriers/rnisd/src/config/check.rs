//! What has to hold in a configuration beyond the form of its values.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ranpace_config::{ConfigError, Configuration, Faults, Inconsistency};

use super::Config;
use crate::viewer::Viewer;

impl Config {
    /// Reads and checks a file; files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or something in it is wrong.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        ranpace_config::read(file)
    }

    /// Parses the text of a file; `name` is the file's in errors.
    ///
    /// # Errors
    ///
    /// All that is wrong in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        ranpace_config::parse(name, text)
    }

    /// Checks keys that have to fit together; `name` says where they come from.
    ///
    /// # Errors
    ///
    /// If they do not fit.
    pub fn check(&self, name: &str) -> Result<(), Faults> {
        ranpace_config::check(self, name)
    }

    /// What a client with an entry of its own may see; `None` if it has none.
    pub fn viewer(&self, client: &str) -> Option<Viewer> {
        let client = self.client.iter().find(|one| one.id == client)?;
        let kinds = client.identifiers.as_ref().map(|of| of.iter().map(|kind| *kind as u8 + 1).collect());
        Some(Viewer { users: client.users.clone(), kinds })
    }
}

impl Configuration for Config {
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

    fn inconsistencies(&self) -> Vec<Inconsistency> {
        let Self { limits, auth, tls, client, callbacks, subscriptions, measures, source, .. } = self;
        let mut found = Vec::new();
        for (number, source) in source.iter().enumerate() {
            if let Err(reason) = source.open() {
                found.push(Inconsistency::in_entry("source", number, reason));
            }
            if let Some(period) = source.period.filter(|period| *period >= measures.silence) {
                let reason = format!(
                    "expected a `period` of less than `measures.silence` ({:?}), or its users leave between two metrics; found {period:?}",
                    measures.silence
                );
                found.push(Inconsistency::in_entry("source", number, reason));
            }
        }
        if let Some(auth) = auth
            && auth.keys.is_some() == auth.jwks.is_some()
        {
            let reason = "expected `keys` (a file) or `jwks` (an address), one of the two";
            found.push(Inconsistency::at("auth", reason));
        }
        if !client.is_empty() && auth.is_none() && tls.as_ref().is_none_or(|tls| tls.client_ca.is_none()) {
            let reason =
                "expected [auth], or `client_ca` in [tls], beside it: without them no client has a name";
            found.push(Inconsistency::in_entry("client", 0, reason));
        }
        if tls.as_ref().is_some_and(|tls| tls.require_client_certificate && tls.client_ca.is_none()) {
            let reason = "expected `client_ca` beside it";
            found.push(Inconsistency::at("tls.require_client_certificate", reason));
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
                found.push(Inconsistency::at(key, format!("expected at least {least}, found {number}")));
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
                found.push(Inconsistency::at(key, format!("expected at least 1ms, found {time:?}")));
            }
        }
        if let Some(root) = &self.api_root
            && !matches!(root.scheme(), "http" | "https")
        {
            found.push(Inconsistency::at("api_root", format!("expected http:// or https://, found {root}")));
        }
        found.extend(self.feed.faults().into_iter().map(|(key, reason)| Inconsistency::at(key, reason)));
        let is_protected = auth.is_some() || tls.as_ref().is_some_and(|tls| tls.require_client_certificate);
        if !is_protected && !self.listen.ip().is_loopback() {
            let reason = format!(
                "expected [auth], or [tls] with `require_client_certificate`, because anybody who reaches {} could read \
                 where users are; or listen on 127.0.0.1",
                self.listen
            );
            found.push(Inconsistency::at("listen", reason));
        }
        found
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
            (
                "[callbacks]\nallow = [\"10.0.0.0/40\"]",
                "line 2: `callbacks.allow`: expected a network, such as",
            ),
            ("listen = ", "line 1: `listen`: "),
            ("version = \"3\"", "line 1: `version`: expected `2.1.1` or `2.2.1`, found \"3\""),
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
            ("[mp1]\nurl = \"http://a\"", "line 1: `mp1`: missing key `application`"),
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
