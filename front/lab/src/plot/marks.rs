//! Figures as printed in papers: lines with marks, grouped bars, boxes, each with intervals; and published values as hollow
//! diamonds beside them.

use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color as _, RGBColor, ShapeStyle};

use super::lines::{draw_dashed, pale, pieces};
use super::scatter::{Area, around, place};
use super::swatch::Swatch;
use super::{
    Axis, Chart, Colour, Drawn, FINE, Frame, INK, Key, PlotError, Root, TEXT, draw, stroke, text, text_width,
};

/// Something drawn in a plot, in the units of its axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line through points by increasing x; NaN in y interrupts it.
    Line {
        /// Its colour.
        colour: Colour,
        /// Whether it is a reference.
        dashed: bool,
        /// Its points.
        points: Vec<(f64, f64)>,
    },
    /// The area below a line, such as the capacity.
    Area {
        /// Its colour, drawn pale.
        colour: Colour,
        /// The line.
        points: Vec<(f64, f64)>,
    },
    /// A measured value.
    Dot {
        /// Its colour.
        colour: Colour,
        /// Where.
        at: (f64, f64),
    },
    /// A published value.
    Diamond {
        /// Its colour.
        colour: Colour,
        /// Where.
        at: (f64, f64),
    },
    /// A value that is the height of a bar.
    Bar {
        /// Its colour.
        colour: Colour,
        /// Its horizontal range.
        span: (f64, f64),
        /// Its height.
        value: f64,
    },
    /// A distribution: its 5th, 25th, 50th, 75th and 95th percentiles.
    Box {
        /// Its colour.
        colour: Colour,
        /// Its horizontal range.
        span: (f64, f64),
        /// The percentiles.
        percentiles: [f64; 5],
    },
    /// An interval of y around a value.
    Interval {
        /// Its colour; that of text if it is on a bar.
        colour: Option<Colour>,
        /// Where.
        x: f64,
        /// Its ends.
        ends: (f64, f64),
    },
    /// An interval of x around a value.
    Across {
        /// Its colour.
        colour: Colour,
        /// Where.
        y: f64,
        /// Its ends.
        ends: (f64, f64),
    },
    /// A word beside a point.
    Label {
        /// The word.
        text: String,
        /// Where.
        at: (f64, f64),
    },
}

/// A plot of marks.
#[derive(Clone, Debug)]
pub struct MarkPlot {
    /// Title and size.
    pub frame: Frame,
    /// To the right: values or groups.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Names of the series, their colours and looks.
    pub legend: Vec<(String, Colour, Swatch)>,
    /// The marks, bottom first.
    pub marks: Vec<Mark>,
}

impl MarkPlot {
    /// The plot as SVG.
    pub fn svg(&self) -> Result<String, PlotError> {
        let keys = self.legend.iter().map(|(label, colour, swatch)| {
            let colour = if *swatch == Swatch::Patch { faded(*colour) } else { *colour };
            Key { label, colour, swatch: *swatch }
        });
        let keys: Vec<Key<'_>> = keys.collect();
        draw(&self.frame, &keys, (&self.x, &self.y), 56, |root, chart| {
            self.marks.iter().try_for_each(|mark| mark.draw(root, chart, self.y.ends().0))?;
            self.draw_labels(root, chart)
        })
    }
}

