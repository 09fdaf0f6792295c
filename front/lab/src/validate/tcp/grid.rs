//! The rows that `ranpace validate tcp` runs by both clocks. The grid was fixed before any of it was run; `docs/validate.md` describes it
//! in words. [`super::controls`] is that of `ranpace validate kernel`, from the same parts.

use std::fmt::Write as _;

use super::{Figures, Row};

/// The kernel's controls, by the simulator's names and the kernel's. BBR ends its phases as Linux does, unlike its default; this
/// was added after the first comparison had revealed it, and [`flow`]'s `gso` after the second.
const CONTROLS: [(&str, &str); 3] = [("newreno", "reno"), ("cubic", "cubic"), ("bbr1:departure=on", "bbr")];
/// Rates of the link, Mbit/s.
const RATES: [u64; 3] = [5, 20, 100];
/// RTTs without a queue, ms.
const RTTS: [u64; 3] = [20, 60, 150];
/// Buffers, in bandwidth-delay products.
const BUFFERS: [f64; 3] = [0.5, 1.0, 4.0];
/// One data packet out of this many is lost, in rows with losses.
const LOSS: u64 = 200;
/// Duration of each run, s.
pub const LENGTH: u64 = 30;
/// Runs of each row.
pub const RUNS: u64 = 3;
/// The recording: LTE of Verizon, 140 s and 5 Mbit/s on average.
pub const RECORDING: &str = "Verizon-LTE-short.down";

/// Rows that `--quick` runs once. Ours: each control, rate, RTT, buffer and kind of row is among them.
const QUICK: [&str; 12] = [
    "reno 5 Mbit/s 20 ms 0.5 BDP",
    "cubic 5 Mbit/s 60 ms 4 BDP",
    "bbr 5 Mbit/s 150 ms 1 BDP",
    "reno 20 Mbit/s 60 ms 4 BDP",
    "cubic 20 Mbit/s 20 ms 4 BDP",
    "bbr 20 Mbit/s 60 ms 1 BDP",
    "cubic 100 Mbit/s 60 ms 1 BDP",
    "cubic 5 Mbit/s 60 ms 4 BDP, 0.5 % lost",
    "two cubic 20 Mbit/s 60 ms 1 BDP",
    "cubic 100 kB 20 Mbit/s 60 ms 1 BDP",
    "bbr 1 MB 20 Mbit/s 60 ms 1 BDP",
    "cubic LTE cell",
];

/// All rows, with neighbours at different rates; `quick` selects some.
pub fn rows(quick: bool) -> Vec<Row> {
    let mut all = [alone(), lossy(), together(), transfers(), recorded(), cells()].concat();
    if quick {
        all.retain(|row| QUICK.contains(&row.name.as_str()));
    }
    all
}

/// One flow, no loss except in the buffer: every rate, RTT and control; the buffers form a Latin square, so that each is combined
/// with each rate, RTT and control equally often.
fn alone() -> Vec<Row> {
    let mut rows = Vec::new();
    for (k, control) in CONTROLS.into_iter().enumerate() {
        for (j, rtt) in RTTS.into_iter().enumerate() {
            for (i, rate) in RATES.into_iter().enumerate() {
                let buffer = BUFFERS[(i + j + k) % 3];
                rows.push(bulk(control, rate, rtt, buffer, false));
            }
        }
    }
    rows
}

/// The same with losses: every rate and RTT, with two Latin squares of controls and buffers.
fn lossy() -> Vec<Row> {
    let mut rows = Vec::new();
    for (j, rtt) in RTTS.into_iter().enumerate() {
        for (i, rate) in RATES.into_iter().enumerate() {
            let (control, buffer) = (CONTROLS[(i + j) % 3], BUFFERS[(i + 2 * j) % 3]);
            rows.push(bulk(control, rate, rtt, buffer, true));
        }
    }
    rows
}

