//! The server's certificate: made at the start, or from files, which may be replaced while it runs.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::crypto::ring::{default_provider, sign};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::Identity;

/// How often it is looked whether files were replaced. Ours.
pub const LOOK: Duration = Duration::from_secs(5);

/// A certificate with its key, as rustls asks for it at each handshake.
#[derive(Debug)]
pub struct Certificate {
    identity: Identity,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    /// When the files were changed that it is from.
    of: Option<[SystemTime; 2]>,
}

impl Certificate {
    /// Makes it, or reads it.
    ///
    /// # Errors
    ///
    /// If a name cannot be in a certificate, a file cannot be read, or key and certificate do not fit.
    pub fn new(identity: &Identity) -> Result<Self, String> {
        let current = match identity {
            Identity::SelfSigned(names) => Current { key: Arc::new(made(names)?), of: None },
            Identity::Files { certificate, key } => {
                // Looked at first: a change in between is then noticed later.
                let of = changed(certificate, key)?;
                Current { key: Arc::new(read(certificate, key)?), of: Some(of) }
            }
        };
        Ok(Self { identity: identity.clone(), current: RwLock::new(current) })
    }

    /// SHA-256 of the certificate (DER), in hexadecimal digits: what a client pins.
    pub fn fingerprint(&self) -> String {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let certificate = current.key.cert.first().map_or(&[][..], |certificate| certificate);
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the files again if they were replaced; returns whether it did. What there was stays if they cannot be used.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn refresh(&self) -> Result<bool, String> {
        let Identity::Files { certificate, key } = &self.identity else { return Ok(false) };
        let of = changed(certificate, key)?;
        if self.current.read().unwrap_or_else(PoisonError::into_inner).of == Some(of) {
            return Ok(false);
        }
        let next = Current { key: Arc::new(read(certificate, key)?), of: Some(of) };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(true)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).key))
    }
}

/// The settings of TLS for a protocol; QUIC has no versions before 1.3.
///
/// # Errors
///
/// If the cryptographic library lacks what TLS needs.
pub fn settings(certificate: &Arc<Certificate>, protocol: &str) -> Result<rustls::ServerConfig, String> {
    let mut settings = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(certificate) as Arc<dyn ResolvesServerCert>);
    settings.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(settings)
}

fn made(names: &[String]) -> Result<CertifiedKey, String> {
    let own = rcgen::generate_simple_self_signed(names)
        .map_err(|error| format!("no certificate can have the names {}: {error}", names.join(", ")))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let key = sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![own.cert.der().clone()], key))
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let wrong = |file: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).map_err(|error| wrong(certificate, &error))?.collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"expected a certificate in PEM, found none"));
    }
    let of_key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    CertifiedKey::from_der(chain, of_key, &default_provider()).map_err(|error| wrong(key, &error))
}

fn changed(certificate: &Path, key: &Path) -> Result<[SystemTime; 2], String> {
    let of = |file: &Path| {
        let time = std::fs::metadata(file).and_then(|about| about.modified());
        time.map_err(|error| format!("{}: {error}", file.display()))
    };
    Ok([of(certificate)?, of(key)?])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::fs;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use rcgen::KeyPair;

    use super::*;

    /// A file as OpenSSL writes it.
    fn pem(label: &str, content: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(content))
    }

    fn key_pem(key: &KeyPair) -> String {
        pem("PRIVATE KEY", &key.serialize_der())
    }

    #[test]
    fn files_that_are_replaced_are_used_and_faulty_ones_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let make = |at: u64| {
            let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            for (file, text) in
                [(&certificate, pem("CERTIFICATE", own.cert.der())), (&key, key_pem(&own.signing_key))]
            {
                fs::write(file, text).unwrap();
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
                fs::File::open(file).unwrap().set_modified(time).unwrap();
            }
        };
        make(1);
        let identity = Identity::Files { certificate: certificate.clone(), key: key.clone() };
        let own = Certificate::new(&identity).unwrap();
        let first = own.fingerprint();
        assert_eq!((own.refresh(), own.fingerprint()), (Ok(false), first.clone()));
        make(2);
        assert_eq!(own.refresh(), Ok(true));
        let second = own.fingerprint();
        assert_ne!(first, second);
        fs::write(&key, "no key").unwrap();
        assert!(own.refresh().unwrap_err().contains("k.pem"));
        assert_eq!(own.fingerprint(), second);
    }

    #[test]
    fn what_cannot_be_used_says_which_file_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let identity = Identity::Files { certificate: certificate.clone(), key: key.clone() };
        assert!(Certificate::new(&identity).unwrap_err().contains("c.pem: No such file"));
        let (one, other) = (
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap(),
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap(),
        );
        fs::write(&key, key_pem(&other.signing_key)).unwrap();
        fs::write(&certificate, "").unwrap();
        assert!(Certificate::new(&identity).unwrap_err().contains("expected a certificate in PEM"));
        fs::write(&certificate, pem("CERTIFICATE", one.cert.der())).unwrap();
        assert!(Certificate::new(&identity).unwrap_err().contains("k.pem"));
    }
}
