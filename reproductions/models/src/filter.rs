//! The weight of a report in CDBEv2's low-pass filter, over the smallest RTT (Fig. 7.2).
//!
//! `BW(t_i) = (1 - beta) BW(t_{i-1}) + beta rBW` (7.5). After n reports of a new constant rate, `(1 - beta)^n` of the old one is
//! left; it should be `thres` (7.8) after the n reports that arrive in K smallest RTTs (7.9). The thesis prints `n = RTT_min / TW`,
//! which is K = 1; its 0.437 at the short end, and its aim of "every two RTT_min", need K = 2. K is therefore a choice here. The
//! weight is computed by the control's own function.

use ranpace_cc::cdbev2::filter::{THRES, filter_weight};
use ranpace_units::Span;
use serde::Serialize;

use super::drawing;
use super::values::{check_rtt, points, within};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::plot::Palette;
use ranpace_lab::table::TextTable;

/// Reports in `k` smallest RTTs, at least one (7.9).
pub fn reports_per_horizon(rtt_min: Span, tw: Span, k: u32) -> f64 {
    (f64::from(k) * rtt_min.ratio(tw)).max(1.0)
}

/// The smallest RTTs to compute the weight for.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The first.
    pub from: Span,
    /// Upper limit.
    pub to: Span,
    /// Step.
    pub step: Span,
    /// Time between reports; 10 ms in the thesis.
    pub tw: Span,
    /// Horizons in smallest RTTs: 1, 2 or both.
    pub k: Vec<u32>,
}

/// The filter at a smallest RTT.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FilterRow {
    /// Smallest RTT in seconds.
    pub rtt_min_s: f64,
    /// Horizon in smallest RTTs.
    pub k: u32,
    /// Reports in the horizon (7.9); not necessarily an integer.
    pub reports_per_horizon: f64,
    /// Weight of a report (7.8).
    pub weight: f64,
    /// Reports until 90 % of a step is reached.
    pub reports_to_90_percent: u64,
    /// The same in seconds.
    pub time_to_90_percent_s: f64,
}

/// The filter over the smallest RTT.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterView {
    /// The input.
    pub asked: Filter,
    /// By horizon, then by smallest RTT.
    pub rows: Vec<FilterRow>,
}

impl Filter {
    /// Computes it.
    pub fn view(&self) -> Result<FilterView, ViewError> {
        check_rtt("--rtt-min", self.from)?;
        check_rtt("--rtt-min", self.to)?;
        check_rtt("--tw", self.tw)?;
        let mut k = self.k.clone();
        k.sort_unstable();
        k.dedup();
        let known = !k.is_empty() && k.iter().all(|k| (1..=2).contains(k));
        within("--k", known, "1, 2 or 1,2", self.k.iter().map(u32::to_string).collect::<Vec<_>>().join(","))?;
        if self.to < self.from {
            let (from, to) = (self.from, self.to);
            return Err(ViewError::value("--rtt-min", "the shorter RTT first", format!("{from}..{to}")));
        }
        let spans = points(self.from.as_nanos(), self.to.as_nanos(), self.step.as_nanos(), |nanos| {
            Span::from_nanos(nanos).to_string()
        })?;
        let rows =
            k.iter().flat_map(|k| spans.iter().map(|nanos| self.row(*k, Span::from_nanos(*nanos)))).collect();
        Ok(FilterView { asked: Filter { k, ..self.clone() }, rows })
    }
}

impl Filter {
    fn row(&self, k: u32, rtt_min: Span) -> FilterRow {
        let n = reports_per_horizon(rtt_min, self.tw, k);
        // Slightly less, so that integers do not round up.
        let reports = libm::ceil(n - 1e-9);
        FilterRow {
            rtt_min_s: rtt_min.as_secs_f64(),
            k,
            reports_per_horizon: n,
            weight: filter_weight(rtt_min, self.tw, f64::from(k), THRES),
            reports_to_90_percent: reports as u64,
            time_to_90_percent_s: reports * self.tw.as_secs_f64(),
        }
    }
}

impl FilterView {
    fn of(&self, k: u32) -> impl Iterator<Item = &FilterRow> {
        self.rows.iter().filter(move |row| row.k == k)
    }
}

