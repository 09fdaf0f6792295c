//! Writes a packet capture: pcapng with one interface per host, as if a capture ran on each of them.
//!
//! A packet that a host sends is written as outbound on that host's interface when it enters the network, and as inbound on the
//! other host's when it is handed over. The time between both is what links, queues and cells took; a dropped packet appears only
//! as outbound. Each packet begins with the header that Linux itself writes when it captures on all interfaces
//! (LINKTYPE_LINUX_SLL): libpcap 1.10 reads files of several interfaces only if their link type has the same number in files and in
//! its own list (`pcapng.c`), and that of plain IP packets has not (LINKTYPE_RAW is 101, DLT_RAW 12). Times are in nanoseconds.
//! Checksums that the kernel left to a network card are filled in.
//!
//! The loop copies packets into chunks, and a thread writes them. The loop does not wait for the thread; packets that the thread
//! cannot keep up with are left out and counted. The format is that of draft-ietf-opsawg-pcapng, sections 4.1 to 4.3, in
//! the machine's byte order.

use std::fs::File;
use std::io::{self, BufWriter, IoSlice, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, SystemTime};

use ranpace_units::{Span, Time};

use crate::gso::{OFFSET, fill_checksum};

/// Bytes of packets handed to the thread at a time. Ours: some 170 packets.
const CHUNK: usize = 256 << 10;
/// Most chunks queued for the thread. Ours: 64 MB, half a second of 1 Gbit/s.
const MOST_CHUNKS: usize = 256;
/// A chunk is handed over after this time even if it is not full. Ours.
const PATIENCE: Span = Span::from_millis(100);
/// A record in a chunk begins with the time (8 B), the host (4 B, with [`INBOUND`]) and the length of the buffer (4 B).
const RECORD: usize = 16;
const INBOUND: u32 = 1 << 31;
/// Bytes of the header before each packet in the file.
const COOKED: usize = 16;

/// Counters of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file; a delivered packet counts twice.
    pub packets: u64,
    /// Packets left out because writing did not keep up.
    pub left_out: u64,
}

/// Why a file is incomplete.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture {path}: {source}; what it holds so far is complete packets")]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// The loop's side: accepts packets.
#[derive(Debug)]
pub struct Tap {
    chunk: Vec<u8>,
    held: u64,
    since: Time,
    /// The instant of [`Time::ZERO`], since 1970.
    epoch: Duration,
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    left_out: u64,
}

impl Tap {
    /// Starts the clock.
    pub fn begin(&mut self) {
        self.epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    }

    /// A packet crosses the interface of a host at `now`, in either direction.
    #[inline]
    pub fn note(&mut self, now: Time, host: usize, inbound: bool, bytes: &[IoSlice<'_>]) {
        let length = bytes.iter().map(|bytes| bytes.len()).sum::<usize>();
        if self.chunk.len() + RECORD + length > CHUNK {
            self.hand_over();
        }
        if self.held == 0 {
            self.since = now;
        }
        let at = self.epoch + Duration::from_nanos((now - Time::ZERO).as_nanos());
        let host = host as u32 | if inbound { INBOUND } else { 0 };
        self.chunk.extend_from_slice(&(at.as_nanos() as u64).to_ne_bytes());
        self.chunk.extend_from_slice(&host.to_ne_bytes());
        self.chunk.extend_from_slice(&(length as u32).to_ne_bytes());
        bytes.iter().for_each(|bytes| self.chunk.extend_from_slice(bytes));
        self.held += 1;
    }

    /// Hands over a chunk that has waited long enough.
    #[inline]
    pub fn look(&mut self, now: Time) {
        if self.held > 0 && now - self.since >= PATIENCE {
            self.hand_over();
        }
    }

    /// Hands over everything at the end. Returns the number of packets left out.
    pub fn finish(mut self) -> u64 {
        if let Some(full) = self.full.take()
            && full.send(std::mem::take(&mut self.chunk)).is_err()
        {
            self.left_out += self.held;
        }
        self.left_out
    }

    #[cold]
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let chunk = std::mem::replace(&mut self.chunk, next);
        match self.full.as_ref().map(|full| full.try_send(chunk)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk))) => {
                self.left_out += self.held;
                self.chunk = chunk;
            }
            None => self.left_out += self.held,
        }
        self.chunk.clear();
        self.held = 0;
    }
}

