//! The names and addresses of a table's users: a second region of words, which a carrier maps behind those of the table.
//!
//! Entries have the users' numbers. The table's counters protect its records; each entry here has one of its own. A user that is
//! removed keeps its entry's place, without content.
//!
//! # Layout
//!
//! In words; word 0 changes with the layout's version.
//!
//! | from | content |
//! |---|---|
//! | 0 | [`MAGIC`], its lowest 16 bits the version |
//! | 1 | entries |
//! | 2 | changes so far: a reader that finds another number than before reads the entries again |
//! | 4 | entries, [`ENTRY_WORDS`] each |
//!
//! Entry:
//!
//! | from | content |
//! |---|---|
//! | 0 | counter, odd while the entry changes |
//! | 1 | bit 0: there is a user; from bit 8: bytes of the name; from bit 16 on eight bits an address: its kind, 0 if there is none |
//! | 2 | name, UTF-8, [`NAME_BYTES`] |
//! | 6 | addresses, [`ADDRESSES`] of two words each: the 16 bytes of IPv6, in which IPv4 is mapped (RFC 4291, 2.5.5.2) |

use core::sync::atomic::{AtomicU64, Ordering};

use super::{Change, SharedTableError, copy, load};

/// "RANDIR" and the version of the layout.
pub const MAGIC: u64 = 0x5241_4e44_4952_0001;
/// Words of an entry.
pub const ENTRY_WORDS: usize = 14;
/// Longest name; longer ones are cut between characters.
pub const NAME_BYTES: usize = 32;
/// Most addresses of a user; further ones are left out.
pub const ADDRESSES: usize = 4;
const HEADER_WORDS: usize = 4;
const NAME_AT: usize = 2;
const ADDRESSES_AT: usize = NAME_AT + NAME_BYTES / 8;

/// What an address is: the first three types of `AssociateId` of ETSI GS MEC 012.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// The user's IPv4 address.
    Ipv4 = 1,
    /// Its IPv6 address.
    Ipv6 = 2,
    /// The address that NAT assigned.
    Nated = 3,
}

/// An address: the 16 bytes of IPv6, in which IPv4 is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What it is.
    pub kind: AddressKind,
    /// Its bytes.
    pub bytes: [u8; 16],
}

/// A user's name and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name; may be empty.
    pub name: String,
    /// Addresses.
    pub addresses: Vec<Address>,
}

/// The words of a directory with this many entries; `None` if there are too many to count.
pub fn words(users: u32) -> Option<usize> {
    HEADER_WORDS.checked_add(ENTRY_WORDS.checked_mul(users as usize)?)
}

fn entry(words: &[AtomicU64], user: u32) -> Option<&[AtomicU64; ENTRY_WORDS]> {
    words.get(HEADER_WORDS + user as usize * ENTRY_WORDS..)?.first_chunk()
}

/// Writes a directory. There must be one writer alone, as for the table.
#[derive(Debug)]
pub struct Writer<'a> {
    words: &'a [AtomicU64],
    users: u32,
}

impl<'a> Writer<'a> {
    /// Creates an empty directory in these words, whatever they held.
    ///
    /// # Errors
    ///
    /// There are too few words.
    pub fn new(all: &'a [AtomicU64], users: u32) -> Result<Self, SharedTableError> {
        let (expected, found) = (words(users).unwrap_or(usize::MAX), all.len());
        if found < expected {
            return Err(SharedTableError::TooShort { expected, found });
        }
        let changes =
            if all[0].load(Ordering::Relaxed) == MAGIC { all[2].load(Ordering::Relaxed) } else { 0 };
        all[0].store(0, Ordering::SeqCst);
        all[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        all[1].store(users.into(), Ordering::Relaxed);
        // A reader that has the directory open sees that all has changed.
        all[2].store(changes.wrapping_add(1), Ordering::Relaxed);
        all[0].store(MAGIC, Ordering::Release);
        Ok(Self { words: all, users })
    }

    /// Continues to write the directory in the same words.
    ///
    /// # Errors
    ///
    /// There are too few words.
    pub fn resume(all: &'a [AtomicU64], users: u32) -> Result<Self, SharedTableError> {
        let (expected, found) = (words(users).unwrap_or(usize::MAX), all.len());
        if found < expected {
            Err(SharedTableError::TooShort { expected, found })
        } else {
            Ok(Self { words: all, users })
        }
    }

    /// Sets the identity of a user; `None` removes it. Users outside the directory are left out: false.
    pub fn set(&mut self, user: u32, identity: Option<&Identity>) -> bool {
        if user >= self.users {
            return false;
        }
        let Some(words) = entry(self.words, user) else { return false };
        let change = Change::begin(&words[0]);
        words[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        if let Some(identity) = identity {
            let all = identity.name.len().min(NAME_BYTES);
            let length = (0..=all).rev().find(|end| identity.name.is_char_boundary(*end)).unwrap_or(0);
            let mut name = [0; NAME_BYTES];
            name[..length].copy_from_slice(&identity.name.as_bytes()[..length]);
            let mut head = 1 | (length as u64) << 8;
            for (place, bytes) in name.as_chunks::<8>().0.iter().enumerate() {
                words[NAME_AT + place].store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
            }
            for (place, address) in identity.addresses.iter().take(ADDRESSES).enumerate() {
                head |= (address.kind as u64) << (16 + 8 * place);
                for (half, bytes) in address.bytes.as_chunks::<8>().0.iter().enumerate() {
                    let word = ADDRESSES_AT + 2 * place + half;
                    words[word].store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
                }
            }
            words[1].store(head, Ordering::Relaxed);
        }
        change.end();
        let changes = self.words[2].load(Ordering::Relaxed).wrapping_add(1);
        self.words[2].store(changes, Ordering::Release);
        true
    }
}

/// Reads a directory.
#[derive(Clone, Copy, Debug)]
pub struct Directory<'a> {
    words: &'a [AtomicU64],
    users: u32,
}

impl<'a> Directory<'a> {
    /// Opens the directory in these words.
    ///
    /// # Errors
    ///
    /// They hold none, one of another version, or are too few for it.
    pub fn open(all: &'a [AtomicU64]) -> Result<Self, SharedTableError> {
        let found = all.first().map_or(0, load);
        if found != MAGIC || all.len() < HEADER_WORDS {
            return Err(SharedTableError::NotADirectory { found });
        }
        let users = u32::try_from(load(&all[1])).unwrap_or(u32::MAX);
        let expected = words(users).unwrap_or(usize::MAX);
        if all.len() < expected {
            return Err(SharedTableError::TooShort { expected, found: all.len() });
        }
        Ok(Self { words: all, users })
    }

