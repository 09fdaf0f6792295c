//! Compares the tables, entry by entry, with those of the standards as CSV.
//!
//! The files are not part of this repository. They are expected in `shared/data/3gpp`, beside the folder of the
//! repository; each has a comment line, a header line, and then rows.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // test helpers outside of a test module

use std::fs;
use std::io::Write as _;
use std::path::Path;

use ranpace_phy::{
    BlerCurve, CodeRate, Cqi, CqiThresholds, Direction, Efficiency, Itbs, LteGrant, LteMcs, LtePrbs, McsRule,
    Modulation, NR_SMALL_BLOCKS, NrMcs, QamTable, ns3_measured_sinr_db,
};

/// Header and rows of a file; `None`, with a message, if it is missing.
fn table(file: &str) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/3gpp").join(file);
    let Ok(text) = fs::read_to_string(path) else {
        // Written directly to stderr, since the test runner hides the output of passing tests.
        let word = format!(
            "skipped: needs shared/data/3gpp/{file} beside the checkout; CONTRIBUTING.md says more\n"
        );
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return None;
    };
    let cells = |line: &str| line.trim().split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let names = cells(lines.next().unwrap());
    Some((names, lines.map(cells).collect()))
}

fn number<T: std::str::FromStr>(cell: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    cell.parse().unwrap()
}

/// Modulation order, code rate and efficiency in the format of the file.
fn printed(modulation: Modulation, rate: CodeRate) -> [String; 3] {
    let digits = Efficiency::of(modulation, rate).printed_x10000();
    let halves = u64::from(rate.in_2048ths());
    let rate = if halves % 2 == 0 { format!("{}", halves / 2) } else { format!("{}.5", halves / 2) };
    [modulation.order().to_string(), rate, format!("{}.{:04}", digits / 10_000, digits % 10_000)]
}

#[test]
fn lte_block_sizes() {
    let Some((names, rows)) = table("lte_tbs.csv") else { return };
    assert_eq!((names.len(), rows.len()), (111, 27));
    for (index, row) in Itbs::all().zip(&rows) {
        assert_eq!(row[0], index.to_string());
        for (prbs, cell) in LtePrbs::all().zip(&row[1..]) {
            assert_eq!(index.transport_block(prbs).bits(), number(cell), "TBS index {index}, {prbs} PRBs");
        }
    }
}

#[test]
fn lte_mcs_of_both_directions() {
    for (file, direction) in [("lte_mcs_dl.csv", Direction::Downlink), ("lte_mcs_ul.csv", Direction::Uplink)]
    {
        let Some((names, rows)) = table(file) else { return };
        assert_eq!(names, ["i_mcs", "q_m", "i_tbs"]);
        let rows: Vec<_> = rows.into_iter().filter(|row| !row[2].is_empty()).collect();
        assert_eq!(rows.len(), 29);
        for (mcs, row) in LteMcs::all().zip(rows) {
            let found = [mcs.get(), mcs.modulation(direction).order(), mcs.i_tbs(direction).get()];
            assert_eq!(row, found.map(|number| number.to_string()), "{direction:?}");
        }
    }
}

#[test]
fn cqi_of_both_standards() {
    for (file, of) in [
        ("lte_cqi.csv", QamTable::Qam64),
        ("nr_cqi_1.csv", QamTable::Qam64),
        ("nr_cqi_2.csv", QamTable::Qam256),
    ] {
        let Some((names, rows)) = table(file) else { return };
        assert_eq!(names, ["cqi", "q_m", "code_rate_x1024", "efficiency"]);
        assert_eq!(rows.len(), 16);
        for (cqi, row) in Cqi::all().zip(rows) {
            assert_eq!(row[0], cqi.to_string());
            let found =
                cqi.coding(of).map_or(Default::default(), |(modulation, rate)| printed(modulation, rate));
            assert_eq!(row[1..], found, "{file}, CQI {cqi}");
        }
    }
}

#[test]
fn nr_mcs_of_both_tables() {
    for (file, of, count) in [("nr_mcs_1.csv", QamTable::Qam64, 29), ("nr_mcs_2.csv", QamTable::Qam256, 28)] {
        let Some((names, rows)) = table(file) else { return };
        assert_eq!(names, ["i_mcs", "q_m", "code_rate_x1024", "efficiency"]);
        let rows: Vec<_> = rows.into_iter().filter(|row| !row[2].is_empty()).collect();
        assert_eq!((rows.len(), NrMcs::all(of).count()), (count, count));
        for (mcs, row) in NrMcs::all(of).zip(rows) {
            assert_eq!(row[0], mcs.index().to_string());
            let (modulation, rate) = mcs.coding();
            assert_eq!(row[1..], printed(modulation, rate), "{file}, MCS {}", mcs.index());
        }
    }
}

#[test]
fn nr_small_block_sizes() {
    let Some((names, rows)) = table("nr_tbs_small.csv") else { return };
    assert_eq!(names, ["index", "tbs"]);
    let sizes: Vec<u16> = rows.iter().map(|row| number(&row[1])).collect();
    assert_eq!(sizes, NR_SMALL_BLOCKS);
}

#[test]
fn error_rates_of_ns3() {
    let Some((names, rows)) = table("lte_bler_ns3.csv") else { return };
    assert_eq!(names, ["n_prb", "mcs", "tbs_bits", "sinr_db_bler50", "sinr_db_bler10", "sinr_db_bler1"]);
    assert_eq!(rows.len(), 6 * 29);
    for row in rows {
        let prbs = LtePrbs::new(number(&row[0])).unwrap();
        let mcs = LteMcs::new(number(&row[1])).unwrap();
        let db: Vec<f64> = row[3..].iter().map(|cell| number(cell)).collect();
        assert_eq!(ns3_measured_sinr_db(mcs, prbs).unwrap()[..], db, "{prbs} PRBs, MCS {mcs}");
        assert_eq!(BlerCurve::ns3(mcs, prbs).centre_db(), db[0]);
        // The measured block is the one in our own tables.
        let grant = LteGrant { direction: Direction::Downlink, mcs, prbs };
        assert_eq!(grant.transport_block().bits(), number(&row[2]), "{prbs} PRBs, MCS {mcs}");
    }
}

#[test]
fn link_adaptation_of_ns3() {
    let Some((names, rows)) = table("lte_cqi_ns3.csv") else { return };
    assert_eq!(names, ["cqi", "mcs", "sinr_db_mi_25prb", "sinr_db_mi_100prb", "sinr_db_piro"]);
    assert_eq!(rows.len(), 15);
    for (i, (cqi, row)) in Cqi::all().skip(1).zip(rows).enumerate() {
        assert_eq!(row[0], cqi.to_string());
        assert_eq!(McsRule::Lena.mcs(cqi), LteMcs::new(number(&row[1])));
        for (thresholds, cell) in [CqiThresholds::Ns3On25Prbs, CqiThresholds::Ns3, CqiThresholds::Ns3Piro]
            .into_iter()
            .zip(&row[2..])
        {
            assert_eq!(thresholds.sinr_db()[i], number(cell), "{thresholds:?}, CQI {cqi}");
        }
    }
}
