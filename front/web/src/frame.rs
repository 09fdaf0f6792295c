//! Columns of numbers as binary frames, for typed arrays of the page.
//!
//! A frame, little-endian: 32 bytes of header, `n` times as `f64`, then `k` columns of `n` values as `f32`, NaN where there is no value.
//! The header is `RPL1`, then seven `u32`: kind, generation, index of the first row, `n`, `k`, 0, 0. Everything is aligned to its size,
//! so that a browser reads it without copying.

use bytes::{BufMut as _, Bytes, BytesMut};

/// The first bytes of a frame.
const MAGIC: &[u8; 4] = b"RPL1";
/// Bytes before the times.
const HEADER: usize = 32;

/// What the rows of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of a run's series.
    Rows = 1,
    /// Bins of its resource grid.
    Grid = 2,
    /// Rows of a stored table.
    Table = 3,
}

/// A part of a table: a time for each row, and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'a> {
    /// What the rows are.
    pub kind: Kind,
    /// Counts the times that the rows began anew.
    pub generation: u32,
    /// Index of the first row.
    pub first: u32,
    /// Seconds.
    pub times: &'a [f64],
    /// Columns of as many values; what one has too few is NaN, and what it has too many is left out.
    pub columns: Vec<&'a [f64]>,
}

impl Frame<'_> {
    /// The bytes.
    pub fn encode(&self) -> Bytes {
        let (n, k) = (self.times.len(), self.columns.len());
        let mut bytes = BytesMut::with_capacity(HEADER + 8 * n + 4 * n * k);
        bytes.put_slice(MAGIC);
        for number in [self.kind as u32, self.generation, self.first, n as u32, k as u32, 0, 0] {
            bytes.put_u32_le(number);
        }
        self.times.iter().for_each(|time| bytes.put_f64_le(*time));
        for column in &self.columns {
            for row in 0..n {
                bytes.put_f32_le(column.get(row).map_or(f32::NAN, |value| *value as f32));
            }
        }
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_is_as_the_documentation_shows_it() {
        let frame = Frame {
            kind: Kind::Rows,
            generation: 0,
            first: 0,
            times: &[0.1, 0.2],
            columns: vec![&[1.0, f64::NAN]],
        };
        let hex: String = frame.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = "52504c31010000000000000000000000020000000100000000000000".to_owned() + "00000000";
        assert_eq!(hex, header + "9a9999999999b93f9a9999999999c93f" + "0000803f" + "0000c07f");
    }

    proptest! {
        #[test]
        fn the_length_follows_from_the_header(times in prop::collection::vec(0.0..1e6, 0..9), k in 0..5_usize) {
            let column = [1.5; 4];
            let columns = vec![&column[..]; k];
            let bytes = Frame { kind: Kind::Grid, generation: 7, first: 3, times: &times, columns }.encode();
            prop_assert_eq!(bytes.len(), HEADER + times.len() * (8 + 4 * k));
            prop_assert_eq!(&bytes[4..16], &[2, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0]);
        }
    }
}