    /// Changes so far: another number than before means that entries have changed.
    pub fn changes(&self) -> u64 {
        load(&self.words[2])
    }

    /// Most users.
    pub fn capacity(&self) -> u32 {
        self.users
    }

    /// The identity of a user; `None` if there is none, or it keeps changing.
    pub fn identity(&self, user: u32) -> Option<Identity> {
        if user >= self.users {
            return None;
        }
        let words = entry(self.words, user)?;
        let read: [u64; ENTRY_WORDS] =
            copy(&words[0], || core::array::from_fn(|place| words[place].load(Ordering::Relaxed)))?;
        let head = read[1];
        if head & 1 == 0 {
            return None;
        }
        let bytes = |from: usize, words: usize| -> Vec<u8> {
            read[from..from + words].iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let mut name = bytes(NAME_AT, NAME_BYTES / 8);
        name.truncate((head >> 8 & 0xff) as usize);
        let addresses = (0..ADDRESSES).filter_map(|place| {
            let kind = match head >> (16 + 8 * place) & 0xff {
                1 => AddressKind::Ipv4,
                2 => AddressKind::Ipv6,
                3 => AddressKind::Nated,
                _ => return None,
            };
            Some(Address { kind, bytes: bytes(ADDRESSES_AT + 2 * place, 2).try_into().ok()? })
        });
        Some(Identity { name: String::from_utf8_lossy(&name).into_owned(), addresses: addresses.collect() })
    }

    /// All users and their identities, by number.
    pub fn users(&self) -> impl Iterator<Item = (u32, Identity)> {
        (0..self.users).filter_map(|user| Some((user, self.identity(user)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(users: u32) -> Vec<AtomicU64> {
        (0..words(users).unwrap()).map(|_| AtomicU64::new(0)).collect()
    }

    fn address(kind: AddressKind, last: u8) -> Address {
        let mut bytes = [0; 16];
        (bytes[10], bytes[11], bytes[15]) = (0xff, 0xff, last);
        Address { kind, bytes }
    }

    #[test]
    fn identities_are_read_as_they_were_written() {
        let words = room(3);
        let mut writer = Writer::new(&words, 3).unwrap();
        let directory = Directory::open(&words).unwrap();
        let before = directory.changes();
        let phone = Identity {
            name: "phone".to_owned(),
            addresses: vec![address(AddressKind::Ipv4, 2), address(AddressKind::Nated, 9)],
        };
        // 17 characters of two bytes: the last does not fit.
        let long = Identity {
            name: "é".repeat(17),
            addresses: [7; 6].map(|last| address(AddressKind::Ipv6, last)).into(),
        };
        assert!(writer.set(1, Some(&phone)) && writer.set(2, Some(&long)));
        assert!(!writer.set(3, Some(&phone)), "outside");
        assert_ne!(directory.changes(), before);
        assert_eq!(
            (directory.identity(0), directory.identity(1), directory.identity(9)),
            (None, Some(phone), None)
        );
        let cut = directory.identity(2).unwrap();
        assert_eq!((cut.name, cut.addresses.len()), ("é".repeat(16), ADDRESSES));
        writer.set(1, None);
        assert_eq!(directory.users().map(|(user, _)| user).collect::<Vec<_>>(), [2]);
        // A new writer begins with an empty one, and its readers see that.
        let before = directory.changes();
        Writer::new(&words, 3).unwrap();
        assert!(directory.users().next().is_none() && directory.changes() != before);
    }

    #[test]
    fn the_words_are_those_of_the_tables() {
        let words = room(1);
        let identity = Identity { name: "ab".to_owned(), addresses: vec![address(AddressKind::Nated, 5)] };
        Writer::new(&words, 1).unwrap().set(0, Some(&identity));
        let words: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        assert_eq!(words[..4], [MAGIC, 1, 2, 0]);
        assert_eq!(words[4..8], [2, 1 | 2 << 8 | 3 << 16, 0x6261, 0]);
        assert_eq!(words[10..12], [0, 5 << 56 | 0xffff << 16]);
    }

    #[test]
    fn what_is_no_directory_is_refused() {
        let words = room(2);
        assert_eq!(Directory::open(&words).unwrap_err(), SharedTableError::NotADirectory { found: 0 });
        Writer::new(&words, 2).unwrap();
        let short = SharedTableError::TooShort { expected: 32, found: 31 };
        assert_eq!(Directory::open(&words[..31]).unwrap_err(), short);
        assert_eq!(Writer::new(&words[..31], 2).unwrap_err(), short);
        words[1].store(u64::MAX, Ordering::Relaxed);
        assert!(Directory::open(&words).is_err());
        assert!(Directory::open(&[]).is_err());
    }
}
