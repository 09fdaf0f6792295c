//! A user's channel over time, and its statistics.

use ranpace_phy::{Both, Direction};
use ranpace_units::{Span, Time};
use serde::Serialize;

use super::look::{LinkState, Look, Watch};
use super::subject::Subject;
use super::{Pictures, View, ViewError, finite, quantile};
use crate::table::TextTable;
use crate::{PlotError, Progress, figures, stats};

/// Most snapshots. Ours: some seconds of work, and a series of 100 MB in JSON.
pub(super) const MOST_LOOKS: u64 = 1_000_000;

/// The times of the snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// From zero until this time.
    pub time: Span,
    /// Interval between snapshots; at least a slot.
    pub every: Span,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Statistics of a figure over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Mean.
    pub mean: Option<f64>,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
}

/// A figure of a direction.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// Its name in the table.
    title: &'static str,
    /// Its key in JSON.
    key: &'static str,
    /// Units of the key per unit of the table.
    size: f64,
    /// NaN where there is none.
    of: fn(&LinkState) -> f64,
}

/// The figures, in the order of the table.
const FIGURES: [Figure; 6] = [
    Figure { title: "SINR, dB", key: "sinr_db", size: 1.0, of: |link| link.sinr_db.unwrap_or(f64::NAN) },
    Figure { title: "CQI", key: "cqi", size: 1.0, of: |link| link.cqi.into() },
    Figure { title: "MCS", key: "mcs", size: 1.0, of: |link| link.mcs.map_or(f64::NAN, f64::from) },
    Figure { title: "PRBs", key: "prbs", size: 1.0, of: |link| link.prbs.into() },
    Figure { title: "TBS, bit", key: "tbs_bits", size: 1.0, of: |link| link.tbs_bits.into() },
    Figure { title: "rate, Mbit/s", key: "rate_bit_s", size: 1e6, of: |link| link.rate_bit_s },
];

/// A user's channel over time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeView {
    /// The cell.
    pub cell: String,
    /// Its description.
    pub about: String,
    /// The user.
    pub user: String,
    /// Whether its conditions are recorded: it then has no position.
    pub recorded: bool,
    /// The times.
    pub moments: Moments,
    /// Times in seconds, with the snapshots.
    pub looks: Vec<(f64, Look)>,
}

impl Moments {
    /// Number of snapshots.
    pub(super) fn count(&self, slot: Span) -> Result<u64, ViewError> {
        let Self { time, every, .. } = *self;
        if every < slot {
            return Err(ViewError::value("--every", format!("a slot ({slot}) or more"), every.to_string()));
        }
        if time < every {
            return Err(ViewError::value("--time", format!("--every ({every}) or more"), time.to_string()));
        }
        let count = time.as_nanos() / every.as_nanos();
        if count > MOST_LOOKS {
            let expected = format!("at most {MOST_LOOKS} looks");
            return Err(ViewError::value(
                "--every",
                expected,
                format!("{every} in {time}, which are {count}"),
            ));
        }
        Ok(count)
    }

    /// Takes snapshots of the first user of a cell.
    pub fn view(&self, subject: &Subject) -> Result<TimeView, ViewError> {
        let user = subject.user()?;
        let mut watch = Watch::new(subject, &subject.config)?;
        let count = self.count(watch.slot())?;
        watch.admit(user, self.seed);
        let progress = Progress::new(count, "looks");
        let mut looks = Vec::with_capacity(count as usize);
        for index in 0..count {
            let now = Time::ZERO + self.every * index;
            if let Some(look) = watch.look(now, user.id) {
                looks.push((now.as_secs_f64(), look));
            }
            if index % 1024 == 0 {
                progress.set(index);
            }
        }
        drop(progress);
        Ok(TimeView {
            cell: subject.name.clone(),
            about: subject.about.clone(),
            user: user.name.clone(),
            recorded: user.config.recording.is_some(),
            moments: *self,
            looks,
        })
    }
}

impl Statistics {
    /// Over the finite values.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let quantile = |share| finite(quantile(&values, share));
        Self { mean: stats::mean(&values), p5: quantile(0.05), p50: quantile(0.5), p95: quantile(0.95) }
    }

    fn cells(&self, size: f64) -> [String; 4] {
        let shown =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| figures::number(value / size));
        [self.mean, self.p5, self.p50, self.p95].map(shown)
    }
}

impl TimeView {
    /// Share of the snapshots without a grant.
    pub fn out_of_range(&self, direction: Direction) -> f64 {
        let out = self.looks.iter().filter(|(_, look)| look.link[direction].mcs.is_none()).count();
        out as f64 / self.looks.len().max(1) as f64
    }

    fn statistics(&self, figure: &Figure, direction: Direction) -> Statistics {
        Statistics::of(self.looks.iter().map(|(_, look)| (figure.of)(&look.link[direction])))
    }

    fn distances(&self) -> Option<Statistics> {
        let distances = self.looks.iter().map(|(_, look)| look.distance_m);
        (!self.recorded).then(|| Statistics::of(distances))
    }

