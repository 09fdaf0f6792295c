//! Plots as SVG texts: their shared parts. Each kind of plot has a file of its own.
//!
//! Sizes are in pixels of the page. Drawing uses a grid twice as fine, since the backend only supports integers. Text uses the
//! viewer's sans-serif font; its width is estimated where something depends on it.

mod axis;
mod bars;
mod decimate;
mod heat;
mod lines;
mod marks;
mod palette;
mod scatter;
mod swatch;

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::element::{PathElement, Text};
use plotters::prelude::{ChartBuilder, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontStyle, IntoFont as _, RGBColor, ShapeStyle, TextStyle};

pub use axis::Axis;
pub use bars::{Bar, bars};
pub use decimate::decimate;
pub use heat::HeatMap;
pub use lines::{Line, LinePlot, steps};
pub use marks::{Mark, MarkPlot};
pub use palette::{Colour, GREY, Palette};
pub use scatter::{Cloud, ScatterPlot};
pub use swatch::Swatch;

/// Grid units per pixel.
const FINE: i32 = 2;
/// Size of ordinary text in pixels.
const TEXT: f64 = 12.0;
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const AXIS: RGBColor = RGBColor(0x88, 0x88, 0x88);
const GRID: RGBColor = RGBColor(0xe8, 0xe8, 0xe8);

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the plot {title:?} could not be drawn: {reason}; this is a bug, please report it")]
pub struct PlotError {
    /// Which one.
    pub title: String,
    /// The library's error.
    pub reason: String,
}

/// Parts of every plot.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Above the plot; may be empty.
    pub title: String,
    /// Alternative text for those who cannot see it.
    pub alt: String,
}

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// An entry of a legend.
struct Key<'a> {
    label: &'a str,
    colour: Colour,
    swatch: Swatch,
}

