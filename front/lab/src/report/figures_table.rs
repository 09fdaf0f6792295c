//! The table of figures, with their intervals and the best of each column in bold.

use maud::{Markup, html};

use crate::figures::Unit;
use crate::plot::Palette;
use crate::row::{COLUMNS, Column, CompareRow};

/// Most rows shown; with more, browsers take minutes for the page.
const SHOWN: usize = 2_000;

/// The table; figures without values are left out.
pub fn table(rows: &[CompareRow], palette: &Palette) -> Markup {
    let has = |figure: &&Column| rows.iter().any(|row| figure.of(row).0.is_finite());
    let figures: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    if figures.is_empty() {
        return html! { p.note { "There are no figures." } };
    }
    let units: Vec<_> = figures
        .iter()
        .map(|figure| figure.quantity().unit(rows.iter().map(|row| figure.of(row).0)))
        .collect();
    let best: Vec<Vec<bool>> =
        figures.iter().zip(&units).map(|(figure, unit)| best(figure, unit, rows)).collect();
    let seeds: Vec<usize> = rows.iter().map(|row| row.seeds).collect();
    let same = seeds.iter().all(|count| *count == seeds[0]);
    html! {
        div.wide {
            table {
                thead { tr {
                    th { "algorithm" }
                    @for (figure, unit) in figures.iter().zip(&units) {
                        th scope="col" { abbr title=(figure.meaning()) { (figure.title) } small { (unit.name) } }
                    }
                    @if !same { th scope="col" { "seeds" } }
                } }
                tbody {
                    @for (index, row) in rows.iter().take(SHOWN).enumerate() {
                        tr {
                            th scope="row" {
                                span.swatch style=(format!("background:{}", palette.colour(&row.cc).hex())) {}
                                (row.cc)
                            }
                            @for ((figure, unit), best) in figures.iter().zip(&units).zip(&best) {
                                (cell(&unit.show_with(figure.of(row).0, figure.of(row).1), best[index]))
                            }
                            @if !same { td { (row.seeds) } }
                        }
                    }
                }
            }
        }
        p.caption {
            @if rows.len() > SHOWN {
                "The first " (SHOWN) " of " (rows.len()) " rows; all of them are in the results folder. "
            }
            @if rows.len() > 1 { "The best of each column is in bold. " }
            @match (same, seeds[0]) {
                (true, 1) => "One seed, so there are no confidence intervals; small differences may be chance.",
                (true, count) => { "Means over " (count) " seeds with 95 % confidence intervals." }
                _ => "Means over the seeds, with 95 % confidence intervals where there are several.",
            }
        }
    }
}

fn cell(text: &str, best: bool) -> Markup {
    let (value, half) = text.split_once(" ± ").map_or((text, None), |(value, half)| (value, Some(half)));
    html! {
        td.best[best] { (value) @if let Some(half) = half { " " span.ci { "± " (half) } } }
    }
}

/// Rows with the best value; none if all rows have the same.
fn best(figure: &Column, unit: &Unit, rows: &[CompareRow]) -> Vec<bool> {
    let nowhere = vec![false; rows.len()];
    let values: Vec<f64> = rows.iter().map(|row| figure.of(row).0).collect();
    let known = values.iter().copied().filter(|value| value.is_finite());
    let Some(top) = known.reduce(if figure.more_is_better { f64::max } else { f64::min }) else {
        return nowhere;
    };
    let shown: Vec<String> = rows
        .iter()
        .map(|row| {
            let (value, ci95) = figure.of(row);
            let text = unit.show_with(value, ci95);
            text.split_once(" ± ").map_or(text.clone(), |(value, _)| value.to_owned())
        })
        .collect();
    // Values that print alike rank alike.
    let tops: Vec<&String> =
        shown.iter().zip(&values).filter(|(_, value)| **value == top).map(|(text, _)| text).collect();
    let is_best: Vec<bool> = (shown.iter().zip(&values))
        .map(|(text, value)| value.is_finite() && (*value == top || tops.first() == Some(&text)))
        .collect();
    let all = is_best.iter().zip(&values).all(|(best, value)| *best || !value.is_finite());
    if all { nowhere } else { is_best }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn ten_thousand_rows_are_cut_to_two_thousand_quickly() {
        let one = CompareRow::of("cubic", &[&synthetic::run("cubic", 1)]);
        let row = |index: usize| {
            let mut row = one.clone().with("goodput_bit_s", 1e6 + index as f64 * 1e3);
            row.cc = format!("{index}");
            row
        };
        let rows: Vec<CompareRow> = (0..10_000).map(row).collect();
        let palette = Palette::of(rows.iter().map(|row| row.cc.as_str()));
        let page = table(&rows, &palette).into_string();
        assert_eq!(page.matches("<tr>").count(), 1 + SHOWN);
        assert!(page.contains("The first 2000 of 10000 rows"));
        assert!(!page.contains("best\">"), "the best row is the last one, of which only the others are here");
    }

    #[test]
    fn the_best_is_bold_and_names_are_escaped() {
        let (fast, slow) = (synthetic::run("cubic", 1), synthetic::run("vegas", 1));
        let rows = |slow_at| {
            let fast = CompareRow::of("<cubic>", &[&fast]).with("goodput_bit_s", 9e6);
            [fast, CompareRow::of("vegas", &[&slow]).with("goodput_bit_s", slow_at)]
        };
        let page = table(&rows(8e6), &Palette::of(["<cubic>", "vegas"])).into_string();
        assert!(page.contains("&lt;cubic&gt;") && !page.contains("<cubic>"));
        assert!(page.contains(r#"best">9.000"#) && !page.contains(r#"best">8.000"#));
        let page = table(&rows(9e6), &Palette::default()).into_string();
        assert!(page.contains(">9.000<") && !page.contains(r#"best">9.000"#));
        assert!(table(&[], &Palette::default()).into_string().contains("no figures"));
    }
}
