//! The axes, the caption and the table of a picture, once all of its marks are known.

use super::super::figure_table::FigureTable;
use super::super::picture_spec::{AxisSpec, Form, SeriesSpec};
use super::drawing::{Drawing, half};
use crate::plot::{Axis, Frame, GREY, Mark, MarkPlot, Swatch};

/// Most rows in the table of a picture's values.
const MOST_ROWS: usize = 60;

impl Drawing<'_> {
    fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// Both ends of the horizontal range drawn.
    pub(super) fn ends_of_x(&self) -> [f64; 2] {
        let range = self.spec.x.range.map(|range| range.map(|end| end * self.scale.0));
        range.unwrap_or_else(|| {
            let xs: Vec<f64> = self.points().map(|point| point.0).collect();
            [f64::INFINITY, f64::NEG_INFINITY]
                .map(|end| xs.iter().copied().fold(end, if end > 0.0 { f64::min } else { f64::max }))
        })
    }

    /// All points that the axes must show.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.marks.iter().chain(&self.published).flat_map(|mark| match mark {
            Mark::Line { points, .. } | Mark::Area { points, .. } => points.clone(),
            Mark::Dot { at, .. } | Mark::Diamond { at, .. } | Mark::Label { at, .. } => vec![*at],
            Mark::Bar { span, value, .. } => vec![(span.0, *value)],
            Mark::Box { span, percentiles, .. } => percentiles.map(|value| (span.0, value)).to_vec(),
            Mark::Interval { x, ends, .. } => vec![(*x, ends.0), (*x, ends.1)],
            Mark::Across { y, ends, .. } => vec![(ends.0, *y), (ends.1, *y)],
        })
    }

    fn axis(&self, spec: &AxisSpec, values: Vec<f64>, around: bool) -> Axis {
        let (quantity, unit) = spec.unit();
        let known = values.iter().copied().filter(|value| value.is_finite());
        let axis = match (spec.range, spec.log) {
            (Some([low, high]), false) => {
                Axis::linear(&spec.title, quantity, (low * unit.size, high * unit.size))
            }
            (Some(range), true) => Axis::log_from(&spec.title, quantity, range.map(|end| end * unit.size)),
            (None, true) => Axis::log(&spec.title, quantity, known),
            (None, false) if around => {
                let ends = known.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, value| {
                    (ends.0.min(value), ends.1.max(value))
                });
                Axis::linear(&spec.title, quantity, ends)
            }
            (None, false) => Axis::from_zero(&spec.title, quantity, known.map(|value| value * 1.04)),
        };
        let axis = axis.with_unit(unit);
        if spec.reversed { axis.reversed() } else { axis }
    }

    pub(super) fn plot(self) -> MarkPlot {
        let spec = self.spec;
        let around = matches!(spec.form, Form::Time | Form::Lines);
        let x = if spec.x.names.is_empty() {
            self.axis(&spec.x, self.points().map(|point| point.0).collect(), around)
        } else {
            Axis::of_groups(&spec.x.title, spec.x.names.clone())
        };
        let y = match (spec.form, spec.y.range) {
            (Form::Cdf, None) => Axis::linear(&spec.y.title, spec.y.unit().0, (0.0, 1.0)),
            _ => self.axis(&spec.y, self.points().map(|point| point.1).collect(), false),
        };
        let figure = if spec.figure.is_empty() { String::new() } else { format!("{}: ", spec.figure) };
        let names: Vec<&str> = self.legend.iter().map(|(label, ..)| label.as_str()).collect();
        let alt =
            format!("{figure}{}. {} over {}: {}", spec.title, spec.y.title, spec.x.title, names.join(", "));
        let size = if spec.wide { (1_100, 380) } else { (560, 380) };
        let mut legend = self.legend;
        // Series of published values alone have their own names.
        let beside = |series: &SeriesSpec| !series.of.0.is_empty() || !series.criteria.is_empty();
        if !self.published.is_empty()
            && spec.series.iter().any(|series| beside(series) && series.published.is_there())
        {
            legend.push(("published".to_owned(), GREY, Swatch::Hollow));
        }
        let title = format!("{figure}{}", spec.title);
        let marks = self.marks.into_iter().chain(self.published).collect();
        MarkPlot { frame: Frame { size, title, alt }, x, y, legend, marks }
    }

    pub(super) fn caption(&self) -> String {
        let spec = self.spec;
        let mut parts = Vec::new();
        if self.is_published() {
            parts.push(format!("Hollow diamonds were published: {}.", spec.read.trim_end_matches('.')));
        } else if !spec.figure.is_empty() {
            let why =
                if spec.read.is_empty() { "the text gives no values of this figure" } else { &spec.read };
            parts.push(format!(
                "Ours alone, in the form of the published figure: {}.",
                why.trim_end_matches('.')
            ));
        }
        match self.runs {
            // A criterion's measured value has an interval of its own.
            Some((_, 0 | 1)) => parts.push("Whiskers are 95 % intervals.".to_owned()),
            Some((fewest, most)) if fewest == most => {
                parts.push(format!("Whiskers are 95 % intervals over {most} runs."));
            }
            Some((fewest, most)) => {
                parts.push(format!("Whiskers are 95 % intervals over {fewest} to {most} runs."));
            }
            None => {}
        }
        if spec.form == Form::Box {
            parts.push("A box is from the 25th to the 75th percentile, its line the median, its whiskers end at the 5th and the 95th.".to_owned());
        }
        if !spec.note.is_empty() {
            parts.push(spec.note.clone());
        }
        parts.join(" ")
    }

    /// The drawn values; `None` if they are too many to be read.
    pub(super) fn table(&self) -> Option<FigureTable> {
        let unit = self.spec.y.unit().1;
        let rows: Vec<_> =
            self.rows.iter().filter(|row| row.3.mean.is_finite() || !row.2.is_empty()).collect();
        if rows.is_empty() || rows.len() > MOST_ROWS {
            return None;
        }
        let title = |text: &str, unit: &str| (text.to_owned(), unit.to_owned());
        let mut head = vec![title("", ""), title(&self.spec.x.title, "")];
        let published = rows.iter().any(|row| !row.2.is_empty());
        if published {
            head.push(title("published", unit.name));
        }
        let measured = if self.spec.form == Form::Box { "median" } else { "measured" };
        head.push(title(measured, unit.name));
        let rows = rows.into_iter().map(|(label, at, own, value)| {
            let mut row = vec![label.clone(), at.clone()];
            if published {
                row.push(own.clone());
            }
            row.push(unit.show_with(value.mean, half(value)));
            row
        });
        let title = self.spec.y.title.clone();
        Some(FigureTable { title, head, rows: rows.collect(), report_only: true })
    }
}
