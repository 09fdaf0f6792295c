//! Throughput Guidance: a provider in the radio network writes the rate that it expects on a user's downlink into the TCP header of
//! acknowledgements, and the server reads it there.
//!
//! Source of the idea: draft-flinck-mobile-throughput-guidance-04 (2017, expired), which builds on the shared experimental option of RFC 6994.
//! Its layout was not available, so this one is ours, and claims no compatibility. After kind 253 and length 10:
//!
//! | bytes | |
//! |---|---|
//! | 2 | experiment identifier [`EXID`] (RFC 6994) |
//! | 1 | version, 4 bits, then flags, 4 bits, which are zero |
//! | 1 | age of the measurement in units of 10 ms, rounded down; 255: older |
//! | 4 | rate in kbit/s, rounded down |

use ranpace_units::{Rate, Span};

/// Kind of the option: one of the two that RFC 4727 reserves for experiments.
pub const KIND: u8 = 253;
/// Length of the option, with kind and length.
pub const LENGTH: usize = 10;
/// Bytes that the option takes in a header, whose length is a multiple of four.
pub const PADDED: usize = 12;
/// Identifies the experiment (RFC 6994, section 3.1). Ours, and not registered.
pub const EXID: u16 = 0x5447;

const VERSION: u8 = 1;
/// Unit of the age.
const AGE: Span = Span::from_millis(10);
const OLDER: u8 = u8::MAX;

/// A provider's advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guidance {
    /// The rate for this connection.
    pub rate: Rate,
    /// Time between the measurement and the packet; `None` if it is 2.55 s or more.
    pub age: Option<Span>,
}

impl Guidance {
    /// The option's content: what follows kind and length.
    pub fn content(&self) -> [u8; LENGTH - 2] {
        let kbit_s = u32::try_from(self.rate.bits_per_s() / 1_000).unwrap_or(u32::MAX);
        let age = self.age.map_or(OLDER, |age| (age.as_nanos() / AGE.as_nanos()).min(OLDER.into()) as u8);
        let [exid, rate] = [&EXID.to_be_bytes()[..], &kbit_s.to_be_bytes()[..]];
        let mut content = [0; LENGTH - 2];
        content[..2].copy_from_slice(exid);
        (content[2], content[3]) = (VERSION << 4, age);
        content[4..].copy_from_slice(rate);
        content
    }

    /// The option with its padding in front, as no-operations.
    pub fn option(&self) -> [u8; PADDED] {
        const NO_OPERATION: u8 = 1;
        let mut option = [NO_OPERATION; PADDED];
        (option[2], option[3]) = (KIND, LENGTH as u8);
        option[4..].copy_from_slice(&self.content());
        option
    }

    /// Reads an option's content; `None` for another experiment or version. Flags are ignored.
    pub fn read(content: &[u8]) -> Option<Self> {
        let [first, second, version, age, rate @ ..] = content else { return None };
        let rate = u32::from_be_bytes(rate.try_into().ok()?);
        if u16::from_be_bytes([*first, *second]) != EXID || version >> 4 != VERSION {
            return None;
        }
        Some(Self {
            rate: Rate::from_bits_per_s(u64::from(rate) * 1_000),
            age: (*age != OLDER).then(|| AGE * u64::from(*age)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rate_is_written_in_kbit_s_and_takes_twelve_bytes() {
        // Specification, section 2: a third of 18.336 Mbit/s is 6112 kbit/s, 0x17E0.
        let guidance =
            Guidance { rate: Rate::from_bits_per_s(18_336_000 / 3), age: Some(Span::from_millis(25)) };
        assert_eq!(guidance.content(), [0x54, 0x47, 0x10, 2, 0x00, 0x00, 0x17, 0xE0]);
        assert_eq!(guidance.option(), [1, 1, 253, 10, 0x54, 0x47, 0x10, 2, 0x00, 0x00, 0x17, 0xE0]);
    }

    #[test]
    fn other_options_and_versions_are_not_read() {
        let content = Guidance { rate: Rate::from_mbit_per_s(1), age: None }.content();
        assert_eq!(Guidance::read(&content).map(|read| read.age), Some(None), "older than 2.54 s");
        for (case, place, byte) in [("experiment", 0, 9), ("version", 2, 0x20)] {
            let mut other = content;
            other[place] = byte;
            assert_eq!(Guidance::read(&other), None, "{case}");
        }
        assert_eq!(Guidance::read(&content[..7]), None, "too short");
        assert_eq!(Guidance::read(&[&content[..], &[0]].concat()), None, "too long");
        assert_eq!(Guidance::read(&[]), None);
    }

    proptest! {
        /// What is written is read, rounded down to its units.
        #[test]
        fn guidance_survives_the_wire(rate in 0..=u64::from(u32::MAX), age in 0..2_550_u64) {
            let guidance =
                Guidance { rate: Rate::from_bits_per_s(rate * 1_000 + 999), age: Some(Span::from_millis(age)) };
            let read = Guidance::read(&guidance.content());
            let age = Some(Span::from_millis(age / 10 * 10));
            prop_assert_eq!(read, Some(Guidance { rate: Rate::from_bits_per_s(rate * 1_000), age }));
        }
    }
}
