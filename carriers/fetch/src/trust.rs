//! Which certificates of servers are believed.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// SHA-256 of a certificate in DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those of the public authorities.
    #[default]
    Public,
    /// Those of the authorities in a PEM file, and no others.
    File(PathBuf),
    /// The one with this fingerprint, whatever its names and dates.
    Pinned(Fingerprint),
    /// Any: the server may be anybody.
    Anyone,
}

/// Why certificates cannot be checked as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file of authorities cannot be read.
    #[error("cannot read certificates from {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The file has no certificate.
    #[error("expected certificates in PEM in {}, found none", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The TLS library refuses the settings.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl FromStr for Fingerprint {
    type Err = String;

    /// Reads 64 hexadecimal digits, with or without colons between the bytes.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected the 64 hexadecimal digits of a SHA-256 fingerprint, found {text:?}");
        let digits: Vec<u8> =
            text.chars().filter(|c| *c != ':').map_while(|c| c.to_digit(16)).map(|d| d as u8).collect();
        if digits.len() != 64 || text.chars().filter(|c| *c != ':').count() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

impl Trust {
    /// TLS of a client that speaks this protocol (ALPN).
    ///
    /// # Errors
    ///
    /// If the file of authorities cannot be used.
    pub fn client(&self, protocol: &[u8]) -> Result<ClientConfig, TrustError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let roots = match self {
            Self::Public => Some(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }),
            Self::File(path) => Some(authorities(path)?),
            Self::Pinned(_) | Self::Anyone => None,
        };
        let mut config = match roots {
            Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
            None => {
                let expected = if let Self::Pinned(fingerprint) = self { Some(*fingerprint) } else { None };
                let verifier = Arc::new(ByFingerprint { expected, provider });
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(config)
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TrustError> {
    let fault = |why: String| TrustError::File { path: path.to_owned(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))? {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if roots.is_empty() { Err(TrustError::Empty { path: path.to_owned() }) } else { Ok(roots) }
}

/// Believes the certificate with a fingerprint, or any; signatures are checked in both cases.
#[derive(Debug)]
struct ByFingerprint {
    expected: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByFingerprint {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = ring::digest::digest(&ring::digest::SHA256, certificate);
        match self.expected {
            Some(expected) if found.as_ref() != expected.0 => {
                let found: String = found.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                Err(rustls::Error::General(format!(
                    "the server's certificate is not the pinned one: its fingerprint is {found}"
                )))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_sixty_four_digits_with_or_without_colons() {
        let plain = "0f".repeat(32);
        let colons = ["0F"; 32].join(":");
        assert_eq!(plain.parse::<Fingerprint>(), colons.parse());
        for wrong in [String::new(), "0f".repeat(31), "0f".repeat(33), "xy".repeat(32), format!("{plain}z")] {
            assert!(wrong.parse::<Fingerprint>().unwrap_err().contains("64 hexadecimal digits"), "{wrong}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "nothing").unwrap();
        let refused = Trust::File(file.path().to_owned()).client(b"h3").unwrap_err().to_string();
        assert!(refused.contains("expected certificates in PEM"), "{refused}");
        let missing = Trust::File("/nowhere/ca.pem".into()).client(b"h3").unwrap_err().to_string();
        assert!(missing.contains("/nowhere/ca.pem"), "{missing}");
    }
}