impl View for FilterView {
    fn text(&self) -> String {
        let Some(first) = self.asked.k.first() else { return String::new() };
        let mut head = vec![("RTT_min".to_owned(), "ms".to_owned())];
        for k in &self.asked.k {
            head.push((format!("beta, K={k}"), String::new()));
            head.push(("reports".to_owned(), "to 90 %".to_owned()));
            head.push(("time".to_owned(), "ms".to_owned()));
        }
        let mut table = TextTable::new(head);
        for (index, row) in self.of(*first).enumerate() {
            let mut cells = vec![ranpace_lab::number(row.rtt_min_s * 1e3)];
            for row in self.asked.k.iter().filter_map(|k| self.of(*k).nth(index)) {
                cells.push(format!("{:.4}", row.weight));
                cells.push(row.reports_to_90_percent.to_string());
                cells.push(ranpace_lab::number(row.time_to_90_percent_s * 1e3));
            }
            table.push(cells);
        }
        let tw = self.asked.tw;
        format!("CDBEv2's filter, a report every {tw}: beta = 1 - 0.1^(1/n), n = K RTT_min / TW\n\n{table}")
            .trim_end()
            .to_owned()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "model": "filter",
            "tw_s": self.asked.tw.as_secs_f64(),
            "threshold": THRES,
            "rows": self.rows,
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        /// Points of a curve.
        const POINTS: u64 = 280;
        let ends = (self.asked.from.as_secs_f64() * 1e3, self.asked.to.as_secs_f64() * 1e3);
        let x = || drawing::over("smallest RTT (ms)", ends);
        // The curve is smooth, whatever the step of the rows.
        let points: Vec<FilterRow> = match self.asked.to > self.asked.from {
            true => {
                let way = self.asked.to - self.asked.from;
                let spans = (0..=POINTS).map(|index| self.asked.from + way.scale(index, POINTS));
                let of =
                    |k: &u32| spans.clone().map(|rtt_min| self.asked.row(*k, rtt_min)).collect::<Vec<_>>();
                self.asked.k.iter().flat_map(of).collect()
            }
            false => self.rows.clone(),
        };
        let curves = |of: fn(&FilterRow) -> f64| {
            let curve = |(index, k): (usize, &u32)| {
                let own = points.iter().filter(|row| row.k == *k);
                let points = own.map(|row| (row.rtt_min_s * 1e3, of(row))).collect();
                drawing::line(format!("K = {k}"), Palette::nth(index), points)
            };
            self.asked.k.iter().enumerate().map(curve).collect::<Vec<_>>()
        };
        let most = self.rows.iter().map(|row| row.reports_to_90_percent as f64);
        let plots = vec![
            drawing::plot(
                "Weight of a report over the smallest RTT".to_owned(),
                (x(), drawing::over("beta", (0.0, 1.0))),
                curves(|row| row.weight),
                "Zhong 2020, Fig. 7.2 (K = 1 as 7.9 is printed; K = 2 gives the 0.437 quoted for the short end).",
            )?,
            drawing::plot(
                "Reports until 90 % of a step".to_owned(),
                (x(), drawing::from_zero("reports", most)),
                curves(|row| row.reports_to_90_percent as f64),
                "Whole reports after which a tenth or less of the old rate is left.",
            )?,
        ];
        let facts = vec![("Time between reports", self.asked.tw.to_string())];
        Ok(Pictures::new("CDBEv2's filter", facts, plots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_cc::cdbev2::filter::filtered;

    const TW: Span = Span::from_millis(10);

    #[test]
    fn weights_are_those_of_the_specification() {
        for (k, expected) in
            [(1, [0.6838, 0.6169, 0.3187, 0.1746, 0.0739]), (2, [0.4377, 0.3810, 0.1746, 0.0915, 0.0376])]
        {
            for (ms, expected) in [20, 24, 60, 120, 300].into_iter().zip(expected) {
                let found = filter_weight(Span::from_millis(ms), TW, f64::from(k), THRES);
                assert!((found - expected).abs() < 5e-5, "{ms} ms, K = {k}: {found}");
            }
        }
    }

    #[test]
    fn two_reports_take_nine_tenths_of_a_step_at_20_ms() {
        let weight = filter_weight(Span::from_millis(20), TW, 1.0, THRES);
        let rate = (0..2).fold(10e6, |rate, _| filtered(rate, 20e6, weight));
        assert!((rate - 19e6).abs() < 1e-3);
    }

    /// Section 7.2.2: "30 reports later" at 300 ms, "two reports interval" at 20 ms.
    #[test]
    fn reports_to_90_percent_are_whole_and_enough() {
        let asked = Filter {
            from: Span::from_millis(20),
            to: Span::from_millis(300),
            step: Span::from_millis(4),
            tw: TW,
            k: vec![2, 1, 1],
        };
        let view = asked.view().unwrap();
        assert_eq!(view.rows.len(), 2 * 71);
        for row in &view.rows {
            let left = |reports| libm::pow(1.0 - row.weight, reports);
            let reports = row.reports_to_90_percent as f64;
            assert!(left(reports) < 0.1 + 1e-9 && left(reports - 1.0) > 0.1, "{row:?}");
        }
        let of = |k, index| view.of(k).nth(index).unwrap().reports_to_90_percent;
        assert_eq!([of(1, 0), of(1, 70), of(2, 0), of(2, 70)], [2, 30, 4, 60]);
        // Always at least one report.
        assert_eq!(filter_weight(Span::from_millis(1), TW, 1.0, THRES), 0.9);
        assert!(view.text().contains("0.6838") && view.text().contains("0.4377"));
        assert_eq!(view.json()["rows"][0]["k"], 1);
        assert_eq!(view.pictures().unwrap().svg().matches("<svg").count(), 3);
    }

    #[test]
    fn nonsensical_inputs_are_refused() {
        let good = Filter { from: TW * 2, to: TW * 30, step: TW, tw: TW, k: vec![1] };
        assert!(good.view().is_ok());
        for (bad, expected) in [
            (Filter { from: Span::ZERO, ..good.clone() }, "--rtt-min: expected 1us to 100s, found 0s"),
            (Filter { from: TW * 31, ..good.clone() }, "--rtt-min: expected the shorter RTT first"),
            (Filter { tw: Span::ZERO, ..good.clone() }, "--tw: expected 1us to 100s"),
            (Filter { step: Span::ZERO, ..good.clone() }, "--step: expected more than zero"),
            (
                Filter { step: Span::from_nanos(1), ..good.clone() },
                "--step: expected a step that gives at most",
            ),
            (Filter { k: vec![3], ..good.clone() }, "--k: expected 1, 2 or 1,2, found 3"),
            (Filter { k: Vec::new(), ..good.clone() }, "--k: expected 1, 2 or 1,2"),
        ] {
            let error = bad.view().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
