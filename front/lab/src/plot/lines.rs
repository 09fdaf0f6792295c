//! Lines over time (or over any value): series, steps, distribution functions, sequence traces.

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::Color as _;

use super::{Axis, Colour, Drawn, Frame, Key, PlotError, Swatch, decimate, draw, stroke};

/// Most points of a line; the page is not wide enough to show more.
const LIMIT: usize = 2_000;

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// For the legend; lines without one are omitted from it.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// Marks a reference rather than a measurement.
    pub dashed: bool,
    /// Its points by increasing x; NaN in y interrupts it.
    pub points: Vec<(f64, f64)>,
}

/// A plot of lines.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// Title and size.
    pub frame: Frame,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Filled down to the axis, behind everything, such as the capacity.
    pub area: Option<Line>,
    /// The lines, the first at the bottom.
    pub lines: Vec<Line>,
}

/// Holds each value until the next: for quantities that change in steps.
pub fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(points.len() * 2);
    for pair in points.windows(2) {
        corners.extend([pair[0], (pair[1].0, pair[0].1)]);
    }
    corners.extend(points.last());
    corners
}

impl LinePlot {
    /// The plot as SVG.
    pub fn svg(&self) -> Result<String, PlotError> {
        let area = self.area.iter().filter(|area| !area.label.is_empty()).map(|area| Key {
            label: &area.label,
            colour: pale(area.colour),
            swatch: Swatch::Patch,
        });
        let lines = self.lines.iter().filter(|line| !line.label.is_empty()).map(|line| Key {
            label: &line.label,
            colour: line.colour,
            swatch: if line.dashed { Swatch::Dashed } else { Swatch::Line },
        });
        let legend: Vec<Key<'_>> = area.chain(lines).collect();
        // No legend is needed for what the title says.
        let legend = if legend.len() < 2 && !self.frame.title.is_empty() { Vec::new() } else { legend };
        draw(&self.frame, &legend, (&self.x, &self.y), 52, |_, chart| {
            if let Some(area) = &self.area {
                for piece in pieces(&area.points) {
                    let ends = (piece.first().copied(), piece.last().copied());
                    let (Some(first), Some(last)) = ends else { continue };
                    let floor = self.y.ends().0;
                    let mut outline = vec![(first.0, floor)];
                    outline.extend(&piece);
                    outline.push((last.0, floor));
                    chart.plotting_area().draw(&Polygon::new(outline, pale(area.colour).rgb().filled()))?;
                }
            }
            for line in &self.lines {
                for piece in pieces(&line.points) {
                    match piece[..] {
                        [] => {}
                        [point] => {
                            let dot = Circle::new(point, 2 * super::FINE, line.colour.rgb().filled());
                            chart.plotting_area().draw(&dot)?;
                        }
                        _ if line.dashed => draw_dashed(chart, &piece, line.colour)?,
                        _ => {
                            chart.plotting_area().draw(&PathElement::new(piece, stroke(line.colour, 1.5)))?
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

/// Dashes of equal length on the page, whatever the line's slope.
pub(super) fn draw_dashed(chart: &mut super::Chart<'_, '_>, piece: &[(f64, f64)], colour: Colour) -> Drawn {
    /// Dash and gap, in units of the grid.
    const LENGTHS: [f64; 2] = [14.0, 10.0];
    let (mut on, mut left, mut dash) = (true, LENGTHS[0], Vec::new());
    for pair in piece.windows(2) {
        let (from, to) = (chart.backend_coord(&pair[0]), chart.backend_coord(&pair[1]));
        let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = (dx * dx + dy * dy).sqrt();
        let at = |way: f64| {
            let share = if length > 0.0 { way / length } else { 0.0 };
            (pair[0].0 + (pair[1].0 - pair[0].0) * share, pair[0].1 + (pair[1].1 - pair[0].1) * share)
        };
        let mut way = 0.0;
        if on && dash.is_empty() {
            dash.push(pair[0]);
        }
        while length - way > left {
            way += left;
            if on {
                dash.push(at(way));
                chart
                    .plotting_area()
                    .draw(&PathElement::new(core::mem::take(&mut dash), stroke(colour, 1.5)))?;
            } else {
                dash.push(at(way));
            }
            on = !on;
            left = if on { LENGTHS[0] } else { LENGTHS[1] };
        }
        left -= length - way;
        if on {
            dash.push(pair[1]);
        }
    }
    if dash.len() > 1 {
        chart.plotting_area().draw(&PathElement::new(dash, stroke(colour, 1.5)))?;
    }
    Ok(())
}

/// The runs of points between gaps, with no more points than are visible.
pub(super) fn pieces(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let kept = decimate(points, LIMIT);
    let known = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
    kept.split(|point| !known(point)).filter(|piece| !piece.is_empty()).map(<[_]>::to_vec).collect()
}

/// For areas: light enough for lines to stand out on it.
pub(super) fn pale(colour: Colour) -> Colour {
    let part = |part: u8| 255 - (255 - part) / 4;
    Colour(part(colour.0), part(colour.1), part(colour.2))
}

#[cfg(test)]
mod tests {
    use super::super::GREY;
    use super::*;
    use crate::figures::Quantity;

    fn plot(points: Vec<(f64, f64)>, dashed: bool) -> String {
        let line = Line { label: "cubic".into(), colour: Colour(1, 2, 3), dashed, points };
        let plot = LinePlot {
            frame: Frame { size: (600, 300), ..Frame::default() },
            x: Axis::linear("time", Quantity::Time, (0.0, 60.0)),
            y: Axis::linear("rate", Quantity::Rate, (0.0, 20e6)),
            area: Some(Line {
                label: "capacity".into(),
                colour: GREY,
                dashed: false,
                points: vec![(0.0, 1e6), (60.0, 2e6)],
            }),
            lines: vec![line],
        };
        plot.svg().unwrap()
    }

    /// Polylines of the data, by their colour; one of them is the legend's.
    fn count(svg: &str) -> usize {
        svg.matches("#010203").count()
    }

    #[test]
    fn lines_break_where_there_is_no_value() {
        let points = |gap: f64| vec![(0.0, 1e6), (10.0, 2e6), (20.0, gap), (30.0, 3e6), (40.0, 1e6)];
        assert_eq!(count(&plot(points(5e6), false)), 2);
        assert_eq!(count(&plot(points(f64::NAN), false)), 3);
        assert!(plot(points(1e6), true).matches("#010203").count() > 10);
        assert_eq!(count(&plot(Vec::new(), false)), 1);
    }

    #[test]
    fn many_points_make_no_large_file() {
        let wave = (0..600_000).map(|x| (f64::from(x) / 1e4, f64::from(x % 1_000) * 2e4)).collect();
        assert!(plot(wave, false).len() < 40_000);
    }

    #[test]
    fn steps_have_corners() {
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 5.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
        assert_eq!(steps(&[]), []);
    }
}
