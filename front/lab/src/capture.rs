//! Packet captures of links, as pcap files with real headers and without payload.
//!
//! The format is that of draft-ietf-opsawg-pcap, sections 4 and 5, big endian with nanoseconds.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use etherparse::TcpOptionElement;
use ranpace_sim::{Direction, Packet, Tap, TapEvent};
use ranpace_tcp::{Kind, Segment};
use ranpace_units::{Ecn, Time};

use crate::store::is_too_many_files;

/// Port of the sending side of every flow; the receiving side's port is this plus 1 plus the connection's number.
const PORT: u16 = 5_000;

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture {path}: {reason}; what it holds so far is complete packets")]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// The error of the library or the system.
    pub reason: String,
}

/// One file per link; a packet is written when its last byte leaves the link.
pub struct Capture {
    files: Vec<(PathBuf, BufWriter<File>)>,
    /// The first error; nothing is written after it.
    failure: Option<CaptureError>,
    buffer: Vec<u8>,
}

impl Capture {
    /// Files `LINK.pcap` in an existing folder.
    pub fn create<'a>(folder: &Path, links: impl IntoIterator<Item = &'a str>) -> Result<Self, CaptureError> {
        let mut files = Vec::new();
        for link in links {
            let path = folder.join(format!("{}.pcap", link.replace(['/', '\\', '\0'], "_")));
            let failed = |reason: String| CaptureError { path: path.clone(), reason };
            let file = File::create(&path).map_err(|error| {
                failed(if is_too_many_files(&error) {
                    "too many open files, a capture has one for each link; `ulimit -n` shows how many there may be, \
                     `ulimit -n 65536` raises it"
                        .to_owned()
                } else {
                    error.to_string()
                })
            })?;
            let mut file = BufWriter::with_capacity(1 << 20, file);
            file.write_all(&file_header()).map_err(|error| failed(error.to_string()))?;
            files.push((path, file));
        }
        Ok(Self { files, failure: None, buffer: Vec::new() })
    }

    /// Flushes the files and returns their paths.
    pub fn finish(self) -> Result<Vec<PathBuf>, CaptureError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut paths = Vec::new();
        for (path, mut file) in self.files {
            file.flush().map_err(|error| CaptureError { path: path.clone(), reason: error.to_string() })?;
            paths.push(path);
        }
        Ok(paths)
    }
}

impl Tap for Capture {
    fn on_packet(&mut self, now: Time, link: usize, packet: &Packet, event: TapEvent) {
        if event != TapEvent::Departed || self.failure.is_some() {
            return;
        }
        let Some((path, file)) = self.files.get_mut(link) else { return };
        self.buffer.clear();
        headers(packet, &mut self.buffer);
        let wire = packet.segment.wire.max(self.buffer.len() as u32);
        if let Err(error) = write_record(file, now, wire, &self.buffer) {
            self.failure = Some(CaptureError { path: path.clone(), reason: error.to_string() });
        }
    }
}

/// The header of a file with raw IP packets.
fn file_header() -> [u8; 24] {
    /// Big endian, with nanoseconds.
    const MAGIC: u32 = 0xa1b2_3c4d;
    const VERSION: u32 = 2 << 16 | 4;
    const LONGEST: u32 = 65_535;
    const LINKTYPE_RAW: u32 = 101;
    let mut header = [0; 24];
    for (word, value) in header.chunks_exact_mut(4).zip([MAGIC, VERSION, 0, 0, LONGEST, LINKTYPE_RAW]) {
        word.copy_from_slice(&value.to_be_bytes());
    }
    header
}

/// A packet of `wire` bytes, of which only the headers are known.
fn write_record(file: &mut impl io::Write, now: Time, wire: u32, bytes: &[u8]) -> io::Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let nanos = now.as_nanos();
    // A scenario lasts 24,000 hours at most, and the headers of a packet are some 80 bytes.
    for word in [(nanos / SECOND) as u32, (nanos % SECOND) as u32, bytes.len() as u32, wire] {
        file.write_all(&word.to_be_bytes())?;
    }
    file.write_all(bytes)
}

/// IPv4 and TCP or UDP headers of a packet. The sending side of flow n has the n-th address of 10.0.0.0/9, the receiving side that
/// of 10.128.0.0/9.
fn headers(packet: &Packet, out: &mut Vec<u8>) {
    let segment = &packet.segment;
    let [_, a, b, c] = packet.flow.to_be_bytes();
    let (left, right) = ([10, a & 0x7f, b, c], [10, a | 0x80, b, c]);
    let client = PORT + 1 + (packet.connection % 60_000) as u16;
    let ((source, from), (destination, to)) = match packet.direction {
        Direction::Forward => ((left, PORT), (right, client)),
        Direction::Back => ((right, client), (left, PORT)),
    };
    let mut ip = etherparse::Ipv4Header {
        protocol: if is_udp(segment) { etherparse::IpNumber::UDP } else { etherparse::IpNumber::TCP },
        source,
        destination,
        time_to_live: 64,
        dont_fragment: true,
        ..etherparse::Ipv4Header::default()
    };
    ip.total_len = u16::try_from(segment.wire).unwrap_or(u16::MAX);
    ip.ecn = match segment.ecn {
        Ecn::NotEct => etherparse::IpEcn::NotEct,
        Ecn::Ect1 => etherparse::IpEcn::Ect1,
        Ecn::Ect0 => etherparse::IpEcn::Ect0,
        Ecn::Ce => etherparse::IpEcn::CongestionExperienced,
    };
    let transport = if is_udp(segment) { udp(segment, from, to) } else { tcp(segment, from, to) };
    ip.header_checksum = ip.calc_header_checksum();
    out.extend_from_slice(&ip.to_bytes());
    out.extend_from_slice(&transport);
}

