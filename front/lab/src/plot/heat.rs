//! Values over a plane, as colours.

use plotters::element::Rectangle;
use plotters::style::Color as _;

use super::{Axis, Colour, Frame, Key, PlotError, draw};
use crate::figures::number;

/// Shades between the smallest and the largest value; more could not be told apart.
const SHADES: usize = 24;
/// Shades that the legend names.
const NAMED: usize = 5;

/// A plane of values. Values that are not numbers stay white.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Title and size.
    pub frame: Frame,
    /// To the right: the first and the last column are centred in their cells.
    pub x: Axis,
    /// Upwards, likewise.
    pub y: Axis,
    /// Columns from the left, each from the bottom; all of equal length.
    pub columns: Vec<Vec<f64>>,
}

/// From dark to pale, so that it is legible in grey and for the colour-blind; the ends are blue and a pale orange.
fn shade(index: usize) -> Colour {
    const STOPS: [[f64; 3]; 4] =
        [[0.0, 50.0, 95.0], [30.0, 125.0, 170.0], [150.0, 195.0, 175.0], [253.0, 228.0, 170.0]];
    let place = index as f64 / (SHADES - 1) as f64 * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let share = place - below as f64;
    let part = |part: usize| (STOPS[below][part] * (1.0 - share) + STOPS[below + 1][part] * share) as u8;
    Colour(part(0), part(1), part(2))
}

impl HeatMap {
    /// The plot as SVG.
    pub fn svg(&self) -> Result<String, PlotError> {
        let known = self.columns.iter().flatten().copied().filter(|value| value.is_finite());
        let (least, most) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let is_level = most - least <= 0.0;
        let of = |value: f64| match is_level {
            true => 0,
            false => (((value - least) / (most - least) * SHADES as f64) as usize).min(SHADES - 1),
        };
        let names: Vec<(String, Colour)> = match (least.is_finite(), is_level) {
            (false, _) => Vec::new(),
            (true, true) => vec![(number(least), shade(0))],
            (true, false) => (0..NAMED)
                .map(|index| {
                    let share = index as f64 / (NAMED - 1) as f64;
                    (number(least + share * (most - least)), shade(of(least + share * (most - least))))
                })
                .collect(),
        };
        let legend: Vec<Key<'_>> = names
            .iter()
            .map(|(label, colour)| Key { label, colour: *colour, swatch: super::Swatch::Patch })
            .collect();
        let edges = |axis: &Axis, count: usize| {
            let (low, high) = axis.ends();
            let wide = (high - low) / count.saturating_sub(1).max(1) as f64;
            move |index: usize| (low + (index as f64 - 0.5) * wide).clamp(low, high)
        };
        let left = edges(&self.x, self.columns.len());
        let svg = draw(&self.frame, &legend, (&self.x, &self.y), 52, |_, chart| {
            for (index, column) in self.columns.iter().enumerate() {
                let bottom = edges(&self.y, column.len());
                let shades: Vec<Option<usize>> =
                    column.iter().map(|value| value.is_finite().then(|| of(*value))).collect();
                let mut from = 0;
                // Neighbours of the same shade form one rectangle.
                for run in shades.chunk_by(|a, b| a == b) {
                    if let Some(Some(own)) = run.first() {
                        let corners =
                            [(left(index), bottom(from)), (left(index + 1), bottom(from + run.len()))];
                        let style = shade(*own).rgb().filled();
                        chart.plotting_area().draw(&Rectangle::new(corners, style))?;
                    }
                    from += run.len();
                }
            }
            Ok(())
        })?;
        // Otherwise the page shows through between neighbours.
        Ok(svg.replacen("<svg ", "<svg shape-rendering=\"crispEdges\" ", 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantity;

    fn map(columns: Vec<Vec<f64>>) -> String {
        let axis = Axis::linear("x", Quantity::Plain, (0.0, 1.0));
        let frame = Frame { size: (400, 300), title: "t".to_owned(), alt: String::new() };
        HeatMap { frame, x: axis.clone(), y: axis, columns }.svg().unwrap()
    }

    #[test]
    fn smallest_value_is_darkest_and_nan_is_white() {
        let svg = map(vec![vec![1.0, 2.0], vec![f64::NAN, 3.0]]);
        let cells = |colour: Colour| svg.to_lowercase().matches(&colour.hex()).count();
        // Each end is in the plane and in the legend.
        assert_eq!((cells(shade(0)), cells(shade(SHADES - 1))), (2, 2));
        assert!(svg.contains("1.500") && !svg.contains("NaN"));
    }

    #[test]
    fn a_level_or_empty_plane_can_be_drawn() {
        let level = map(vec![vec![7.0, 7.0], vec![7.0, 7.0]]);
        assert!(level.contains("7.000"));
        for empty in [map(Vec::new()), map(vec![vec![f64::NAN]])] {
            assert!(empty.contains("<svg"));
        }
    }
}
