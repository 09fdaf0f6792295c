//! Encrypts and authenticates the messages of the feed between hosts: AES-128-GCM (RFC 5116) with keys by HKDF (RFC 5869) of the
//! subscription's key.
//!
//! Each sender has a key for each of its epochs, so that a sequence number is never used twice with one key. The header is
//! authenticated, the body encrypted as well.

use ranpace_rnis::feed::KEY_BYTES;
use ranpace_rnis::feed::message::{HEADER_BYTES, Header, TAG_BYTES};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Separates these keys from any other use of the subscription's.
const SALT: &[u8] = b"ranpace rnis feed 1";

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The server.
    Server = 1,
    /// The subscriber.
    Subscriber = 2,
}

/// The key of a subscription.
#[derive(Clone, Debug)]
pub struct Secret(Prk);

/// A sender's key in an epoch.
#[derive(Debug)]
pub struct Seal(LessSafeKey);

/// The system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct NoRandomNumbers;

/// Random bytes, as for a key.
///
/// # Errors
///
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], NoRandomNumbers> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|Unspecified| NoRandomNumbers)?;
    Ok(bytes)
}

/// A key as text.
pub fn text_of(key: &[u8; KEY_BYTES]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key of a text.
pub fn key_of(text: &str) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (place, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(key)
}

impl Secret {
    /// From a subscription's key.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Salt::new(HKDF_SHA256, SALT).extract(key))
    }

    /// The key of a sender. `None` never happens: the lengths are right.
    pub fn seal(&self, role: Role, stream: u32, epoch: u64) -> Option<Seal> {
        let (stream, epoch) = (stream.to_le_bytes(), epoch.to_le_bytes());
        let info = [&[role as u8][..], &stream, &epoch];
        let key = self.0.expand(&info, &AES_128_GCM).ok()?;
        Some(Seal(LessSafeKey::new(UnboundKey::from(key))))
    }
}

impl Seal {
    fn nonce(header: &Header) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&header.sequence.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// Appends a message. The header's sequence number must not have been used before.
    pub fn close(&self, header: &Header, body: &[u8], out: &mut Vec<u8>) {
        let bytes = header.bytes();
        out.extend_from_slice(&bytes);
        let from = out.len();
        out.extend_from_slice(body);
        let tag = self.0.seal_in_place_separate_tag(Self::nonce(header), Aad::from(bytes), &mut out[from..]);
        match tag {
            Ok(tag) => out.extend_from_slice(tag.as_ref()),
            // Only for bodies of 64 GB. A message without a tag is refused.
            Err(Unspecified) => out.truncate(from),
        }
    }

    /// The body of a message with this header; `None` if it is not genuine. The message is decrypted in its place.
    pub fn open<'a>(&self, header: &Header, message: &'a mut [u8]) -> Option<&'a [u8]> {
        let (bytes, body) = message.split_at_mut_checked(HEADER_BYTES)?;
        let aad: [u8; HEADER_BYTES] = bytes.try_into().ok()?;
        if body.len() < TAG_BYTES {
            return None;
        }
        self.0.open_in_place(Self::nonce(header), Aad::from(aad), body).ok().map(|body| &*body)
    }
}

#[cfg(test)]
mod tests {
    use ranpace_rnis::feed::message::Kind;

    use super::*;

    fn seal(key: u8, role: Role, stream: u32, epoch: u64) -> Seal {
        Secret::new(&[key; KEY_BYTES]).seal(role, stream, epoch).expect("the lengths are right")
    }

    #[test]
    fn a_key_is_read_as_it_was_written_and_other_texts_are_none() {
        let key = core::array::from_fn(|place| place as u8 * 7);
        assert_eq!(key_of(&text_of(&key)), Some(key));
        let texts = [String::new(), "0".repeat(63), "g".repeat(64), "\u{e9}".repeat(32)];
        assert!(texts.iter().all(|text| key_of(text).is_none()));
    }

    #[test]
    fn only_the_message_as_it_was_sealed_by_its_sender_is_opened() {
        let header = Header { kind: Kind::Report, uplink: false, stream: 7, epoch: 9, sequence: 3 };
        let mut message = Vec::new();
        seal(1, Role::Server, 7, 9).close(&header, b"report", &mut message);
        assert_eq!(message.len(), HEADER_BYTES + 6 + TAG_BYTES);
        assert!(!message.windows(6).any(|bytes| bytes == b"report"));
        let open = |with: &Seal, mut message: Vec<u8>| {
            let header = Header::parse(&message).ok()?;
            with.open(&header, &mut message).map(<[u8]>::to_vec)
        };
        assert_eq!(open(&seal(1, Role::Server, 7, 9), message.clone()), Some(b"report".to_vec()));
        for (case, other) in [
            ("another subscription's", seal(2, Role::Server, 7, 9)),
            ("the subscriber's", seal(1, Role::Subscriber, 7, 9)),
            ("another stream's", seal(1, Role::Server, 8, 9)),
            ("another epoch's", seal(1, Role::Server, 7, 10)),
        ] {
            assert_eq!(open(&other, message.clone()), None, "{case}");
        }
        for place in 0..message.len() {
            let mut changed = message.clone();
            changed[place] ^= 1;
            assert_eq!(open(&seal(1, Role::Server, 7, 9), changed), None, "byte {place}");
            assert_eq!(open(&seal(1, Role::Server, 7, 9), message[..place].to_vec()), None, "cut at {place}");
        }
    }
}