fn is_udp(segment: &Segment) -> bool {
    matches!(segment.kind, Kind::Datagram | Kind::Feedback)
}

fn udp(segment: &Segment, from: u16, to: u16) -> Vec<u8> {
    let length = u16::try_from(segment.wire.saturating_sub(20)).unwrap_or(u16::MAX);
    etherparse::UdpHeader { source_port: from, destination_port: to, length, checksum: 0 }.to_bytes().to_vec()
}

fn tcp(segment: &Segment, from: u16, to: u16) -> Vec<u8> {
    // Sequence numbers wrap on the wire as they do in real captures; data begin at 1, after the SYN.
    let after_syn = |byte: u64| (byte as u32).wrapping_add(1);
    let opening = matches!(segment.kind, Kind::Syn | Kind::SynAck);
    let mut header = etherparse::TcpHeader::new(
        from,
        to,
        if opening { 0 } else { after_syn(segment.seq) },
        u16::try_from(if opening { segment.window } else { segment.window >> WINDOW_SCALE })
            .unwrap_or(u16::MAX),
    );
    header.syn = opening;
    header.ack = segment.kind != Kind::Syn;
    header.psh = segment.length > 0;
    (header.ece, header.cwr, header.ns) = (segment.ecn_echo, segment.cwr, false);
    if let Some(accurate) = &segment.accurate {
        // On the handshake all three offer accurate feedback, and CWR alone accepts it; later they are the ACE field, AE first
        // (RFC 9768, 3.1.1 and 3.2.2).
        let bits = match segment.kind {
            Kind::Syn => 0b111,
            Kind::SynAck => 0b010,
            _ => accurate.ace(),
        };
        (header.ns, header.cwr, header.ece) = (bits & 4 != 0, bits & 2 != 0, bits & 1 != 0);
    }
    if header.ack {
        header.acknowledgment_number = after_syn(segment.ack);
    }
    let millis = |time: Time| time.as_millis() as u32;
    let mut options = Vec::new();
    if opening {
        options.extend([
            TcpOptionElement::MaximumSegmentSize(1_460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(millis(segment.timestamp), millis(segment.echo)),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(WINDOW_SCALE),
        ]);
    } else {
        options.extend([
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::Timestamp(millis(segment.timestamp), millis(segment.echo)),
        ]);
        let blocks: Vec<(u32, u32)> = segment
            .sack
            .as_slice()
            .iter()
            .map(|block| {
                let at = |offset: u32| after_syn(segment.ack + u64::from(offset));
                (at(block.from), at(block.to))
            })
            .collect();
        if let [first, rest @ ..] = &blocks[..] {
            let mut others = [None; 3];
            for (slot, block) in others.iter_mut().zip(rest) {
                *slot = Some(*block);
            }
            options.extend([
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::SelectiveAcknowledgement(*first, others),
            ]);
        }
    }
    // They fit the header's 40 bytes, because the receiver leaves room for them; if they did not, the capture would show the
    // segment without options rather than omit it.
    let _ = header.set_options(&options);
    header.to_bytes().to_vec()
}

/// Window scale in captures; large enough for any window here.
const WINDOW_SCALE: u8 = 14;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etherparse::{LaxSlicedPacket, TransportSlice};
    use pcap_file::pcap::PcapReader;
    use pcap_file::{DataLink, TsResolution};
    use ranpace_sim::Simulation;

    use super::*;
    use crate::{Job, TraceLibrary};

    /// A quarter of a second of a download over 8 Mbit/s and 10 ms.
    const SCENARIO: &str = r#"
        duration = "250ms"
        [[link]]
        name = "down"
        from = "server"
        to = "phone"
        rate = "8Mbit/s"
        delay = "10ms"
        duplex = true
        [[flow]]
        from = "server"
        to = "phone"
        cc = "cubic"
    "#;

    #[test]
    fn independent_reader_reads_the_written_file() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::new("short", SCENARIO, "capture.rs", &mut TraceLibrary::default()).unwrap();
        let mut capture = Capture::create(folder.path(), ["down", "down.back"]).unwrap();
        let result = Simulation::new(&job.scenario).with_tap(&mut capture).run();
        let files = capture.finish().unwrap();
        assert_eq!(files, ["down.pcap", "down.back.pcap"].map(|name| folder.path().join(name)));
        for (file, link) in files.iter().zip(&result.links) {
            let mut reader = PcapReader::new(File::open(file).unwrap()).unwrap();
            let header = reader.header();
            assert_eq!((header.datalink, header.ts_resolution), (DataLink::RAW, TsResolution::NanoSecond));
            let (mut last, mut packets, mut bytes) = (Duration::ZERO, 0, 0);
            while let Some(packet) = reader.next_packet() {
                let packet = packet.unwrap();
                assert!(packet.timestamp >= last && packet.timestamp <= Duration::from_millis(250));
                let sliced = LaxSlicedPacket::from_ip(&packet.data).unwrap();
                assert!(matches!(sliced.transport, Some(TransportSlice::Tcp(_))), "{sliced:?}");
                (last, packets, bytes) = (packet.timestamp, packets + 1, bytes + u64::from(packet.orig_len));
            }
            assert_eq!((packets, bytes), (link.departed_packets, link.departed.get()), "{}", link.name);
            assert!(packets > 50, "{packets}");
        }
    }
}