fn bulk((ours, kernel): (&str, &str), rate: u64, rtt: u64, buffer: f64, is_lossy: bool) -> Row {
    let lost = if is_lossy { ", 0.5 % lost" } else { "" };
    Row {
        name: format!("{kernel} {rate} Mbit/s {rtt} ms {buffer} BDP{lost}"),
        text: link(rate, rtt * 500, buffer, is_lossy) + &flow(ours, ""),
        figures: Figures::Bulk,
        needs: None,
    }
}

/// Two flows, the second of which begins a second after the first, a tenth of a second later in each run.
fn together() -> Vec<Row> {
    let pair = |first: usize, second: usize, buffer: f64| {
        let names = if first == second {
            format!("two {}", CONTROLS[first].1)
        } else {
            format!("{} and {}", CONTROLS[first].1, CONTROLS[second].1)
        };
        Row {
            name: format!("{names} 20 Mbit/s 60 ms {buffer} BDP"),
            text: link(20, 30_000, buffer, false)
                + &flow(CONTROLS[first].0, "")
                + &flow(CONTROLS[second].0, "start = \"{later}ms\"\n"),
            figures: Figures::Together,
            needs: None,
        }
    };
    vec![pair(0, 0, 1.0), pair(1, 1, 1.0), pair(2, 2, 1.0), pair(1, 2, 4.0)]
}

/// One transfer after another, each on a connection of its own, half a second after the end of the previous one.
fn transfers() -> Vec<Row> {
    let mut rows = Vec::new();
    for size in ["100 kB", "1 MB"] {
        for (ours, kernel) in CONTROLS {
            for (rate, rtt, buffer) in [(5, 150, 4.0), (20, 60, 1.0), (100, 20, 0.5)] {
                let bytes = size.to_uppercase().replace(' ', "");
                let workload =
                    format!("workload = {{ kind = \"repeat\", size = \"{bytes}\", pause = \"500ms\" }}\n");
                rows.push(Row {
                    name: format!("{kernel} {size} {rate} Mbit/s {rtt} ms {buffer} BDP"),
                    text: link(rate, rtt * 500, buffer, false) + &flow(ours, &workload),
                    figures: Figures::Transfers,
                    needs: None,
                });
            }
        }
    }
    rows
}

/// One flow over the recording.
fn recorded() -> Vec<Row> {
    let row = |(ours, kernel): (&str, &str)| Row {
        name: format!("{kernel} recorded LTE"),
        text: recorded_link() + &flow(ours, ""),
        figures: Figures::Bulk,
        needs: Some(RECORDING),
    };
    CONTROLS.map(row).to_vec()
}

/// A recorded link with a delay of 20 ms each way and 150 kB of buffer; the runs begin 0, 40 and 80 s into the recording.
pub(super) fn recorded_link() -> String {
    head()
        + &format!(
            "[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"\ntrace = \"{RECORDING}@{{part}}s\"\n\
             delay = \"20ms\"\nqueue = {{ kind = \"droptail\", limit = \"150KB\" }}\nback = {{ rate = \"unlimited\" }}\n\n"
        )
}

/// One user at 300 m in an LTE cell with fading, alone; the server is 10 ms away.
fn cells() -> Vec<Row> {
    let row = |(ours, kernel): (&str, &str)| Row {
        name: format!("{kernel} LTE cell"),
        text: head()
            + "[[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"unlimited\"\ndelay = \"10ms\"\n\
               duplex = true\n\n[[cell]]\nname = \"cell\"\nhost = \"mast\"\npreset = \"lte\"\n\n[[user]]\nname = \"phone\"\n\
               position = [300, 0]\n\n"
            + &flow(ours, ""),
        figures: Figures::Bulk,
        needs: None,
    };
    CONTROLS.map(row).to_vec()
}

/// Values that differ between the runs of a row are in braces.
pub(super) fn head() -> String {
    format!("duration = \"{LENGTH}s\"\nseed = {{run}}\nsample = \"100ms\"\n\n")
}

