//! The report: one self-contained HTML page that needs no other files, network or scripts.
//!
//! For each comparison it shows the figures with their intervals, plots of these side by side, and one run of each algorithm over
//! time; before and after that, what is needed to repeat them.

mod chapter;
mod charts;
mod control;
pub(crate) mod extract;
mod figures_table;
mod panels;
mod peps;
mod proxies;
mod radio;

use maud::{Markup, PreEscaped, html};
use ranpace_sim::RunResult;

use crate::pictures::page;
use crate::plot::{Palette, PlotError};
use crate::row::{COLUMNS, CompareRow};
use crate::summary::SCHEMA;

pub use chapter::Chapter;

/// Most algorithms of a comparison whose runs are shown over time; with more, the page would be too long.
const SHOWN_OVER_TIME: usize = 12;

/// The content of a report.
#[derive(Clone, Debug, Default)]
pub struct Report<'a> {
    /// Its heading.
    pub title: String,
    /// The command that repeats it.
    pub command: String,
    /// An introductory paragraph; may be empty.
    pub intro: String,
    /// The comparisons, in order.
    pub groups: Vec<Comparison<'a>>,
    /// Reproduced experiments, shown before the comparisons; may be empty.
    pub chapters: Vec<Chapter<'a>>,
    /// Warnings for the reader. Interrupted runs are detected automatically.
    pub warnings: Vec<String>,
}

/// Algorithms under the same conditions.
#[derive(Clone, Debug, Default)]
pub struct Comparison<'a> {
    /// Its heading, such as the scenario's name.
    pub title: String,
    /// The scenario, as TOML.
    pub scenario_text: String,
    /// The figures.
    pub rows: Vec<CompareRow>,
    /// The data: a label, and a run per seed. The first run of each is shown over time.
    pub runs: Vec<(String, Vec<&'a RunResult>)>,
    /// Further plots, shown after the figures.
    pub plates: Vec<CaptionedPlot>,
}

/// A plot with its caption.
#[derive(Clone, Debug)]
pub struct CaptionedPlot {
    /// The plot.
    pub svg: String,
    /// What a plot shows, and how to read it.
    pub caption: String,
}

