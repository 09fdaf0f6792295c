//! Tells the kernel that the proxy works: the element of the set `alive` expires unless it is renewed. While the proxy hangs, new
//! connections are thus forwarded unsplit.

use std::io;

use netlink_sys::Socket;
use ranpace_units::Span;

use crate::netlink::{self, ELEMENT, ELEMENTS, KEY, NESTED, VALUE, attribute, one, set_of};
use crate::rules::{ALIVE, nft_name};

/// Time after which the element expires. It is well below the second after which a client repeats its first SYN (RFC 6298), so that
/// the repetition of a SYN that a hung proxy holds passes. Ours.
const EXPIRES: Span = Span::from_millis(600);
/// Interval of renewals: three may be late. Ours.
pub const RENEWED: Span = Span::from_millis(150);
/// Time after a renewal in which the element is certainly there: less than [`EXPIRES`] by what the kernel may take to apply the
/// renewal. A SYN that was held longer may have been repeated and forwarded. Ours.
pub const CERTAIN: Span = Span::from_millis(500);

const NEW_ELEMENT: u16 = 12;
const DELETE_ELEMENT: u16 = 14;
const CREATE: u16 = 0x400;
const TIMEOUT: u16 = 4;
const EXPIRATION: u16 = 5;
/// The element: TCP's protocol number.
const TCP: [u8; 1] = [6];

/// Renews the element.
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
        Ok(Self { socket: netlink::socket()?, table: nft_name(name) })
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
        let mut body = set_of(&self.table, ALIVE);
        attribute(&mut body, ELEMENTS | NESTED, &one(ELEMENT | NESTED, &element));
        netlink::change(&mut self.socket, kind, flags, &body)
    }
}
