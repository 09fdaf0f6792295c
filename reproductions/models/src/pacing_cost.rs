//! The costs of idling and queueing at a bottleneck per unit of time, by kind of traffic (4.11 to 4.18, Figs. 4.7 and 4.8).
//!
//! `l` packets arrive per unit of time at a bottleneck that can send BW:
//!
//! - idle: `1 - l / BW` (4.11)
//! - queue of bursty traffic: `l / BW` (4.12), so that the total is always 1 (4.13)
//! - queue of Poisson traffic: `l / (BW (BW - l))` (4.18), smallest in total at `l = BW - sqrt(BW)`
//! - queue of paced traffic: none, so that the total is the idle time

use serde::Serialize;

use super::drawing;
use super::values::{MOST_ROWS, within};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::plot::{Line, Palette};
use ranpace_lab::table::TextTable;

/// The loads to compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingCost {
    /// BW: packets per unit of time that the bottleneck can send; 100 in the thesis.
    pub capacity: f64,
    /// Step of the load in packets per unit of time; loads begin at 0 and end at BW or below.
    pub step: f64,
}

/// Costs at a load, in units of time per unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Packets that arrive per unit of time.
    pub load: f64,
    /// Idle time of the bottleneck; also the whole cost of paced traffic.
    pub idle: f64,
    /// Queue of bursty traffic.
    pub queue_bursty: f64,
    /// Queue of Poisson traffic; none at full load, where it grows without bound.
    pub queue_poisson: Option<f64>,
    /// Idle time plus bursty queue.
    pub total_bursty: f64,
    /// Idle time plus Poisson queue.
    pub total_poisson: Option<f64>,
}

/// The costs over the load.
#[derive(Clone, Debug, PartialEq)]
pub struct PacingCostView {
    /// The input.
    pub asked: PacingCost,
    /// By increasing load.
    pub rows: Vec<Costs>,
}

impl PacingCost {
    /// Costs at this load.
    pub fn at(&self, load: f64) -> Costs {
        let capacity = self.capacity;
        let (idle, queue_bursty) = (1.0 - load / capacity, load / capacity);
        let queue_poisson = (load < capacity).then(|| load / (capacity * (capacity - load)));
        Costs {
            load,
            idle,
            queue_bursty,
            queue_poisson,
            total_bursty: idle + queue_bursty,
            total_poisson: queue_poisson.map(|queue| queue + idle),
        }
    }

    /// The load at which Poisson traffic costs least.
    pub fn best_load(&self) -> f64 {
        self.capacity - self.capacity.sqrt()
    }

    /// The load at which it costs least per used share of the bottleneck: `BW sqrt(BW) / (1 + sqrt(BW))`; ours. The text below 4.18
    /// speaks of this ratio.
    pub fn best_load_per_use(&self) -> f64 {
        let root = self.capacity.sqrt();
        self.capacity * root / (1.0 + root)
    }

    /// The load above which Poisson traffic costs more than bursty traffic.
    pub fn worse_than_bursty(&self) -> f64 {
        self.capacity - 1.0
    }

    /// Computes it.
    pub fn view(&self) -> Result<PacingCostView, ViewError> {
        // Below one packet, zero load is the cheapest.
        within("--capacity", (1.0..=1e9).contains(&self.capacity), "1 to 1e9 packets", self.capacity)?;
        within("--step", self.step > 0.0 && self.step.is_finite(), "more than zero", self.step)?;
        // Slightly more, so that the last one is included if the step divides the range.
        let count = libm::floor(self.capacity / self.step + 1e-9) + 1.0;
        if count > MOST_ROWS as f64 {
            let expected = format!("a step that gives at most {MOST_ROWS} rows");
            return Err(ViewError::value("--step", expected, format!("{}, which gives {count}", self.step)));
        }
        let load = |index: u32| (f64::from(index) * self.step).min(self.capacity);
        Ok(PacingCostView {
            asked: *self,
            rows: (0..count as u32).map(|index| self.at(load(index))).collect(),
        })
    }
}

impl View for PacingCostView {
    fn text(&self) -> String {
        let head =
            ["load", "idle", "bursty queue", "total", "Poisson queue", "total", "paced queue", "total"];
        let units = ["packets", "", "", "", "", "", "", ""];
        let head = head.into_iter().zip(units).map(|(title, unit)| (title.to_owned(), unit.to_owned()));
        let mut table = TextTable::new(head);
        let cost = |value: f64| format!("{value:.4}");
        let or_none = |value: Option<f64>| value.map_or("–".to_owned(), cost);
        for row in &self.rows {
            table.push(vec![
                super::startup::plain(row.load),
                cost(row.idle),
                cost(row.queue_bursty),
                cost(row.total_bursty),
                or_none(row.queue_poisson),
                or_none(row.total_poisson),
                cost(0.0),
                cost(row.idle),
            ]);
        }
        let asked = &self.asked;
        let best = asked.best_load();
        let least = asked.at(best).total_poisson.map_or("–".to_owned(), cost);
        format!(
            "Cost of idling and queueing per unit of time, capacity {} packets\n\n{table}\n\
             Poisson traffic costs least, {least}, at {} packets (BW - sqrt BW)\n\
             per used share of the capacity it costs least at {} packets\n\
             above {} packets it costs more than bursty traffic",
            asked.capacity,
            super::startup::plain(best),
            super::startup::plain(asked.best_load_per_use()),
            super::startup::plain(asked.worse_than_bursty()),
        )
    }