impl<'a> Comparison<'a> {
    /// With the rows computed from the runs.
    pub fn new(
        title: impl Into<String>,
        scenario_text: impl Into<String>,
        runs: Vec<(String, Vec<&'a RunResult>)>,
    ) -> Self {
        let rows = runs.iter().map(|(label, runs)| CompareRow::of(label, runs)).collect();
        Self { title: title.into(), scenario_text: scenario_text.into(), rows, runs, plates: Vec::new() }
    }

    fn all(&self) -> impl Iterator<Item = &'a RunResult> + '_ {
        self.runs.iter().flat_map(|(_, runs)| runs.iter().copied())
    }
}

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> Result<String, PlotError> {
        let labels = self.all_groups().flat_map(|group| group.rows.iter().map(|row| row.cc.as_str()));
        let runs = self.all_groups().flat_map(Comparison::all);
        let algorithms = runs.flat_map(|run| run.flows.iter().map(|flow| flow.cc.as_str()));
        // A scenario that is run has a name.
        let names = self.all_groups().flat_map(|group| group.runs.iter().map(|(label, _)| label.as_str()));
        let palette = Palette::of(labels.chain(algorithms).chain(names));
        let groups: Vec<Markup> = self
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| comparison(group, index, &palette))
            .collect::<Result<_, _>>()?;
        let chapters: Vec<Markup> =
            self.chapters.iter().map(|chapter| chapter.html(&palette)).collect::<Result<_, _>>()?;
        let body = html! {
            header {
                h1 { (self.title) }
                @if !self.intro.is_empty() { p.intro { (self.intro) } }
                (self.origin())
                @for warning in self.all_warnings() { p.warning role="note" { strong { "Note: " } (warning) } }
            }
            @if self.groups.len() > 1 {
                nav { "Contents: "
                    @for (index, group) in self.groups.iter().enumerate() {
                        a href=(format!("#group-{index}")) { (group.title) }
                    }
                }
            }
            main {
                @if !self.chapters.is_empty() { (chapter::summary(&self.chapters)) }
                @for chapter in &chapters { (chapter) }
                @for group in &groups { (group) }
                @if self.all_groups().next().is_some() { (meanings()) }
            }
            footer {
                "Made by Ranpace " (crate::version::VERSION) ". The same command with the same version gives the same figures on any machine."
            }
        };
        Ok(page(&self.title, &body))
    }

    /// The comparisons, including those of the chapters.
    fn all_groups(&self) -> impl Iterator<Item = &Comparison<'_>> {
        self.chapters.iter().map(|chapter| &chapter.runs).chain(&self.groups)
    }

    /// Renders the command and versions that repeat the report.
    fn origin(&self) -> Markup {
        let mut seeds: Vec<u64> = self.all_groups().flat_map(Comparison::all).map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        html! {
            @if !self.command.is_empty() {
                p.repeat { "To repeat this:" }
                pre.command { code { (self.command) } }
            }
            dl.origin {
                div { dt { "Version" } dd { (crate::version::VERSION) } }
                div { dt { "Results schema" } dd { (SCHEMA) } }
                @if !seeds.is_empty() {
                    div { dt { @if seeds.len() == 1 { "Seed" } @else { "Seeds" } } dd { (ranges(&seeds)) } }
                }
            }
        }
    }

    fn all_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        let runs: Vec<&RunResult> = self.all_groups().flat_map(Comparison::all).collect();
        let notes = crate::notes::of_runs(runs.iter().copied(), runs.len() > 1);
        warnings.extend(notes.into_iter().map(|note| format!("{note}.")));
        let interrupted = runs.iter().filter(|run| run.interrupted).count();
        if interrupted > 0 {
            let all = runs.len();
            warnings.push(format!(
                "{interrupted} of {all} runs {} interrupted; their figures hold up to where they were stopped.",
                if interrupted == 1 { "was" } else { "were" }
            ));
        }
        let wrong = runs.iter().filter(|run| !run.ledger.balances()).count();
        if wrong > 0 {
            warnings.push(format!(
                "in {wrong} runs bytes are not accounted for; this is a bug, please report it."
            ));
        }
        warnings
    }
}

