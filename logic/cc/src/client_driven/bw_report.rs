//! The bandwidth that a receiver reports on acknowledgements, and its encoding.
//!
//! Source: Zhong 2020, sections 5.4, 6.3 and 7.2.1 (cqic-dcic.md section 6, cdbev2.md section 4). Used by QUIC-CQIC, DCIC,
//! CQIC-S, CDBE and CDBEv2, and in a format of its own by PBE-CC. A report of zero means that there is no estimate.
//!
//! | format | kind | length | value |
//! |---|---|---|---|
//! | `v1` | 32 | 6 | u32, bit/s |
//! | `thesis-v2` | 32 | 8 | u48, bit/s |
//! | `exp` | 254 | 8 | experiment's number (RFC 6994) as u16, then u32, kbit/s |
//! | `bare` | none | none | u32, bit/s: four bytes behind the header, as the thesis counted them |
//!
//! PBE-CC's has five bytes: the microseconds between packets of 1500 bytes, and the receiver's state ([`pbe_report`](crate::client_driven::pbe_report)).
//!
//! All are big endian and saturate. Kind 32 is reserved at IANA and was used without assignment: never send it on a real
//! network. `bare` cannot be parsed by a TCP stack and exists only for the thesis's overhead figures.

use core::str::FromStr;

use ranpace_units::Rate;

use crate::client_driven::pbe_report::Report;
use crate::interface::ReceiverReport;

/// Kind of the thesis's option.
pub const KIND: u8 = 32;
/// Kind of an experiment (RFC 6994).
pub const KIND_EXPERIMENT: u8 = 254;
/// Our experiment's number, "RP", from a first-come, first-served registry; not registered.
pub const EXPERIMENT: u16 = 0x5250;
const U48_MAX: u64 = (1 << 48) - 1;

/// Encoding of a report; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 32 bits, bit/s.
    V1,
    /// 48 bits, bit/s.
    ThesisV2,
    /// An experiment's number and 32 bits, kbit/s.
    Experiment,
    /// 32 bits without kind and length.
    Bare,
    /// PBE-CC's. No option chooses it.
    PacketInterval,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "v1" => Self::V1,
            "thesis-v2" => Self::ThesisV2,
            "exp" => Self::Experiment,
            "bare" => Self::Bare,
            _ => return Err(()),
        })
    }
}

impl Format {
    /// The names that [`str::parse`] accepts, for messages.
    pub const NAMES: &str = "v1, thesis-v2, exp or bare";

    /// The value of the option, as the acknowledgement carries it.
    pub fn encode(self, rate: Rate) -> ReceiverReport {
        let bits = rate.bits_per_s();
        let short = u32::try_from(bits).unwrap_or(u32::MAX).to_be_bytes();
        match self {
            Self::V1 => ReceiverReport::new(&short),
            Self::Bare => ReceiverReport::bare(&short),
            Self::ThesisV2 => ReceiverReport::new(&bits.min(U48_MAX).to_be_bytes()[2..]),
            Self::Experiment => {
                let [a, b] = EXPERIMENT.to_be_bytes();
                // Rounded, but never to zero, which means "no estimate".
                let kbit = if bits == 0 { 0 } else { (bits.saturating_add(500) / 1000).max(1) };
                let [c, d, e, f] = u32::try_from(kbit).unwrap_or(u32::MAX).to_be_bytes();
                ReceiverReport::new(&[a, b, c, d, e, f])
            }
            Self::PacketInterval => return Report { rate, internet: false }.encode(),
        }
        .expect("six bytes fit a report")
    }

