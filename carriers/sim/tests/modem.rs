//! A receiver learns from its modem, and reports from the first segment on.

mod common;

use common::play;
use ranpace_sim::{RunResult, Series};

/// A cell with a user 100 m away, alone or with others that download, and one flow to it.
fn cell(flow: &str, others: u32) -> RunResult {
    let load = if others == 0 {
        String::new()
    } else {
        format!(
            "[[user]]\nname = \"other\"\nposition = [100, 0]\ncount = {others}\n\
             [[flow]]\nfrom = \"server\"\nto = \"other\"\ncc = \"cubic\"\n"
        )
    };
    play(&format!(
        r#"
duration = "4s"
sample = "10ms"
[[link]]
name = "wire"
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "20ms"
duplex = true
[[cell]]
name = "cell"
host = "mast"
preset = "lte"
alloc = "full"
[[user]]
name = "phone"
position = [100, 0]
[[flow]]
name = "flow"
from = "server"
to = "phone"
{flow}
{load}
"#
    ))
}

fn present(series: &Series, name: &str) -> Vec<(f64, f64)> {
    let times = series.get("time_s").expect("every series has it");
    let values = series.get(name).unwrap_or_else(|| panic!("no {name}"));
    times.iter().copied().zip(values.iter().copied()).filter(|(_, value)| value.is_finite()).collect()
}

#[test]
fn a_modem_hears_every_block_of_its_user() {
    for others in [0, 3] {
        let result = cell(
            "transport = \"udp\"\nestimator = \"dcic:estimator=window\"\n\
             workload = { kind = \"cbr\", rate = \"200Mbit/s\" }",
            others,
        );
        let downlink = &result.users[0].downlink;
        // HARQ retransmissions were granted too; their blocks are about as large.
        let blocks = downlink.blocks + downlink.retransmissions;
        let granted = downlink.scheduled.as_f64() * 8.0 * blocks as f64 / downlink.blocks as f64;
        let estimates = present(&result.flows[0].series, "receiver_estimate_bit_s");
        let mean = estimates.iter().map(|(_, value)| value).sum::<f64>() / estimates.len() as f64;
        let measured = granted / 4.0;
        assert!((mean / measured - 1.0).abs() < 0.03, "{others} others: {mean} of {measured}");
    }
}

#[test]
fn the_first_data_leave_at_the_rate_of_the_handshakes_report() {
    for opener in ["sender", "receiver"] {
        let result =
            cell(&format!("cc = \"dcic:estimator=window:guard=off\"\ntcp = {{ opener = \"{opener}\" }}"), 0);
        let flow = &result.flows[0];
        let first = flow.totals.first_sent.expect("data left").as_secs_f64();
        let reports = present(&flow.series, "state_report_bit_s");
        // Rows come every 10 ms; the report came with the acknowledgement that released the data.
        assert!(reports[0].0 < first + 0.011, "{opener}: {} after {first}", reports[0].0);
        // Half of the band at half of the time, at CQI 15: 18.3 Mbit/s (equation 5.9 of Zhong 2020); twice that for the CQIs
        // that came after the block with the handshake, which had the whole band. The mean over both is reported.
        // Where the receiver opens, RLC's status for its SYN was a block already, in the first window of 50 ms.
        let block = 75_376.0 / 0.05;
        let expected = if opener == "sender" { 18.3e6..36.7e6 } else { block - 1.0..block + 1.0 };
        assert!(expected.contains(&reports[0].1), "{opener}: {}", reports[0].1);
    }
}

#[test]
fn only_those_who_want_it_hear_the_modem() {
    let result = cell("cc = \"cubic\"", 0);
    let columns = &result.flows[0].series.columns;
    assert!(columns.iter().all(|column| !column.name.starts_with("receiver_")));
}