impl MarkPlot {
    /// Labels beside their points, placed to cover neither each other nor a dot.
    fn draw_labels(&self, root: &Root<'_>, chart: &Chart<'_, '_>) -> Drawn {
        let plane = chart.plotting_area().get_pixel_range();
        let limits = (plane.0.start, plane.1.start, plane.0.end, plane.1.end);
        let limits = (f64::from(limits.0), f64::from(limits.1), f64::from(limits.2), f64::from(limits.3));
        let dots = self.marks.iter().filter_map(|mark| match mark {
            Mark::Dot { at, .. } | Mark::Diamond { at, .. } if is_known(at) => {
                Some(around(chart.backend_coord(at), 12.0))
            }
            _ => None,
        });
        let mut taken: Vec<Area> = dots.collect();
        for mark in &self.marks {
            let Mark::Label { text: word, at } = mark else { continue };
            if !is_known(at) {
                continue;
            }
            let (x, y) = chart.backend_coord(at);
            let fine = f64::from(FINE);
            let size = (text_width(word, TEXT) * fine + 6.0, 16.0 * fine);
            let area = place((f64::from(x), f64::from(y)), size, limits, &taken);
            let middle = (((area.0 + area.2) / 2.0) as i32, ((area.1 + area.3) / 2.0) as i32);
            root.draw(&Text::new(word.clone(), middle, text(TEXT, INK, HPos::Center, VPos::Center)))?;
            taken.push(area);
        }
        Ok(())
    }
}

impl Mark {
    fn draw(&self, root: &Root<'_>, chart: &mut Chart<'_, '_>, floor: f64) -> Drawn {
        match self {
            Self::Line { colour, dashed, points } => pieces(points).into_iter().try_for_each(|piece| {
                if *dashed {
                    draw_dashed(chart, &piece, *colour)
                } else {
                    chart.plotting_area().draw(&PathElement::new(piece, stroke(*colour, 1.75)))
                }
            }),
            Self::Area { colour, points } => pieces(points).into_iter().try_for_each(|piece| {
                let (Some(first), Some(last)) = (piece.first().copied(), piece.last().copied()) else {
                    return Ok(());
                };
                let outline = [(first.0, floor)].into_iter().chain(piece).chain([(last.0, floor)]);
                let fill = pale(*colour).rgb().filled();
                chart.plotting_area().draw(&Polygon::new(outline.collect::<Vec<_>>(), fill))
            }),
            Self::Dot { colour, at } if is_known(at) => draw_dot(root, chart.backend_coord(at), *colour),
            Self::Diamond { colour, at } if is_known(at) => {
                draw_diamond(root, chart.backend_coord(at), *colour)
            }
            Self::Bar { colour, span, value } if value.is_finite() => {
                let from = if floor <= 0.0 { 0.0 } else { floor };
                let corners = [(span.0, from), (span.1, *value)];
                chart.plotting_area().draw(&Rectangle::new(corners, faded(*colour).rgb().filled()))
            }
            Self::Box { colour, span, percentiles } if percentiles.iter().all(|value| value.is_finite()) => {
                draw_box(chart, *colour, *span, percentiles)
            }
            Self::Interval { colour, x, ends } if is_known(ends) => {
                let (low, high) = (chart.backend_coord(&(*x, ends.0)), chart.backend_coord(&(*x, ends.1)));
                let cap = |(x, y): (i32, i32)| vec![(x - 4 * FINE, y), (x + 4 * FINE, y)];
                draw_paths(root, [vec![low, high], cap(low), cap(high)], *colour)
            }
            Self::Across { colour, y, ends } if is_known(ends) => {
                let (low, high) = (chart.backend_coord(&(ends.0, *y)), chart.backend_coord(&(ends.1, *y)));
                let cap = |(x, y): (i32, i32)| vec![(x, y - 4 * FINE), (x, y + 4 * FINE)];
                draw_paths(root, [vec![low, high], cap(low), cap(high)], Some(*colour))
            }
            _ => Ok(()),
        }
    }
}

fn is_known(pair: &(f64, f64)) -> bool {
    pair.0.is_finite() && pair.1.is_finite()
}

/// For bars: light enough for an interval to be visible on it.
fn faded(colour: Colour) -> Colour {
    let part = |part: u8| 255 - ((255 - u16::from(part)) * 65 / 100) as u8;
    Colour(part(colour.0), part(colour.1), part(colour.2))
}

pub(super) fn draw_dot(root: &Root<'_>, at: (i32, i32), colour: Colour) -> Drawn {
    root.draw(&Circle::new(at, (7 * FINE) / 2, colour.rgb().filled()))
}

