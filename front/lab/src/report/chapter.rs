//! The part of the report about one reproduced experiment: its pictures first, then published and measured values with verdicts,
//! then everything else, folded.

use maud::{Markup, PreEscaped, html};

use super::{Comparison, body};
use crate::Unit;
use crate::plot::{Palette, PlotError};
use crate::reproduce::{FigureTable, Picture, Row, Verdict, verdict_counts};

/// A reproduced experiment.
#[derive(Clone, Debug, Default)]
pub struct Chapter<'a> {
    /// The experiment's name: "001-a3-table1".
    pub id: String,
    /// Its topic, in one line.
    pub title: String,
    /// The claim, in a sentence; may be empty.
    pub claim: String,
    /// The place of publication.
    pub source: String,
    /// The source's statement, and what differs here.
    pub says: String,
    /// The published figures, drawn again.
    pub pictures: Vec<Picture>,
    /// Published and measured values, with verdicts.
    pub rows: Vec<Row>,
    /// Figures as tables.
    pub tables: Vec<FigureTable>,
    /// Some of its runs, with further plots and one of its scenarios.
    pub runs: Comparison<'a>,
}

/// Most values in a cell; more of them become a separate table.
const MOST_IN_CELL: usize = 3;

/// A row for each experiment: its claim, and the verdicts on its criteria.
pub fn summary(chapters: &[Chapter<'_>]) -> Markup {
    let rows: Vec<&Row> = chapters.iter().flat_map(|chapter| &chapter.rows).collect();
    let count = |rows: &[&Row], verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let verdicts: Vec<Verdict> =
        Verdict::ALL.into_iter().filter(|verdict| count(&rows, *verdict) > 0).collect();
    let counts = |rows: &[&Row]| {
        html! { @for verdict in &verdicts {
            @match count(rows, *verdict) { 0 => td {}, many => td.(class(*verdict)) { (many) } }
        } }
    };
    html! {
        section #verdicts {
            h2 { "Experiments" }
            p { (verdict_counts(&rows)) }
            div.wide {
                table.experiments {
                    thead { tr {
                        th scope="col" { "experiment" } th scope="col" { "claim" }
                        @for verdict in &verdicts { th scope="col" { (verdict.as_str()) } }
                    } }
                    tbody {
                        @for chapter in chapters {
                            tr {
                                th scope="row" { a href=(format!("#{}", chapter.id)) { (chapter.id) } }
                                td { (chapter.says_briefly()) }
                                (counts(&chapter.rows.iter().collect::<Vec<_>>()))
                            }
                        }
                        @if chapters.len() > 1 { tr { th scope="row" { "all" } td {} (counts(&rows)) } }
                    }
                }
            }
            (legend())
        }
    }
}

fn legend() -> Markup {
    html! {
        details {
            summary { "What the verdicts mean" }
            p { span.tag { "robust" } " marks a criterion that should hold in any faithful model, such as an order, and is judged; the others depend on details that the source may not give, and are reported." }
            dl.meanings {
                dt { "reproduced" } dd { "A robust criterion holds." }
                dt { "depends" } dd { "One admissible reading of the source meets a robust criterion, another misses it." }
                dt { "missed" } dd { "A robust criterion does not hold." }
                dt { "finding" } dd { "It does not hold by any admissible reading that a second reader tried." }
                dt { "reported" } dd { "Shown, not judged." }
                dt { "pending" } dd { "Needs something that is not built yet." }
                dt { "skipped" } dd { "Needs data that were not there." }
            }
        }
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "met",
        Verdict::Missed | Verdict::Finding => "missed",
        Verdict::Depends | Verdict::Reported | Verdict::Pending | Verdict::Skipped => "open",
    }
}

