//! The duration of an upload, with slow start and with SIGMA's Max Start (Diarra 2022, equations 3.1 to 3.6).
//!
//! A bottleneck of constant rate without loss; N is its bandwidth-delay product in segments, D the file, IW the initial
//! window. Slow start doubles the window each RTT until it is N:
//!
//! - `n = log2(N / IW) + 1` RTTs, a real number, in which `D_n = IW 2^n - IW = 2 N - IW` segments leave (3.1, 3.2);
//! - `RTT n + RTT (D - D_n) / N` for `D >= D_n` (3.3), and below it the inverse of 3.1, `RTT log2(D / IW + 1)`: ours, as 3.4 only
//!   states `RTT n` as an upper bound;
//! - Max Start: `RTT max(1, D / N)`. As printed (3.5, 3.6) it is `RTT + RTT (D - D_n) / N`, which replaces n by 1 and keeps the D_n
//!   of n rounds, so that files larger than D_n would be faster than the link;
//! - in whole rounds: windows of IW, 2 IW, ... until one would be N; a file that ends in a round takes all of it.
//!
//! All times end when the last byte has been sent or its round is over. Until the last acknowledgement Max Start takes `RTT (1 + D
//! / N)`.

use ranpace_units::{Bytes, Span};
use serde::Serialize;

use super::drawing;
use super::values::{check_rtt, within};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::plot::Palette;
use ranpace_lab::table::TextTable;

/// The start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Slow start from the initial window.
    Slow,
    /// SIGMA's Max Start: a whole bandwidth-delay product at once.
    Max,
}

/// Variants of the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 3.3, the inverse of 3.1, and Max Start limited to the link's rate.
    Consistent,
    /// 3.3 to 3.6 as printed; for comparison only.
    Printed,
    /// Whole rounds of slow start. Max Start is as in [`Self::Consistent`].
    Rounds,
}

/// A path and its segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UploadPath {
    /// Bandwidth-delay product; 1.2 MB in the thesis.
    pub bdp: Bytes,
    /// Payload of a segment; 1440 B in the thesis.
    pub mss: Bytes,
    /// RTT without a queue; 10 ms in the thesis.
    pub rtt: Span,
    /// Initial window in segments; 10 in the thesis.
    pub iw: f64,
}

impl UploadPath {
    /// Section 3.2.5.
    pub const THESIS: Self =
        Self { bdp: Bytes::new(1_200_000), mss: Bytes::new(1_440), rtt: Span::from_millis(10), iw: 10.0 };

    /// N: segments of a bandwidth-delay product.
    pub fn n_segments(&self) -> f64 {
        self.bdp.as_f64() / self.mss.as_f64()
    }

    /// n: RTTs of slow start until its window is N; a real number, at least one.
    pub fn slow_rounds(&self) -> f64 {
        libm::log2(self.n_segments() / self.iw).max(0.0) + 1.0
    }

    /// D_n: segments sent in these.
    pub fn slow_segments(&self) -> f64 {
        // One round with the window N if the initial window is as large.
        (2.0 * self.n_segments() - self.iw).max(self.n_segments())
    }

    /// Time in seconds for a file of `bytes` bytes.
    pub fn upload_time(&self, bytes: f64, start: Start, form: Form) -> f64 {
        let rtt = self.rtt.as_secs_f64();
        let (segments, n) = (bytes / self.mss.as_f64(), self.n_segments());
        let beyond = (segments - self.slow_segments()) / n;
        let rounds = match (start, form) {
            (Start::Max, Form::Printed) => 1.0 + beyond.max(0.0),
            (Start::Max, Form::Consistent | Form::Rounds) => (segments / n).max(1.0),
            // The link, not slow start, is the limit.
            (Start::Slow, _) if self.iw >= n => (segments / n).max(1.0),
            (Start::Slow, Form::Rounds) => self.whole_rounds(segments),
            (Start::Slow, _) if beyond >= 0.0 => self.slow_rounds() + beyond,
            (Start::Slow, Form::Printed) => self.slow_rounds(),
            (Start::Slow, Form::Consistent) => libm::log2(segments / self.iw + 1.0),
        };
        rtt * rounds
    }

