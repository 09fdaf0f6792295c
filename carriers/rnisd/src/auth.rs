//! Who asks: bearer tokens (OAuth 2.0, RFC 6750) that are JWTs (RFC 7519, RFC 9068), or clients' certificates.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::{HeaderMap, Method, header};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::config::{Auth, Config};
use crate::deliver::client::Client;
use crate::deliver::guard::Guard;
use crate::viewer::Viewer;

/// Shortest time between two requests for the key set. Ours.
const REFRESH: Duration = Duration::from_secs(10);
/// Age at which the key set is fetched again although it has the keys that tokens name: one of them may have been withdrawn. Ours.
const STALE: Duration = Duration::from_secs(300);
/// Longest token that is looked at. Ours.
const LONGEST: usize = 16 << 10;

/// Parts of the interface that need a scope each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Queries.
    Queries,
    /// Subscriptions.
    Subscriptions,
    /// The extension.
    Vendor,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name: the owner of subscriptions.
    pub name: String,
    /// What it may see.
    pub viewer: Viewer,
    /// When its token ends.
    pub until: Option<Instant>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There is no token: 401.
    #[error("expected a bearer token in the header field Authorization")]
    Missing,
    /// The token is not valid: 401.
    #[error("the token is not valid: {0}")]
    Invalid(String),
    /// The token lacks a scope: 403.
    #[error("expected a token with the scope {0:?}")]
    Scope(String),
}

#[derive(Debug, Deserialize)]
struct Claims {
    /// Seconds since the Unix epoch.
    exp: f64,
    sub: Option<String>,
    client_id: Option<String>,
    #[serde(default)]
    scope: Scopes,
    #[serde(default)]
    scp: Scopes,
    /// Networks of the users that the subject may see.
    rni_users: Option<Vec<ipnet::IpNet>>,
    /// Kinds of identifiers that it may see.
    rni_identifiers: Option<Vec<u8>>,
}

/// Scopes: a text with spaces, or a list.
#[derive(Debug, Default)]
struct Scopes(BTreeSet<String>);

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            List(Vec<String>),
        }
        Ok(Self(match Either::deserialize(deserializer)? {
            Either::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Either::List(list) => list.into_iter().collect(),
        }))
    }
}

struct Key {
    id: Option<String>,
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
}

/// Keys, from a file or fetched.
struct Keys {
    keys: RwLock<Vec<Key>>,
    /// Where they are fetched.
    url: Option<Url>,
    /// When they were asked for last; held while they are.
    asked: tokio::sync::Mutex<Option<Instant>>,
    client: Client,
}