/// "1–5, 7" for 1, 2, 3, 4, 5 and 7.
fn ranges(sorted: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for value in sorted {
        match parts.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(*value) => last.1 = *value,
            _ => parts.push((*value, *value)),
        }
    }
    let part = |(from, to): &(u64, u64)| if from == to { from.to_string() } else { format!("{from}–{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn comparison(group: &Comparison<'_>, index: usize, palette: &Palette) -> Result<Markup, PlotError> {
    let body = body(group, palette)?;
    Ok(html! {
        section id=(format!("group-{index}")) {
            h2 { (group.title) }
            (body)
            @if !group.scenario_text.is_empty() {
                details { summary { "The scenario" } pre { code { (group.scenario_text) } } }
            }
        }
    })
}

/// Figures, plots of these side by side, and the runs over time.
fn body(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let over_time = !group.runs.is_empty() && group.runs.len() <= SHOWN_OVER_TIME;
    let beside = charts::beside(group, palette)?;
    let panels = if over_time {
        html! {
            (panels::over_time(group, palette)?)
            (control::over_time(group, palette)?)
            (proxies::over_time(group, palette)?)
            (radio::over_time(group, palette)?)
        }
    } else {
        html! {}
    };
    Ok(html! {
        (figures_table::table(&group.rows, palette))
        (beside)
        (proxies::tables(group))
        (peps::tables(group))
        (radio::tables(group))
        @for plate in &group.plates { (figure(&plate.svg, &plate.caption)) }
        (panels)
        @if group.runs.len() > SHOWN_OVER_TIME {
            p.note { "Runs over time are shown for up to " (SHOWN_OVER_TIME) " algorithms; the series of all "
                (group.runs.len()) " are in the results folder." }
        }
    })
}

/// A plot on its card.
fn figure(svg: &str, caption: &str) -> Markup {
    html! { figure { div.card { (PreEscaped(svg)) } figcaption { (caption) } } }
}

/// Renders the meaning of each figure.
fn meanings() -> Markup {
    html! {
        details {
            summary { "What the figures mean" }
            dl.meanings { @for figure in COLUMNS { dt { (figure.title) } dd { (figure.meaning()) } } }
            p { "Over several flows, means of times weight each flow by its packets, and a percentile is the mean of the flows' percentiles weighted likewise. Over several seeds, every figure is the mean; ± is half the width of the 95 % confidence interval by Student's t. – means that there is no value." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn page(runs: &[(String, Vec<RunResult>)], title: &str) -> String {
        let runs = runs.iter().map(|(label, runs)| (label.clone(), runs.iter().collect())).collect();
        let group = Comparison::new(title, "# <script>alert(1)</script>\n", runs);
        let report = Report {
            title: title.into(),
            command: "ranpace compare 'a&b.toml' --seeds 2".into(),
            groups: vec![group],
            ..Report::default()
        };
        report.html().unwrap()
    }

    fn two(cc: &str) -> (String, Vec<RunResult>) {
        (cc.to_owned(), (1..=2).map(|seed| synthetic::run(cc, seed)).collect())
    }

    #[test]
    fn page_is_self_contained() {
        let page = page(&[two("cubic"), two("copa")], "Drive");
        for outside in ["<script", "<link", "<img", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // The only URL is that of SVG's XML namespace.
        assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
        for expected in [
            "Throughput against delay",
            "Sequence trace",
            "95 % confidence",
            crate::version::VERSION,
            "Seeds",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(page.len() < 600_000, "{} bytes", page.len());
    }

    #[test]
    fn cells_and_their_users_are_shown() {
        let page = page(&[("cubic".into(), vec![crate::radio::sample::run(6)])], "Cell");
        for expected in [
            "Cells and users",
            "Radio of user.1",
            "SINR",
            "CQI and MCS, downlink",
            "Scheduled and delivered",
            "Head-of-line delay",
            "Uplink of user.1",
            "Position",
            "out of service at the end: out of reach",
            "There are 3 more users",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
    }

    #[test]
    fn pep_reports_are_shown() {
        let page = page(&[("mdcc".into(), vec![crate::peps::sample()])], "PEP");
        for expected in ["Lightweight PEPs, with seed", "border", "begun anew", "93.00"] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!self::page(&[two("cubic")], "None").contains("Lightweight PEPs"));
    }

    #[test]
    fn proxy_buffer_is_shown() {
        let page = page(&[("cubic".into(), vec![crate::proxies::sample()])], "Proxy");
        for expected in [
            "Proxies, with seed",
            "waited mean",
            "edge",
            "Waiting in the proxy",
            "Delay in the proxy",
            "Window to the server",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        let without = self::page(&[two("cubic")], "None");
        assert!(!without.contains("Proxies, with seed") && !without.contains("Waiting in the proxy"));
    }

    #[test]
    fn user_text_is_escaped_in_the_report() {
        let page = page(&[two("<b>cubic</b>")], "<i>Drive</i> \"1\"");
        assert!(!page.contains("<b>cubic") && !page.contains("<i>Drive") && !page.contains("<script"));
        assert!(page.contains("&lt;script&gt;") && page.contains("a&amp;b.toml"));
    }

    #[test]
    fn the_same_runs_give_the_same_page() {
        assert_eq!(page(&[two("cubic")], "Drive"), page(&[two("cubic")], "Drive"));
    }

    #[test]
    fn page_without_series_has_no_nan_and_no_empty_plot() {
        let mut bare = synthetic::run("cubic", 1);
        bare.interrupted = true;
        for flow in &mut bare.flows {
            flow.series.columns.clear();
            (flow.rtt, flow.queueing_delay) = Default::default();
            flow.bottleneck = None;
        }
        bare.links.clear();
        let page = page(&[("cubic".into(), vec![bare])], "Bare");
        assert!(
            page.contains("1 of 1 runs was interrupted")
                && !page.contains("NaN")
                && !page.contains("Sequence")
        );
        assert!(Report::default().html().unwrap().contains("</html>"));
    }

    #[test]
    fn seeds_are_written_as_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10, u64::MAX]), format!("1–3, 7, 9–10, {}", u64::MAX));
        assert_eq!(ranges(&[]), "");
    }
}
