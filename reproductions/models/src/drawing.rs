//! Shared parts of the models' plots.

use ranpace_lab::Quantity;
use ranpace_lab::cell_view::PICTURE_SIZE;
use ranpace_lab::plot::{Axis, Colour, Frame, GREY, Line, LinePlot, PlotError};

/// A plot of lines with its caption.
pub(super) fn plot(
    title: String,
    (x, y): (Axis, Axis),
    lines: Vec<Line>,
    caption: &str,
) -> Result<(String, String), PlotError> {
    let frame = Frame { size: PICTURE_SIZE, alt: format!("{title}. {caption}"), title };
    let svg = LinePlot { frame, x, y, area: None, lines }.svg()?;
    Ok((svg, caption.to_owned()))
}

/// A curve.
pub(super) fn line(label: impl Into<String>, colour: Colour, points: Vec<(f64, f64)>) -> Line {
    Line { label: label.into(), colour, dashed: false, points }
}

/// A reference rather than a result.
pub(super) fn reference(label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
    Line { label: label.into(), colour: GREY, dashed: true, points }
}

/// An axis of plain numbers from zero.
pub(super) fn from_zero(name: &str, values: impl IntoIterator<Item = f64>) -> Axis {
    Axis::from_zero(name, Quantity::Plain, values)
}

/// An axis of plain numbers over this range.
pub(super) fn over(name: &str, range: (f64, f64)) -> Axis {
    Axis::linear(name, Quantity::Plain, range)
}
