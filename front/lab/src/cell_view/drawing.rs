//! The plots of each view.

use ranpace_phy::{Both, Direction};

use super::look::LinkState;
use super::{DistanceView, SaturationView, Spread, TimeView};
use crate::Quantity;
use crate::pictures::{Pictures, SIZE};
use crate::plot::{Axis, Colour, Frame, Line, LinePlot, Palette, PlotError, steps};

/// Most users whose lines can be told apart.
const MOST_LINES: usize = 12;

/// Lines over one axis, panel by panel.
struct Panels<'a> {
    x: Axis,
    /// "over the distance".
    over: &'a str,
    plots: Vec<(String, String)>,
}

/// A line to draw: its name, whether it is a reference, and its points.
struct Series(String, Colour, bool, Vec<(f64, f64)>);

impl Panels<'_> {
    fn add(
        &mut self,
        what: &str,
        quantity: Quantity,
        range: Option<(f64, f64)>,
        series: Vec<Series>,
        caption: &str,
    ) -> Result<(), PlotError> {
        let values = || series.iter().flat_map(|Series(.., points)| points.iter().map(|point| point.1));
        let y = match (range, quantity) {
            (Some(range), _) => Axis::linear(what, quantity, range),
            (None, Quantity::Plain) => Axis::linear(what, quantity, around(values())),
            (None, _) => Axis::from_zero(what, quantity, values()),
        };
        let title = format!("{} {}", capitalised(what), self.over);
        let lines = series.into_iter().map(|Series(label, colour, dashed, points)| Line {
            label,
            colour,
            dashed,
            points,
        });
        let frame = Frame { size: SIZE, alt: format!("{title}. {caption}"), title };
        let plot = LinePlot { frame, x: self.x.clone(), y, area: None, lines: lines.collect() };
        self.plots.push((plot.svg()?, caption.to_owned()));
        Ok(())
    }

    /// SINR, CQI, MCS and rate of both directions; integers change in steps over time.
    fn channel(&mut self, points: &[(f64, Both<LinkState>)], in_steps: bool) -> Result<(), PlotError> {
        let both = |of: &dyn Fn(&LinkState) -> f64| -> Vec<Series> {
            let line = |(direction, name, colour): (Direction, &str, Colour)| {
                let line: Vec<_> = points.iter().map(|(x, link)| (*x, of(&link[direction]))).collect();
                Series(name.to_owned(), colour, false, if in_steps { steps(&line) } else { line })
            };
            let ways = [
                (Direction::Downlink, "downlink", Palette::nth(0)),
                (Direction::Uplink, "uplink", Palette::nth(1)),
            ];
            ways.map(line).into()
        };
        let or_none = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let most = |of: fn(&LinkState) -> u8, least: u8| {
            let found = points.iter().flat_map(|(_, link)| [of(&link.downlink), of(&link.uplink)]).max();
            f64::from(found.unwrap_or(0).max(least)) + 0.5
        };
        self.add(
            "SINR (dB)",
            Quantity::Plain,
            None,
            both(&|link| or_none(link.sinr_db)),
            "Effective SINR of the whole band; uplink: of as many PRBs as the user's power suffices for.",
        )?;
        let caption = "The CQI that the user would report; at 0 it is out of range and gets no grant.";
        let range = Some((0.0, most(|link| link.cqi, 15)));
        self.add("CQI", Quantity::Plain, range, both(&|link| link.cqi.into()), caption)?;
        let range = Some((0.0, most(|link| link.mcs.unwrap_or(0), 15)));
        let mcs = both(&|link| or_none(link.mcs.map(f64::from)));
        self.add("MCS", Quantity::Plain, range, mcs, "Of a grant of the whole band; gaps: no grant.")
    }
}

const ALONE: &str = "The rate that the user gets if it is alone in the cell, its channel is known at once and every block arrives";