/// The file's side: writes.
pub struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    full: Receiver<Vec<u8>>,
    empty: Sender<Vec<u8>>,
    /// The block being written.
    block: Vec<u8>,
}

impl Writer {
    /// Creates the file, with an interface for each of these hosts.
    pub fn create(path: &Path, hosts: &[&str]) -> Result<(Tap, Self), CaptureError> {
        let failed = |source| CaptureError { path: path.to_owned(), source };
        let file = File::create(path).map_err(failed)?;
        let mut file = BufWriter::with_capacity(CHUNK, file);
        let mut block = Vec::new();
        section_header(&mut block);
        hosts.iter().for_each(|host| interface_description(&mut block, host));
        file.write_all(&block).and_then(|()| file.flush()).map_err(failed)?;
        let (full, hear_full) = sync_channel(MOST_CHUNKS);
        let (empty, hear_empty) = channel();
        let tap = Tap {
            chunk: Vec::with_capacity(CHUNK),
            held: 0,
            since: Time::ZERO,
            epoch: Duration::ZERO,
            full: Some(full),
            empty: hear_empty,
            left_out: 0,
        };
        Ok((tap, Self { path: path.to_owned(), file, full: hear_full, empty, block }))
    }

    /// Writes until the tap has finished, and returns the number of packets. After an error further packets are left out.
    pub fn run(mut self) -> Result<u64, CaptureError> {
        let mut packets = 0;
        while let Ok(mut chunk) = self.full.recv() {
            packets +=
                self.write(&mut chunk).map_err(|source| CaptureError { path: self.path.clone(), source })?;
            chunk.clear();
            // The tap may have finished.
            let _ = self.empty.send(chunk);
        }
        Ok(packets)
    }

    /// Writes the packets of a chunk to the file.
    fn write(&mut self, chunk: &mut [u8]) -> io::Result<u64> {
        let (mut rest, mut count) = (chunk, 0);
        while let Some((head, behind)) = rest.split_first_chunk_mut::<RECORD>() {
            let (at, host, length) = parts(head);
            let Some((buffer, next)) = behind.split_at_mut_checked(length) else { break };
            rest = next;
            fill_checksum(buffer);
            let packet = buffer.get(OFFSET..).unwrap_or_default();
            self.block.clear();
            enhanced_packet(&mut self.block, host & !INBOUND, at, host & INBOUND != 0, packet);
            self.file.write_all(&self.block)?;
            count += 1;
        }
        // If the emulator is killed, what was handed over is in the file.
        self.file.flush()?;
        Ok(count)
    }
}

/// The header before a packet (LINKTYPE_LINUX_SLL): direction (0 to this host, 4 from it), device type, no address, and the
/// EtherType of its protocol.
fn cooked(is_inbound: bool, packet: &[u8]) -> [u8; COOKED] {
    /// ARPHRD_NONE: that of TUN devices.
    const NO_TYPE: [u8; 2] = 0xfffe_u16.to_be_bytes();
    const IPV4: [u8; 2] = 0x0800_u16.to_be_bytes();
    const IPV6: [u8; 2] = 0x86dd_u16.to_be_bytes();
    let mut header = [0; COOKED];
    header[1] = if is_inbound { 0 } else { 4 };
    header[2..4].copy_from_slice(&NO_TYPE);
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    header[14..].copy_from_slice(if is_v6 { &IPV6 } else { &IPV4 });
    header
}

/// Time, host and length of a record.
fn parts(head: &[u8; RECORD]) -> (u64, u32, usize) {
    let (time, rest) = head.split_at(8);
    let (host, length) = rest.split_at(4);
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let time = time.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    (time, word(host), word(length) as usize)
}

/// The section header of a file, section 4.1: version 1.0, without a length.
fn section_header(out: &mut Vec<u8>) {
    const BYTE_ORDER: u32 = 0x1a2b_3c4d;
    block(out, 0x0a0d_0d0a, |out| {
        out.extend_from_slice(&BYTE_ORDER.to_ne_bytes());
        out.extend_from_slice(&1_u16.to_ne_bytes());
        out.extend_from_slice(&0_u16.to_ne_bytes());
        out.extend_from_slice(&(-1_i64).to_ne_bytes());
    });
}