impl Chapter<'_> {
    fn says_briefly(&self) -> &str {
        if self.claim.is_empty() { &self.title } else { &self.claim }
    }

    /// This part of the page.
    pub fn html(&self, palette: &Palette) -> Result<Markup, PlotError> {
        let has_runs = !self.runs.rows.is_empty() || !self.runs.plates.is_empty();
        let runs = if has_runs {
            body(&self.runs, palette)?
        } else {
            html! {}
        };
        Ok(html! {
            section.chapter id=(self.id) {
                h2 { (self.id) ": " (self.title) }
                @if !self.claim.is_empty() { p.claim { (self.claim) } }
                p.note { "Source: " (self.source) "." }
                @if !self.pictures.is_empty() {
                    div.grid.pictures { @for picture in &self.pictures { (figure(picture)) } }
                }
                (rows(&self.rows))
                @if !self.tables.is_empty() {
                    details { summary { "All figures as tables (" (self.tables.len()) ")" }
                        @for table in &self.tables { h4 { (table.title) } (PreEscaped(table.html())) }
                    }
                }
                @if has_runs { details { summary { (self.runs.title) } (runs) } }
                @if !self.says.trim().is_empty() {
                    details { summary { "What the source says, and what is different here" } p.says { (self.says.trim()) } }
                }
                @if !self.runs.scenario_text.is_empty() {
                    details { summary { "One of its scenarios" } pre { code { (self.runs.scenario_text) } } }
                }
            }
        })
    }
}

/// A picture on its card, with its caption and its values.
fn figure(picture: &Picture) -> Markup {
    html! {
        figure.whole[picture.wide] {
            div.card { (PreEscaped(&picture.svg)) }
            figcaption {
                (picture.caption)
                @if let Some(values) = &picture.values {
                    details { summary { "The values" } (PreEscaped(values.html())) }
                }
            }
        }
    }
}

fn rows(rows: &[Row]) -> Markup {
    html! {
        div.wide {
            table.verdicts {
                thead { tr {
                    th scope="col" { "criterion" } th scope="col" { "published" } th scope="col" { "measured" }
                    th scope="col" { "verdict" }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" {
                                (row.criterion)
                                @if row.robust { " " span.tag { "robust" } }
                                @if !row.bounds.is_empty() { small { (bounds(row)) } }
                            }
                            td { (row.published) }
                            td { (measured(&row.measured)) }
                            td { span class=(format!("outcome {}", class(row.verdict))) { (row.verdict.as_str()) } }
                        }
                    }
                }
            }
        }
    }
}

/// The bounds in the unit of the measured value, if that is a single value.
fn bounds(row: &Row) -> String {
    let first = row.measured.split("; ").next().unwrap_or_default();
    let words: Vec<&str> = first.split(' ').collect();
    let number = words.iter().enumerate().find_map(|(at, word)| Some((at, word.parse::<f64>().ok()?)));
    let unit = number.and_then(|(at, _)| Unit::named(words.get(at + 1)?.trim_end_matches(',')));
    let Some((quantity, unit)) =
        unit.filter(|_| !first.starts_with("smallest step") && parts(first).len() < 3)
    else {
        return row.bounds.clone();
    };
    // A measure that is scaled to per cent has its bounds in per cent, too.
    let is_scaled = number
        .zip(row.value)
        .is_some_and(|((_, shown), value)| (shown - value).abs() < (shown * unit.size - value).abs());
    let shown = |word: &str| match word.trim_end_matches(',').parse::<f64>() {
        Ok(value) => {
            let unit = if is_scaled { Unit { size: 1.0, ..unit } } else { quantity.unit([value]) };
            // The fewest digits that say the same.
            let comma = if word.ends_with(',') { "," } else { "" };
            format!("{} {}{comma}", value_in(value, &unit), unit.name)
        }
        Err(_) => word.to_owned(),
    };
    row.bounds.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

/// A bound in a unit: rounded to nine digits, so that 0.15 s are 150 ms and not 150.00000000000003.
fn value_in(value: f64, unit: &Unit) -> f64 {
    (value / unit.size * 1e9).round() / 1e9
}

/// The measured values: a line for each reading of the source, and a table if there are many.
fn measured(text: &str) -> Markup {
    let text = without_empty_intervals(text);
    let lines: Vec<&str> = text.split("; ").collect();
    html! { @for line in lines { div { (values(line)) } } }
}

/// "3.1" for "3.1 [3.1, 3.1]" and for "3.1 ± 0": without variation there is no interval.
fn without_empty_intervals(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" [") {
        kept.push_str(before);
        let inside =
            after.split_once(']').and_then(|(inside, after)| Some((inside.split_once(", ")?, after)));
        rest = match inside {
            Some(((low, high), after)) if low == high => after,
            _ => {
                kept.push_str(" [");
                after
            }
        };
    }
    kept.push_str(rest);
    let words: Vec<&str> = kept.split(' ').collect();
    let is_zero = |word: &str| word.trim_end_matches([',', ';']).parse::<f64>() == Ok(0.0);
    let drop = |at: usize| {
        (words[at] == "±" && words.get(at + 1).is_some_and(|word| is_zero(word)))
            || (at > 0 && words[at - 1] == "±" && is_zero(words[at]))
    };
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        match drop(at) {
            // Separators stay: "3.1 ± 0, other".
            true if *word != "±" => {
                text.push_str(word.trim_start_matches(|letter| letter != ',' && letter != ';'))
            }
            true => {}
            false if at == 0 => text.push_str(word),
            false => {
                text.push(' ');
                text.push_str(word);
            }
        }
    }
    text
}

