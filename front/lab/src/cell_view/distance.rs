//! A cell over the distance: the median of the channel, and the effect of fading and shadowing on the rate.

use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::{CellConfig, FadingConfig, Place};
use ranpace_radio::channel::{Position, Sight, umi_clear_probability};
use ranpace_units::{Span, Time};
use serde::Serialize;

use super::look::{LinkState, Watch};
use super::subject::{Subject, Watched};
use super::{Pictures, View, ViewError, quantile};
use crate::table::TextTable;
use crate::{PlotError, Progress, figures};

/// Farthest distance. Ours: cells of LTE and NR reach 100 km (TS 36.211 clause 5.7.1's longest preamble).
const FARTHEST_M: f64 = 100_000.0;
/// Most distances. Ours: more than a page can show.
const MOST_ROWS: f64 = 10_000.0;
/// Most draws of fading. Ours: about ten seconds.
const MOST_LOOKS: f64 = 2_000_000.0;
/// Interval between two draws, such that a noise generator is active in some of them and idle in others; ours.
const BETWEEN_DRAWS: Span = Span::from_millis(13);

/// The distances to compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// The first, in metres on the ground.
    pub from_m: f64,
    /// Upper limit.
    pub to_m: f64,
    /// Step.
    pub step_m: f64,
    /// Draws of fading and shadowing at each distance; 0: none.
    pub draws: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// The rate over draws of fading and shadowing, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean_bit_s: f64,
    /// 10th percentile.
    pub p10_bit_s: f64,
    /// 90th percentile.
    pub p90_bit_s: f64,
}

/// A cell at a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceRow {
    /// Distance on the ground, in metres.
    pub distance_m: f64,
    /// Whether the user counts as in line of sight, where the cell leaves that to chance.
    pub clear: Option<bool>,
    /// Without fading and shadowing.
    pub median: Both<LinkState>,
    /// With them, if there were draws.
    pub drawn: Option<Both<Spread>>,
}

/// A cell over the distance.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceView {
    /// The cell.
    pub cell: String,
    /// Its description.
    pub about: String,
    /// Distances and draws.
    pub distances: Distances,
    /// By distance.
    pub rows: Vec<DistanceRow>,
}

impl Distances {
    fn points(&self) -> Result<Vec<f64>, ViewError> {
        let Self { from_m, to_m, step_m, draws, .. } = *self;
        let place = |what, metres: f64| match (1.0..=FARTHEST_M).contains(&metres) {
            true => Ok(()),
            false => Err(ViewError::value(what, "1m to 100km", format!("{metres}m"))),
        };
        place("--from", from_m)?;
        place("--to", to_m)?;
        if to_m < from_m {
            let expected = format!("--from ({from_m}m) or more");
            return Err(ViewError::value("--to", expected, format!("{to_m}m")));
        }
        if step_m.is_nan() || step_m <= 0.0 {
            return Err(ViewError::value("--step", "more than 0m", format!("{step_m}m")));
        }
        // Slightly more, so that the last one is included if the step divides the range.
        let count = libm::floor((to_m - from_m) / step_m + 1e-9) + 1.0;
        if count > MOST_ROWS {
            let expected = format!("a step that gives at most {MOST_ROWS} rows");
            return Err(ViewError::value("--step", expected, format!("{step_m}m, which gives {count}")));
        }
        let most = libm::floor(MOST_LOOKS / count);
        if f64::from(draws) > most {
            let expected = format!("at most {most} draws for each of {count} distances");
            return Err(ViewError::value("--fading", expected, draws.to_string()));
        }
        Ok((0..count as u32).map(|index| from_m + f64::from(index) * step_m).collect())
    }

    /// Computes a cell at each distance.
    pub fn view(&self, subject: &Subject) -> Result<DistanceView, ViewError> {
        let points = self.points()?;
        let config = &subject.config;
        let steady = |clear: Option<bool>| Watch::new(subject, &median(config, clear));
        let by_chance = config.channel.sight == Sight::Chance;
        let mut watches = match by_chance {
            true => vec![steady(Some(false))?, steady(Some(true))?],
            false => vec![steady(None)?],
        };
        let mut fading = Watch::new(subject, config)?;
        let mut user = standing(subject);
        let foot = subject.at_distance(0.0)?;
        let progress = Progress::new(points.len() as u64, "distances");
        let mut rows = Vec::with_capacity(points.len());
        for distance_m in points {
            user.config.place = Place::Static(Position { x: foot.x + distance_m, ..foot });
            // The more probable of the two.
            let clear = by_chance.then(|| umi_clear_probability(distance_m) >= 0.5);
            let watch = &mut watches[usize::from(clear.unwrap_or(false))];
            watch.admit(&user, self.seed);
            let Some(median) = watch.look(Time::ZERO, user.id) else { continue };
            let drawn = (self.draws > 0).then(|| self.draw(&mut fading, &user));
            rows.push(DistanceRow { distance_m, clear, median: median.link, drawn });
            progress.advance(1);
        }
        drop(progress);
        Ok(DistanceView { cell: subject.name.clone(), about: subject.about.clone(), distances: *self, rows })
    }