/// Checks who asks.
pub struct Authenticator {
    config: Config,
    keys: Arc<Keys>,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

/// Algorithms that a key can be used with. Symmetric ones are not among them: who can check such a token can make one.
fn algorithms(jwk: &Jwk) -> Vec<Algorithm> {
    let all = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P256 => vec![Algorithm::ES256],
        AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P384 => vec![Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(_) => vec![Algorithm::EdDSA],
        _ => Vec::new(),
    };
    match (&jwk.common.public_key_use, &jwk.common.key_algorithm) {
        (Some(PublicKeyUse::Encryption), _) => Vec::new(),
        (_, Some(one)) => all.into_iter().filter(|own| format!("{own:?}") == one.to_string()).collect(),
        (_, None) => all,
    }
}

/// The usable keys of a set.
fn keys_of(set: &[u8]) -> Result<Vec<Key>, String> {
    let set: JwkSet = serde_json::from_slice(set).map_err(|error| error.to_string())?;
    let key = |jwk: &Jwk| {
        let algorithms = algorithms(jwk);
        let key = DecodingKey::from_jwk(jwk).ok().filter(|_| !algorithms.is_empty())?;
        Some(Key { id: jwk.common.key_id.clone(), key, algorithms })
    };
    let keys: Vec<Key> = set.keys.iter().filter_map(key).collect();
    if keys.is_empty() {
        return Err("expected a key set with an RSA, P-256, P-384 or Ed25519 key, found none".to_owned());
    }
    Ok(keys)
}

/// A key in PEM: of whichever kind it is.
fn key_of_pem(pem: &[u8]) -> Result<Vec<Key>, String> {
    let rsa = DecodingKey::from_rsa_pem(pem).map(|key| (key, vec![Algorithm::RS256, Algorithm::PS256]));
    let ec = || DecodingKey::from_ec_pem(pem).map(|key| (key, vec![Algorithm::ES256]));
    let ed = || DecodingKey::from_ed_pem(pem).map(|key| (key, vec![Algorithm::EdDSA]));
    let (key, algorithms) = rsa
        .or_else(|_| ec())
        .or_else(|_| ed())
        .map_err(|_| "expected a key set (JSON), or a public key in PEM: RSA, P-256 or Ed25519".to_owned())?;
    Ok(vec![Key { id: None, key, algorithms }])
}

impl Authenticator {
    /// As the configuration says.
    ///
    /// # Errors
    ///
    /// If the file of keys cannot be used.
    pub fn new(config: &Config) -> Result<Self, String> {
        let keys = match config.auth.as_ref().and_then(|auth| auth.keys.as_deref()) {
            None => Vec::new(),
            Some(file) => {
                let wrong = |error: String| format!("{}: {error}", file.display());
                let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
                let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
                if is_json { keys_of(&bytes) } else { key_of_pem(&bytes) }.map_err(wrong)?
            }
        };
        // The operator names the address of the key set.
        let client =
            Client::new(Guard::everywhere(), config.callbacks.ca.as_deref(), config.callbacks.answer_time)?;
        let url = config.auth.as_ref().and_then(|auth| auth.jwks.clone());
        let keys = Keys { keys: RwLock::new(keys), url, asked: tokio::sync::Mutex::new(None), client };
        Ok(Self { config: config.clone(), keys: Arc::new(keys) })
    }

    /// What a client may see: as the configuration says, or else as its token does.
    fn viewer(&self, name: &str, users: Option<Vec<ipnet::IpNet>>, kinds: Option<Vec<u8>>) -> Viewer {
        self.config.viewer(name).unwrap_or(Viewer { users, kinds })
    }

    /// Who asks. `certificate` has the names of the client's certificate, `query` a token from the address, where one may stand there.
    ///
    /// # Errors
    ///
    /// If it may not.
    pub async fn subject(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        certificate: &[String],
        area: Area,
    ) -> Result<Subject, AuthError> {
        let Some(auth) = &self.config.auth else {
            let known = certificate.iter().find(|name| self.config.viewer(name).is_some());
            let name = known.or(certificate.first()).map_or("anonymous", String::as_str);
            return Ok(Subject { name: name.to_owned(), viewer: self.viewer(name, None, None), until: None });
        };
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                let (scheme, token) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
            })
            .or(query)
            .ok_or(AuthError::Missing)?;
        if token.len() > LONGEST {
            return Err(AuthError::Invalid("it is too long".to_owned()));
        }
        let invalid = |error: jsonwebtoken::errors::Error| AuthError::Invalid(error.to_string());
        let head = jsonwebtoken::decode_header(token).map_err(invalid)?;
        if is_extended(token) {
            return Err(AuthError::Invalid(
                "its head has `crit`, and this server knows no extension".to_owned(),
            ));
        }
        let id = head.kid.as_deref();
        self.keys.look_for(id).await;
        let claims = self.keys.claims(auth, token, id)?;
        let scope = match area {
            Area::Queries => auth.scope_queries.as_deref().unwrap_or("rnis.queries"),
            Area::Subscriptions => auth.scope_subscriptions.as_deref().unwrap_or("rnis.subscriptions"),
            Area::Vendor => auth.scope_vendor.as_deref().unwrap_or("rnis.vendor"),
        };
        if !claims.scope.0.contains(scope) && !claims.scp.0.contains(scope) {
            return Err(AuthError::Scope(scope.to_owned()));
        }
        let name = claims
            .sub
            .or(claims.client_id)
            .ok_or_else(|| AuthError::Invalid("expected the claim sub or client_id".to_owned()))?;
        let viewer = self.viewer(&name, claims.rni_users, claims.rni_identifiers);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A token of a far future has no end that matters.
        let left = Duration::try_from_secs_f64(claims.exp - now.as_secs_f64()).unwrap_or_default();
        Ok(Subject { name, viewer, until: Instant::now().checked_add(left) })
    }
}

