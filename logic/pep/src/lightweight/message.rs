//! The messages between a PEP and a server, one per UDP datagram, in network byte order: a clear-text header, and a body sealed by
//! [`super::keys`].
//!
//! Header, 16 bytes: version 1 and type (4 bits each), flags, key id (2), PEP id (4), sequence number (8). Parsing any input yields
//! a message or an error.

use ranpace_units::Span;

use super::digest::{POWERS, PowerSums};

/// Size of the header in bytes.
pub const HEADER: usize = 16;
/// Size of the seal after the body, in bytes.
pub const SEAL: usize = 16;
/// Size of the largest message in bytes.
pub const LARGEST: usize = HEADER + 28 + 4 + 5 + 4 * POWERS + SEAL;
const VERSION: u8 = 1;
/// Most ranges above gaps in a report.
pub(crate) const RANGES: usize = 8;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A PEP offers its service; not sealed.
    Hello,
    /// The server subscribes to reports.
    Subscribe,
    /// A report of packets that passed.
    Report,
    /// The server asks for a new epoch.
    Resync,
    /// The server unsubscribes.
    Stop,
    /// Something was refused.
    Error,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Hello, Self::Subscribe, Self::Report, Self::Resync, Self::Stop, Self::Error];
}

/// The last report of a burst.
pub const CLOSING: u8 = 1;
/// The body describes a TCP flow.
pub const TCP: u8 = 2;
/// The body describes an encrypted flow.
pub const OPAQUE: u8 = 4;
/// The body counts congestion marks.
pub const MARKS: u8 = 8;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the message.
    pub kind: Kind,
    /// A combination of [`CLOSING`], [`TCP`], [`OPAQUE`] and [`MARKS`].
    pub flags: u8,
    /// Id of the key that seals it.
    pub key: u16,
    /// Id of the PEP.
    pub pep: u32,
    /// Strictly increasing.
    pub sequence: u64,
}

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Too short, or too long.
    #[error("{0} bytes do not hold the message")]
    Length(usize),
    /// Unknown version.
    #[error("version {0}; 1 is known")]
    Version(u8),
    /// Unknown type.
    #[error("type {0} is none")]
    Kind(u8),
    /// An unknown flag, or flags that exclude each other.
    #[error("flags {0:#04x} mean nothing")]
    Flags(u8),
    /// A field out of its range.
    #[error("a field is out of its range: {0}")]
    Field(&'static str),
}

/// Reads fields one after another.
struct Reader<'a>(&'a [u8], usize);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self(bytes, bytes.len())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(MessageError::Length(self.1))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, MessageError> {
        Ok(self.take::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn end(&self) -> Result<(), MessageError> {
        if self.0.is_empty() { Ok(()) } else { Err(MessageError::Length(self.1)) }
    }
}

/// A message being written, with room for any message, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    bytes: [u8; LARGEST],
    length: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: [0; LARGEST], length: 0 }
    }
}

impl Buffer {
    /// Appends bytes. Bytes that do not fit are dropped; that would be a bug in this file.
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        debug_assert!(end <= LARGEST, "a message is larger than any");
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The bytes written so far, for sealing in place.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

impl Header {
    /// Writes the header.
    pub fn write(&self, out: &mut Buffer) {
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u8;
        out.put(&[VERSION << 4 | kind, self.flags]);
        out.put(&self.key.to_be_bytes());
        out.put(&self.pep.to_be_bytes());
        out.put(&self.sequence.to_be_bytes());
    }

    /// Reads the header from the beginning of a datagram.
    pub fn read(datagram: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first >> 4 != VERSION {
            return Err(MessageError::Version(first >> 4));
        }
        let kind = Kind::ALL.get(usize::from(first & 15)).ok_or(MessageError::Kind(first & 15))?;
        let flags = reader.u8()?;
        let bodies = flags & (TCP | OPAQUE);
        let sound = match kind {
            Kind::Report => flags < 16 && (bodies == TCP || bodies == OPAQUE),
            _ => flags == 0,
        };
        if !sound {
            return Err(MessageError::Flags(flags));
        }
        Ok(Self { kind: *kind, flags, key: reader.u16()?, pep: reader.u32()?, sequence: reader.u64()? })
    }
}

/// The bytes of a TCP flow that passed, as sequence numbers on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpView {
    /// Next byte expected in order.
    pub cumulative: u32,
    count: u8,
    ranges: [(u32, u32); RANGES],
}

