//! Fading from a file in the format of ns-3's fading traces: one line per PRB, with its gains in dB in sequence.

use std::sync::Arc;

use ranpace_units::{Span, Time};

use super::decibel::from_db;
use super::random::{self, Purpose};
use super::{Groups, RecordingError};

/// Recorded gains of groups of PRBs. It is large, so users share it; each starts at its own offset.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedFading {
    /// Power ratios, by sample, then by group.
    gains: Vec<f32>,
    groups: usize,
    every: Span,
}

impl RecordedFading {
    /// Reads gains in dB, separated by white space: one line per PRB of the band, each with the same number of samples, `every`
    /// apart (ns-3's files have 100 lines of 10 000, 1 ms apart). A group has the mean power of its PRBs.
    pub fn parse(text: &str, groups: &Groups, every: Span) -> Result<Arc<Self>, RecordingError> {
        const EXPECTED: &str = "a line of gains in dB for each PRB, all equally long";
        let mut lines = (1..).zip(text.lines()).filter(|(_, line): &(usize, &str)| !line.trim().is_empty());
        let (mut gains, mut samples) = (Vec::new(), 0);
        for (group, &prbs) in groups.prbs().iter().enumerate() {
            for _ in 0..prbs {
                let (line, row) = lines.next().ok_or(RecordingError::Empty { of: " for each PRB" })?;
                let refused =
                    |found: &str| RecordingError::Cell { line, expected: EXPECTED, found: found.to_owned() };
                if gains.is_empty() {
                    samples = row.split_whitespace().count();
                    gains = vec![0.0_f32; samples * groups.count()];
                }
                let mut cells = row.split_whitespace();
                for sample in 0..samples {
                    let cell = cells.next().ok_or_else(|| refused("a shorter line"))?;
                    let db =
                        cell.parse::<f64>().ok().filter(|db| db.is_finite()).ok_or_else(|| refused(cell))?;
                    gains[sample * groups.count() + group] += (from_db(db) / f64::from(prbs)) as f32;
                }
                if cells.next().is_some() {
                    return Err(refused("a longer line"));
                }
            }
        }
        if let Some((line, _)) = lines.next() {
            return Err(RecordingError::Cell {
                line,
                expected: EXPECTED,
                found: "more lines than PRBs".into(),
            });
        }
        let every = every.max(Span::from_nanos(1));
        Ok(Arc::new(Self { gains, groups: groups.count(), every }))
    }

    /// Offset at which user number `user` starts under this seed: a whole number of samples.
    pub fn draw_start(&self, seed: u64, user: u64) -> Span {
        let samples = (self.gains.len() / self.groups) as f64;
        let sample = random::unit(&mut random::at(seed, Purpose::Recording, user)) * samples;
        self.every * sample as u64
    }

    /// Gains as power ratios for a user that started at `start`, for the groups that fit in `gains`. A sample holds until the
    /// next, as in ns-3, and the recording repeats.
    pub fn gains(&self, start: Span, now: Time, gains: &mut [f32]) {
        let sample = (start + now.since(Time::ZERO)).as_nanos() / self.every.as_nanos();
        let samples = (self.gains.len() / self.groups) as u64;
        // Less than the number of samples, which is at least one, since a non-blank line has a number.
        let first = (sample % samples) as usize * self.groups;
        for (gain, recorded) in gains.iter_mut().zip(&self.gains[first..first + self.groups]) {
            *gain = *recorded;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ranpace_phy::{Numerology, Prbs};

    fn groups() -> Groups {
        // Three PRBs: a group of two and a group of one.
        Groups::nr(Prbs::new(3).unwrap(), Numerology::Khz15, 2)
    }

    #[test]
    fn groups_have_the_mean_power_of_their_prbs() {
        let text = "0 10\n10 10\n\n-10 3.0103\n";
        let fading = RecordedFading::parse(text, &groups(), Span::from_millis(1)).unwrap();
        for (us, expected) in [(0, [5.5, 0.1]), (999, [5.5, 0.1]), (1000, [10.0, 2.0]), (2000, [5.5, 0.1])] {
            let mut gains = [0.0; 3];
            fading.gains(Span::ZERO, Time::ZERO + Span::from_micros(us), &mut gains);
            assert!(
                (gains[0] - expected[0]).abs() < 1e-4 && (gains[1] - expected[1]).abs() < 1e-4,
                "{us} us"
            );
            assert_eq!(gains[2], 0.0);
        }
        let start = fading.draw_start(1, 2);
        assert!(start == Span::ZERO || start == Span::from_millis(1));
    }

    #[test]
    fn a_file_for_another_band_is_refused() {
        let error =
            |text| RecordedFading::parse(text, &groups(), Span::from_millis(1)).unwrap_err().to_string();
        assert_eq!(error("1 2\n1 2"), "expected one row or more for each PRB, found none");
        for (text, line, found) in [
            ("1 2\n1 2\n1", 3, "a shorter line"),
            ("1 2\n1 2 3\n1 2", 2, "a longer line"),
            ("1\n1\n1\n1", 4, "more lines than PRBs"),
            ("1\nx\n1", 2, "x"),
        ] {
            let expected = "a line of gains in dB for each PRB, all equally long";
            assert_eq!(error(text), format!("line {line}: expected {expected}, found {found:?}"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([-0-9.]{0,4}[ \n]){0,12}", ns: u64, start: u64, every: u64) {
            if let Ok(fading) = RecordedFading::parse(&text, &groups(), Span::from_nanos(every)) {
                let mut gains = [0.0; 2];
                fading.gains(Span::from_nanos(start), Time::from_nanos(ns), &mut gains);
                prop_assert!(gains.iter().all(|gain| gain.is_finite()));
            }
        }
    }
}