/// Whether the head of a token has extensions that must be understood; RFC 7515, 4.1.11.
fn is_extended(token: &str) -> bool {
    #[derive(Deserialize)]
    struct Head {
        crit: Option<serde::de::IgnoredAny>,
    }
    let head = token.split('.').next().unwrap_or_default();
    let head = BASE64_URL_SAFE_NO_PAD.decode(head).ok();
    let head = head.and_then(|head| serde_json::from_slice::<Head>(&head).ok());
    head.is_none_or(|head| head.crit.is_some())
}

impl Keys {
    fn has_key(&self, id: Option<&str>) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match id {
            Some(id) => keys.iter().any(|key| key.id.as_deref().is_none_or(|own| own == id)),
            None => !keys.is_empty(),
        }
    }

    fn claims(&self, auth: &Auth, token: &str, id: Option<&str>) -> Result<Claims, AuthError> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut reason = "no key fits it".to_owned();
        for key in keys.iter().filter(|key| id.is_none() || key.id.is_none() || key.id.as_deref() == id) {
            let mut validation = Validation::default();
            validation.algorithms.clone_from(&key.algorithms);
            validation.validate_nbf = true;
            validation.leeway = 5;
            if let Some(issuer) = &auth.issuer {
                validation.set_issuer(&[issuer]);
                validation.required_spec_claims.insert("iss".to_owned());
            }
            match &auth.audience {
                Some(audience) => {
                    validation.set_audience(&[audience]);
                    validation.required_spec_claims.insert("aud".to_owned());
                }
                None => validation.validate_aud = false,
            }
            match jsonwebtoken::decode::<Claims>(token, &key.key, &validation) {
                Ok(data) => return Ok(data.claims),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(AuthError::Invalid(reason))
    }

    /// Fetches the key set if it lacks the key of this identifier, and in the background if it is old.
    async fn look_for(self: &Arc<Self>, id: Option<&str>) {
        let Some(url) = &self.url else { return };
        if !self.has_key(id) {
            // Whoever waited for somebody else's request may find the key now.
            let mut asked = self.asked.lock().await;
            if !self.has_key(id) && asked.is_none_or(|asked| asked.elapsed() >= REFRESH) {
                *asked = Some(Instant::now());
                self.fetch(url).await;
            }
        } else if let Ok(mut asked) = self.asked.try_lock()
            && asked.is_none_or(|asked| asked.elapsed() >= STALE)
        {
            *asked = Some(Instant::now());
            let (keys, url) = (Arc::clone(self), url.clone());
            tokio::spawn(async move { keys.fetch(&url).await });
        }
    }

    /// Fetches the key set; what was known stays if that fails.
    async fn fetch(&self, url: &Url) {
        let answer = self.client.request(&mut None, Method::GET, url, &[], Bytes::new()).await;
        let keys = match answer {
            Ok(answer) if answer.status.is_success() => keys_of(&answer.body),
            Ok(answer) => Err(format!("the answer was {}", answer.status)),
            Err(error) => Err(error.to_string()),
        };
        match keys {
            Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys,
            Err(reason) => tracing::warn!(%url, %reason, "the key set could not be fetched"),
        }
    }
}