impl TcpView {
    /// Everything below `cumulative` has passed, and nothing above.
    pub fn new(cumulative: u32) -> Self {
        Self { cumulative, ..Self::default() }
    }

    /// Appends a range above the others. More than eight ranges are ignored.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(room) = self.ranges.get_mut(usize::from(self.count)) {
            *room = (start, end);
            self.count += 1;
        }
    }

    /// Ranges above `cumulative`, in order: first byte, and one past the last. The bytes between them are missing.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }
}

/// The packets of an encrypted flow that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpaqueView {
    /// Tag of the newest packet.
    pub newest: u32,
    /// Power sums of all tags of the epoch.
    pub sums: PowerSums,
}

/// The packets of a flow that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The packets of a TCP flow.
    Tcp(TcpView),
    /// The packets of any other flow.
    Opaque(OpaqueView),
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportMessage {
    /// Reference of the flow.
    pub reference: u64,
    /// Number of times that counting was restarted; zero if it began with the flow's first packet.
    pub epoch: u16,
    /// Packets of the epoch, modulo 2^32.
    pub packets: u32,
    /// Their IP payload in bytes, modulo 2^48.
    pub bytes: u64,
    /// Time from the arrival of the newest packet to this report.
    pub hold: Span,
    /// The PEP's clock in microseconds; only differences are meaningful.
    pub clock: u32,
    /// Packets with a congestion mark, if these are counted.
    pub marked: Option<u32>,
    /// Whether it is the last report of a burst.
    pub closing: bool,
    /// The packets that passed.
    pub view: View,
}

const BYTES: u64 = (1 << 48) - 1;

impl ReportMessage {
    /// The flags that its header needs.
    pub fn flags(&self) -> u8 {
        let body = match self.view {
            View::Tcp(_) => TCP,
            View::Opaque(_) => OPAQUE,
        };
        body | if self.closing { CLOSING } else { 0 } | if self.marked.is_some() { MARKS } else { 0 }
    }

    /// Writes the body.
    pub fn write(&self, out: &mut Buffer) {
        out.put(&self.reference.to_be_bytes());
        out.put(&self.epoch.to_be_bytes());
        out.put(&self.packets.to_be_bytes());
        out.put(&(self.bytes & BYTES).to_be_bytes()[2..]);
        let hold = self.hold.as_micros().min(u64::from(u32::MAX)) as u32;
        out.put(&hold.to_be_bytes());
        out.put(&self.clock.to_be_bytes());
        if let Some(marked) = self.marked {
            out.put(&marked.to_be_bytes());
        }
        match &self.view {
            View::Tcp(view) => {
                out.put(&view.cumulative.to_be_bytes());
                out.put(&[view.count]);
                for (start, end) in view.ranges() {
                    out.put(&start.to_be_bytes());
                    out.put(&end.to_be_bytes());
                }
            }
            View::Opaque(view) => {
                out.put(&view.newest.to_be_bytes());
                out.put(&[POWERS as u8]);
                for sum in view.sums.as_slice() {
                    out.put(&sum.to_be_bytes());
                }
            }
        }
    }

