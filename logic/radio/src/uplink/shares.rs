//! Division of the uplink of one TTI.

use super::prbs::{above, at_most};

/// PRBs of a candidate, contiguous and following those of the previous share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Index of the candidate.
    pub candidate: usize,
    /// Number of PRBs, at least one.
    pub prbs: u16,
}

/// Round robin over users in the uplink, as with all schedulers of ns-3: equal shares, with users taking turns if there are too
/// many. Ours, where ns-3 leaves PRBs idle: what one user does not need, or cannot use because of legal sizes, goes to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The user whose turn is next; if it is absent, the next one.
    next: u32,
}

impl Shares {
    /// The state before anybody was served.
    pub const fn new() -> Self {
        Self { next: 0 }
    }

    /// Divides `band_free` PRBs. A candidate is a user and the PRBs that suffice for it (0 counts as 1); candidates
    /// must be in a stable order, such as that of their users.
    ///
    /// Each gets what it needs or an equal part. No part is below `least` PRBs (3 in LTE, as in ns-3) unless the user needs
    /// no more, or no more is free; users left without room have the next turn. With `pusch_sizes` parts
    /// have legal sizes of LTE, needs are rounded up to one, and some PRBs may be left.
    ///
    /// `out` is cleared first, and then holds the shares in order of turn.
    pub fn divide(
        &mut self,
        band_free: u16,
        candidates: &[(u32, u16)],
        least: u16,
        pusch_sizes: bool,
        out: &mut Vec<Share>,
    ) {
        out.clear();
        // Users in order, starting with the one whose turn it is and wrapping around.
        let turn = |(_, (user, _)): &(usize, &(u32, u16))| user.wrapping_sub(self.next);
        let Some((first, _)) = candidates.iter().enumerate().min_by_key(turn) else { return };
        let sizes = Sizes { pusch: pusch_sizes };
        let band = sizes.at_most(band_free);
        if band == 0 {
            return;
        }
        let need = |candidate: usize| sizes.at_least(candidates[candidate].1.max(1)).min(band);
        let least = sizes.at_least(least.max(1));

        // Select the users to serve: those whose minimum parts fit together, and always the first.
        let mut free = band_free;
        let turns = (first..candidates.len()).chain(0..first);
        for candidate in turns {
            let part = need(candidate).min(least).min(band);
            if part > free {
                break;
            }
            free -= part;
            out.push(Share { candidate, prbs: 0 });
        }
        let next = if out.len() < candidates.len() { out.len() } else { 1 };
        self.next = candidates[(first + next) % candidates.len()].0;

        // Equal parts; users that need less get what they need, and the parts of the others grow.
        let (mut free, mut open) = (band_free, out.len() as u16);
        loop {
            let part = free.checked_div(open).unwrap_or(0);
            let before = open;
            for share in out.iter_mut().filter(|share| share.prbs == 0) {
                let need = need(share.candidate);
                if need <= part {
                    share.prbs = need;
                    free -= need;
                    open -= 1;
                }
            }
            if open == before {
                break;
            }
        }
        let part = sizes.at_most(free.checked_div(open).unwrap_or(0));
        for share in out.iter_mut().filter(|share| share.prbs == 0) {
            share.prbs = part;
            free -= part;
        }
        // The rest is given out in steps, one per user in turn.
        let mut grown = open > 0;
        while grown && free > 0 {
            grown = false;
            for share in out.iter_mut() {
                let step = sizes.above(share.prbs).saturating_sub(share.prbs);
                if step > 0 && step <= free && share.prbs < need(share.candidate) {
                    share.prbs += step;
                    free -= step;
                    grown = true;
                }
            }
        }
    }
}

/// The allowed sizes.
#[derive(Clone, Copy)]
struct Sizes {
    pusch: bool,
}