fn values(text: &str) -> Markup {
    let parts = parts(text);
    if parts.len() <= MOST_IN_CELL {
        return html! { (text) };
    }
    let count = parts.len();
    let head = range(&parts);
    html! {
        (head)
        details {
            summary { "all " (count) " values" }
            table.values { tbody { @for (name, value) in parts.iter().map(|part| named(part)) {
                tr { th scope="row" { (name) } td { (value) } }
            } } }
        }
    }
}

/// The smallest and the largest of the values, which all have the same unit; the first one if they are not numbers.
fn range(parts: &[&str]) -> String {
    let number = |part: &&str| {
        let (_, value) = named(part);
        let mut words = value.split(' ');
        let first = words.next()?;
        let unit = words.next().filter(|word| !word.is_empty() && Unit::named(word).is_some());
        Some((first.parse::<f64>().ok()?, first.to_owned(), unit.unwrap_or_default().to_owned()))
    };
    let values: Option<Vec<(f64, String, String)>> = parts.iter().map(number).collect();
    let ends = values.as_ref().and_then(|values| {
        let least = values.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let most = values.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        values.iter().all(|value| value.2 == least.2).then_some((least, most))
    });
    match ends {
        Some((least, most)) => format!("{} to {} {}", least.1, most.1, least.2).trim_end().to_owned(),
        None => parts.first().copied().unwrap_or_default().to_owned(),
    }
}

