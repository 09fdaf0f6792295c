//! Who may ask: the same page on the same host, and beyond loopback those who have the token.
//!
//! A page elsewhere can send requests to this server, but neither choose their `Origin` nor, where a name of its own leads here
//! (DNS rebinding), their `Host`. Both are checked, and requests that change something have a content type that a foreign page may
//! not send without being asked first (Fetch standard, CORS-safelisted request headers).

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Uri};

use crate::problem::Refusal;

/// What every answer says to the browser: nothing from elsewhere, nothing in a foreign frame.
pub const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The gate of a server.
#[derive(Clone, Debug)]
pub struct Gate {
    address: SocketAddr,
    token: Option<String>,
}

impl Gate {
    /// For a server at this address; with a token, all requests need it.
    pub fn new(address: SocketAddr, token: Option<String>) -> Self {
        Self { address, token }
    }

    /// Whether it is for this machine alone.
    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// The name of the cookie, which browsers keep for a host whatever the port.
    pub fn cookie(&self) -> String {
        format!("ranpace-lab-{}", self.address.port())
    }

    /// Whether `host`, as in `Host`, means this server: an address, or "localhost", with its port. Names lead anywhere.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_here = match address {
            Ok(address) if self.address.ip().is_loopback() => address.is_loopback(),
            Ok(_) => true,
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        port == Some(self.address.port()) && is_here
    }

    /// Whether a token is the server's, in a time that does not depend on how much of it is right.
    pub fn is_token(&self, token: &str) -> bool {
        let Some(own) = &self.token else { return false };
        let differs = own.bytes().zip(token.bytes()).fold(0, |seen, (own, other)| seen | (own ^ other));
        own.len() == token.len() && differs == 0
    }

    /// Refuses what comes from elsewhere.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        let host = text(header::HOST).unwrap_or_default();
        if headers.get_all(header::HOST).iter().count() > 1 || !self.is_own(host) {
            return Err(Refusal::forbidden(format!(
                "Host: expected the address that `ranpace lab` printed, found {host:?}"
            )));
        }
        if let Some(origin) = text(header::ORIGIN)
            && !origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        {
            return Err(Refusal::forbidden(format!(
                "Origin: expected http://{host}, found {origin:?}: pages of other sites may not ask"
            )));
        }
        // Links from elsewhere may open the page, and nothing else.
        let is_page = *method == Method::GET && !uri.path().starts_with("/api");
        let site = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or_default());
        if !is_page && matches!(site, Some(site) if site != "same-origin" && site != "none") {
            return Err(Refusal::forbidden("Sec-Fetch-Site: pages of other sites may not ask"));
        }
        if self.token.is_some() && !self.has_token(headers) {
            return Err(Refusal::new(
                hyper::StatusCode::UNAUTHORIZED,
                "expected the token: open the address that `ranpace lab` printed, or send `Authorization: Bearer TOKEN`",
            ));
        }
        Ok(())
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let bearer =
            headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let name = self.cookie();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let own = cookies.flat_map(|all| all.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        let mut tokens = own.filter(|(key, _)| *key == name).map(|(_, token)| token).chain(bearer);
        tokens.any(|token| self.is_token(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(gate: &Gate, method: &str, path: &str, fields: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let checked = gate.check(&method.parse().unwrap(), &path.parse().unwrap(), &headers);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_the_own_page_may_ask() {
        let gate = Gate::new("127.0.0.1:8010".parse().unwrap(), None);
        for (fields, expected) in [
            (&[("host", "127.0.0.1:8010")][..], 200),
            (&[("host", "localhost:8010")], 200),
            (&[("host", "[::1]:8010")], 200),
            (&[("host", "localhost:8010"), ("origin", "http://localhost:8010")], 200),
            (&[], 403),
            (&[("host", "localhost")], 403),
            (&[("host", "localhost:8011")], 403),
            (&[("host", "evil.example:8010")], 403),
            (&[("host", "127.0.0.1.evil.example:8010")], 403),
            (&[("host", "192.0.2.1:8010")], 403),
            (&[("host", "localhost:8010"), ("host", "evil.example:8010")], 403),
            (&[("host", "localhost:8010"), ("origin", "http://evil.example")], 403),
            (&[("host", "localhost:8010"), ("origin", "https://localhost:8010")], 403),
            (&[("host", "localhost:8010"), ("origin", "null")], 403),
            (&[("host", "localhost:8010"), ("origin", "http://127.0.0.1:8010")], 403),
            (&[("host", "localhost:8010"), ("sec-fetch-site", "cross-site")], 403),
            (&[("host", "localhost:8010"), ("sec-fetch-site", "same-origin")], 200),
            (&[("host", "localhost:8010"), ("sec-fetch-site", "none")], 200),
        ] {
            assert_eq!(status(&gate, "GET", "/api/server", fields), expected, "{fields:?}");
        }
        let link = [("host", "localhost:8010"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status(&gate, "GET", "/", &link), 200, "a link may open the page");
        assert_eq!(status(&gate, "POST", "/", &link), 403);
    }

    #[test]
    fn beyond_loopback_the_token_is_needed() {
        let gate = Gate::new("0.0.0.0:8010".parse().unwrap(), Some("0123abcd".to_owned()));
        let host = ("host", "192.0.2.1:8010");
        for (fields, expected) in [
            (&[host][..], 401),
            (&[host, ("cookie", "ranpace-lab-8010=0123abcd")], 200),
            (&[host, ("cookie", "a=b; ranpace-lab-8010=0123abcd; c=d")], 200),
            (&[host, ("cookie", "ranpace-lab-8011=0123abcd")], 401),
            (&[host, ("cookie", "ranpace-lab-8010=0123abce")], 401),
            (&[host, ("cookie", "ranpace-lab-8010=")], 401),
            (&[host, ("authorization", "Bearer 0123abcd")], 200),
            (&[host, ("authorization", "Bearer 0123abcd0")], 401),
            (&[("host", "evil.example:8010"), ("authorization", "Bearer 0123abcd")], 403),
        ] {
            assert_eq!(status(&gate, "GET", "/api/server", fields), expected, "{fields:?}");
        }
    }
}
