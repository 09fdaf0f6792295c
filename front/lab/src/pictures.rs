//! Plots shown together: as one SVG, or as a self-contained page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Default size of a plot in pixels.
pub const SIZE: (u32, u32) = (900, 280);
/// Space between plots in pixels.
const BETWEEN: u32 = 10;

/// A plot: its width and height in pixels, the drawing as SVG, and its description.
pub(crate) type Plot = ((u32, u32), String, String);

/// Plots shown together, with their descriptions.
#[derive(Clone, Debug)]
pub struct Pictures {
    /// Above them.
    title: String,
    /// The subject, and how it was examined.
    facts: Vec<(&'static str, String)>,
    plots: Vec<Plot>,
}

impl Pictures {
    /// Plots of [`SIZE`], each with its description, below a title and facts.
    pub fn new(title: &str, facts: Vec<(&'static str, String)>, plots: Vec<(String, String)>) -> Self {
        let sized = |(svg, caption)| (SIZE, svg, caption);
        Self::sized(title, facts, plots.into_iter().map(sized).collect())
    }

    /// Plots of any size.
    pub(crate) fn sized(title: &str, facts: Vec<(&'static str, String)>, plots: Vec<Plot>) -> Self {
        Self { title: title.to_owned(), facts, plots }
    }

    /// The plots as SVG, each with its description.
    pub fn plots(&self) -> impl Iterator<Item = (&str, &str)> {
        self.plots.iter().map(|(_, svg, caption)| (svg.as_str(), caption.as_str()))
    }

    /// One SVG, the plots below each other.
    pub fn svg(&self) -> String {
        let (mut body, mut top, mut width) = (String::new(), 0, 0);
        for (size, svg, _) in &self.plots {
            // A nested drawing has its position as attributes.
            body.push_str(&svg.replacen("<svg ", &format!("<svg x=\"0\" y=\"{top}\" "), 1));
            top += size.1 + BETWEEN;
            width = width.max(size.0);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" \
             viewBox=\"0 0 {width} {top}\" style=\"background:#fff\">{body}</svg>\n"
        )
    }

    /// A self-contained page, with the command that made it unless that is empty.
    pub fn html(&self, command: &str) -> String {
        let body = html! {
            header {
                h1 { (self.title) }
                dl.origin { @for (name, value) in &self.facts { div { dt { (name) } dd { (value) } } } }
                @if !command.is_empty() {
                    p.repeat { "Made by" }
                    pre { (command) }
                }
            }
            main {
                @for (svg, caption) in self.plots() {
                    figure { div.card { (PreEscaped(svg)) } figcaption { (caption) } }
                }
            }
            footer { "Made by Ranpace " (crate::version::VERSION) "." }
        };
        page(&self.title, &body)
    }
}

/// A self-contained page in the report's style.
pub fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(format!("ranpace {}", crate::version::VERSION));
                title { (title) }
                style { (PreEscaped(include_str!("report/style.css"))) }
            }
            body { (body) }
        }
    }
    .into_string()
}