/// A link of this rate in Mbit/s whose return path has the same delay, half of the RTT in us, and no serialisation time.
pub(super) fn link(rate: u64, half_us: u64, buffer: f64, is_lossy: bool) -> String {
    // 1 Mbit/s carries 125 B in 1 ms. A quarter of a byte does not matter.
    let limit = (rate * half_us / 500 * 125) as f64 * buffer;
    let loss = if is_lossy { "loss = {loss}\n" } else { "" };
    let half = half_us as f64 / 1e3;
    head()
        + &format!(
            "[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{half}ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"{limit:.0}B\" }}\n{loss}back = {{ rate = \"unlimited\"{} }}\n\n",
            if is_lossy { ", loss = 0.0" } else { "" },
        )
}

/// A flow from the server to the phone.
pub(super) fn flow(control: &str, more: &str) -> String {
    format!("[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"{control}\"\ngso = true\n{more}\n")
}

/// The scenario of a run, numbered from 1: its seed, its lost packets, its part of the recording.
pub fn scenario(row: &Row, run: u64) -> String {
    let mut text = row.text.replace("{run}", &run.to_string());
    text = text.replace("{later}", &(1_000 + 100 * run).to_string());
    text = text.replace("{part}", &(40 * (run - 1)).to_string());
    if text.contains("{loss}") {
        text = text.replace("{loss}", &lost(run));
    }
    text
}

/// Data packets lost in a run: among those of 1500 B at 100 Mbit/s for its length, plus an eighth.
fn lost(run: u64) -> String {
    let most = 100_000_000 / 8 / 1500 * LENGTH * 9 / 8;
    let mut list = String::from("{ kind = \"list\", smallest = \"100B\", packets = [");
    for number in (0..most).filter(|number| mix(run << 32 | number).is_multiple_of(LOSS)) {
        // Writing to a string does not fail.
        let _ = write!(list, "{number}, ");
    }
    list + "] }"
}

/// SplitMix64's output function (Steele, Lea and Flood 2014): pseudo-random numbers, the same everywhere.
const fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use ranpace_link::Loss;

    use super::*;
    use crate::TraceLibrary;

    /// Asserts that these are so many rows with distinct names, and that each run of them is a valid scenario.
    pub(in super::super) fn assert_rows(all: &[Row], count: usize) {
        assert_eq!(all.len(), count);
        let names: BTreeSet<&str> = all.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), count, "no two rows have the same name");
        for row in all.iter().filter(|row| row.needs.is_none()) {
            for run in 1..=RUNS {
                let text = scenario(row, run);
                let parsed = TraceLibrary::default().parse(&text, &row.name);
                let (scenario, _) = parsed.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!((scenario.seed, scenario.duration.as_millis()), (run, LENGTH * 1_000));
            }
        }
    }

    #[test]
    fn grid_has_distinct_rows_and_every_row_is_a_valid_scenario() {
        assert_rows(&rows(false), 64);
        assert_eq!(rows(true).len(), 12, "the rows of --quick are all in the grid");
    }

    #[test]
    fn one_data_packet_in_200_is_lost_and_others_in_each_run() {
        let row = lossy().swap_remove(0);
        let numbers = |run| {
            let (scenario, _) =
                TraceLibrary::default().parse(&scenario(&row, run), "a").expect("it is right");
            assert_eq!(scenario.links[1].config.loss, Loss::None, "nothing is lost on the way back");
            let Loss::List { numbers, .. } = &scenario.links[0].config.loss else { panic!("a list") };
            numbers.to_vec()
        };
        let [first, second] = [1, 2].map(numbers);
        assert!(first != second);
        let within = |most: u64| first.iter().filter(|number| **number < most).count();
        // 12 500 packets are 30 s at 5 Mbit/s; within three standard deviations.
        assert!((62 - 24..=62 + 24).contains(&within(12_500)), "{}", within(12_500));
        assert!((1250 - 106..=1250 + 106).contains(&within(250_000)), "{}", within(250_000));
    }
}
