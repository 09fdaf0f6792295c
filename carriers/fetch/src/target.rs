//! URLs that can be fetched.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// A URL of HTTP or HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: Url,
}

/// Why a URL is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It is none.
    #[error("expected a URL such as https://host:4433/file, found {found:?}: {why}")]
    NotAUrl {
        /// The text.
        found: String,
        /// What is wrong with it.
        why: String,
    },
    /// It has another scheme.
    #[error("expected https or http, found {found:?}")]
    Scheme {
        /// The scheme.
        found: String,
    },
    /// It has a user and a password, which would be in the report.
    #[error("expected a URL without user and password")]
    Credentials,
}

impl Target {
    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host as a certificate names it and a resolver knows it: an IPv6 address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
            None => String::new(),
        }
    }

    /// The port, or the scheme's.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Host and port, as a request names them.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Path and query of the request.
    pub fn path(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The name of a file for its content: the last part of the path, as it is written there. `None` if that is empty or means a
    /// folder.
    pub fn file_name(&self) -> Option<&str> {
        let last = self.url.path_segments()?.next_back()?;
        let means_folder = matches!(last.to_ascii_lowercase().as_str(), "" | "." | ".." | "%2e" | "%2e%2e");
        (!means_folder).then_some(last)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let mut url = Url::parse(text)
            .map_err(|error| TargetError::NotAUrl { found: text.to_owned(), why: error.to_string() })?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(TargetError::Scheme { found: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        url.set_fragment(None); // a server never sees it
        Ok(Self { url })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (text, host, port, path, name) in [
            ("https://example.org", "example.org", 443, "/", None),
            ("http://example.org/a/b.bin", "example.org", 80, "/a/b.bin", Some("b.bin")),
            ("https://[::1]:4433/x?y=1#z", "::1", 4433, "/x?y=1", Some("x")),
            ("https://10.0.0.2/a%2Fb", "10.0.0.2", 443, "/a%2Fb", Some("a%2Fb")),
            ("https://h/a/%2e%2E", "h", 443, "/", None),
        ] {
            let target: Target = text.parse().unwrap();
            let found = (target.host(), target.port(), target.path().to_owned(), target.file_name());
            assert_eq!(found, (host.to_owned(), port, path.to_owned(), name), "{text}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_what_is_expected() {
        for (text, expected) in [
            ("example.org/file", "expected a URL such as https://"),
            ("ftp://example.org/", "expected https or http, found \"ftp\""),
            ("https://me:secret@example.org/", "without user and password"),
            ("https://", "empty host"),
        ] {
            let refused = text.parse::<Target>().unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
