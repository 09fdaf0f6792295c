//! The grid of `ranpace validate kernel`: the controls of `carriers/kernel`, played by both clocks. It was written down before any
//! of it was played; `docs/validate.md` has it in words.
//!
//! Delays are no whole numbers of milliseconds. Where a measured value is exactly at a threshold, an integer and a floating-point
//! number decide differently (`docs/kernel.md`), and what jitters is never exactly there.

use super::grid::{RECORDING, flow, head, link, recorded_link};
use super::{Figures, Row};

/// A control: its name in the rows, and the simulator's text of it for a path of this RTT in ms.
#[derive(Clone, Copy)]
struct Tested {
    name: &'static str,
    text: &'static str,
}

/// Controls that need nothing of the network. Reports are written as segments of a real stack carry them (`report=exp`). `{target}` is
/// that of the path.
const ANYWHERE: [Tested; 4] = [
    Tested { name: "c2tcp", text: "c2tcp:target={target}ms" },
    Tested { name: "newreno+c2tcp", text: "newreno+c2tcp:target={target}ms" },
    Tested { name: "cdbe", text: "cdbe:report=exp" },
    Tested { name: "cdbev2", text: "cdbev2:report=exp" },
];
/// Controls whose receiver follows the grants of its modem: in cells alone.
const IN_CELLS: [Tested; 2] =
    [Tested { name: "dcic", text: "dcic:report=exp" }, Tested { name: "cqic-s", text: "cqic-s:report=exp" }];
/// Controls that follow what a modem, the edge's feed or a PEP tells the sender: in [`told`] alone.
const SIGMA: Tested = Tested { name: "sigma", text: "sigma" };
const MELD: Tested = Tested { name: "cubic+meld-me", text: "cubic+meld-me" };
const MDCC: Tested = Tested { name: "mdcc", text: "mdcc" };
/// The kernel's own control, beside the tested one.
const RIVAL: Tested = Tested { name: "cubic", text: "cubic" };
/// Rates of the link, Mbit/s.
const RATES: [u64; 3] = [5, 20, 50];
/// Half of the RTT without a queue, us, and C2TCP's target there, ms.
const PATHS: [(u64, u64); 3] = [(10_057, 50), (30_057, 100), (75_057, 200)];
/// Buffers, in bandwidth-delay products.
const BUFFERS: [f64; 3] = [1.0, 2.0, 4.0];
/// C2TCP's target over the recording and in cells, ms.
const RADIO_TARGET: u64 = 100;

/// Rows of `--quick`, once each. Ours: each control, each kind of row, and each kind of link that needs no recording is among them.
const QUICK: [&str; 10] = [
    "c2tcp 20 Mbit/s 60 ms 4 BDP",
    "newreno+c2tcp 20 Mbit/s 60 ms 4 BDP, 0.5 % lost",
    "cdbe 20 Mbit/s 20 ms 1 BDP",
    "two c2tcp 20 Mbit/s 60 ms 2 BDP",
    "cdbev2 and cubic 20 Mbit/s 60 ms 2 BDP",
    "c2tcp LTE cell",
    "cdbe LTE cell",
    "cdbev2 NR cell",
    "dcic LTE cell",
    "cqic-s NR cell",
];

/// All rows; `quick` chooses some.
pub fn rows(quick: bool) -> Vec<Row> {
    let mut all = [alone(), lossy(), together(), recorded(), cells(), told()].concat();
    if quick {
        all.retain(|row| QUICK.contains(&row.name.as_str()));
    }
    all
}

impl Tested {
    fn flow(self, target: u64, more: &str) -> String {
        flow(&self.text.replace("{target}", &target.to_string()), more)
    }
}

/// One flow: each control at each rate; of the RTTs and the buffers two Latin squares.
fn alone() -> Vec<Row> {
    let mut rows = Vec::new();
    for (k, control) in ANYWHERE.into_iter().enumerate() {
        for (i, rate) in RATES.into_iter().enumerate() {
            rows.push(bulk(control, rate, PATHS[(i + k) % 3], BUFFERS[(i + 2 * k + 1) % 3], false));
        }
    }
    rows
}

/// One flow with losses: each control.
fn lossy() -> Vec<Row> {
    ANYWHERE.map(|control| bulk(control, 20, PATHS[1], 4.0, true)).to_vec()
}

fn bulk(control: Tested, rate: u64, (half_us, target): (u64, u64), buffer: f64, is_lossy: bool) -> Row {
    let lost = if is_lossy { ", 0.5 % lost" } else { "" };
    let rtt = 2 * half_us / 1_000;
    Row {
        name: format!("{} {rate} Mbit/s {rtt} ms {buffer} BDP{lost}", control.name),
        text: link(rate, half_us, buffer, is_lossy) + &control.flow(target, ""),
        figures: Figures::Bulk,
        needs: None,
    }
}

