//! One point per run, an ellipse and a label per algorithm.

use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Axis, Colour, FINE, Frame, PlotError, TEXT, bold, draw, stroke, text, text_width};
use crate::stats::Ellipse;

/// The runs of one algorithm.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Written beside it.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// A point per run.
    pub points: Vec<(f64, f64)>,
}

/// A plot of clouds.
#[derive(Clone, Debug)]
pub struct ScatterPlot {
    /// Title and size.
    pub frame: Frame,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The clouds of points.
    pub clouds: Vec<Cloud>,
    /// A dashed line through these points, from left to right; may be empty.
    pub line: Vec<(f64, f64)>,
    /// In the upper right corner, such as "better ↗"; may be empty.
    pub corner: String,
}

/// Size of labels in pixels.
const LABEL: f64 = 12.0;

/// A rectangle in units of the grid: left, top, right, bottom.
pub(super) type Area = (f64, f64, f64, f64);

impl ScatterPlot {
    /// The plot as SVG.
    pub fn svg(&self) -> Result<String, PlotError> {
        draw(&self.frame, &[], (&self.x, &self.y), 52, |root, chart| {
            let plane = chart.plotting_area().get_pixel_range();
            let limits = (
                f64::from(plane.0.start),
                f64::from(plane.1.start),
                f64::from(plane.0.end),
                f64::from(plane.1.end),
            );
            let mut taken: Vec<Area> = Vec::new();
            if !self.corner.is_empty() {
                let style = text(TEXT, super::AXIS, HPos::Right, VPos::Center);
                let at = (plane.0.end - 8 * FINE, plane.1.start + 12 * FINE);
                root.draw(&Text::new(self.corner.clone(), at, style))?;
                let width = text_width(&self.corner, TEXT) * f64::from(FINE);
                taken.push((limits.2 - width - 20.0, limits.1, limits.2, limits.1 + 40.0));
            }
            for pair in self.line.windows(2) {
                let dashes =
                    DashedPathElement::new(pair.to_vec(), 8 * FINE, 6 * FINE, stroke(super::GREY, 1.0));
                chart.plotting_area().draw(&dashes)?;
            }
            let mut centres = Vec::new();
            for cloud in &self.clouds {
                let points: Vec<(f64, f64)> = cloud
                    .points
                    .iter()
                    .copied()
                    .filter(|point| point.0.is_finite() && point.1.is_finite())
                    .collect();
                let Some(centre) = centre(&points) else { continue };
                if let Some(ellipse) = Ellipse::of(&points) {
                    let outline = ellipse.outline(72);
                    let fill = cloud.colour.rgb().mix(0.15).filled();
                    chart.plotting_area().draw(&Polygon::new(outline.clone(), fill))?;
                    let closed: Vec<(f64, f64)> = outline.iter().chain(outline.first()).copied().collect();
                    for point in &closed {
                        taken.push(around(chart.backend_coord(point), 6.0));
                    }
                    chart.plotting_area().draw(&PathElement::new(closed, stroke(cloud.colour, 1.0)))?;
                    for point in &points {
                        let dot = Circle::new(*point, 2 * FINE, cloud.colour.rgb().mix(0.5).filled());
                        chart.plotting_area().draw(&dot)?;
                        taken.push(around(chart.backend_coord(point), 6.0));
                    }
                }
                chart.plotting_area().draw(&Circle::new(centre, 5 * FINE, cloud.colour.rgb().filled()))?;
                let (x, y) = chart.backend_coord(&centre);
                taken.push(around((x, y), 12.0));
                centres.push((cloud, (f64::from(x), f64::from(y))));
            }
            // Labels in a crowd have the fewest free places: they come first.
            let all: Vec<(f64, f64)> = centres.iter().map(|(_, centre)| *centre).collect();
            centres.sort_by_key(|(_, centre)| core::cmp::Reverse(neighbours(*centre, &all)));
            for (cloud, centre) in centres {
                // Bold, and possibly in a font wider than Arial: a label must not cover its dot.
                let width = 1.25 * text_width(&cloud.label, LABEL) + 6.0;
                let size = (width * f64::from(FINE), (LABEL + 4.0) * f64::from(FINE));
                let label = cloud.colour.for_text();
                let area = place(centre, size, limits, &taken);
                let middle = ((area.0 + area.2) / 2.0, (area.1 + area.3) / 2.0);
                if let Some(near) = leader(centre, &area) {
                    let line = vec![(centre.0 as i32, centre.1 as i32), (near.0 as i32, near.1 as i32)];
                    root.draw(&PathElement::new(line, stroke(label, 1.0)))?;
                    taken.extend(along(centre, near).map(|(x, y)| around((x as i32, y as i32), 3.0)));
                }
                let style = bold(text(LABEL, label.rgb(), HPos::Center, VPos::Center));
                root.draw(&Text::new(cloud.label.clone(), (middle.0 as i32, middle.1 as i32), style))?;
                taken.push(area);
            }
            Ok(())
        })
    }
}

/// Number of the points near one, in the reach of a label.
fn neighbours(at: (f64, f64), all: &[(f64, f64)]) -> usize {
    let reach = |other: &&(f64, f64)| (other.0 - at.0).abs() < 160.0 && (other.1 - at.1).abs() < 80.0;
    all.iter().filter(reach).count()
}

