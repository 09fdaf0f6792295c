//! Refuses datagrams that came before: a window of sequence numbers, as in IPsec (RFC 4303, 3.4.3).

/// Sequence numbers behind the newest that are still accepted.
const WINDOW: u64 = 1_024;

/// The sequence numbers received under a key.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// One past the highest.
    next: u64,
    seen: [u64; WINDOW as usize / 64],
}

impl Replay {
    /// Whether a number is new and not too old. Check it before opening the message.
    pub fn is_fresh(&self, sequence: u64) -> bool {
        if sequence >= self.next {
            return sequence < u64::MAX;
        }
        let (word, bit) = Self::place(sequence);
        self.next - sequence <= WINDOW && self.seen[word] & bit == 0
    }

    fn place(sequence: u64) -> (usize, u64) {
        ((sequence % WINDOW / 64) as usize, 1 << (sequence % 64))
    }

    /// Records that a genuine message of this number came.
    pub fn note(&mut self, sequence: u64) {
        if sequence >= self.next {
            let from = self.next.max(sequence.saturating_sub(WINDOW - 1));
            for number in from..=sequence {
                let (word, bit) = Self::place(number);
                self.seen[word] &= !bit;
            }
            if sequence - from.min(sequence) >= WINDOW - 1 {
                self.seen = Default::default();
            }
            self.next = sequence + 1;
        }
        let (word, bit) = Self::place(sequence);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once_and_old_ones_do_not() {
        let mut replay = Replay::default();
        for (sequence, is_fresh) in [
            (0, true),
            (0, false),
            (2, true),
            (1, true),
            (1, false),
            (5_000, true),
            (5_000 - WINDOW, false),
            (5_001 - WINDOW, true),
            (2, false),
            (u64::MAX, false),
        ] {
            assert_eq!(replay.is_fresh(sequence), is_fresh, "{sequence}");
            if is_fresh {
                replay.note(sequence);
            }
        }
    }
}
