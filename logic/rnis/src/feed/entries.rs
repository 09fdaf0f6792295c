//! Entries of a directory: the cells and users of a feed, whose reports have numbers alone.
//!
//! | byte | cell | user |
//! |---|---|---|
//! | 0 | 1 | 2 |
//! | 1 | description, nine words as in the [table](crate::shared_table) | number (2 bytes) |
//! | then | bytes of its identity, and these | bytes of its name, and these; addresses, and for each its kind and 16 bytes |

use crate::CellInfo;
use crate::feed::message::MessageError;
use crate::shared_table::directory::{Address, AddressKind, Identity};
use crate::shared_table::record::{decode, encode};

/// Longest identity of a cell, and longest name of a user; longer ones are cut between characters.
pub const MOST_NAME_BYTES: usize = 64;
/// Most addresses of a user; further ones are left out.
pub const MOST_ADDRESSES: usize = 8;
/// Most bytes of an entry.
pub const MOST_ENTRY_BYTES: usize = 4 + MOST_NAME_BYTES + 17 * MOST_ADDRESSES;

/// A cell or a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A cell.
    Cell {
        /// Its description, with its number.
        info: CellInfo,
        /// Its identity, for people.
        identity: String,
    },
    /// A user.
    User {
        /// Its number in reports.
        user: u16,
        /// Its name and addresses; neither if the subscriber may not see it any more.
        identity: Identity,
    },
}

/// Appends a text with its length.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let most = text.len().min(MOST_NAME_BYTES);
    let length = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    out.push(length as u8); // at most 64
    out.extend_from_slice(&text.as_bytes()[..length]);
}

impl Entry {
    /// Appends its bytes, at most [`MOST_ENTRY_BYTES`].
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cell { info, identity } => {
                out.push(1);
                encode(info).iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
                write_text(out, identity);
            }
            Self::User { user, identity } => {
                out.push(2);
                out.extend_from_slice(&user.to_le_bytes());
                write_text(out, &identity.name);
                let addresses = &identity.addresses[..identity.addresses.len().min(MOST_ADDRESSES)];
                out.push(addresses.len() as u8); // at most 8
                for address in addresses {
                    out.push(address.kind as u8);
                    out.extend_from_slice(&address.bytes);
                }
            }
        }
    }

    /// Reads the entries of a body.
    ///
    /// # Errors
    ///
    /// An entry is no entry. Those before it have been passed on.
    pub fn parse_all(body: &[u8], take: &mut dyn FnMut(Self)) -> Result<(), MessageError> {
        let mut rest = body;
        while !rest.is_empty() {
            let at = body.len() - rest.len();
            take(Self::parse(&mut rest).ok_or(MessageError::Entry { at })?);
        }
        Ok(())
    }

    fn parse(rest: &mut &[u8]) -> Option<Self> {
        fn split<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
            let (first, behind) = rest.split_at_checked(bytes)?;
            *rest = behind;
            Some(first)
        }
        fn text(rest: &mut &[u8]) -> Option<String> {
            let length = usize::from(split(rest, 1)?[0]);
            if length > MOST_NAME_BYTES {
                return None;
            }
            String::from_utf8(split(rest, length)?.to_vec()).ok()
        }
        match split(rest, 1)?[0] {
            1 => {
                let (words, _) = split(rest, 72)?.as_chunks::<8>();
                let info = decode(&core::array::from_fn(|place| u64::from_le_bytes(words[place])))?;
                let identity = text(rest)?;
                info.is_plausible().then_some(Self::Cell { info, identity })
            }
            2 => {
                let user = u16::from_le_bytes(*split(rest, 2)?.first_chunk()?);
                let name = text(rest)?;
                let count = usize::from(split(rest, 1)?[0]);
                if count > MOST_ADDRESSES {
                    return None;
                }
                let mut addresses = Vec::with_capacity(count);
                for _ in 0..count {
                    let kind = match split(rest, 1)?[0] {
                        1 => AddressKind::Ipv4,
                        2 => AddressKind::Ipv6,
                        3 => AddressKind::Nated,
                        _ => return None,
                    };
                    addresses.push(Address { kind, bytes: *split(rest, 16)?.first_chunk()? });
                }
                Some(Self::User { user, identity: Identity { name, addresses } })
            }
            _ => None,
        }
    }
}