/// Draws title, legend, axes and grid, and calls `paint` for the content.
fn draw(
    frame: &Frame,
    legend: &[Key<'_>],
    (x, y): (&Axis, &Axis),
    left: i32,
    paint: impl FnOnce(&Root<'_>, &mut Chart<'_, '_>) -> Drawn,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let size = (frame.size.0 * FINE as u32, frame.size.1 * FINE as u32);
    let drawn = (|| {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let mut top = 6;
        // Bold letters are about a tenth wider.
        for line in wrapped(&frame.title, (f64::from(frame.size.0) - 16.0) / (1.1 * 13.0 / TEXT)) {
            if line.is_empty() {
                continue;
            }
            let style = bold(text(13.0, INK, HPos::Left, VPos::Center));
            root.draw(&Text::new(line, px(8, top + 8), style))?;
            top += 18;
        }
        top += if frame.title.is_empty() { 0 } else { 4 };
        top = draw_legend(&root, legend, top, frame.size.0 as i32)?;
        if !y.title().is_empty() {
            root.draw(&Text::new(y.title(), px(8, top + 8), text(TEXT, INK, HPos::Left, VPos::Center)))?;
            top += 20;
        }
        let names = wrapped_names(x, f64::from(frame.size.0) - f64::from(left) - 22.0);
        let name_lines = names.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let mut chart = ChartBuilder::on(&root)
            .margin_top((top + 4) * FINE)
            .margin_right(18 * FINE)
            .margin_left(4 * FINE)
            .margin_bottom(2 * FINE)
            .x_label_area_size(if x.is_hidden() { 4 } else { 40 + 15 * (name_lines - 1) } * FINE)
            .y_label_area_size(left * FINE)
            .build_cartesian_2d(x.clone(), y.clone())?;
        let fine = |colour: RGBColor| ShapeStyle {
            color: colour.to_rgba(),
            filled: false,
            stroke_width: FINE as u32,
        };
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(((frame.size.0 as usize) / 85).clamp(3, 12))
            .y_labels(((frame.size.1 as usize) / 42).clamp(3, 8))
            .max_light_lines(0)
            .bold_line_style(fine(GRID))
            .axis_style(fine(AXIS))
            .label_style(text(TEXT, INK, HPos::Center, VPos::Center))
            .set_all_tick_mark_size(4 * FINE);
        let labels = |axis: &Axis| {
            let axis = axis.clone();
            move |value: &f64| axis.label(*value)
        };
        let (x_label, y_label) = (labels(x), labels(y));
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        if x.is_hidden() {
            mesh.disable_x_mesh().disable_x_axis().x_labels(0);
        }
        if y.is_hidden() {
            mesh.disable_y_mesh().y_labels(0);
        }
        if !x.names().is_empty() {
            mesh.disable_x_mesh().x_labels(0);
        }
        mesh.draw()?;
        for (index, lines) in names.iter().enumerate() {
            let (middle, bottom) = chart.backend_coord(&(index as f64 + 0.5, y.ends().0));
            for (row, line) in lines.iter().enumerate() {
                let at = (middle, bottom + (13 + 15 * row as i32) * FINE);
                root.draw(&Text::new(line.clone(), at, text(TEXT, INK, HPos::Center, VPos::Center)))?;
            }
        }
        if !x.is_hidden() {
            let middle = (left + 4 + frame.size.0 as i32 - 18) / 2;
            let style = text(TEXT, INK, HPos::Center, VPos::Center);
            root.draw(&Text::new(x.title(), px(middle, frame.size.1 as i32 - 11), style))?;
        }
        paint(&root, &mut chart)?;
        root.present()
    })();
    drawn.map_err(|error| PlotError { title: frame.title.clone(), reason: error.to_string() })?;
    Ok(with_head(&svg, frame))
}

/// Rows of entries from the left; returns the position below them.
fn draw_legend(
    root: &Root<'_>,
    legend: &[Key<'_>],
    top: i32,
    width: i32,
) -> Result<i32, DrawingAreaErrorKind<std::io::Error>> {
    // The swatch with the space after it, and the space between entries.
    const SWATCH: i32 = 26;
    const BETWEEN: i32 = 18;
    let (mut x, mut y) = (8, top);
    for key in legend {
        let length = SWATCH + text_width(key.label, TEXT) as i32;
        if x > 8 && x + length > width - 8 {
            (x, y) = (8, y + 18);
        }
        let middle = y + 8;
        draw_swatch(root, key, (x, middle))?;
        let style = text(TEXT, INK, HPos::Left, VPos::Center);
        root.draw(&Text::new(key.label.to_owned(), px(x + SWATCH, middle), style))?;
        x += length + BETWEEN;
    }
    Ok(if legend.is_empty() { top } else { y + 20 })
}

/// Draws a sample of a series before its name in the legend.
fn draw_swatch(root: &Root<'_>, key: &Key<'_>, (x, middle): (i32, i32)) -> Drawn {
    let colour = key.colour;
    let dash = |from: i32, to: i32| {
        let path = vec![px(x + from, middle), px(x + to, middle)];
        root.draw(&PathElement::new(path, stroke(colour, 2.5)))
    };
    match key.swatch {
        Swatch::Patch => {
            let patch = [px(x, middle - 5), px(x + 20, middle + 5)];
            root.draw(&plotters::element::Rectangle::new(patch, colour.rgb().filled()))?;
        }
        Swatch::Line => dash(0, 20)?,
        Swatch::Dashed => {
            [(0, 5), (8, 13), (16, 20)].into_iter().try_for_each(|(from, to)| dash(from, to))?
        }
        Swatch::Dot => marks::draw_dot(root, px(x + 10, middle), colour)?,
        Swatch::Hollow => marks::draw_diamond(root, px(x + 10, middle), colour)?,
    }
    Ok(())
}

/// The names on an axis of groups, each broken into lines that fit the width of a group.
fn wrapped_names(axis: &Axis, width: f64) -> Vec<Vec<String>> {
    let room = width / axis.names().len().max(1) as f64 - 6.0;
    axis.names().iter().map(|name| wrapped(name, room)).collect()
}

/// Breaks a text between words if it is wider than this.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), TEXT) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Replaces the backend's opening tag: displayed at half the size drawn, scaling with the page, and with a description.
fn with_head(svg: &str, frame: &Frame) -> String {
    let body = svg.split_once('>').map_or(svg, |(_, body)| body);
    let (width, height) = frame.size;
    let alt = escape(if frame.alt.is_empty() { &frame.title } else { &frame.alt });
    let (fine_width, fine_height) = (width * FINE as u32, height * FINE as u32);
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {fine_width} {fine_height}\" role=\"img\" aria-label=\"{alt}\">"
    );
    // Defaults need not be repeated on each of hundreds of elements.
    page.push_str(&body.replace(" opacity=\"1\"", "").replace(" \"/>", "\"/>"));
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Pixels of the page in units of the grid.
fn px(x: i32, y: i32) -> (i32, i32) {
    (x * FINE, y * FINE)
}

/// A line of some pixels' width.
fn stroke(colour: Colour, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: colour.rgb().to_rgba(),
        filled: false,
        stroke_width: (width * f64::from(FINE)) as u32,
    }
}

/// A style of text.
fn text(size: f64, colour: RGBColor, h_pos: HPos, v_pos: VPos) -> TextStyle<'static> {
    // The backend divides sizes by 1.24, as bitmaps would need it.
    let font = ("sans-serif", size * 1.24 * f64::from(FINE)).into_font();
    TextStyle { font, color: colour.to_backend_color(), pos: Pos::new(h_pos, v_pos) }
}

fn bold(style: TextStyle<'static>) -> TextStyle<'static> {
    TextStyle { font: style.font.style(FontStyle::Bold), ..style }
}

/// Approximate width of a text in a common sans-serif font, in pixels.
fn text_width(text: &str, size: f64) -> f64 {
    let wide = |letter: char| match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' | ' ' => 0.31,
        'm' | 'w' | 'M' | 'W' | '%' => 0.87,
        'A'..='Z' => 0.68,
        _ => 0.56,
    };
    text.chars().map(wide).sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_are_broken_between_words() {
        assert_eq!(wrapped("with RAPID", 200.0), ["with RAPID"]);
        assert_eq!(wrapped("without RAPID, far away", 64.0), ["without", "RAPID, far", "away"]);
        let axis = Axis::of_groups("", vec!["a b".into(), "c".into()]);
        assert_eq!(wrapped_names(&axis, 40.0), [vec!["a", "b"], vec!["c"]]);
    }

    #[test]
    fn user_text_is_escaped() {
        let frame = Frame { size: (400, 200), title: "a <b> & \"c\"".into(), alt: String::new() };
        let axis = Axis::linear("x", crate::Quantity::Plain, (0.0, 1.0));
        let svg = draw(&frame, &[], (&axis, &axis), 40, |_, _| Ok(())).unwrap();
        assert!(svg.contains("aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;\"") && !svg.contains("<b>"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }
}