    fn json(&self) -> serde_json::Value {
        let best = self.asked.best_load();
        serde_json::json!({
            "model": "pacing-cost",
            "capacity": self.asked.capacity,
            "best_load": best,
            "best_total": self.asked.at(best).total_poisson,
            "best_load_per_use": self.asked.best_load_per_use(),
            "worse_than_bursty_above": self.asked.worse_than_bursty(),
            "rows": self.rows,
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        /// Highest cost drawn; the figure's curve continues upwards.
        const TOP: f64 = 1.2;
        /// Points of a curve, independent of the rows.
        const POINTS: u32 = 2_000;
        let asked = &self.asked;
        let curve = |of: &dyn Fn(&Costs) -> f64| -> Vec<(f64, f64)> {
            let load = |index: u32| asked.capacity * f64::from(index) / f64::from(POINTS);
            let points = (0..=POINTS).map(|index| asked.at(load(index)));
            points.map(|costs| (costs.load, of(&costs))).filter(|point| point.1 <= TOP).collect()
        };
        let poisson = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
        let axes = || {
            let x = drawing::over("load (packets per unit of time)", (0.0, asked.capacity));
            (x, drawing::over("cost (units of time)", (0.0, TOP)))
        };
        let best = asked.best_load();
        let least = poisson(asked.at(best).total_poisson);
        let by_kind = vec![
            drawing::line("idle", Palette::nth(0), curve(&|costs| costs.idle)),
            drawing::line("bursty queue", Palette::nth(1), curve(&|costs| costs.queue_bursty)),
            drawing::line("Poisson queue", Palette::nth(2), curve(&|costs| poisson(costs.queue_poisson))),
            Line {
                dashed: true,
                ..drawing::line("bursty total", Palette::nth(1), curve(&|costs| costs.total_bursty))
            },
            Line {
                dashed: true,
                ..drawing::line(
                    "Poisson total",
                    Palette::nth(2),
                    curve(&|costs| poisson(costs.total_poisson)),
                )
            },
            drawing::reference("least Poisson total", vec![(best, 0.0), (best, least)]),
        ];
        let paced = vec![
            drawing::line("queue", Palette::nth(1), curve(&|_| 0.0)),
            drawing::line("idle", Palette::nth(0), curve(&|costs| costs.idle)),
            Line { dashed: true, ..drawing::line("total", Palette::nth(4), curve(&|costs| costs.idle)) },
        ];
        let plots = vec![
            drawing::plot(
                "Bursty and Poisson traffic".to_owned(),
                axes(),
                by_kind,
                "Zhong 2020, Fig. 4.7. Poisson traffic costs more than bursty traffic within the last packet of capacity.",
            )?,
            drawing::plot(
                "Paced traffic".to_owned(),
                axes(),
                paced,
                "Zhong 2020, Fig. 4.8. Nothing queues up to the capacity, so the total is what is idle.",
            )?,
        ];
        let facts = vec![("Capacity", format!("{} packets per unit of time", asked.capacity))];
        Ok(Pictures::new("Cost of idling and queueing", facts, plots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THESIS: PacingCost = PacingCost { capacity: 100.0, step: 1.0 };

    /// `reproduce-004.md`, section 5.
    #[test]
    fn poisson_traffic_costs_least_at_90_and_more_than_bursty_above_99() {
        assert_eq!(THESIS.best_load(), 90.0);
        assert!((THESIS.at(90.0).total_poisson.unwrap() - 0.19).abs() < 1e-12);
        let rows = THESIS.view().unwrap().rows;
        assert_eq!(rows.len(), 101);
        let totals: Vec<f64> = rows.iter().filter_map(|row| row.total_poisson).collect();
        let least = totals.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!((totals.len(), least), (100, totals[90]));
        assert!(totals.iter().all(|total| *total <= 1.0 + 1e-12), "up to 99");
        assert!(THESIS.at(99.01).total_poisson.unwrap() > 1.0);
        for row in &rows {
            assert!(
                (row.total_bursty - 1.0).abs() < 1e-12 && (row.idle - (1.0 - row.load / 100.0)).abs() < 1e-12
            );
        }
        assert_eq!(rows[100].queue_poisson, None);
    }

    #[test]
    fn cost_per_use_is_least_where_said() {
        let ratio = |load: f64| THESIS.at(load).total_poisson.unwrap() / (load / 100.0);
        let best = THESIS.best_load_per_use();
        assert!((best - 1000.0 / 11.0).abs() < 1e-9);
        assert!(ratio(best) < ratio(best - 0.1) && ratio(best) < ratio(best + 0.1));
    }

    #[test]
    fn texts_programs_and_plots_show_the_same() {
        let view = PacingCost { step: 10.0, ..THESIS }.view().unwrap();
        let (text, json) = (view.text(), view.json());
        assert!(text.contains("costs least, 0.1900, at 90 packets"), "{text}");
        assert_eq!((json["rows"].as_array().unwrap().len(), &json["best_load"]), (11, &90.0.into()));
        assert!(json["rows"][10]["total_poisson"].is_null());
        assert_eq!(view.pictures().unwrap().svg().matches("<svg").count(), 3);
    }

    #[test]
    fn nonsensical_inputs_are_refused() {
        for (capacity, step, expected) in [
            (0.0, 1.0, "--capacity: expected 1 to 1e9 packets, found 0"),
            (-5.0, 1.0, "--capacity: expected 1 to 1e9 packets, found -5"),
            (f64::NAN, 1.0, "--capacity: expected 1 to 1e9 packets, found NaN"),
            (100.0, 0.0, "--step: expected more than zero, found 0"),
            (100.0, f64::NAN, "--step: expected more than zero, found NaN"),
            (
                100.0,
                1e-4,
                "--step: expected a step that gives at most 10000 rows, found 0.0001, which gives 1000001",
            ),
        ] {
            let error = PacingCost { capacity, step }.view().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        // One packet: the least cost is that of zero load.
        assert_eq!(PacingCost { capacity: 1.0, step: 0.5 }.best_load(), 0.0);
    }
}