    /// The rates of users that differ only in their seeds, the same at each distance.
    fn draw(&self, watch: &mut Watch, user: &Watched) -> Both<Spread> {
        let mut rates = Both { downlink: Vec::new(), uplink: Vec::new() };
        for draw in 0..u64::from(self.draws) {
            watch.admit(user, self.seed.wrapping_add(draw));
            if let Some(look) = watch.look(Time::ZERO + BETWEEN_DRAWS * draw, user.id) {
                rates.downlink.push(look.link.downlink.rate_bit_s);
                rates.uplink.push(look.link.uplink.rate_bit_s);
            }
        }
        rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            Spread {
                mean_bit_s: crate::stats::mean(&rates).unwrap_or(0.0),
                p10_bit_s: quantile(&rates, 0.1),
                p90_bit_s: quantile(&rates, 0.9),
            }
        })
    }
}

/// The cell without fading and shadowing, in line of sight or not.
fn median(config: &CellConfig, clear: Option<bool>) -> CellConfig {
    let mut config = config.clone();
    config.channel.fading = FadingConfig::Steady;
    config.channel.shadowing = None;
    match clear {
        Some(true) => config.channel.sight = Sight::Clear,
        Some(false) => config.channel.sight = Sight::Blocked,
        None => {}
    }
    config
}

/// A user to be placed: the subject's, or a preset's if it has none.
fn standing(subject: &Subject) -> Watched {
    let mut user = match subject.users.first() {
        Some(user) => user.clone(),
        None => {
            Watched { name: "user".to_owned(), id: 0, config: ranpace_scenario::cells::PRESETS[0].user() }
        }
    };
    // Recorded conditions do not apply to other places.
    user.config.recording = None;
    user
}

/// A row of JSON.
#[derive(Serialize)]
struct JsonRow<'a> {
    distance_m: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear: Option<bool>,
    downlink: JsonLink<'a>,
    uplink: JsonLink<'a>,
}

#[derive(Serialize)]
struct JsonLink<'a> {
    #[serde(flatten)]
    median: &'a LinkState,
    #[serde(skip_serializing_if = "Option::is_none")]
    fading: Option<&'a Spread>,
}

impl DistanceView {
    /// For people: one direction by distance.
    pub fn table(&self, direction: Direction) -> TextTable {
        let (has_sight, has_draws) = (
            self.rows.iter().any(|row| row.clear.is_some()),
            self.rows.iter().any(|row| row.drawn.is_some()),
        );
        let mut head = vec![("distance", "m"), ("path loss", "dB")];
        head.extend(has_sight.then_some(("sight", "")));
        head.extend([
            ("SINR", "dB"),
            ("CQI", ""),
            ("MCS", ""),
            ("PRBs", ""),
            ("TBS", "bit"),
            ("rate", "Mbit/s"),
        ]);
        if has_draws {
            head.extend([("mean", "Mbit/s"), ("p10", "Mbit/s"), ("p90", "Mbit/s")]);
        }
        let head = head.into_iter().map(|(title, unit)| (title.to_owned(), unit.to_owned()));
        let mut table = TextTable::new(head);
        let mbit = |rate: f64| format!("{:.3}", rate / 1e6);
        for row in &self.rows {
            let link = &row.median[direction];
            let mut cells = vec![shown_metres(row.distance_m), decibels(link.path_loss_db)];
            if has_sight {
                cells.push(if row.clear == Some(true) { "clear" } else { "blocked" }.to_owned());
            }
            cells.extend([
                decibels(link.sinr_db),
                link.cqi.to_string(),
                link.mcs.map_or("–".to_owned(), |mcs| mcs.to_string()),
                link.prbs.to_string(),
                link.tbs_bits.to_string(),
                mbit(link.rate_bit_s),
            ]);
            if let Some(drawn) = &row.drawn {
                let drawn = drawn[direction];
                cells.extend([drawn.mean_bit_s, drawn.p10_bit_s, drawn.p90_bit_s].map(mbit));
            }
            table.push(cells);
        }
        table
    }
}

fn decibels(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.2}"))
}

/// Whole metres without a point.
fn shown_metres(metres: f64) -> String {
    if (metres - libm::round(metres)).abs() < 1e-9 { format!("{metres:.0}") } else { figures::number(metres) }
}

impl View for DistanceView {
    fn text(&self) -> String {
        let table = |direction| self.table(direction).to_string();
        let (down, up) = (table(Direction::Downlink), table(Direction::Uplink));
        format!("{}: {}\n\nDownlink\n{down}\nUplink\n{}", self.cell, self.about, up.trim_end())
    }

