//! A cipher without encryption and a handshake without authentication, with the sizes of the real ones.
//!
//! Packets are as long as under AEAD_AES_128_GCM (RFC 9001, section 5.3), with a tag of 16 bytes that is never checked. The
//! handshake has the flights of TLS 1.3 over QUIC (RFC 9001, section 4): ClientHello; ServerHello, then the server's
//! transport parameters, certificates and Finished; the client's Finished. Ours: the sizes of the messages, about those of
//! rustls with X25519 and certificates of the size in [`crate::Config::certificates`].

use core::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

/// Tag of AES-GCM, in bytes (RFC 9001, section 5.3).
pub(crate) const TAG: usize = 16;
/// Sample for header protection, in bytes (RFC 9001, section 5.4.3): it bounds the length of a packet from below.
const SAMPLE: usize = 16;
/// ClientHello without the transport parameters.
const CLIENT_HELLO: usize = 240;
/// ServerHello.
const SERVER_HELLO: usize = 90;
/// EncryptedExtensions without the transport parameters, CertificateVerify and Finished of the server.
const SERVER_FINISHED: usize = 130;
/// Finished of the client (SHA-256).
const CLIENT_FINISHED: usize = 36;
/// Type and length before a message of the handshake (RFC 8446, section 4).
const MESSAGE_HEADER: usize = 4;

/// A key that leaves the content unchanged.
struct Open;

impl PacketKey for Open {
    fn encrypt(&self, _path: PathId, _packet: u64, _buf: &mut [u8], _header_len: usize) {}

    fn decrypt(
        &self,
        _path: PathId,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let plain = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(plain);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Open {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}
    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Open), remote: Box::new(Open) }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(Open), remote: Box::new(Open) }, packet: packet_keys() }
}

/// Next step of a side's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client sends and the server receives ClientHello.
    ClientHello,
    /// The server sends and the client receives ServerHello.
    ServerHello,
    /// The client announces the handshake keys.
    HandshakeKeys,
    /// The server sends and the client receives the remaining server messages.
    ServerFinished,
    /// The client sends and the server receives Finished.
    ClientFinished,
    Done,
}

/// One side's handshake.
struct Handshake {
    side: Side,
    step: Step,
    certificates: usize,
    /// Our encoded transport parameters.
    ours: Vec<u8>,
    theirs: Option<TransportParameters>,
    /// Received part of an incomplete message.
    heard: Vec<u8>,
}

impl Handshake {
    fn new(side: Side, certificates: usize, params: &TransportParameters) -> Self {
        let mut ours = Vec::new();
        params.write(&mut ours);
        Self { side, step: Step::ClientHello, certificates, ours, theirs: None, heard: Vec::new() }
    }

    /// Writes a message of `content` and `padding` more bytes, which hold the content's length and zeros.
    fn say(buf: &mut Vec<u8>, content: &[u8], padding: usize) {
        let length = content.len() + padding;
        // Type, then three bytes of length; the next two bytes give the length of the content.
        buf.push(1);
        buf.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
        buf.extend_from_slice(&(content.len() as u16).to_be_bytes());
        buf.extend_from_slice(content);
        buf.resize(buf.len() + padding.saturating_sub(2), 0);
    }

    /// Removes the next message from the received bytes, if it is complete.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let &[_, a, b, c, d, e, ..] = self.heard.as_slice() else { return None };
        let length = MESSAGE_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
        if self.heard.len() < length {
            return None;
        }
        let content = usize::from(u16::from_be_bytes([d, e]));
        let start = MESSAGE_HEADER + 2;
        let message = self.heard.get(start..start + content).map(<[u8]>::to_vec);
        self.heard.drain(..length);
        message
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _dst_cid: ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            // Only its own Finished is left to write.
            Side::Client => !matches!(self.step, Step::ClientFinished | Step::Done),
            Side::Server => self.step != Step::Done,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.heard.extend_from_slice(buf);
        while let Some(message) = self.next_message() {
            let carries_parameters = matches!(
                (self.side, self.step),
                (Side::Server, Step::ClientHello) | (Side::Client, Step::ServerFinished)
            );
            if carries_parameters {
                self.theirs = Some(TransportParameters::read(self.side, &mut message.as_slice())?);
            }
            self.step = match (self.side, self.step) {
                (Side::Server, Step::ClientHello) => Step::ServerHello,
                (Side::Client, Step::ServerHello) => Step::HandshakeKeys,
                (Side::Client, Step::ServerFinished) => Step::ClientFinished,
                (Side::Server, Step::ClientFinished) => Step::Done,
                (_, step) => step,
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.theirs)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::ClientHello) => {
                Self::say(buf, &self.ours, CLIENT_HELLO);
                self.step = Step::ServerHello;
                None
            }
            (Side::Client, Step::HandshakeKeys) => {
                self.step = Step::ServerFinished;
                Some(keys())
            }
            (Side::Client, Step::ClientFinished) => {
                Self::say(buf, &[], CLIENT_FINISHED - MESSAGE_HEADER);
                self.step = Step::Done;
                Some(keys())
            }
            (Side::Server, Step::ServerHello) => {
                Self::say(buf, &[], SERVER_HELLO);
                self.step = Step::ServerFinished;
                Some(keys())
            }
            (Side::Server, Step::ServerFinished) => {
                Self::say(buf, &self.ours, SERVER_FINISHED + self.certificates);
                self.step = Step::ClientFinished;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _orig_dst_cid: ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false // no endpoint here sends a Retry
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Handshake configuration of both sides.
pub(crate) struct NoCipher {
    /// Bytes of the server's certificates.
    pub certificates: usize,
}

impl ClientConfig for NoCipher {
    fn start_session(
        &self,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, self.certificates, params)))
    }
}

impl ServerConfig for NoCipher {
    fn initial_keys(&self, _version: u32, _dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: ConnectionId, _packet: &[u8]) -> [u8; TAG] {
        [0; TAG]
    }

    fn start_session(&self, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, self.certificates, params))
    }
}

/// Key for stateless resets and tokens: tells them apart without protecting them.
pub(crate) struct NoSecret;

impl HmacKey for NoSecret {
    /// A hash of the message (FNV-1a, continued over the output).
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for &byte in data {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        for (index, out) in signature_out.iter_mut().enumerate() {
            hash = (hash ^ index as u64).wrapping_mul(PRIME);
            *out = (hash >> 56) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _data: &[u8], _signature: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NoSecret {
    fn seal(&self, _token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG, 0);
        Ok(())
    }

    fn open<'a>(&self, _token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let plain = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..plain])
    }
}

/// The handshake configuration for noq.
pub(crate) fn no_cipher(certificates: usize) -> Arc<NoCipher> {
    Arc::new(NoCipher { certificates })
}