    fn whole_rounds(&self, segments: f64) -> f64 {
        let (n, mut window, mut sent, mut rounds) = (self.n_segments(), self.iw, 0.0, 0.0);
        while window < n && sent < segments {
            (sent, rounds, window) = (sent + window, rounds + 1.0, 2.0 * window);
        }
        rounds + ((segments - sent) / n).max(0.0)
    }

    /// Seconds until the last acknowledgement with Max Start: an RTT after the link's time.
    pub fn until_last_ack(&self, bytes: f64) -> f64 {
        self.rtt.as_secs_f64() * (1.0 + bytes / self.bdp.as_f64())
    }

    /// Seconds that the link takes for `bytes` bytes.
    pub fn link_bound(&self, bytes: f64) -> f64 {
        self.rtt.as_secs_f64() * bytes / self.bdp.as_f64()
    }
}

/// [`UploadPath::upload_time`] as one function: seconds for a file of `bytes`.
pub fn upload_time(
    bytes: f64,
    bdp_bytes: Bytes,
    mss: Bytes,
    rtt: Span,
    iw: f64,
    start: Start,
    form: Form,
) -> f64 {
    UploadPath { bdp: bdp_bytes, mss, rtt, iw }.upload_time(bytes, start, form)
}

/// The files to compute times for.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// The path.
    pub path: UploadPath,
    /// Sizes in bandwidth-delay products.
    pub sizes: Vec<f64>,
}

/// Sizes of Test S-1 and of Fig. 3.7, in bandwidth-delay products.
pub const UPLOAD_SIZES: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Times in seconds for a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UploadRow {
    /// Size over the bandwidth-delay product.
    pub size_bdp: f64,
    /// Size.
    pub size_bytes: f64,
    /// Slow start, 3.3 or the inverse of 3.1.
    pub slow_s: f64,
    /// Slow start in whole rounds.
    pub slow_rounds_s: f64,
    /// Slow start, 3.3 or the bound of 3.4.
    pub slow_printed_s: f64,
    /// Max Start.
    pub max_s: f64,
    /// Max Start as printed (3.5, 3.6).
    pub max_printed_s: f64,
    /// The link's time, which is a lower bound.
    pub link_s: f64,
    /// Max Start until the last acknowledgement.
    pub max_last_ack_s: f64,
    /// Share of slow start's time that Max Start saves.
    pub saving: f64,
}

/// Times over the size.
#[derive(Clone, Debug, PartialEq)]
pub struct UploadView {
    /// The input.
    pub asked: Upload,
    /// In the order of the input.
    pub rows: Vec<UploadRow>,
}

impl Upload {
    /// The times for a file of this many bandwidth-delay products.
    pub fn at(&self, size_bdp: f64) -> UploadRow {
        let path = &self.path;
        let bytes = size_bdp * path.bdp.as_f64();
        let time = |start, form| path.upload_time(bytes, start, form);
        let (slow_s, max_s) = (time(Start::Slow, Form::Consistent), time(Start::Max, Form::Consistent));
        UploadRow {
            size_bdp,
            size_bytes: bytes,
            slow_s,
            slow_rounds_s: time(Start::Slow, Form::Rounds),
            slow_printed_s: time(Start::Slow, Form::Printed),
            max_s,
            max_printed_s: time(Start::Max, Form::Printed),
            link_s: path.link_bound(bytes),
            max_last_ack_s: path.until_last_ack(bytes),
            saving: 1.0 - max_s / slow_s,
        }
    }

    /// Computes it.
    pub fn view(&self) -> Result<UploadView, ViewError> {
        let path = &self.path;
        check_rtt("--rtt", path.rtt)?;
        within("--mss", (1..=65_495).contains(&path.mss.get()), "1B to 65495B", path.mss)?;
        let most = 1_u64 << 50;
        within("--bdp", (path.mss.get()..=most).contains(&path.bdp.get()), "a segment or more", path.bdp)?;
        within("--iw", path.iw >= 1.0 && path.iw <= 1e9, "1 to 1e9 segments", path.iw)?;
        let count = self.sizes.len();
        within("--size", (1..=1_000).contains(&count), "1 to 1000 sizes", count)?;
        for size in &self.sizes {
            within("--size", *size > 0.0 && *size <= 1e9, "more than 0, at most 1e9", size)?;
        }
        let rows = self.sizes.iter().map(|size| self.at(*size)).collect();
        Ok(UploadView { asked: self.clone(), rows })
    }
}