    fn json(&self) -> serde_json::Value {
        let row = |row: &DistanceRow| {
            let link = |direction| JsonLink {
                median: &row.median[direction],
                fading: row.drawn.as_ref().map(|drawn| &drawn[direction]),
            };
            let (downlink, uplink) = (link(Direction::Downlink), link(Direction::Uplink));
            serde_json::json!(JsonRow { distance_m: row.distance_m, clear: row.clear, downlink, uplink })
        };
        serde_json::json!({
            "cell": self.cell,
            "about": self.about,
            "seed": self.distances.seed,
            "draws": self.distances.draws,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        self.drawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, from_m: f64, to_m: f64, step_m: f64, draws: u32) -> Result<DistanceView, ViewError> {
        Distances { from_m, to_m, step_m, draws, seed: 1 }.view(&Subject::preset(name).unwrap())
    }

    /// SINR in dB and MCS of ns-3.37's static user at these distances; at CQI 0 ns-3 sends with MCS 0, and Ranpace does not.
    #[test]
    fn the_cell_of_zhongs_chapter_6_is_as_in_ns3() {
        let found = view("zhong-lte-ch6", 100.0, 1200.0, 100.0, 0).unwrap();
        assert_eq!(found.rows.len(), 12);
        for (row, sinr_db, mcs) in [(0, 31.22, Some(28)), (4, 7.62, Some(12)), (11, -5.22, None)] {
            let link = found.rows[row].median.downlink;
            assert!((link.sinr_db.unwrap() - sinr_db).abs() < 0.2, "{link:?}");
            assert_eq!(link.mcs, mcs);
            assert_eq!(link.tbs_bits == 0, mcs.is_none());
            // A block in each millisecond.
            assert_eq!(link.rate_bit_s, f64::from(link.tbs_bits) * 1e3);
        }
    }

    #[test]
    fn fading_spreads_the_rate_around_its_mean_and_nothing_without_draws() {
        let found = view("lte", 300.0, 600.0, 300.0, 50).unwrap();
        for row in &found.rows {
            let drawn = row.drawn.unwrap();
            for spread in [drawn.downlink, drawn.uplink] {
                assert!(spread.p10_bit_s <= spread.mean_bit_s && spread.mean_bit_s <= spread.p90_bit_s);
            }
            assert!(drawn.downlink.p10_bit_s < drawn.downlink.p90_bit_s);
        }
        assert_eq!(found, view("lte", 300.0, 600.0, 300.0, 50).unwrap());
        let without = view("lte", 300.0, 600.0, 300.0, 0).unwrap();
        assert!(without.rows.iter().all(|row| row.drawn.is_none()));
        assert!(!without.json().to_string().contains("fading"));
        assert_eq!(found.json()["rows"][1]["uplink"]["cqi"], found.rows[1].median.uplink.cqi);
    }

    #[test]
    fn random_line_of_sight_takes_the_more_probable_state() {
        let found = view("nr", 10.0, 410.0, 200.0, 0).unwrap();
        let clear: Vec<_> = found.rows.iter().map(|row| row.clear).collect();
        assert_eq!(clear, [Some(true), Some(false), Some(false)]);
        assert!(found.table(Direction::Uplink).to_string().contains("blocked"));
    }

    #[test]
    fn every_preset_is_viewable_and_rates_fall_with_distance() {
        for preset in &ranpace_scenario::cells::PRESETS {
            let found = view(preset.name, 20.0, 1020.0, 250.0, 3).unwrap();
            let rates: Vec<f64> = found.rows.iter().map(|row| row.median.downlink.rate_bit_s).collect();
            assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]), "{}: {rates:?}", preset.name);
            assert!(rates[0] > 1e6, "{}", preset.name);
        }
    }

    #[test]
    fn invalid_distances_are_refused() {
        for (from, to, step, draws, expected) in [
            (300.0, 100.0, 10.0, 0, "--to: expected --from (300m) or more, found 100m"),
            (0.0, 100.0, 10.0, 0, "--from: expected 1m to 100km, found 0m"),
            (1.0, 2e5, 10.0, 0, "--to: expected 1m to 100km, found 200000m"),
            (1.0, 100.0, 0.0, 0, "--step: expected more than 0m, found 0m"),
            (1.0, 100.0, -5.0, 0, "--step: expected more than 0m, found -5m"),
            (1.0, 1e5, 1.0, 0, "--step: expected a step that gives at most 10000 rows"),
            (1.0, 5e3, 1.0, 10_000, "--fading: expected at most 400 draws for each of 5000 distances"),
        ] {
            let error = view("lte", from, to, step, draws).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert_eq!(view("lte", 50.0, 50.0, 50.0, 0).unwrap().rows.len(), 1);
    }
}
