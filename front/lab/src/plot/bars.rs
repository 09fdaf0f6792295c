//! Horizontal bars with error bars, one below the other so that long names have room.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Axis, Colour, FINE, Frame, INK, PlotError, TEXT, draw, text, text_width};
use crate::figures::Quantity;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// At its left.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// Its length; NaN for none.
    pub value: f64,
    /// Half the width of the interval at its end.
    pub ci95: Option<f64>,
}

/// A plot of bars as SVG, `size` wide and as high as needed; `frame.size.1` is ignored.
pub fn bars(frame: &Frame, name: &str, quantity: Quantity, bars: &[Bar]) -> Result<String, PlotError> {
    const HEIGHT: u32 = 24;
    let title = if frame.title.is_empty() { 0 } else { 22 };
    let frame =
        Frame { size: (frame.size.0, 60 + title + HEIGHT * bars.len().max(1) as u32), ..frame.clone() };
    let ends = bars.iter().map(|bar| bar.value + bar.ci95.unwrap_or(0.0));
    let figure = |bar: &Bar, unit: crate::figures::Unit| unit.show_with(bar.value, bar.ci95);
    let unit = quantity.unit(bars.iter().map(|bar| bar.value));
    // Room for the figure at the end of the longest bar.
    let text_room = bars.iter().map(|bar| text_width(&figure(bar, unit), TEXT) + 16.0).fold(0.0, f64::max);
    // Labels end at the axis, so that a font wider than Arial (DejaVu Sans is by a seventh) is not cut off.
    let widest = bars.iter().map(|bar| 1.15 * text_width(&bar.label, TEXT)).fold(40.0, f64::max);
    let left = widest.min(200.0) + 10.0;
    let plane = (f64::from(frame.size.0) - left - 22.0).max(50.0);
    let largest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let x = Axis::linear(name, quantity, (0.0, largest * plane / (plane - text_room).max(plane / 3.0)));
    let y = Axis::linear("", Quantity::Plain, (0.0, bars.len().max(1) as f64)).reversed().hidden();
    draw(&frame, &[], (&x, &y), left as i32, |root, chart| {
        for (index, bar) in bars.iter().enumerate() {
            let middle = index as f64 + 0.5;
            let (start, height) = chart.backend_coord(&(0.0, middle));
            let style = text(TEXT, INK, HPos::Right, VPos::Center);
            root.draw(&Text::new(bar.label.clone(), (start - 8 * FINE, height), style))?;
            let mut end = start;
            if bar.value.is_finite() {
                let corners = [(0.0, middle - 0.36), (bar.value, middle + 0.36)];
                chart.plotting_area().draw(&Rectangle::new(corners, bar.colour.rgb().mix(0.6).filled()))?;
                end = chart.backend_coord(&(bar.value, middle)).0;
            }
            if let Some(half) = bar.ci95.filter(|half| half.is_finite() && bar.value.is_finite()) {
                let (low, high) = ((bar.value - half).max(0.0), bar.value + half);
                let cap = 0.16;
                for path in [
                    vec![(low, middle), (high, middle)],
                    vec![(low, middle - cap), (low, middle + cap)],
                    vec![(high, middle - cap), (high, middle + cap)],
                ] {
                    let style = plotters::style::ShapeStyle {
                        color: INK.to_rgba(),
                        filled: false,
                        stroke_width: FINE as u32,
                    };
                    chart.plotting_area().draw(&PathElement::new(path, style))?;
                }
                end = chart.backend_coord(&(high, middle)).0;
            }
            let style = text(TEXT, INK, HPos::Left, VPos::Center);
            root.draw(&Text::new(figure(bar, unit), (end + 6 * FINE, height), style))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_figure() {
        let bar =
            |label: &str, value, ci95| Bar { label: label.into(), colour: Colour(1, 2, 3), value, ci95 };
        let frame = Frame { size: (400, 0), title: "Goodput".into(), alt: String::new() };
        let all = [bar("cubic", 12e6, Some(1e6)), bar("a-rather-long-name", f64::NAN, None)];
        let svg = bars(&frame, "goodput", Quantity::Rate, &all).unwrap();
        for expected in ["12.0 ± 1.0", "–", "a-rather-long-name", "goodput (Mbit/s)"] {
            assert!(svg.contains(expected), "{expected}");
        }
        assert!(bars(&frame, "goodput", Quantity::Rate, &[]).is_ok());
    }
}