/// The parts of an enumeration; commas inside brackets do not separate.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 && text[at..].starts_with(", ") => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// "dcic 1MB 1.6 [1.5, 1.7]" as a name and a value, which begins at the last word that is a number.
fn named(part: &str) -> (&str, &str) {
    let head = part.split_once(" [").map_or(part, |(head, _)| head);
    let words = head.match_indices(' ').map(|(at, _)| at + 1).chain([0]);
    let is_number = |at: &usize| {
        let word = head[*at..].split(' ').next().unwrap_or_default();
        word.trim_end_matches('%').parse::<f64>().is_ok()
    };
    match words.filter(is_number).max() {
        Some(at) if at > 0 => (part[..at].trim(), &part[at..]),
        Some(_) => ("", part),
        None => (part, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict, measured: &str) -> Row {
        Row {
            experiment: "fig-4.3".into(),
            id: "delay".into(),
            criterion: "less delay".into(),
            robust: true,
            published: "4.1".into(),
            bounds: "at least 3".into(),
            measured: measured.into(),
            value: None,
            verdict,
        }
    }

    fn chapter<'a>() -> Chapter<'a> {
        Chapter {
            id: "fig-4.3".into(),
            title: "Delays".into(),
            claim: "Delays are <short>.".into(),
            rows: vec![row(Verdict::Reproduced, "3.7"), row(Verdict::Missed, "2.9; other: 3.1")],
            tables: vec![FigureTable {
                title: "All of it".into(),
                head: vec![(String::new(), String::new()), ("delay".into(), "ms".into())],
                rows: vec![vec!["cubic".into(), "3".into()]],
                report_only: false,
            }],
            pictures: vec![Picture {
                figure: "Fig. 4.3".into(),
                svg: "<svg role=\"img\"></svg>".into(),
                caption: "Hollow diamonds were published: text.".into(),
                wide: false,
                values: None,
            }],
            ..Chapter::default()
        }
    }

    #[test]
    fn pictures_come_before_rows_and_tables_are_folded() {
        let page = chapter().html(&Palette::default()).unwrap().into_string();
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} in {page}"));
        let order = [
            "Delays are &lt;short&gt;.",
            "<svg",
            "<figcaption>",
            "at least 3",
            ">missed<",
            "<details",
            "All of it",
        ];
        let places: Vec<usize> = order.iter().map(|text| at(text)).collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn the_summary_has_a_row_for_each_experiment_with_its_counts() {
        let page = summary(&[chapter()]).into_string();
        assert!(page.contains("1 reproduced, 1 missed"), "{page}");
        assert!(page.contains("<a href=\"#fig-4.3\">") && page.contains("Delays are &lt;short&gt;."));
        // Columns without any value are omitted.
        assert!(!page.contains("<th scope=\"col\">skipped</th>"));
    }

    #[test]
    fn bounds_have_the_unit_of_what_was_measured() {
        for (measured, at, expected) in [
            ("52.66 ms (holds)", "at most 0.15", "at most 150 ms"),
            (
                "7.514 Mbit/s; text: 7",
                "at least 7000000, at most 8200000",
                "at least 7 Mbit/s, at most 8.2 Mbit/s",
            ),
            ("50.00 %", "at least 0.5", "at least 50 %"),
            ("3.085 ± 0.12", "at least 4", "at least 4"),
            ("smallest step x1.1; 2 ms to 3 ms", "at least 0.97", "at least 0.97"),
            ("largest 50.53 ms, at ATT", "at most 0.055", "at most 55 ms"),
        ] {
            let row = Row { bounds: at.into(), ..row(Verdict::Reported, measured) };
            assert_eq!(bounds(&row), expected, "{measured}");
        }
        let scaled = row(Verdict::Reported, "20.01 % (0.1956 s of 0.2445 s)");
        let scaled = Row { bounds: "at least -5, at most 90".into(), value: Some(20.01), ..scaled };
        assert_eq!(bounds(&scaled), "at least -5 %, at most 90 %");
        let share = Row { bounds: "at least 0.05".into(), value: Some(0.2001), ..scaled };
        assert_eq!(bounds(&share), "at least 5 %");
    }

    #[test]
    fn many_values_are_shown_as_their_range() {
        let of = |text: &str| range(&parts(text));
        assert_eq!(of("a 0.5 [0.4, 0.6], b 0.2, c 0.9"), "0.2 to 0.9");
        assert_eq!(of("a 12 ms, b 3 ms"), "3 to 12 ms");
        assert_eq!(of("a 12 ms, b 3 s"), "a 12 ms");
        assert_eq!(of("Good, Bad"), "Good");
    }

    #[test]
    fn constant_values_have_no_interval() {
        for (text, expected) in [
            ("a 0.24 [0.24, 0.24], b 0.5 [0.4, 0.6]", "a 0.24, b 0.5 [0.4, 0.6]"),
            ("3.1 ± 0; text: 2 ± 0.1", "3.1; text: 2 ± 0.1"),
            ("3.1 ± 0.0000, on both sides", "3.1, on both sides"),
            ("12.5 ms, at drop 3", "12.5 ms, at drop 3"),
            ("12 of 15 [words", "12 of 15 [words"),
        ] {
            assert_eq!(without_empty_intervals(text), expected);
        }
    }

    #[test]
    fn many_values_become_a_table_and_commas_of_intervals_separate_nothing() {
        let many = "mean 1.5 [1.4, 1.6], a 1MB 1.1 [1, 1.2], b 2.0 [1.9, 2.1], c 3 %";
        assert_eq!(parts(many).len(), 4);
        assert_eq!(named("a 1MB 1.1 [1, 1.2]"), ("a 1MB", "1.1 [1, 1.2]"));
        assert_eq!(named("3 times"), ("", "3 times"));
        let page = measured(many).into_string();
        assert!(page.contains("all 4 values") && page.contains("<th scope=\"row\">a 1MB</th>"), "{page}");
        let few = measured("12.5 ms, at drop 3; other: 13 ms").into_string();
        assert_eq!(few, "<div>12.5 ms, at drop 3</div><div>other: 13 ms</div>");
    }
}