impl DistanceView {
    /// Its plots.
    pub(super) fn drawn(&self) -> Result<Pictures, PlotError> {
        let Some(ends) = self.rows.first().zip(self.rows.last()) else {
            return Ok(Pictures::new(&self.cell, Vec::new(), Vec::new()));
        };
        let mut panels = Panels {
            x: Axis::linear("distance (m)", Quantity::Plain, (ends.0.distance_m, ends.1.distance_m)),
            over: "over the distance",
            plots: Vec::new(),
        };
        let points: Vec<_> = self.rows.iter().map(|row| (row.distance_m, row.median)).collect();
        panels.channel(&points, false)?;
        for (direction, way, colour) in [
            (Direction::Downlink, "downlink", Palette::nth(0)),
            (Direction::Uplink, "uplink", Palette::nth(1)),
        ] {
            let line = |label: &str, colour, dashed, of: &dyn Fn(&super::DistanceRow) -> f64| {
                let points = self.rows.iter().map(|row| (row.distance_m, of(row))).collect();
                Series(label.to_owned(), colour, dashed, points)
            };
            let mut series =
                vec![line("without fading", colour, false, &|row| row.median[direction].rate_bit_s)];
            if self.rows.iter().any(|row| row.drawn.is_some()) {
                let drawn = |of: fn(&Spread) -> f64| {
                    move |row: &super::DistanceRow| {
                        row.drawn.as_ref().map_or(f64::NAN, |drawn| of(&drawn[direction]))
                    }
                };
                let (mean, range) = (Palette::nth(2), Palette::nth(3));
                series.push(line("mean with fading", mean, false, &drawn(|spread| spread.mean_bit_s)));
                series.push(line("10 % and 90 %", range, true, &drawn(|spread| spread.p10_bit_s)));
                series.push(line("", range, true, &drawn(|spread| spread.p90_bit_s)));
            }
            panels.add(&format!("{way} rate"), Quantity::Rate, None, series, &format!("{ALONE}."))?;
        }
        let mut facts = vec![("Cell", self.about.clone()), ("Looked at", "the channel alone".to_owned())];
        if self.distances.draws > 0 {
            let shown =
                format!("{} draws at each distance, seed {}", self.distances.draws, self.distances.seed);
            facts.push(("Fading and shadowing", shown));
        }
        Ok(Pictures::new(&format!("Cell {} over the distance", self.cell), facts, panels.plots))
    }
}

impl TimeView {
    /// Its plots.
    pub(super) fn drawn(&self) -> Result<Pictures, PlotError> {
        let mut panels = Panels {
            x: Axis::linear("time", Quantity::Time, (0.0, self.moments.time.as_secs_f64())),
            over: "over time",
            plots: Vec::new(),
        };
        let points: Vec<_> = self.looks.iter().map(|(time, look)| (*time, look.link)).collect();
        panels.channel(&points, true)?;
        let line = |label: &str, index, of: &dyn Fn(&Both<LinkState>) -> f64| {
            let points: Vec<_> = points.iter().map(|(time, link)| (*time, of(link))).collect();
            Series(label.to_owned(), Palette::nth(index), false, steps(&points))
        };
        let rates = vec![
            line("downlink", 0, &|link| link.downlink.rate_bit_s),
            line("uplink", 1, &|link| link.uplink.rate_bit_s),
        ];
        panels.add("rate", Quantity::Rate, None, rates, &format!("{ALONE}."))?;
        let moves = self.looks.windows(2).any(|pair| pair[0].1.distance_m != pair[1].1.distance_m);
        if moves && !self.recorded {
            let points = self.looks.iter().map(|(time, look)| (*time, look.distance_m)).collect();
            let series = vec![Series(String::new(), Palette::nth(2), false, points)];
            panels.add(
                "distance (m)",
                Quantity::Plain,
                None,
                series,
                "To the base station, on the ground.",
            )?;
        }
        let facts = vec![
            ("Cell", self.about.clone()),
            ("User", self.user.clone()),
            (
                "Looked at",
                format!("the channel alone, every {} for {}", self.moments.every, self.moments.time),
            ),
            ("Seed", self.moments.seed.to_string()),
        ];
        Ok(Pictures::new(&format!("Cell {} over time", self.cell), facts, panels.plots))
    }
}