    /// Reads the body that these flags announce.
    pub fn read(flags: u8, body: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let reference = reader.u64()?;
        let epoch = reader.u16()?;
        let packets = reader.u32()?;
        let [a, b, c, d, e, f] = reader.take::<6>()?;
        let bytes = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let hold = Span::from_micros(u64::from(reader.u32()?));
        let clock = reader.u32()?;
        let marked = if flags & MARKS != 0 { Some(reader.u32()?) } else { None };
        let view = if flags & TCP != 0 {
            let mut view = TcpView::new(reader.u32()?);
            let count = reader.u8()?;
            if usize::from(count) > RANGES {
                return Err(MessageError::Field("number of ranges"));
            }
            let mut last = 0;
            for _ in 0..count {
                let (start, end) = (reader.u32()?, reader.u32()?);
                // Offsets above the cumulative number: ascending, disjoint, not empty, and below half of the sequence space.
                let (from, to) = (start.wrapping_sub(view.cumulative), end.wrapping_sub(view.cumulative));
                if from <= last || to <= from || to >= 1 << 31 {
                    return Err(MessageError::Field("ranges"));
                }
                last = to;
                view.push(start, end);
            }
            View::Tcp(view)
        } else {
            let newest = reader.u32()?;
            if usize::from(reader.u8()?) != POWERS {
                return Err(MessageError::Field("number of power sums"));
            }
            let mut sums = [0; POWERS];
            for sum in &mut sums {
                *sum = reader.u32()?;
            }
            let sums = PowerSums::from_sums(sums).ok_or(MessageError::Field("power sums"))?;
            View::Opaque(OpaqueView { newest, sums })
        };
        reader.end()?;
        Ok(Self {
            reference,
            epoch,
            packets,
            bytes,
            hold,
            clock,
            marked,
            closing: flags & CLOSING != 0,
            view,
        })
    }
}

/// Longest subscription.
pub const MOST_LIFETIME: Span = Span::from_secs(3_600);

/// The server subscribes to reports of all its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// Key for the references of flows.
    pub flow_key: [u8; 32],
    /// Key for the tags of packets.
    pub tag_key: [u8; 16],
    /// Packets after which a report is due.
    pub packets: u8,
    /// Time after which one is due.
    pub interval: Span,
    /// Most reports per second and flow.
    pub rate: u16,
    /// Duration of the subscription.
    pub lifetime: Span,
}

impl Subscribe {
    /// A subscription with the default intervals: 8 packets or 2 ms, 1000 per second, for an hour.
    pub fn new(flow_key: [u8; 32], tag_key: [u8; 16]) -> Self {
        let interval = Span::from_millis(2);
        Self { flow_key, tag_key, packets: 8, interval, rate: 1_000, lifetime: MOST_LIFETIME }
    }

    /// Writes the body.
    pub fn write(&self, out: &mut Buffer) {
        out.put(&self.flow_key);
        out.put(&self.tag_key);
        out.put(&[self.packets]);
        out.put(&(self.interval.as_micros().min(u64::from(u32::MAX)) as u32).to_be_bytes());
        out.put(&self.rate.to_be_bytes());
        out.put(&(self.lifetime.as_millis().min(u64::from(u32::MAX)) as u32).to_be_bytes());
    }

    /// Reads the body.
    pub fn read(body: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let (flow_key, tag_key) = (reader.take()?, reader.take()?);
        let packets = reader.u8()?;
        let interval = Span::from_micros(u64::from(reader.u32()?));
        let rate = reader.u16()?;
        let lifetime = Span::from_millis(u64::from(reader.u32()?));
        reader.end()?;
        if packets == 0 || rate == 0 || rate > 1_000 || interval.is_zero() || interval > Span::SECOND {
            return Err(MessageError::Field("rhythm"));
        }
        if lifetime > MOST_LIFETIME {
            return Err(MessageError::Field("lifetime"));
        }
        Ok(Self { flow_key, tag_key, packets, interval, rate, lifetime })
    }
}

/// The server asks for a new epoch of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resync {
    /// Reference of the flow.
    pub reference: u64,
    /// Its new epoch.
    pub epoch: u16,
}

impl Resync {
    /// Writes the body.
    pub fn write(&self, out: &mut Buffer) {
        out.put(&self.reference.to_be_bytes());
        out.put(&self.epoch.to_be_bytes());
    }

    /// Reads the body.
    pub fn read(body: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let own = Self { reference: reader.u64()?, epoch: reader.u16()? };
        reader.end()?;
        Ok(own)
    }
}