impl View for UploadView {
    fn text(&self) -> String {
        let head = [
            ("file", "BDP"),
            ("slow start", "ms"),
            ("in rounds", "ms"),
            ("Max Start", "ms"),
            ("saved", "%"),
            ("to last ACK", "ms"),
            ("link", "ms"),
            ("3.5 printed", "ms"),
            ("", ""),
        ];
        let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
        let ms = |seconds: f64| format!("{:.2}", 1e3 * seconds);
        for row in &self.rows {
            // A millionth allows for rounding.
            let is_too_fast = row.max_printed_s < row.link_s * (1.0 - 1e-6);
            table.push(vec![
                super::startup::plain(row.size_bdp),
                ms(row.slow_s),
                ms(row.slow_rounds_s),
                ms(row.max_s),
                format!("{:.1}", 100.0 * row.saving),
                ms(row.max_last_ack_s),
                ms(row.link_s),
                ms(row.max_printed_s),
                if is_too_fast { "faster than the link".to_owned() } else { String::new() },
            ]);
        }
        let path = &self.asked.path;
        let text = format!(
            "Upload with slow start and with SIGMA's Max Start: BDP {}, MSS {}, RTT {}, initial window {}\n\
             N = {:.3} segments, n = {:.6} RTTs, D_n = {:.3} segments, n RTT = {:.3} ms\n\n{table}",
            path.bdp,
            path.mss,
            path.rtt,
            super::startup::plain(path.iw),
            path.n_segments(),
            path.slow_rounds(),
            path.slow_segments(),
            1e3 * path.slow_rounds() * path.rtt.as_secs_f64(),
        );
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    fn json(&self) -> serde_json::Value {
        let path = &self.asked.path;
        serde_json::json!({
            "model": "upload",
            "bdp_bytes": path.bdp.get(),
            "mss_bytes": path.mss.get(),
            "rtt_s": path.rtt.as_secs_f64(),
            "initial_window": path.iw,
            "n_segments": path.n_segments(),
            "slow_rounds": path.slow_rounds(),
            "slow_segments": path.slow_segments(),
            "rows": self.rows,
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        /// Points of a curve.
        const POINTS: u32 = 400;
        let most = self.rows.iter().map(|row| row.size_bdp).fold(0.0, f64::max);
        let points: Vec<UploadRow> =
            (1..=POINTS).map(|index| self.asked.at(most * f64::from(index) / f64::from(POINTS))).collect();
        let curve = |of: fn(&UploadRow) -> f64| -> Vec<(f64, f64)> {
            points.iter().map(|row| (row.size_bdp, of(row))).collect()
        };
        let x = || drawing::over("file (bandwidth-delay products)", (0.0, most));
        let longest = points.iter().map(|row| 1e3 * row.slow_s.max(row.slow_rounds_s));
        let plots = vec![
            drawing::plot(
                "Time of an upload over its size".to_owned(),
                (x(), drawing::from_zero("time (ms)", longest)),
                vec![
                    drawing::line("slow start", Palette::nth(0), curve(|row| 1e3 * row.slow_s)),
                    drawing::line(
                        "slow start, rounds",
                        Palette::nth(1),
                        curve(|row| 1e3 * row.slow_rounds_s),
                    ),
                    drawing::line("Max Start", Palette::nth(2), curve(|row| 1e3 * row.max_s)),
                    drawing::reference("3.5 as printed", curve(|row| 1e3 * row.max_printed_s)),
                ],
                "Diarra 2022, equations 3.1 to 3.6. 3.5 as printed falls below what the link needs.",
            )?,
            drawing::plot(
                "What Max Start saves".to_owned(),
                (x(), drawing::over("saved (%)", (0.0, 100.0))),
                vec![drawing::line("saved", Palette::nth(2), curve(|row| 100.0 * row.saving))],
                "Against slow start (3.3, or 3.1 inverted for files that end in it).",
            )?,
        ];
        let path = &self.asked.path;
        let facts = vec![
            ("Bandwidth-delay product", path.bdp.to_string()),
            ("Segment", path.mss.to_string()),
            ("RTT", path.rtt.to_string()),
        ];
        Ok(Pictures::new("Upload with slow start and with Max Start", facts, plots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thesis() -> Upload {
        Upload { path: UploadPath::THESIS, sizes: UPLOAD_SIZES.to_vec() }
    }

    #[test]
    fn test_s_1_is_the_table_of_the_specification() {
        let path = UploadPath::THESIS;
        assert!((path.n_segments() - 833.333).abs() < 1e-3 && (path.slow_rounds() - 7.380_822).abs() < 1e-6);
        assert!((path.slow_segments() - 1_656.667).abs() < 1e-3);
        assert!((path.slow_rounds() * 10.0 - 73.808).abs() < 1e-3);
        for (size, slow, printed, consistent, saving, rounds) in [
            (0.5, 54.15, 10.0, 10.0, 81.5, 60.0),
            (1.0, 63.98, 10.0, 10.0, 84.4, 70.0),
            (2.0, 73.93, 10.12, 20.0, 72.9, 74.76),
            (5.0, 103.93, 40.12, 50.0, 51.9, 104.76),
            (10.0, 153.93, 90.12, 100.0, 35.0, 154.76),
            (20.0, 253.93, 190.12, 200.0, 21.2, 254.76),
            (100.0, 1_053.93, 990.12, 1_000.0, 5.1, 1_054.76),
        ] {
            let row = thesis().at(size);
            for (name, found, expected) in [
                ("slow", 1e3 * row.slow_s, slow),
                ("printed", 1e3 * row.max_printed_s, printed),
                ("consistent", 1e3 * row.max_s, consistent),
                ("rounds", 1e3 * row.slow_rounds_s, rounds),
            ] {
                assert!((found - expected).abs() < 5.001e-3, "{size} BDP, {name}: {found}");
            }
            assert!((100.0 * row.saving - saving).abs() < 0.0501, "{size} BDP: {}", row.saving);
        }
    }

    #[test]
    fn only_the_printed_form_is_faster_than_the_link() {
        for row in thesis().view().unwrap().rows {
            let bound = row.link_s * (1.0 - 1e-12);
            assert!(row.slow_s >= bound && row.max_s >= bound && row.slow_rounds_s >= bound);
            assert_eq!(
                row.max_printed_s < row.link_s * (1.0 - 1e-6),
                row.size_bdp >= 2.0,
                "{}",
                row.size_bdp
            );
            assert!((row.max_last_ack_s - 0.01 * (1.0 + row.size_bdp)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_window_that_holds_the_product_needs_no_slow_start() {
        let path = UploadPath { iw: 1_000.0, ..UploadPath::THESIS };
        for form in [Form::Consistent, Form::Rounds] {
            let time = upload_time(12e6, path.bdp, path.mss, path.rtt, path.iw, Start::Slow, form);
            assert!((time - 0.1).abs() < 1e-12);
        }
        assert_eq!(path.slow_rounds(), 1.0);
    }

    #[test]
    fn texts_programs_and_plots_show_the_same() {
        let view = thesis().view().unwrap();
        let (text, json) = (view.text(), view.json());
        assert!(text.contains("N = 833.333 segments, n = 7.380822 RTTs, D_n = 1656.667 segments"), "{text}");
        assert_eq!(text.matches("faster than the link").count(), 6, "{text}");
        assert_eq!((json["rows"].as_array().unwrap().len(), &json["model"]), (8, &"upload".into()));
        assert_eq!(view.pictures().unwrap().svg().matches("<svg").count(), 3);
    }

    #[test]
    fn nonsensical_inputs_are_refused() {
        let path = UploadPath::THESIS;
        for (asked, expected) in [
            (UploadPath { bdp: Bytes::new(100), ..path }, "--bdp: expected a segment or more, found 100"),
            (UploadPath { mss: Bytes::ZERO, ..path }, "--mss: expected 1B to 65495B, found 0"),
            (UploadPath { iw: 0.0, ..path }, "--iw: expected 1 to 1e9 segments, found 0"),
            (UploadPath { rtt: Span::ZERO, ..path }, "--rtt: expected 1us to 100s, found 0"),
        ] {
            let error = Upload { path: asked, sizes: vec![1.0] }.view().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        for (sizes, expected) in [
            (vec![], "--size: expected 1 to 1000 sizes, found 0"),
            (vec![0.0], "--size: expected more than 0, at most 1e9, found 0"),
            (vec![f64::NAN], "--size: expected more than 0, at most 1e9, found NaN"),
        ] {
            let error = Upload { path, sizes }.view().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