    /// Decodes a report; `None` if it says that there is no estimate, or is not in this format.
    pub fn decode(self, report: &ReceiverReport) -> Option<Rate> {
        let value = report.as_bytes();
        let bits = match self {
            Self::V1 | Self::Bare => u64::from(u32::from_be_bytes(value.try_into().ok()?)),
            Self::ThesisV2 => {
                let [a, b, c, d, e, f]: [u8; 6] = value.try_into().ok()?;
                u64::from_be_bytes([0, 0, a, b, c, d, e, f])
            }
            Self::Experiment => {
                let [a, b, c, d, e, f]: [u8; 6] = value.try_into().ok()?;
                if u16::from_be_bytes([a, b]) != EXPERIMENT {
                    return None;
                }
                1000 * u64::from(u32::from_be_bytes([c, d, e, f]))
            }
            Self::PacketInterval => Report::decode(report)?.rate.bits_per_s(),
        };
        (bits > 0).then(|| Rate::from_bits_per_s(bits))
    }

    /// Whether a report claims that its rate can be delivered. PBE-CC's receiver reports a bound where the bottleneck is elsewhere.
    pub(crate) fn is_claim(self, report: &ReceiverReport) -> bool {
        self != Self::PacketInterval || Report::decode(report).is_none_or(|report| !report.internet)
    }
}

/// Decodes a TCP option, including its kind and length octets, in any format. `None` for other options and truncated ones.
pub fn parse_option(option: &[u8]) -> Option<Rate> {
    let [kind, length, value @ ..] = option else { return None };
    if usize::from(*length) != option.len() {
        return None;
    }
    let format = match (*kind, value.len()) {
        (KIND, 4) => Format::V1,
        (KIND, 6) => Format::ThesisV2,
        (KIND_EXPERIMENT, 6) => Format::Experiment,
        _ => return None,
    };
    format.decode(&ReceiverReport::new(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_format_has_its_length_on_the_wire() {
        let rate = Rate::from_mbit_per_s(20);
        for (format, bytes, option) in
            [(Format::V1, 4, 8), (Format::ThesisV2, 6, 8), (Format::Experiment, 6, 8), (Format::Bare, 4, 4)]
        {
            let report = format.encode(rate);
            assert_eq!((report.as_bytes().len(), report.option_length()), (bytes, option), "{format:?}");
            assert_eq!(format.decode(&report), Some(rate), "{format:?}");
        }
    }

    #[test]
    fn large_values_saturate_and_zero_is_no_estimate() {
        let decoded = |format: Format, rate| format.decode(&format.encode(Rate::from_bits_per_s(rate)));
        assert_eq!(decoded(Format::V1, u64::MAX), Some(Rate::from_bits_per_s(u32::MAX.into())));
        assert_eq!(decoded(Format::ThesisV2, u64::MAX), Some(Rate::from_bits_per_s(U48_MAX)));
        assert_eq!(decoded(Format::Experiment, 1), Some(Rate::from_bits_per_s(1000)));
        for format in [Format::V1, Format::ThesisV2, Format::Experiment, Format::Bare] {
            assert_eq!(decoded(format, 0), None, "{format:?}");
        }
    }

    #[test]
    fn an_option_tells_its_format() {
        assert_eq!(parse_option(&[32, 6, 0, 0, 0x4e, 0x20]), Some(Rate::from_bits_per_s(20_000)));
        assert_eq!(parse_option(&[32, 8, 0, 0, 0, 0, 0x4e, 0x20]), Some(Rate::from_bits_per_s(20_000)));
        assert_eq!(parse_option(&[254, 8, 0x52, 0x50, 0, 0, 0, 20]), Some(Rate::from_bits_per_s(20_000)));
        for other in [
            &[][..],
            &[32],
            &[32, 6],
            &[32, 6, 1, 2, 3],
            &[8, 10, 0, 0, 0, 0, 0, 0, 0, 0],
            &[254, 8, 0, 0, 1, 1, 1, 1],
        ] {
            assert_eq!(parse_option(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn any_option_bytes_are_parsed_without_panic(option in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(rate) = parse_option(&option) {
                prop_assert!(!rate.is_zero());
            }
        }
    }
}