impl Sizes {
    fn at_most(self, prbs: u16) -> u16 {
        if self.pusch { at_most(prbs) } else { prbs }
    }
    fn above(self, prbs: u16) -> u16 {
        if self.pusch { above(prbs) } else { prbs.saturating_add(1) }
    }
    /// The smallest allowed size not below `prbs`, and at least one PRB.
    fn at_least(self, prbs: u16) -> u16 {
        self.above(prbs.max(1) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ranpace_phy::LtePrbs;

    fn divide(shares: &mut Shares, free: u16, candidates: &[(u32, u16)]) -> Vec<(u32, u16)> {
        let mut out = Vec::new();
        shares.divide(free, candidates, 3, true, &mut out);
        out.iter().map(|share| (candidates[share.candidate].0, share.prbs)).collect()
    }

    #[test]
    fn shares_are_equal_and_what_one_does_not_need_goes_to_the_others() {
        for (case, free, candidates, expected) in [
            ("alone", 100, vec![(0, 100)], vec![100]),
            ("alone with little", 100, vec![(0, 2)], vec![2]),
            ("no legal size", 97, vec![(0, 100)], vec![96]),
            ("a need is rounded up", 100, vec![(0, 7)], vec![8]),
            ("two", 100, vec![(0, 100), (1, 100)], vec![50, 50]),
            ("one needs less", 100, vec![(0, 10), (1, 100)], vec![10, 90]),
            // 33 each, so 32; four are left, which one step takes.
            ("three", 100, vec![(0, 100), (1, 100), (2, 100)], vec![36, 32, 32]),
            ("hardly anything", 2, vec![(0, 50), (1, 50)], vec![2]),
            ("hardly anything needed", 3, vec![(0, 1), (1, 1), (2, 1)], vec![1, 1, 1]),
            ("nothing", 0, vec![(0, 50)], vec![]),
            ("nobody", 100, vec![], vec![]),
        ] {
            let found: Vec<u16> =
                divide(&mut Shares::new(), free, &candidates).iter().map(|(_, prbs)| *prbs).collect();
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn without_legal_sizes_all_is_given() {
        let (mut shares, mut out) = (Shares::new(), Vec::new());
        for turn in 0..3 {
            shares.divide(100, &[(0, 200), (1, 200), (2, 200)], 1, false, &mut out);
            let found: Vec<_> = out.iter().map(|share| (share.candidate, share.prbs)).collect();
            let user = |n: usize| (turn + n) % 3;
            assert_eq!(found, [(user(0), 34), (user(1), 33), (user(2), 33)], "the odd one goes around");
        }
    }

    #[test]
    fn users_rotate_when_there_are_too_many() {
        // 25 PRBs with at least 3 each: eight users at a time.
        let candidates: Vec<(u32, u16)> = (0..20).map(|user| (user * 7, 25)).collect();
        let mut shares = Shares::new();
        let mut served = [0; 20];
        for _ in 0..5 {
            let given = divide(&mut shares, 25, &candidates);
            assert_eq!(given.len(), 8);
            for (user, prbs) in given {
                assert!(prbs >= 3);
                served[user as usize / 7] += 1;
            }
        }
        assert_eq!(served, [2; 20]);
    }

    proptest! {
        #[test]
        fn shares_are_legal_fair_and_useful(
            needs in prop::collection::vec(1..120u16, 1..110), free in 1..=110u16, least in 1..6u16,
            pusch: bool, next: u32
        ) {
            let candidates: Vec<(u32, u16)> = (0u32..).zip(needs.iter().copied()).collect();
            let mut out = Vec::new();
            let mut shares = Shares { next };
            shares.divide(free, &candidates, least, pusch, &mut out);
            prop_assert!(!out.is_empty(), "somebody is served");
            let sum: u16 = out.iter().map(|share| share.prbs).sum();
            prop_assert!(sum <= free);
            let size = Sizes { pusch };
            let need = |share: &Share| size.at_least(needs[share.candidate]).min(size.at_most(free));
            let least = size.at_least(least).min(size.at_most(free));
            for share in &out {
                prop_assert!(share.prbs >= need(share).min(least), "not below the least: {out:?}");
                prop_assert!(share.prbs <= need(share), "not beyond the need: {out:?}");
                prop_assert!(!pusch || LtePrbs::new(share.prbs as u8).unwrap().is_pusch());
                prop_assert!(share.prbs == need(share) || size.above(share.prbs) - share.prbs > free - sum,
                    "nothing is left that somebody could use: {out:?}");
                // Nobody has more than two steps more than a user that lacks some.
                let poorest = out.iter().filter(|other| other.prbs < need(other)).map(|other| other.prbs).min();
                let fair = poorest.map_or(u16::MAX, |prbs| size.above(size.above(size.above(prbs))));
                prop_assert!(share.prbs <= fair, "{out:?}");
            }
            // No candidate appears twice.
            let mut users: Vec<usize> = out.iter().map(|share| share.candidate).collect();
            users.sort_unstable();
            users.dedup();
            prop_assert_eq!(users.len(), out.len());
        }

        #[test]
        fn nobody_waits_for_more_than_a_round(
            needs in prop::collection::vec(1..120u16, 1..110), free in 1..=110u16, pusch: bool
        ) {
            let candidates: Vec<(u32, u16)> = (0u32..).zip(needs.iter().copied()).collect();
            let (mut shares, mut out) = (Shares::new(), Vec::new());
            let mut served = vec![false; needs.len()];
            for _ in 0..needs.len() {
                shares.divide(free, &candidates, 3, pusch, &mut out);
                out.iter().for_each(|share| served[share.candidate] = true);
            }
            prop_assert!(served.iter().all(|served| *served));
        }
    }
}