    /// For people.
    pub fn table(&self) -> TextTable {
        let head = ["", "mean", "p5", "p50", "p95"].map(|title| (title.to_owned(), String::new()));
        let mut table = TextTable::new(head);
        let mut push = |title: String, cells: [String; 4]| {
            table.push(core::iter::once(title).chain(cells).collect());
        };
        if let Some(distances) = self.distances() {
            push("distance, m".to_owned(), distances.cells(1.0));
        }
        for (direction, way) in [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")] {
            for figure in &FIGURES {
                let statistics = self.statistics(figure, direction);
                push(format!("{way} {}", figure.title), statistics.cells(figure.size));
            }
        }
        table
    }
}

impl View for TimeView {
    fn text(&self) -> String {
        let table = self.table().to_string();
        let Moments { time, every, seed } = self.moments;
        let mut text = format!(
            "{}: {}\nuser {:?}, every {every} for {time}, seed {seed}\n\n{}",
            self.cell,
            self.about,
            self.user,
            table.trim_end()
        );
        for (direction, way) in [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")] {
            let share = 100.0 * self.out_of_range(direction);
            if share > 0.0 {
                text.push_str(&format!("\n{way}: out of range for {share:.1} % of the time"));
            }
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let both = |each: &dyn Fn(Direction) -> serde_json::Value| {
            let Both { downlink, uplink } = Both::of(each);
            serde_json::json!({ "downlink": downlink, "uplink": uplink })
        };
        let statistics = both(&|direction| {
            let mut all = serde_json::Map::new();
            for figure in &FIGURES {
                all.insert(figure.key.to_owned(), serde_json::json!(self.statistics(figure, direction)));
            }
            all.insert("out_of_range".to_owned(), self.out_of_range(direction).into());
            all.into()
        });
        let mut series = both(&|direction| {
            let mut all = serde_json::Map::new();
            for figure in &FIGURES {
                let values = self.looks.iter().map(|(_, look)| finite((figure.of)(&look.link[direction])));
                all.insert(figure.key.to_owned(), serde_json::json!(values.collect::<Vec<_>>()));
            }
            all.into()
        });
        let column = |of: &dyn Fn(&(f64, Look)) -> f64| {
            serde_json::json!(self.looks.iter().map(of).collect::<Vec<f64>>())
        };
        series["time_s"] = column(&|(time, _)| *time);
        if !self.recorded {
            series["distance_m"] = column(&|(_, look)| look.distance_m);
        }
        let mut all = serde_json::json!({
            "cell": self.cell,
            "about": self.about,
            "user": self.user,
            "seed": self.moments.seed,
            "time_s": self.moments.time.as_secs_f64(),
            "every_s": self.moments.every.as_secs_f64(),
            "statistics": statistics,
            "series": series,
        });
        if let Some(distances) = self.distances() {
            all["statistics"]["distance_m"] = serde_json::json!(distances);
        }
        all
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        self.drawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(time: &str, every: &str) -> Moments {
        Moments { time: time.parse().unwrap(), every: every.parse().unwrap(), seed: 1 }
    }

    #[test]
    fn static_user_varies_only_by_fading() {
        let subject = Subject::preset("lte").unwrap();
        let found = moments("2s", "1ms").view(&subject).unwrap();
        assert_eq!(found.looks.len(), 2000);
        assert!(found.looks.iter().all(|(_, look)| look.distance_m == 300.0));
        let sinr = found.statistics(&FIGURES[0], Direction::Downlink);
        assert!(sinr.p5.unwrap() + 1.0 < sinr.p95.unwrap(), "{sinr:?}");
        let json = found.json();
        assert_eq!(json["series"]["uplink"]["mcs"].as_array().unwrap().len(), 2000);
        assert_eq!(json["statistics"]["distance_m"]["p50"], 300.0);
        assert_eq!(found.table().to_string().lines().count(), 2 + 13);
        let other = Moments { seed: 2, ..found.moments }.view(&subject).unwrap();
        assert_ne!(found.looks, other.looks);
    }

    #[test]
    fn distant_user_is_out_of_range() {
        let subject = Subject::preset("zhong-lte-ch6").unwrap();
        let far = subject.standing_away(20_000.0).unwrap();
        let found = moments("1s", "10ms").view(&far).unwrap();
        assert_eq!(found.out_of_range(Direction::Downlink), 1.0);
        assert_eq!(found.json()["statistics"]["downlink"]["mcs"]["mean"], serde_json::Value::Null);
        assert!(found.table().to_string().contains('–'));
    }

    #[test]
    fn invalid_times_are_refused() {
        let subject = Subject::preset("lte").unwrap();
        for (time, every, expected) in [
            ("10s", "100us", "--every: expected a slot (1ms) or more, found 100us"),
            ("5ms", "10ms", "--time: expected --every (10ms) or more, found 5ms"),
            ("1h", "1ms", "--every: expected at most 1000000 looks, found 1ms in 3600s, which are 3600000"),
        ] {
            let error = moments(time, every).view(&subject).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
    }
}