impl SaturationView {
    /// Its plots.
    pub(super) fn drawn(&self) -> Result<Pictures, PlotError> {
        let moments = self.saturation.moments;
        let mut panels = Panels {
            x: Axis::linear("time", Quantity::Time, (0.0, moments.time.as_secs_f64())),
            over: "of each user over time",
            plots: Vec::new(),
        };
        let every = moments.every.as_secs_f64();
        let shown = self.users.len().min(MOST_LINES);
        let some = match self.users.len() > shown {
            true => format!(" The first {shown} of {} users.", self.users.len()),
            false => String::new(),
        };
        for (direction, way) in [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")] {
            let lines = |of: fn(&super::Served) -> &[f64]| -> Vec<Series> {
                let line = |(index, (name, served)): (usize, &(String, Both<super::Served>))| {
                    let values = of(&served[direction]).iter().enumerate();
                    let points: Vec<_> = values.map(|(step, value)| (step as f64 * every, *value)).collect();
                    Series(name.clone(), Palette::nth(index), false, steps(&points))
                };
                self.users.iter().take(shown).enumerate().map(line).collect()
            };
            let all = self.prbs;
            let caption = format!(
                "Means of {}, over all symbols that carry data; the band has {all}.{some}",
                moments.every
            );
            let prbs = lines(|served| &served.prbs);
            let most =
                prbs.iter().flat_map(|Series(.., points)| points).map(|point| point.1).fold(1.0, f64::max);
            panels.add(&format!("{way} PRBs"), Quantity::Plain, Some((0.0, most * 1.05)), prbs, &caption)?;
            let caption = format!("New transport blocks, means of {}.{some}", moments.every);
            let rates = lines(|served| &served.scheduled_bit_s);
            panels.add(&format!("{way} scheduled rate"), Quantity::Rate, None, rates, &caption)?;
        }
        let facts = vec![
            ("Cell", self.about.clone()),
            ("Users", format!("{} with full buffers both ways", self.users.len())),
            ("Seed", moments.seed.to_string()),
        ];
        Ok(Pictures::new(&format!("Cell {} with full buffers", self.cell), facts, panels.plots))
    }
}

/// A range with a margin around all finite values.
fn around(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let room = 0.05 * (high - low).max(1.0);
    (low - room, high + room)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Distances, Moments, Saturation, Subject, View};
    use ranpace_units::Span;

    #[test]
    fn pictures_are_complete_and_self_contained() {
        let subject = Subject::preset("zhong-lte-ch6").unwrap();
        let moments = Moments { time: Span::SECOND, every: Span::from_millis(10), seed: 1 };
        let distances = Distances { from_m: 100.0, to_m: 1500.0, step_m: 100.0, draws: 5, seed: 1 };
        let views: [(&dyn View, usize, &str); 3] = [
            (&distances.view(&subject).unwrap(), 5, "mean with fading"),
            (&moments.view(&subject).unwrap(), 5, "Distance (m) over time"),
            (&Saturation { moments, users: 3 }.view(&subject).unwrap(), 4, "Downlink PRBs of each user"),
        ];
        for (view, count, expected) in views {
            let pictures = view.pictures().unwrap();
            let (svg, page) = (pictures.svg(), pictures.html("ranpace cell <x>"));
            assert_eq!((svg.matches("<svg").count(), page.matches("<svg").count()), (count + 1, count));
            for text in [&svg, &page] {
                assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
                assert!(text.contains(expected) && !text.contains("src=") && !text.contains("href="));
            }
            assert!(page.contains("ranpace cell &lt;x&gt;"));
        }
    }
}
