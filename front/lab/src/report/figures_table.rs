//! The table of figures, with their intervals and the best of each column in bold.

use maud::{Markup, html};

use crate::figures::Unit;
use crate::plot::Palette;
use crate::row::{CompareRow, FIGURES, Figure};

/// The table; figures that no row has are left out.
pub fn table(rows: &[CompareRow], palette: &Palette) -> Markup {
    let has = |figure: &&Figure| rows.iter().any(|row| (figure.of)(row).0.is_finite());
    let figures: Vec<&Figure> = FIGURES.iter().filter(has).collect();
    if figures.is_empty() {
        return html! { p.note { "There are no figures." } };
    }
    let units: Vec<_> = figures
        .iter()
        .map(|figure| figure.quantity.unit(rows.iter().map(|row| (figure.of)(row).0)))
        .collect();
    let seeds: Vec<usize> = rows.iter().map(|row| row.seeds).collect();
    let same = seeds.iter().all(|count| *count == seeds[0]);
    html! {
        div.wide {
            table {
                thead { tr {
                    th { "algorithm" }
                    @for (figure, unit) in figures.iter().zip(&units) {
                        th scope="col" { abbr title=(figure.meaning) { (figure.title) } small { (unit.name) } }
                    }
                    @if !same { th scope="col" { "seeds" } }
                } }
                tbody {
                    @for (index, row) in rows.iter().enumerate() {
                        tr {
                            th scope="row" {
                                span.swatch style=(format!("background:{}", palette.colour(&row.cc).hex())) {}
                                (row.cc)
                            }
                            @for (figure, unit) in figures.iter().zip(&units) {
                                (cell(&unit.show_with((figure.of)(row).0, (figure.of)(row).1), is_best(figure, unit, rows, index)))
                            }
                            @if !same { td { (row.seeds) } }
                        }
                    }
                }
            }
        }
        p.caption {
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

/// Whether no row shows a better value; not if all of them show the same.
fn is_best(figure: &Figure, unit: &Unit, rows: &[CompareRow], index: usize) -> bool {
    let Some(more_is_better) = figure.more_is_better else { return false };
    let value = |row: &CompareRow| (figure.of)(row).0;
    let shown = |row: &CompareRow| {
        let (value, ci95) = (figure.of)(row);
        let text = unit.show_with(value, ci95);
        text.split_once(" ± ").map_or(text.clone(), |(value, _)| value.to_owned())
    };
    let own = &rows[index];
    let others = rows.iter().filter(|row| value(row).is_finite() && shown(row) != shown(own));
    let mut others = others.map(value).peekable();
    let distinct = others.peek().is_some();
    let beaten = others.any(|other| if more_is_better { other > value(own) } else { other < value(own) });
    value(own).is_finite() && distinct && !beaten
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn the_best_is_bold_and_names_are_escaped() {
        let (fast, slow) = (synthetic::run("cubic", 1), synthetic::run("vegas", 1));
        let mut rows = vec![CompareRow::of("<cubic>", &[&fast]), CompareRow::of("vegas", &[&slow])];
        rows[0].goodput_bit_s = 9e6;
        rows[1].goodput_bit_s = 8e6;
        let page = table(&rows, &Palette::of(["<cubic>", "vegas"])).into_string();
        assert!(page.contains("&lt;cubic&gt;") && !page.contains("<cubic>"));
        assert!(page.contains(r#"best">9.000"#) && !page.contains(r#"best">8.000"#));
        rows[1].goodput_bit_s = 9e6;
        let page = table(&rows, &Palette::default()).into_string();
        assert!(page.contains(">9.000<") && !page.contains(r#"best">9.000"#));
        assert!(table(&[], &Palette::default()).into_string().contains("no figures"));
    }
}
