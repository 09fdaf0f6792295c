//! The messages of the feed. All numbers are little endian.
//!
//! | byte | content |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | version in the upper four bits, [`Kind`] in the lower |
//! | 2 | flags: 1 uplink |
//! | 3 | reserved: zero, ignored by readers |
//! | 4 | number of the subscription |
//! | 8 | epoch of the message's sender |
//! | 16 | sequence: messages under this epoch and subscription so far |
//! | 24 | the body, encrypted |
//! | end - 16 | authentication tag of header and body |

use ranpace_units::{Span, Time};

/// "F".
pub const MAGIC: u8 = 0x46;
/// The version written here; others are refused.
pub const VERSION: u8 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Bytes that identify a clock.
pub const CLOCK_BYTES: usize = 8;

/// What a message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A datagram of [`wire`](crate::wire), from the server.
    Report = 1,
    /// [`entries`](super::entries), from the server.
    Directory = 2,
    /// [`Hello`], from the server.
    Hello = 3,
    /// [`Request`], from the subscriber.
    Request = 4,
    /// [`Answer`], from the server.
    Answer = 5,
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is shorter than a header and a tag, or its body has another length than its kind.
    #[error("expected {expected} bytes or more, found {found}")]
    Length {
        /// Bytes expected.
        expected: usize,
        /// Bytes received.
        found: usize,
    },
    /// It is not one of our messages.
    #[error("expected a message that begins with {MAGIC:#04x}, found {found:#04x}")]
    NotOurs {
        /// The first byte.
        found: u8,
    },
    /// It is of another version, or of an unknown kind.
    #[error("expected version {VERSION} and a kind from 1 to 5, found {found:#04x}")]
    Version {
        /// The second byte.
        found: u8,
    },
    /// An entry of a directory is cut off, of an unknown kind, or describes no cell.
    #[error("expected an entry of a cell or a user at byte {at}")]
    Entry {
        /// Where it begins.
        at: usize,
    },
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message contains.
    pub kind: Kind,
    /// A report's blocks and queues are those of the uplink.
    pub uplink: bool,
    /// Number of the subscription.
    pub stream: u32,
    /// Epoch of the message's sender.
    pub epoch: u64,
    /// Sequence number.
    pub sequence: u64,
}

impl Header {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..3].copy_from_slice(&[MAGIC, VERSION << 4 | self.kind as u8, self.uplink.into()]);
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    /// The header of a datagram that has room for it and for a tag.
    ///
    /// # Errors
    ///
    /// The datagram is none of ours.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let (expected, found) = (HEADER_BYTES + TAG_BYTES, datagram.len());
        let Some(bytes) = datagram.first_chunk::<HEADER_BYTES>().filter(|_| found >= expected) else {
            return Err(MessageError::Length { expected, found });
        };
        if bytes[0] != MAGIC {
            return Err(MessageError::NotOurs { found: bytes[0] });
        }
        let kind = match bytes[1] ^ VERSION << 4 {
            1 => Kind::Report,
            2 => Kind::Directory,
            3 => Kind::Hello,
            4 => Kind::Request,
            5 => Kind::Answer,
            _ => return Err(MessageError::Version { found: bytes[1] }),
        };
        let stream = u32::from_le_bytes(core::array::from_fn(|at| bytes[4 + at]));
        let eight = |from: usize| u64::from_le_bytes(core::array::from_fn(|at| bytes[from + at]));
        Ok(Self { kind, uplink: bytes[2] & 1 != 0, stream, epoch: eight(8), sequence: eight(16) })
    }
}

/// Invites a subscriber to request its feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// To be returned.
    pub cookie: u64,
    /// Interval between two reports.
    pub period: Span,
}

/// Requests the feed, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The cookie of the last hello.
    pub cookie: u64,
    /// The epoch of the server that is meant.
    pub epoch: u64,
    /// When it was sent, on the subscriber's clock.
    pub sent: Time,
}

/// Answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The subscriber's epoch.
    pub requester: u64,
    /// When the request was sent, on the subscriber's clock.
    pub sent: Time,
    /// When it came, on the server's clock.
    pub received: Time,
    /// When this was sent, on the server's clock.
    pub answered: Time,
    /// Identifies the server's clock: equal identities mean the same clock.
    pub clock: [u8; CLOCK_BYTES],
}

/// Numbers of eight bytes each, as a body.
fn numbers<const N: usize>(body: &[u8]) -> Result<[u64; N], MessageError> {
    let (expected, found) = (8 * N, body.len());
    if found != expected {
        return Err(MessageError::Length { expected, found });
    }
    let (chunks, _) = body.as_chunks::<8>();
    Ok(core::array::from_fn(|at| u64::from_le_bytes(chunks[at])))
}

fn append(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

impl Hello {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        append(out, &[self.cookie, self.period.as_nanos()]);
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// It has another length.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let [cookie, period] = numbers(body)?;
        Ok(Self { cookie, period: Span::from_nanos(period) })
    }
}

impl Request {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        append(out, &[self.cookie, self.epoch, self.sent.as_nanos()]);
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// It has another length.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let [cookie, epoch, sent] = numbers(body)?;
        Ok(Self { cookie, epoch, sent: Time::from_nanos(sent) })
    }
}

impl Answer {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let times = [self.sent, self.received, self.answered].map(Time::as_nanos);
        append(out, &[self.requester, times[0], times[1], times[2], u64::from_le_bytes(self.clock)]);
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// It has another length.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let [requester, sent, received, answered, clock] = numbers(body)?;
        let [sent, received, answered] = [sent, received, answered].map(Time::from_nanos);
        Ok(Self { requester, sent, received, answered, clock: clock.to_le_bytes() })
    }
}