/// Returns the end of the line from a point to its label, if they are far enough apart to need one.
fn leader(point: (f64, f64), area: &Area) -> Option<(f64, f64)> {
    let near = (point.0.clamp(area.0, area.2), point.1.clamp(area.1, area.3));
    let far = (near.0 - point.0).abs().max((near.1 - point.1).abs());
    (far > 24.0).then_some(near)
}

/// Points on the way from one to another.
fn along(from: (f64, f64), to: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    (1..16).map(move |step| {
        let share = f64::from(step) / 16.0;
        (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
    })
}

pub(super) fn around((x, y): (i32, i32), reach: f64) -> Area {
    let (x, y) = (f64::from(x), f64::from(y));
    (x - reach, y - reach, x + reach, y + reach)
}

fn centre(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    Some((crate::stats::mean(&xs)?, crate::stats::mean(&ys)?))
}

/// The best position of a label of `size`: near its point, inside `limits`, and not over anything `taken`.
pub(super) fn place(point: (f64, f64), size: (f64, f64), limits: Area, taken: &[Area]) -> Area {
    let at = |way: (f64, f64), distance: f64| {
        let x = point.0 + way.0 * (distance + size.0 / 2.0);
        let y = point.1 + way.1 * (distance + size.1 / 2.0);
        (x - size.0 / 2.0, y - size.1 / 2.0, x + size.0 / 2.0, y + size.1 / 2.0)
    };
    let ways = [
        (1.0, 0.0),
        (-1.0, 0.0),
        (0.0, -1.0),
        (0.0, 1.0),
        (0.9, -0.9),
        (-0.9, -0.9),
        (0.9, 0.9),
        (-0.9, 0.9),
        (0.5, -0.95),
        (-0.5, -0.95),
        (0.5, 0.95),
        (-0.5, 0.95),
    ];
    let distances = [14.0, 18.0, 22.0, 30.0, 42.0, 60.0, 80.0, 100.0, 125.0, 150.0, 190.0, 240.0];
    let candidates = distances.into_iter().flat_map(|far| ways.map(|way| (far, at(way, far))));
    let overlap =
        |a: &Area, b: &Area| (a.2.min(b.2) - a.0.max(b.0)).max(0.0) * (a.3.min(b.3) - a.1.max(b.1)).max(0.0);
    let cost = |(far, area): &(f64, Area)| {
        let outside = size.0 * size.1 - overlap(area, &limits);
        let covered: f64 = taken.iter().map(|other| overlap(area, other)).sum();
        // Crossing another label with a line is as bad as covering a part of it.
        let labels = || taken.iter().filter(|other| other.2 - other.0 > 40.0);
        let inside = |(x, y): (f64, f64)| {
            labels().any(|label| x > label.0 && x < label.2 && y > label.1 && y < label.3)
        };
        let crossed =
            leader(point, area).map_or(0, |near| along(point, near).filter(|at| inside(*at)).count());
        // Distance costs something, too: among free places rounding would decide otherwise, and labels would be far from their points.
        covered + 10.0 * outside + 100.0 * crossed as f64 + 2.0 * far
    };
    let best = candidates.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.map_or(at(ways[0], 14.0), |(_, area)| area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Quantity;

    #[test]
    fn labels_do_not_cover_each_other() {
        let limits = (0.0, 0.0, 1_000.0, 1_000.0);
        let mut taken = Vec::new();
        for point in [(500.0, 500.0), (505.0, 498.0), (498.0, 505.0), (990.0, 500.0), (500.0, 5.0)] {
            let area = place(point, (120.0, 30.0), limits, &taken);
            assert!(area.0 >= 0.0 && area.1 >= 0.0 && area.2 <= 1_000.0 && area.3 <= 1_000.0, "{area:?}");
            for other in &taken {
                let other: &Area = other;
                let apart = area.2 <= other.0 || other.2 <= area.0 || area.3 <= other.1 || other.3 <= area.1;
                assert!(apart, "{area:?} {other:?}");
            }
            taken.push(area);
        }
    }

    #[test]
    fn a_label_stays_beside_its_point_where_there_is_room() {
        let limits = (112.0, 104.0, 1_964.0, 1_356.0);
        for at in 0..200u32 {
            // Positions whose sums are not exact, as those of a plot.
            let point = (300.0 + 7.31 * f64::from(at), 250.0 + 4.77 * f64::from(at));
            let area = place(point, (187.3, 32.0), limits, &[around((point.0 as i32, point.1 as i32), 12.0)]);
            assert!(leader(point, &area).is_none(), "{point:?}: {area:?}");
        }
    }

    #[test]
    fn one_run_is_a_point_and_several_an_ellipse() {
        let plot = |points: Vec<(f64, f64)>| ScatterPlot {
            frame: Frame { size: (600, 400), ..Frame::default() },
            x: Axis::log("delay", Quantity::Time, [0.01, 0.1]).reversed(),
            y: Axis::from_zero("goodput", Quantity::Rate, [1e7]),
            clouds: vec![Cloud { label: "copa".into(), colour: Colour(1, 2, 3), points }],
            line: Vec::new(),
            corner: "better".into(),
        };
        let one = plot(vec![(0.02, 9e6), (f64::NAN, 1.0)]).svg().unwrap();
        assert_eq!((one.matches("<circle").count(), one.matches("<polygon").count()), (1, 0));
        let three = plot(vec![(0.02, 9e6), (0.03, 8e6), (0.025, 7e6)]).svg().unwrap();
        assert_eq!((three.matches("<circle").count(), three.matches("<polygon").count()), (4, 1));
    }
}
