//! Messages to nf_tables (nfnetlink): elements of a set are added and deleted, and read with their counters.

use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

// linux/netlink.h: `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
// linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NFTABLES: u16 = 10;
const GET_ELEMENTS: u16 = 13;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
const OF_TABLE: u16 = 1;
const OF_SET: u16 = 2;
/// Attributes of a message about elements, of a list, and of an element.
pub const NESTED: u16 = 0x8000;
/// See [`NESTED`].
pub const ELEMENTS: u16 = 3;
/// See [`NESTED`].
pub const ELEMENT: u16 = 1;
/// See [`NESTED`].
pub const KEY: u16 = 1;
/// See [`NESTED`].
pub const VALUE: u16 = 1;
const EXPRESSION: u16 = 7;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const COUNTER_BYTES: u16 = 1;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// Headers of netlink, and of netlink with nfnetlink.
const HEADER: usize = 16;
const HEADERS: usize = 20;
/// Largest answer: the kernel fills 32 KiB at most (`NLMSG_GOODSIZE`).
const ANSWER: usize = 64 << 10;

/// A socket to nfnetlink in this network namespace.
///
/// # Errors
///
/// The system has none.
pub fn socket() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Changes elements.
///
/// # Errors
///
/// The kernel refuses it.
pub fn change(socket: &mut Socket, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    let mut batch = Vec::new();
    message(&mut batch, BATCH_BEGIN, REQUEST, (0, NFTABLES), &[]);
    message(&mut batch, NFTABLES << 8 | kind, REQUEST | ACKNOWLEDGE | flags, (INET, 0), body);
    message(&mut batch, BATCH_END, REQUEST, (0, NFTABLES), &[]);
    socket.send(&batch, 0)?;
    let mut answer = [0; 4096];
    let size = socket.recv(&mut &mut answer[..], 0)?;
    match messages(&answer[..size.min(answer.len())]).next() {
        Some((ERROR, content)) => refusal(content),
        _ => Err(unexpected("an acknowledgement")),
    }
}

/// The elements of a set: the bytes of each key, and the bytes that its counter has counted.
///
/// # Errors
///
/// The kernel refuses it: the table is not there.
pub fn counters(socket: &mut Socket, table: &str, set: &str) -> io::Result<Vec<(Vec<u8>, u64)>> {
    let mut request = Vec::new();
    message(&mut request, NFTABLES << 8 | GET_ELEMENTS, REQUEST | DUMP, (INET, 0), &set_of(table, set));
    socket.send(&request, 0)?;
    let (mut found, mut answer) = (Vec::new(), vec![0; ANSWER]);
    loop {
        let size = socket.recv(&mut &mut answer[..], 0)?;
        let mut is_empty = true;
        for (kind, content) in messages(&answer[..size.min(ANSWER)]) {
            is_empty = false;
            match kind {
                DONE => return Ok(found),
                ERROR => refusal(content)?,
                _ => read_elements(content.get(HEADERS - HEADER..).unwrap_or_default(), &mut found),
            }
        }
        if is_empty {
            return Err(unexpected("elements of a set"));
        }
    }
}

fn read_elements(body: &[u8], found: &mut Vec<(Vec<u8>, u64)>) {
    for element in inner(body, ELEMENTS).into_iter().flat_map(attributes).filter(|(kind, _)| *kind == ELEMENT)
    {
        let key = inner(element.1, KEY).and_then(|key| inner(key, VALUE));
        let expression = inner(element.1, EXPRESSION);
        let is_counter = expression.and_then(|one| inner(one, EXPRESSION_NAME)) == Some(b"counter\0");
        let data = expression.filter(|_| is_counter).and_then(|one| inner(one, EXPRESSION_DATA));
        let bytes = data.and_then(|data| inner(data, COUNTER_BYTES)).and_then(|bytes| bytes.try_into().ok());
        if let Some((key, bytes)) = key.zip(bytes) {
            found.push((key.to_vec(), u64::from_be_bytes(bytes)));
        }
    }
}

/// The number of an error message: 0 in an acknowledgement, otherwise negative.
fn refusal(content: &[u8]) -> io::Result<()> {
    let number = content.get(..4).and_then(|number| number.try_into().ok()).map(i32::from_ne_bytes);
    match number.ok_or_else(|| unexpected("the number of an error"))? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
    }
}

fn unexpected(expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected {expected} from nfnetlink"))
}

/// The beginning of a message about elements of a set.
pub fn set_of(table: &str, set: &str) -> Vec<u8> {
    let mut body = Vec::new();
    attribute(&mut body, OF_TABLE, format!("{table}\0").as_bytes());
    attribute(&mut body, OF_SET, format!("{set}\0").as_bytes());
    body
}

/// Appends a message of nfnetlink: the header of netlink, and then family, version and resource.
fn message(batch: &mut Vec<u8>, kind: u16, flags: u16, (family, resource): (u8, u16), body: &[u8]) {
    let length = (HEADERS + body.len()) as u32; // a hundred bytes
    batch.extend(length.to_ne_bytes());
    batch.extend(kind.to_ne_bytes());
    batch.extend(flags.to_ne_bytes());
    batch.extend([0; 8]); // sequence number, and sender
    batch.extend([family, 0]);
    batch.extend(resource.to_be_bytes());
    batch.extend(body);
}

/// Appends an attribute, padded to four bytes.
pub fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes()); // a hundred bytes
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// One attribute.
pub fn one(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    attribute(&mut bytes, kind, value);
    bytes
}

/// Kinds and contents of messages, each after the header of netlink.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    parts(bytes, |bytes| {
        let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
        Some((length as usize, u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?), HEADER))
    })
}

/// Kinds and values of attributes.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    parts(bytes, |bytes| {
        let length = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        Some((length.into(), u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & !NESTED, 4))
    })
}

/// The value of the first attribute of this kind.
fn inner(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(known, _)| *known == kind).map(|(_, value)| value)
}

/// Parts that begin with their length, a kind and the length of the header; what is cut off ends them.
fn parts(
    mut bytes: &[u8],
    head: impl Fn(&[u8]) -> Option<(usize, u16, usize)>,
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind, header) = head(bytes)?;
        let content = bytes.get(header..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with one element, as the kernel writes it.
    fn elements() -> Vec<u8> {
        let counter = one(COUNTER_BYTES, &1_234_567_u64.to_be_bytes());
        let mut expression = one(EXPRESSION_NAME, b"counter\0");
        attribute(&mut expression, EXPRESSION_DATA | NESTED, &counter);
        let mut element = one(KEY | NESTED, &one(VALUE, &[10, 91, 1, 2]));
        attribute(&mut element, EXPRESSION | NESTED, &expression);
        let mut body = set_of("test_proxy", "passing4");
        attribute(&mut body, ELEMENTS | NESTED, &one(ELEMENT | NESTED, &element));
        body
    }

    #[test]
    fn counters_of_elements_are_read() {
        let mut found = Vec::new();
        read_elements(&elements(), &mut found);
        assert_eq!(found, [(vec![10, 91, 1, 2], 1_234_567)]);
    }

    #[test]
    fn what_is_cut_off_or_makes_no_sense_is_left_out() {
        let whole = elements();
        for length in 0..whole.len() {
            let mut found = Vec::new();
            read_elements(&whole[..length], &mut found);
            assert!(found.is_empty(), "{length} bytes");
        }
        for place in 0..whole.len() {
            let mut other = whole.clone();
            other[place] ^= 0xff;
            read_elements(&other, &mut Vec::new());
        }
        assert!(refusal(&[]).is_err() && refusal(&i32::MIN.to_ne_bytes()).is_err());
    }
}
