//! Plots of a trace: its capacity over time, the distribution of its seconds, and its gaps.

use ranpace_link::{LightTrace, Trace, TraceStats};
use ranpace_units::{Rate, Span};

use super::{BITS, ToolError, counts};
use crate::Quantity;
use crate::pictures::{Pictures, Plot};
use crate::plot::{Axis, Frame, GREY, Line, LinePlot, Palette, PlotError, steps};

/// Traces up to this long are drawn in tenths of a second.
const FINE_UNTIL: Span = Span::from_secs(900);

/// The picture of a trace.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// Its name.
    pub name: &'a str,
    /// The trace.
    pub trace: &'a Trace,
    /// What was recorded under light load at the same time, if there is such a recording.
    pub light: Option<&'a LightTrace>,
}

impl Picture<'_> {
    /// As one SVG, the plots below each other.
    pub fn svg(&self) -> Result<String, ToolError> {
        Ok(self.pictures()?.svg())
    }

    /// As a self-contained page, with the trace's figures.
    pub fn html(&self) -> Result<String, ToolError> {
        Ok(self.pictures()?.html(""))
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        let stats = TraceStats::of(self.trace);
        let rate = |rate: Rate| Quantity::Rate.show(rate.as_f64());
        let facts = vec![
            ("Length", stats.duration.to_string()),
            ("Mean", rate(stats.mean)),
            ("Worst second", rate(stats.min_second)),
            ("Best second", rate(stats.max_second)),
            ("Gaps", format!("{} of more than 1 s, {} together", stats.stalls, stats.stalled)),
            ("Longest gap", stats.longest_gap.to_string()),
        ];
        Ok(Pictures::sized(&format!("Trace {}", self.name), facts, self.plots()?))
    }

    /// All of them.
    fn plots(&self) -> Result<Vec<Plot>, PlotError> {
        let mut plots = vec![self.capacity()?];
        if let Some(light) = self.light {
            plots.extend([self.base_delay(light)?, self.light_rate(light)?]);
        }
        plots.extend(self.seconds()?);
        plots.extend(self.gaps()?);
        Ok(plots)
    }

    fn capacity(&self) -> Result<Plot, PlotError> {
        let size = (900, 320);
        let length = self.trace.duration();
        let second = self.series(Span::SECOND);
        let fine = if length <= FINE_UNTIL { self.series(Span::from_millis(100)) } else { Vec::new() };
        let axis = |values: &[(f64, f64)]| {
            Axis::from_zero("capacity", Quantity::Rate, values.iter().map(|point| point.1))
        };
        let plot = LinePlot {
            frame: Frame {
                size,
                title: format!("Capacity of {} over time", self.name),
                alt: format!("Capacity of the trace {} over its {length}", self.name),
            },
            x: Axis::linear("time", Quantity::Time, (0.0, length.as_secs_f64())),
            y: axis(if fine.is_empty() { &second } else { &fine }),
            area: (!fine.is_empty()).then(|| Line {
                label: "mean of 100 ms".to_owned(),
                colour: GREY,
                dashed: false,
                points: steps(&fine),
            }),
            lines: vec![Line {
                label: "mean of 1 s".to_owned(),
                colour: Palette::nth(0),
                dashed: false,
                points: steps(&second),
            }],
        };
        let caption = "Capacity over time, with 1500 B for each opportunity.".to_owned();
        Ok((size, plot.svg()?, caption))
    }

    /// The base delay under light load over time.
    fn base_delay(&self, light: &LightTrace) -> Result<Plot, PlotError> {
        let points: Vec<(f64, f64)> =
            light.trains().iter().map(|train| (train.at.as_secs_f64(), train.delay.as_secs_f64())).collect();
        let y = Axis::from_zero("base delay", Quantity::Time, points.iter().map(|point| point.1));
        let caption = "One-way delay of the first packet of each train, under light load.".to_owned();
        self.over_time(light, "Base delay under light load", y, points, caption)
    }

    /// The rate at which the packets of trains came, under light load.
    fn light_rate(&self, light: &LightTrace) -> Result<Plot, PlotError> {
        let points: Vec<(f64, f64)> = light
            .trains()
            .iter()
            .filter_map(|train| {
                // Times are whole milliseconds: a train that came within one took about half of it.
                let took = train.opportunities.last()?.max(&Span::from_micros(500)).as_secs_f64();
                let bits = (train.opportunities.len().saturating_sub(1) as u64 * BITS) as f64;
                Some((train.at.as_secs_f64(), bits / took))
            })
            .collect();
        let y = Axis::from_zero("rate", Quantity::Rate, points.iter().map(|point| point.1));
        let caption = "Rate at which the packets of each train came, with 1500 B for each opportunity: what a short transfer gets.";
        self.over_time(light, "Rate under light load", y, points, caption.to_owned())
    }

    fn over_time(
        &self,
        light: &LightTrace,
        title: &str,
        y: Axis,
        points: Vec<(f64, f64)>,
        caption: String,
    ) -> Result<Plot, PlotError> {
        let size = (900, 280);
        let plot = LinePlot {
            frame: Frame {
                size,
                title: title.to_owned(),
                alt: format!("{title} of {} over time", self.name),
            },
            x: Axis::linear("time", Quantity::Time, (0.0, light.duration().as_secs_f64())),
            y,
            area: None,
            lines: vec![Line { label: String::new(), colour: Palette::nth(2), dashed: false, points }],
        };
        Ok((size, plot.svg()?, caption))
    }

    /// The distribution of the rates of whole seconds; none for a trace with hardly any.
    fn seconds(&self) -> Result<Option<Plot>, PlotError> {
        let size = (900, 280);
        let whole = (self.trace.duration().as_millis() / 1000) as usize;
        let mut rates: Vec<f64> =
            counts(self.trace, Span::SECOND).into_iter().take(whole).map(|n| (n * BITS) as f64).collect();
        if rates.len() < 2 {
            return Ok(None);
        }
        rates.sort_by(f64::total_cmp);
        let share = |index: usize| index as f64 / rates.len() as f64;
        let mut points = vec![(rates[0], 0.0)];
        points.extend(rates.iter().enumerate().map(|(index, rate)| (*rate, share(index + 1))));
        let plot = LinePlot {
            frame: Frame {
                size,
                title: "How fast its seconds are".to_owned(),
                alt: "Distribution function of the rates of whole seconds".to_owned(),
            },
            x: Axis::from_zero("rate of a second", Quantity::Rate, rates.iter().copied()),
            y: Axis::linear("share of seconds", Quantity::Plain, (0.0, 1.0)),
            area: None,
            lines: vec![Line {
                label: String::new(),
                colour: Palette::nth(0),
                dashed: false,
                points: steps(&points),
            }],
        };
        let caption = "Share of the whole seconds whose rate is at or below a rate.".to_owned();
        Ok(Some((size, plot.svg()?, caption)))
    }

    /// The number of gaps of at least each length; none for a trace without gaps.
    fn gaps(&self) -> Result<Option<Plot>, PlotError> {
        let size = (900, 280);
        let mut previous = 0;
        let mut gaps: Vec<u32> =
            self.trace.iter().map(|(ms, _)| ms - core::mem::replace(&mut previous, ms)).collect();
        gaps.retain(|gap| *gap > 0);
        gaps.sort_unstable();
        // Lengths with the number of gaps that are at least as long; each length once.
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut index = 0;
        while index < gaps.len() {
            points.push((f64::from(gaps[index]) / 1000.0, (gaps.len() - index) as f64));
            index += gaps[index..].partition_point(|gap| *gap == gaps[index]);
        }
        if points.len() < 2 {
            return Ok(None);
        }
        // Down to the next number right after a length, and across to the next length.
        let falls = points.windows(2).flat_map(|pair| [pair[0], (pair[0].0, pair[1].1)]);
        let line: Vec<(f64, f64)> = falls.chain(points.last().copied()).collect();
        let plot = LinePlot {
            frame: Frame {
                size,
                title: "How long nothing can be delivered".to_owned(),
                alt: "Number of gaps between opportunities that are at least so long".to_owned(),
            },
            x: Axis::log("gap", Quantity::Time, points.iter().map(|point| point.0)),
            y: Axis::log("gaps at least as long", Quantity::Plain, points.iter().map(|point| point.1)),
            area: None,
            lines: vec![Line { label: String::new(), colour: Palette::nth(1), dashed: false, points: line }],
        };
        let caption = "Number of gaps between consecutive opportunities that are at least so long; both axes are logarithmic."
            .to_owned();
        Ok(Some((size, plot.svg()?, caption)))
    }

    /// Time and rate of each interval; the last one may be shorter, and counts for its actual length.
    fn series(&self, interval: Span) -> Vec<(f64, f64)> {
        let (all, step) = (self.trace.duration().as_secs_f64(), interval.as_secs_f64());
        let mut points: Vec<(f64, f64)> = counts(self.trace, interval)
            .into_iter()
            .enumerate()
            .map(|(index, count)| (index as f64 * step, (count * BITS) as f64 / step))
            .collect();
        // A very short remainder says nothing about the rate.
        if points.len() > 1 && points.last().is_some_and(|last| all - last.0 < step * 0.999) {
            points.pop();
        }
        points.extend(points.last().map(|last| ((last.0 + step).min(all), last.1)));
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_link::CellularModel;

    #[test]
    fn picture_is_complete_and_self_contained() {
        let trace = CellularModel::lte().generate(Span::from_secs(30), 1).unwrap();
        let picture = Picture { name: "a <trace>", trace: &trace, light: None };
        let (svg, page) = (picture.svg().unwrap(), picture.html().unwrap());
        for text in [&svg, &page] {
            assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
            assert!(!text.contains("<trace>") && text.contains("a &lt;trace&gt;"));
            assert!(!text.contains("src=") && !text.contains("href="));
            assert!(text.contains("Capacity of") && text.contains("How fast") && text.contains("How long"));
        }
        assert_eq!(svg.matches("<svg").count(), 4);
        assert!(page.contains("Mean") && page.contains("30s"));
    }

    #[test]
    fn a_recording_under_light_load_adds_its_delay_and_rate() {
        let trace = CellularModel::lte().generate(Span::from_secs(30), 1).unwrap();
        let light = LightTrace::parse("0 20 0 2 4\n100 40 0 5 10\n200 20 0\n").unwrap();
        let svg = Picture { name: "both", trace: &trace, light: Some(&light) }.svg().unwrap();
        assert!(svg.contains("Base delay under light load") && svg.contains("Rate under light load"));
    }

    #[test]
    fn short_and_constant_traces_are_drawn() {
        for times in [vec![1], vec![5, 10, 15], vec![0, 900], (1..5_000).collect()] {
            let trace = Trace::from_millis(times).unwrap();
            assert!(
                Picture { name: "short", trace: &trace, light: None }.svg().unwrap().contains("Capacity")
            );
        }
    }
}