/// An interface with this name, section 4.2: no limit of the packet length, times in nanoseconds.
fn interface_description(out: &mut Vec<u8>, name: &str) {
    const LINKTYPE_LINUX_SLL: u16 = 113;
    const IF_NAME: u16 = 2;
    const IF_TSRESOL: u16 = 9;
    block(out, 1, |out| {
        out.extend_from_slice(&LINKTYPE_LINUX_SLL.to_ne_bytes());
        out.extend_from_slice(&[0; 6]);
        option(out, IF_NAME, name.as_bytes());
        option(out, IF_TSRESOL, &[9]); // 10 to the power of -9 s
        option(out, 0, &[]);
    });
}

/// A packet that crossed an interface at `at` nanoseconds since 1970, section 4.3.
fn enhanced_packet(out: &mut Vec<u8>, interface: u32, at: u64, is_inbound: bool, packet: &[u8]) {
    const EPB_FLAGS: u16 = 2;
    // Bits 0 and 1 of the flags.
    let direction: u32 = if is_inbound { 1 } else { 2 };
    let length = (COOKED + packet.len()) as u32;
    block(out, 6, |out| {
        for word in [interface, (at >> 32) as u32, at as u32, length, length] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        out.extend_from_slice(&cooked(is_inbound, packet));
        out.extend_from_slice(packet);
        pad(out, COOKED + packet.len());
        option(out, EPB_FLAGS, &direction.to_ne_bytes());
        option(out, 0, &[]);
    });
}

/// A block of this type; its length is written before and after its body.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = ((out.len() - begin + 4) as u32).to_ne_bytes();
    out.extend_from_slice(&length);
    if let Some(before) = out.get_mut(begin + 4..begin + 8) {
        before.copy_from_slice(&length);
    }
}

