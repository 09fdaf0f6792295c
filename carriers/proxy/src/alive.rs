//! Tells the kernel that the proxy works: the element of the set `alive` expires unless it is renewed. While the proxy hangs, new
//! connections are thus forwarded unsplit.

use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use ranpace_units::Span;

use crate::rules::{ALIVE, nft_name};

/// Time after which the element expires. It is well below the second after which a client repeats its first SYN (RFC 6298), so that
/// the repetition of a SYN that a hung proxy holds passes. Ours.
const EXPIRES: Span = Span::from_millis(600);
/// Interval of renewals: three may be late. Ours.
pub const RENEWED: Span = Span::from_millis(150);
/// Time after a renewal in which the element is certainly there: less than [`EXPIRES`] by what the kernel may take to apply the
/// renewal. A SYN that was held longer may have been repeated and forwarded. Ours.
pub const CERTAIN: Span = Span::from_millis(500);

// linux/netlink.h: `NLMSG_ERROR`.
const ERROR: u16 = 2;
// linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NFTABLES: u16 = 10;
const NEW_ELEMENT: u16 = (NFTABLES << 8) | 12;
const DELETE_ELEMENT: u16 = (NFTABLES << 8) | 14;
const REQUEST: u16 = 1;
const CREATE: u16 = 0x400;
const ACKNOWLEDGE: u16 = 4;
const NESTED: u16 = 0x8000;
const OF_TABLE: u16 = 1;
const OF_SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const TIMEOUT: u16 = 4;
const EXPIRATION: u16 = 5;
const VALUE: u16 = 1;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// The element: TCP's protocol number.
const TCP: [u8; 1] = [6];

/// The socket through which the element is renewed.
pub struct Alive {
    socket: Socket,
    table: String,
}

impl Alive {
    /// For the proxy of this name, in this network namespace.
    ///
    /// # Errors
    ///
    /// The system has no such socket.
    pub fn new(name: &str) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, table: nft_name(name) })
    }

    /// The element counts from now on for [`EXPIRES`].
    ///
    /// # Errors
    ///
    /// The kernel refuses it: the table is not there, or a right is missing.
    pub fn renew(&mut self) -> io::Result<()> {
        self.change(NEW_ELEMENT, CREATE)
    }

    /// New connections are forwarded from now on.
    ///
    /// # Errors
    ///
    /// The kernel refuses it. An element that is not there is no error.
    pub fn end(&mut self) -> io::Result<()> {
        match self.change(DELETE_ELEMENT, 0) {
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOENT as i32) => Ok(()),
            done => done,
        }
    }

    fn change(&mut self, kind: u16, flags: u16) -> io::Result<()> {
        let millis = (EXPIRES.as_nanos() / 1_000_000).to_be_bytes();
        let mut element = Vec::new();
        attribute(&mut element, KEY | NESTED, &one(VALUE, &TCP));
        if kind == NEW_ELEMENT {
            attribute(&mut element, TIMEOUT, &millis);
            attribute(&mut element, EXPIRATION, &millis);
        }
        let mut body = Vec::new();
        attribute(&mut body, OF_TABLE, format!("{}\0", self.table).as_bytes());
        attribute(&mut body, OF_SET, format!("{ALIVE}\0").as_bytes());
        attribute(&mut body, ELEMENTS | NESTED, &one(ELEMENT | NESTED, &element));
        let mut batch = Vec::new();
        message(&mut batch, BATCH_BEGIN, REQUEST, (0, NFTABLES), &[]);
        message(&mut batch, kind, REQUEST | ACKNOWLEDGE | flags, (INET, 0), &body);
        message(&mut batch, BATCH_END, REQUEST, (0, NFTABLES), &[]);
        self.socket.send(&batch, 0)?;
        let mut answer = [0; 4096];
        let size = self.socket.recv(&mut &mut answer[..], 0)?;
        // A header of 16 bytes, with the type at 4, and then the number of the error, negative; 0 in an acknowledgement.
        if size < 20 || u16::from_ne_bytes([answer[4], answer[5]]) != ERROR {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "expected an acknowledgement of nfnetlink",
            ));
        }
        match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(-code)),
        }
    }
}

/// Appends a message of nfnetlink: the header of netlink, and then family, version and resource.
fn message(batch: &mut Vec<u8>, kind: u16, flags: u16, (family, resource): (u8, u16), body: &[u8]) {
    let length = 16 + 4 + body.len() as u32; // a hundred bytes
    batch.extend(length.to_ne_bytes());
    batch.extend(kind.to_ne_bytes());
    batch.extend(flags.to_ne_bytes());
    batch.extend([0; 8]); // sequence number, and sender
    batch.extend([family, 0]);
    batch.extend(resource.to_be_bytes());
    batch.extend(body);
}

/// Appends an attribute, padded to four bytes.
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes()); // a hundred bytes
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn one(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    attribute(&mut bytes, kind, value);
    bytes
}
