//! The number of marked packets that a peer has counted, read from the ACK frames of unencrypted packets.
//!
//! Source: RFC 9000, sections 17.3.1 (short header), 19.1 to 19.3 (PADDING, PING, ACK) and 16 (integers). noq validates the counts
//! (section 13.4.2.1) and passes on only that marks were reported, not how many.

use crate::host::CID;

/// The CE count of the first ACK frame of a packet with a short header; `None` if it has none, or the packet is cut off.
pub(crate) fn counted(packet: &[u8]) -> Option<u64> {
    let first = *packet.first()?;
    if first & 0x80 != 0 {
        return None;
    }
    let number = usize::from(first & 0b11) + 1;
    let mut rest = packet.get(1 + CID + number..)?;
    loop {
        match integer(&mut rest)? {
            0x00 | 0x01 => {} // PADDING, PING
            0x03 => break,
            _ => return None, // ACK without counts, or another frame: an ACK comes first
        }
    }
    // Largest acknowledged, delay, number of ranges, first range.
    let [_, _, ranges, _] =
        [integer(&mut rest)?, integer(&mut rest)?, integer(&mut rest)?, integer(&mut rest)?];
    for _ in 0..ranges {
        integer(&mut rest)?; // gap
        integer(&mut rest)?; // length
    }
    integer(&mut rest)?; // ECT(0)
    integer(&mut rest)?; // ECT(1)
    integer(&mut rest)
}

/// Takes a variable-length integer.
fn integer(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (mine, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    Some(mine[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_count_is_read_behind_the_ranges() {
        let header = [0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9]; // a packet number of two bytes
        // Ping; ACK_ECN of 300, delay 1, one more range; ECT(0) 7, ECT(1) 0, CE 70.
        let frames = [0x01, 0x03, 0x41, 0x2c, 1, 1, 5, 0, 3, 7, 0, 0x40, 70, 0x08];
        let packet = [&header[..], &frames].concat();
        assert_eq!(counted(&packet), Some(70));
        assert_eq!(counted(&packet[..packet.len() - 2]), None, "it is cut off");
        let without = [&header[..], &[0x02, 3, 0, 0, 3]].concat();
        assert_eq!((counted(&without), counted(&[0xc1, 0, 0])), (None, None));
    }

    proptest! {
        /// Any bytes are read, or not.
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = counted(&bytes);
        }
    }
}