/// Two flows of which the second begins a second after the first: two of each control, and each beside the kernel's CUBIC.
fn together() -> Vec<Row> {
    let (half_us, target) = PATHS[1];
    let row = |name: String, first: Tested, second: Tested| Row {
        name: format!("{name} 20 Mbit/s 60 ms 2 BDP"),
        text: link(20, half_us, 2.0, false)
            + &first.flow(target, "")
            + &second.flow(target, "start = \"{later}ms\"\n"),
        figures: Figures::Together,
        needs: None,
    };
    let twice = ANYWHERE.map(|control| row(format!("two {}", control.name), control, control));
    let beside = ANYWHERE.map(|control| row(format!("{} and cubic", control.name), control, RIVAL));
    twice.into_iter().chain(beside).collect()
}

/// The recorded link of [`super::grid`].
fn recorded() -> Vec<Row> {
    let row = |control: Tested| Row {
        name: format!("{} recorded LTE", control.name),
        text: recorded_link() + &control.flow(RADIO_TARGET, ""),
        figures: Figures::Bulk,
        needs: Some(RECORDING),
    };
    ANYWHERE.map(row).to_vec()
}

/// One user of a cell with fading, alone; the server is 10 ms away.
fn cells() -> Vec<Row> {
    let cell = |name: &str, keys: &str, place: u64, control: Tested| Row {
        name: format!("{} {name} cell", control.name),
        text: head()
            + "[[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"unlimited\"\ndelay = \"10.057ms\"\n\
               duplex = true\n\n"
            + &format!(
                "[[cell]]\nname = \"cell\"\nhost = \"mast\"\n{keys}\n[[user]]\nname = \"phone\"\nposition = [{place}, 0]\n\n"
            )
            + &control.flow(RADIO_TARGET, ""),
        figures: Figures::Bulk,
        needs: None,
    };
    let all = || ANYWHERE.into_iter().chain(IN_CELLS);
    let lte = all().map(|control| cell("LTE", "preset = \"lte\"\n", 300, control));
    // A fifth of the preset's band: what two cores can emulate beside other work.
    let nr = all().map(|control| cell("NR", "preset = \"nr\"\nbandwidth = \"20MHz\"\n", 150, control));
    lte.chain(nr).collect()
}

/// One flow of each control whose sender is told something: SIGMA uploads to a server at 10 ms and hears its modem; MELD hears the edge's
/// reports each 8 ms, behind wires of 20 ms that lose one data packet in 200; Multi-Domain control hears a PEP behind 20 ms of wire.
fn told() -> Vec<Row> {
    let user = |preset: &str, place: u64| {
        format!(
            "[[cell]]\nname = \"cell\"\nhost = \"mast\"\npreset = \"{preset}\"\n\n[[user]]\nname = \"phone\"\nposition = [{place}, 0]\n\n"
        )
    };
    let wire = |name: &str, from: &str, to: &str, delay: &str, more: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"unlimited\"\ndelay = \"{delay}\"\n{more}duplex = true\n\n"
        )
    };
    let row = |name: &str, text: String| Row {
        name: name.to_owned(),
        text: head() + &text,
        figures: Figures::Bulk,
        needs: None,
    };
    let upload = SIGMA
        .flow(RADIO_TARGET, "")
        .replace("from = \"server\"\nto = \"phone\"", "from = \"phone\"\nto = \"server\"");
    vec![
        row(
            "sigma LTE upload",
            wire("core", "server", "mast", "10.057ms", "") + &user("lte", 200) + "[modem]\n\n" + &upload,
        ),
        row(
            "cubic+meld-me LTE cell, 0.5 % lost",
            wire("core", "server", "mast", "20.057ms", "loss = {loss}\n")
                + &user("meld-oai", 300)
                + "[rnis]\nperiod = \"8ms\"\n\n"
                + &MELD.flow(RADIO_TARGET, ""),
        ),
        row(
            "mdcc LTE cell behind a PEP",
            wire("core", "server", "edge", "20.057ms", "")
                + &wire("hop", "edge", "mast", "1.057ms", "")
                + &user("lte", 300)
                + "[[pep]]\nhost = \"edge\"\n\n"
                + &MDCC.flow(RADIO_TARGET, ""),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::assert_rows;
    use super::*;

    #[test]
    fn grid_has_distinct_rows_and_every_row_is_a_valid_scenario() {
        assert_rows(&rows(false), 43);
        assert_eq!(rows(true).len(), QUICK.len(), "the rows of --quick are all in the grid");
    }
}
