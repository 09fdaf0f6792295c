//! Writes a report about made-up runs, to preview reports: `cargo run --example sample_report -- <file>`.

mod synthetic;

use ranpace_lab::reproduce::{Row, Verdict};
use ranpace_lab::{Chapter, Comparison, Report, table};

const SCENARIO: &str = "# A made-up scenario\nduration = \"60s\"\nseed = 1\n\n[[link]]\nname = \"cell\"\nrate = \"24Mbit/s\"\nqueue = \"375KB\"\n\n[[flow]]\ncc = \"cubic\"\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "sample.html".into());
    let several: Vec<(String, Vec<_>)> = ["cubic", "bbr1", "vegas", "copa"]
        .map(|cc| (cc.to_owned(), (1..=5).map(|seed| synthetic::run(cc, seed)).collect()))
        .into();
    let shared: Vec<(String, Vec<_>)> = vec![
        ("cubic".into(), vec![synthetic::run_of(&["cubic"; 3], 1)]),
        ("cubic and bbr1".into(), vec![synthetic::run_of(&["cubic", "bbr1"], 1)]),
    ];
    let many: Vec<(String, Vec<_>)> = (0..10)
        .map(|index| {
            let cc = ["cubic", "bbr1", "vegas", "copa"][index % 4];
            let label = if index < 4 { cc.to_owned() } else { format!("{cc}+c2tcp-{index}") };
            (label, (1..=3).map(|seed| synthetic::run(cc, seed + index as u64)).collect())
        })
        .collect();
    let mut single = vec![("cubic".to_owned(), vec![synthetic::run("cubic", 9)])];
    single[0].1[0].interrupted = true;
    let groups: Vec<Comparison<'_>> =
        [("Four alone", &several), ("Sharing a cell", &shared), ("Ten alone", &many), ("One run", &single)]
            .into_iter()
            .map(|(title, runs)| {
                let runs = runs.iter().map(|(label, runs)| (label.clone(), runs.iter().collect())).collect();
                Comparison::new(title, SCENARIO, runs)
            })
            .collect();
    let verdict = |experiment: &str, robust, verdict| Row {
        experiment: experiment.into(),
        id: "delay".into(),
        criterion: "the delay of copa is below that of cubic at no less than 90 % of its goodput".into(),
        robust,
        published: "4.1 times lower".into(),
        bounds: "at least 3".into(),
        measured: "3.7 ± 0.2 times lower".into(),
        value: None,
        verdict,
    };
    let chapter = |id: &str, row: Row| Chapter {
        id: id.into(),
        title: "Delay beside goodput".into(),
        source: "nowhere".into(),
        rows: vec![row],
        ..Chapter::default()
    };
    let report = Report {
        title: "A sample report <of nothing>".into(),
        command: "ranpace compare drive.toml --cc cubic --cc bbr1 --cc vegas --cc copa --seeds 5".into(),
        intro: "Four congestion controls on one varying link. The runs are made up: this page shows what reports look like.".into(),
        chapters: vec![
            chapter("fig-4.3", verdict("fig-4.3", true, Verdict::Reproduced)),
            chapter("tab-5.1", verdict("tab-5.1", false, Verdict::Missed)),
            chapter("fig-6.2", verdict("fig-6.2", false, Verdict::Pending)),
        ],
        warnings: Vec::new(),
        groups,
    };
    let page = report.html()?;
    std::fs::write(&path, &page)?;
    eprintln!("{}", table::comparison(&report.groups[0].rows));
    eprintln!("{path}: {} bytes", page.len());
    Ok(())
}