/// An option with its padding; the last one of a block is 0.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_ne_bytes());
    // Host names have at most 200 bytes.
    out.extend_from_slice(&(value.len() as u16).to_ne_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Pads with zeros to a multiple of four bytes.
fn pad(out: &mut Vec<u8>, length: usize) {
    out.resize(out.len() + length.next_multiple_of(4) - length, 0);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use pcap_file::DataLink;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use crate::gso::{NEEDS_SUM, UDP_SUM, addresses_sum, pseudo_sum};

    /// A UDP packet with this number in it, whose checksum is left to the card.
    fn packet(number: u16) -> Vec<u8> {
        let mut buffer = vec![0; OFFSET];
        let ip = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64);
        ip.udp(5000, 80).write(&mut buffer, &[&number.to_be_bytes()[..], &[7; 1000]].concat()).unwrap();
        let header = tun_rs::VirtioNetHdr {
            flags: NEEDS_SUM,
            csum_start: 20,
            csum_offset: UDP_SUM as u16,
            ..Default::default()
        };
        header.encode(&mut buffer).unwrap();
        let packet = &mut buffer[OFFSET..];
        let sum = pseudo_sum(addresses_sum(packet, false), false, (packet.len() - 20) as u64);
        packet[20 + UDP_SUM..][..2].copy_from_slice(&sum.to_be_bytes());
        buffer
    }

    /// Time, interface, direction and number.
    type Packet = (Duration, u32, u32, u16);

    /// Reads a file: names of interfaces, and packets.
    fn read(path: &Path) -> (Vec<String>, Vec<Packet>) {
        let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
        let (mut names, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!(interface.linktype, DataLink::LINUX_SLL);
                    assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                    names.extend(interface.options.iter().find_map(|option| match option {
                        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                        _ => None,
                    }));
                }
                Block::EnhancedPacket(packet) => {
                    let [EnhancedPacketOption::Flags(direction)] = packet.options[..] else { panic!() };
                    // For us or sent by us, of a device without type and address, IPv4.
                    let kind = if direction == 1 { 0 } else { 4 };
                    let expected = [0, kind, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
                    assert_eq!(packet.data[..COOKED], expected);
                    let sliced = SlicedPacket::from_ip(&packet.data[COOKED..]).unwrap();
                    assert_eq!(packet.original_len as usize, packet.data.len());
                    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("{sliced:?}") };
                    let expected =
                        udp.to_header().calc_checksum_ipv4_raw([10, 77, 0, 1], [10, 77, 0, 2], udp.payload());
                    assert_eq!(udp.checksum(), expected.unwrap(), "as on a wire");
                    let number = u16::from_be_bytes([udp.payload()[0], udp.payload()[1]]);
                    packets.push((packet.timestamp, packet.interface_id, direction, number));
                }
                other => panic!("{other:?}"),
            }
        }
        (names, packets)
    }

    #[test]
    fn a_capture_has_every_packet_at_its_instant_with_host_and_direction() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.pcapng");
        let (mut tap, writer) = Writer::create(&path, &["server", "phone"]).unwrap();
        let writing = thread::spawn(|| writer.run());
        tap.begin();
        let epoch = tap.epoch;
        let before_1970_ended = Duration::from_secs(1_500_000_000);
        assert!(epoch > before_1970_ended, "a clock of today");
        // Some chunks full, and one that is not.
        for number in 0..1000 {
            tap.note(
                Time::from_nanos(u64::from(number) * 1_000),
                usize::from(number % 2),
                number % 2 == 1,
                &[IoSlice::new(&packet(number))],
            );
        }
        assert_eq!(tap.finish(), 0);
        assert_eq!(writing.join().unwrap().unwrap(), 1000);
        let (names, packets) = read(&path);
        assert_eq!(names, ["server", "phone"]);
        for (number, packet) in packets.iter().enumerate() {
            let at = epoch + Duration::from_micros(number as u64);
            let (host, direction) = if number % 2 == 1 { (1, 1) } else { (0, 2) };
            assert_eq!(*packet, (at, host, direction, number as u16));
        }
        assert_eq!(packets.len(), 1000);
    }

    #[test]
    fn a_packet_is_soon_on_its_way_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.pcapng");
        let (mut tap, mut writer) = Writer::create(&path, &["server"]).unwrap();
        tap.note(Time::from_millis(10), 0, false, &[IoSlice::new(&packet(1))]);
        tap.look(Time::from_millis(109));
        assert!(writer.full.try_recv().is_err(), "it waits for others");
        tap.look(Time::from_millis(110));
        let mut chunk = writer.full.try_recv().unwrap();
        assert_eq!(writer.write(&mut chunk).unwrap(), 1);
        // Nothing has ended yet.
        assert_eq!(read(&path).1.len(), 1);
        tap.look(Time::from_secs(9));
        assert!(writer.full.try_recv().is_err(), "there is nothing to hand over");
    }

    #[test]
    fn packets_that_cannot_be_written_in_time_are_left_out_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.pcapng");
        let (mut tap, writer) = Writer::create(&path, &["server"]).unwrap();
        let packet = packet(1);
        let a_chunk = CHUNK / (RECORD + packet.len());
        let all = a_chunk * (MOST_CHUNKS + 3);
        for _ in 0..all {
            tap.note(Time::ZERO, 0, false, &[IoSlice::new(&packet)]);
        }
        // Nothing was written until now. The last chunk waits for room.
        let writing = thread::spawn(|| writer.run());
        let left_out = tap.finish();
        let written = writing.join().unwrap().unwrap();
        assert_eq!(written + left_out, all as u64);
        assert_eq!(left_out, 2 * a_chunk as u64);
        assert_eq!(read(&path).1.len() as u64, written);
    }

    #[test]
    fn a_writer_that_is_gone_does_not_stop_the_loop() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tap, writer) = Writer::create(&folder.path().join("file.pcapng"), &["server"]).unwrap();
        drop(writer);
        let packet = packet(1);
        (0..1000).for_each(|_| tap.note(Time::ZERO, 0, false, &[IoSlice::new(&packet)]));
        assert_eq!(tap.finish(), 1000);
        let nowhere = folder.path().join("no/such/folder/file");
        let error = Writer::create(&nowhere, &[]).err().unwrap().to_string();
        assert!(error.contains("no/such/folder"), "{error}");
    }
}
