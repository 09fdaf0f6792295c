//! Legal sizes of LTE's uplink allocations.

use ranpace_phy::LtePrbs;

/// Most PRBs.
const MOST: usize = LtePrbs::MAX.get() as usize;

/// The largest legal size that does not exceed the index; a table, since it is queried for each user in each TTI.
const AT_MOST: [u8; MOST + 1] = {
    let mut table = [0; MOST + 1];
    let mut prbs = 1;
    while prbs <= MOST {
        table[prbs] = match LtePrbs::new(prbs as u8) {
            Some(size) if size.is_pusch() => prbs as u8,
            _ => table[prbs - 1],
        };
        prbs += 1;
    }
    table
};

/// The largest legal size up to this; 0 for 0.
pub(super) fn at_most(prbs: u16) -> u16 {
    AT_MOST[usize::from(prbs).min(MOST)].into()
}

/// The next larger legal size; 108 is the largest and maps to itself.
pub(super) fn above(prbs: u16) -> u16 {
    let mut larger = usize::from(prbs) + 1;
    while larger <= MOST && u16::from(AT_MOST[larger]) <= prbs {
        larger += 1;
    }
    AT_MOST[larger.min(MOST)].into()
}

/// PRBs of an LTE uplink allocation for `wanted` out of `free` PRBs: the smallest legal size (2^a 3^b 5^c; TS
/// 36.211 clause 5.3.3) that is not less than what is wanted, or else the largest that is free.
pub fn pusch_prbs(wanted: u16, free: u16) -> u16 {
    let most = at_most(free);
    if wanted == 0 || most == 0 {
        return 0;
    }
    above(wanted - 1).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_standard() {
        for size in LtePrbs::all() {
            assert_eq!(at_most(size.get().into()), u16::from(size.pusch_at_most().get()));
        }
        for (wanted, free, given) in [
            (0, 100, 0),
            (1, 100, 1),
            (7, 100, 8),
            (7, 7, 6),
            (96, 99, 96),
            (97, 99, 96),
            (97, 100, 100),
            (275, 275, 108),
            (3, 0, 0),
        ] {
            assert_eq!(pusch_prbs(wanted, free), given, "{wanted} of {free}");
        }
    }
}
