//! TCP over a cell: tests P-7 and P-10.

use ranpace_scenario::cells::{self, Preset};
use ranpace_sim::{RunResult, Simulation};

use super::cell::{Unplayable, millis, or_why};
use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "a download into 10 MB of buffer", rows: || or_why(deep_buffer()) },
    Check {
        name: "six downloads together, 1 ms",
        rows: || or_why(six(1, [740.0, 170.0, 247.0, 242.0, 157.0, 123.0])),
    },
    Check {
        name: "six downloads together, 8 ms",
        rows: || or_why(six(8, [621.0, 261.0, 168.0, 161.0, 143.0, 64.0])),
    },
];

/// In the order of the published figures. Vegas as in the authors' scripts; Westwood with the samples of the ns-3 of that time, as
/// in reproduction 000-r6: those of the paper are many times the link's rate if a slot delivers a batch of acknowledgements.
const SIX: [(&str, &str); 6] = [
    ("NewReno", "\"newreno\""),
    ("CUBIC", "\"cubic\""),
    ("YeAH", "\"yeah\""),
    ("Westwood", "\"westwood:sample=rtt\""),
    ("Vegas", "\"vegas:alpha=20:beta=40:gamma=2\""),
    ("BBR", "\"bbr1\""),
];

/// The cell of RAPID's experiments, 850 Mbit/s in line of sight, and a server with this round-trip time.
const PRESET: &str = "diarra-mmwave-los";

fn play(rtt_us: u32, seconds: u32, cell: &str, flows: &str) -> Result<RunResult, Unplayable> {
    let text = format!(
        r#"
duration = "{seconds}s"
[[link]]
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "{}us"
duplex = true
[[cell]]
host = "mast"
preset = "{PRESET}"
{cell}
[[user]]
name = "phone"
{flows}
"#,
        rtt_us / 2
    );
    let scenario = ranpace_scenario::parse(&text, "validate radio", &mut ())?;
    Ok(Simulation::new(&scenario).run())
}

/// P-7: CUBIC alone, on a constant channel; the buffer holds 10 MB and nothing else limits it. With a carrier for each direction a
/// slot has 14 symbols for data, and 13 of 14 slots carry the 852.6 Mbit/s of 13 symbols. In the preset itself acknowledgements
/// take another symbol of each slot.
fn deep_buffer() -> Result<Vec<Row>, Unplayable> {
    let longest = |air: &str| {
        let cell = format!("{air}\nfading = \"none\"\nshadowing = \"none\"\nbuffer = \"10MB\"");
        let flow = "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\nmtu = \"1452B\"\nreceive_buffer_max = \"1GiB\"";
        let found = play(1000, 20, &cell, flow)?;
        Ok::<_, Unplayable>(found.flows.first().map_or(f64::NAN, |flow| millis(flow.rtt.max)))
    };
    Ok(vec![
        Row::within(
            "P-7: longest RTT of a download into 10 MB at 850 Mbit/s, ms",
            97.5,
            longest("duplex = \"fdd\"\nusable_ttis = 0.928571")?,
            2.5,
        ),
        Row::printed("P-7: the same where acknowledgements share the carrier, ms", 97.5, longest("")?),
    ])
}

/// P-10: 200 MiB with each of six algorithms concurrently. Mean goodput is printed, and which one is first and last.
fn six(ms: u32, published: [f64; 6]) -> Result<Vec<Row>, Unplayable> {
    let settings = cells::by_name(PRESET).map_or("", |Preset { around, .. }| around.flow);
    let flow = |(_, cc): &(&str, &str)| {
        let workload = "workload = { kind = \"fixed\", size = \"200MiB\" }";
        format!("[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = {cc}\n{workload}\n{settings}")
    };
    let found = play(1000 * ms, 60, "", &SIX.iter().map(flow).collect::<String>())?;
    let goodput = |flow: &ranpace_sim::FlowResult| {
        let transfer = flow.transfers.first()?;
        Some(transfer.size.get() as f64 * 8.0 / transfer.completion?.as_secs_f64() / 1e6)
    };
    let goodputs: Vec<f64> = found.flows.iter().map(|flow| goodput(flow).unwrap_or(0.0)).collect();
    let mut rows = Vec::new();
    for (((name, _), published), mbit_s) in SIX.iter().zip(published).zip(&goodputs) {
        rows.push(Row::printed(format!("P-10: {ms} ms, mean goodput of {name}, Mbit/s"), published, *mbit_s));
    }
    for (name, index, place) in [("NewReno", 0, 1.0), ("BBR", 5, 6.0)] {
        let before = goodputs.iter().filter(|other| Some(*other) > goodputs.get(index)).count();
        rows.push(Row::printed(
            format!("P-10: {ms} ms, place of {name} among six"),
            place,
            before as f64 + 1.0,
        ));
    }
    Ok(rows)
}
