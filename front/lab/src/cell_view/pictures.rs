//! Plots that are shown together: as one SVG, or as a page that needs nothing else.

use maud::{DOCTYPE, PreEscaped, html};

/// Size of a plot in pixels.
pub const SIZE: (u32, u32) = (900, 280);
/// Space between plots.
const BETWEEN: u32 = 10;

/// Plots that are shown together, with what they show in words.
#[derive(Clone, Debug)]
pub struct Pictures {
    /// Above them.
    title: String,
    /// What it is, and how it was looked at.
    facts: Vec<(&'static str, String)>,
    /// SVG, and what it shows.
    plots: Vec<(String, String)>,
}

impl Pictures {
    /// Plots of [`SIZE`], each with what it shows, below a title and facts.
    pub fn new(title: &str, facts: Vec<(&'static str, String)>, plots: Vec<(String, String)>) -> Self {
        Self { title: title.to_owned(), facts, plots }
    }

    /// The plots, each with what it shows.
    pub fn plots(&self) -> &[(String, String)] {
        &self.plots
    }

    /// One SVG, the plots below each other.
    pub fn svg(&self) -> String {
        let (mut body, mut top) = (String::new(), 0);
        for (svg, _) in &self.plots {
            // A drawing within a drawing has its place as attributes.
            body.push_str(&svg.replacen("<svg ", &format!("<svg x=\"0\" y=\"{top}\" "), 1));
            top += SIZE.1 + BETWEEN;
        }
        let width = SIZE.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" \
             viewBox=\"0 0 {width} {top}\" style=\"background:#fff\">{body}</svg>\n"
        )
    }

    /// A page that needs nothing else.
    pub fn html(&self, command: &str) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="generator" content=(format!("ranpace {}", crate::version::VERSION));
                    title { (self.title) }
                    style { (PreEscaped(include_str!("../report/style.css"))) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        dl.origin { @for (name, value) in &self.facts { div { dt { (name) } dd { (value) } } } }
                        p.repeat { "Made by" }
                        pre { (command) }
                    }
                    main {
                        @for (svg, caption) in &self.plots {
                            figure { div.card { (PreEscaped(svg)) } figcaption { (caption) } }
                        }
                    }
                    footer { "Made by Ranpace " (crate::version::VERSION) "." }
                }
            }
        }
        .into_string()
    }
}