/// White inside, so that it is visible on lines and bars.
pub(super) fn draw_diamond(root: &Root<'_>, (x, y): (i32, i32), colour: Colour) -> Drawn {
    let reach = 6 * FINE;
    let corners = vec![(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach)];
    root.draw(&Polygon::new(corners.clone(), RGBColor(255, 255, 255).filled()))?;
    let outline = corners.iter().chain(&corners[..2]).copied();
    root.draw(&PathElement::new(outline.collect::<Vec<_>>(), stroke(colour, 2.0)))
}

/// The box from the first to the third quartile with its median, and whiskers to the 5th and 95th percentiles.
fn draw_box(chart: &mut Chart<'_, '_>, colour: Colour, span: (f64, f64), values: &[f64; 5]) -> Drawn {
    let [low, first, median, third, high] = *values;
    let (middle, area) = ((span.0 + span.1) / 2.0, chart.plotting_area());
    area.draw(&Rectangle::new([(span.0, first), (span.1, third)], faded(colour).rgb().filled()))?;
    let cap = (span.1 - span.0) * 0.25;
    for path in [
        vec![(middle, low), (middle, first)],
        vec![(middle, third), (middle, high)],
        vec![(middle - cap, low), (middle + cap, low)],
        vec![(middle - cap, high), (middle + cap, high)],
    ] {
        area.draw(&PathElement::new(path, stroke(colour, 1.0)))?;
    }
    let path = vec![(span.0, median), (span.1, median)];
    let ink = ShapeStyle { color: INK.to_rgba(), filled: false, stroke_width: 2 * FINE as u32 };
    area.draw(&PathElement::new(path, ink))
}

fn draw_paths(root: &Root<'_>, paths: [Vec<(i32, i32)>; 3], colour: Option<Colour>) -> Drawn {
    let colour = colour.map_or(INK, Colour::rgb);
    let style = ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: (3 * FINE as u32) / 2 };
    paths.into_iter().try_for_each(|path| root.draw(&PathElement::new(path, style)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Quantity;

    fn svg(marks: Vec<Mark>) -> String {
        let plot = MarkPlot {
            frame: Frame { size: (400, 300), title: "t".into(), alt: "what is seen".into() },
            x: Axis::of_groups("size", vec!["1 MB".into(), "10 MB".into()]),
            y: Axis::linear("goodput", Quantity::Rate, (0.0, 20e6)),
            legend: vec![("cubic".into(), Colour(1, 2, 3), Swatch::Patch)],
            marks,
        };
        plot.svg().unwrap()
    }

    #[test]
    fn groups_are_named_and_values_drawn() {
        let colour = Colour(1, 2, 3);
        let page = svg(vec![
            Mark::Bar { colour, span: (0.1, 0.9), value: 5e6 },
            Mark::Interval { colour: None, x: 0.5, ends: (4e6, 6e6) },
            Mark::Diamond { colour, at: (0.5, 7e6) },
            Mark::Label { text: "word".into(), at: (0.5, 7e6) },
        ]);
        for expected in ["1 MB", "10 MB", "goodput (Mbit/s)", "cubic", "what is seen", "word", "#010203"] {
            assert!(page.contains(expected), "{expected}");
        }
        // The bar and its swatch.
        assert_eq!(page.matches("#5A5B5C").count(), 2, "{page}");
    }

    #[test]
    fn missing_values_are_not_drawn() {
        let colour = Colour(1, 2, 3);
        let nothing = f64::NAN;
        let marks = vec![
            Mark::Bar { colour, span: (0.1, 0.9), value: nothing },
            Mark::Diamond { colour, at: (0.5, nothing) },
            Mark::Dot { colour, at: (nothing, 1.0) },
            Mark::Box { colour, span: (0.1, 0.9), percentiles: [nothing; 5] },
            Mark::Interval { colour: None, x: 0.5, ends: (nothing, 6e6) },
        ];
        assert_eq!(svg(marks), svg(Vec::new()));
    }
}
