//! The messages: 32 bytes, alone or with padding.

/// Begins every message.
const MAGIC: [u8; 4] = *b"RPS1";
/// Length of a message without padding.
pub(crate) const LENGTH: usize = 32;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the sender: is there a receiver? `token` is the sender's own number.
    Hello,
    /// From the receiver: yes. `token` is required in packets, `sequence` is the number of the hello.
    Welcome,
    /// From the sender: a packet.
    Data,
    /// From the sender: a packet, sent while the link had a standing queue throughout.
    Saturating,
    /// From the receiver: a packet has arrived, with its `sequence` and `stamp`.
    Seen,
    /// From the sender: it has ended. From the receiver: stop sending.
    Bye,
}

const KINDS: [Kind; 6] = [Kind::Hello, Kind::Welcome, Kind::Data, Kind::Saturating, Kind::Seen, Kind::Bye];

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// Proves that the other side has been heard.
    pub token: u64,
    /// Number of a packet, from 0.
    pub sequence: u64,
    /// When it was sent, by the sender's clock, in nanoseconds.
    pub stamp: u64,
}

impl Message {
    /// Encodes it, padded with zeros to `length`.
    pub fn write(&self, length: usize, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(&MAGIC);
        // A kind's place in the list is below 6.
        to.push(KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u8);
        to.extend_from_slice(&[0; 3]);
        for number in [self.token, self.sequence, self.stamp] {
            to.extend_from_slice(&number.to_be_bytes());
        }
        to.resize(length.max(LENGTH), 0);
    }

    /// Decodes bytes; `None` if they are not a message.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..LENGTH)?;
        let number = |at: usize| {
            let bytes: [u8; 8] = head.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        let kind = *KINDS.get(usize::from(head[4]))?;
        let message = Self { kind, token: number(8)?, sequence: number(16)?, stamp: number(24)? };
        (head.starts_with(&MAGIC) && head[5..8] == [0; 3]).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_messages_are_read_back() {
        let mut bytes = Vec::new();
        for kind in KINDS {
            let message = Message { kind, token: 1, sequence: u64::MAX, stamp: 3 };
            for length in [0, LENGTH, 1472] {
                message.write(length, &mut bytes);
                assert_eq!((bytes.len(), Message::read(&bytes)), (length.max(LENGTH), Some(message)));
            }
            assert_eq!(Message::read(&bytes[..LENGTH - 1]), None);
            bytes[0] ^= 1;
            assert_eq!(Message::read(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Message::read(&bytes);
        }
    }
}
