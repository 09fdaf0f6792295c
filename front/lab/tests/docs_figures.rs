//! `docs/figures.md` is the table of figures. `UPDATE_DOCS=1 cargo test -p ranpace-lab --test docs_figures` writes it anew.
#![allow(clippy::unwrap_used)] // a test may

use std::fmt::Write as _;
use std::fs;

use ranpace_lab::Quantity;
use ranpace_lab::figure::{Figure, Of};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures.md");

const HEAD: &str = "# Figures

What can be measured of a run, by the names that experiments and comparisons use. [reproductions.md](reproductions.md) says
how criteria are made of them. This page is made from the table of figures in `front/lab/src/figure/`; a test holds that it is
up to date.

Figures are about all flows but plain sources, or about the flows that are chosen. A figure of several numbers has one for each
flow, transfer, segment or row. Some figures need places of the experiment (`rtt`, `freed`), or columns of the series.

| figure | unit | what it is |
|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for figure in Figure::all() {
        let entry = figure.entry();
        let unit = match entry.quantity {
            Quantity::Rate => "bit/s",
            Quantity::Time => "s",
            Quantity::Size => "B",
            Quantity::Share => "share",
            Quantity::Plain => "",
        };
        let several = if matches!(entry.of, Of::Each(_)) { " (several numbers)" } else { "" };
        writeln!(page, "| `{}` | {unit} | {}{several} |", entry.name, entry.about).unwrap();
    }
    page
}

#[test]
fn the_page_of_figures_is_up_to_date() {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, page()).unwrap();
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        found == page(),
        "docs/figures.md is out of date: run this test with UPDATE_DOCS=1 and commit the page"
    );
}
