//! Later connections of a device use what earlier ones have learned of a path.

mod common;

use common::{column, play};

/// A phone that uploads with SIGMA, then fills its queue with CUBIC, and then begins another upload with SIGMA,
/// which has what `late` says.
fn late_rtt_min(cc: &str, to: &str, late: &str) -> (f64, f64) {
    let upload = |name: &str, to: &str, cc: &str, more: &str| {
        format!("[[flow]]\nname = \"{name}\"\nfrom = \"phone\"\nto = \"{to}\"\ncc = \"{cc}\"\n{more}\n")
    };
    let flows = [
        upload("early", "server", cc, "workload = { kind = \"fixed\", size = \"100KB\" }"),
        upload("filler", "server", "cubic", "start = \"1s\""),
        upload("late", to, cc, &format!("start = \"5s\"\n{late}")),
    ];
    let result = play(&format!(
        "duration = \"8s\"\n\
         [[link]]\nname = \"wire\"\nfrom = \"mast\"\nto = \"server\"\nrate = \"1Gbit/s\"\ndelay = \"10ms\"\nduplex = true\n\
         [[link]]\nname = \"other\"\nfrom = \"mast\"\nto = \"elsewhere\"\nrate = \"1Gbit/s\"\ndelay = \"10ms\"\nduplex = true\n\
         [[cell]]\nhost = \"mast\"\npreset = \"lte\"\n[[user]]\nname = \"phone\"\nposition = [50, 0]\n{}",
        flows.concat()
    ));
    let last = |flow: usize| {
        let mut values = column(&result.flows[flow], "state_min_rtt_s").iter().copied();
        values.rfind(|value| value.is_finite()).unwrap_or(f64::NAN)
    };
    (last(0), last(2))
}

#[test]
fn an_upload_that_starts_beside_a_full_queue_knows_the_rtt_without_it() {
    let (early, late) = late_rtt_min("sigma", "server", "");
    assert!(late <= early, "{late} s, and {early} s was known");
    let (early, without) = late_rtt_min("sigma:memory=off", "server", "");
    assert!(without > 1.5 * early, "{without} s, and {early} s without a queue");
    let (_, elsewhere) = late_rtt_min("sigma", "elsewhere", "");
    assert!(elsewhere > 1.5 * early, "{elsewhere} s: nothing is known of that host");
}

/// The table belongs to the host, not to the transport.
#[test]
fn an_upload_over_quic_knows_what_one_over_tcp_has_learned() {
    let quic = "transport = \"quic\"";
    let (early, late) = late_rtt_min("sigma", "server", quic);
    assert!(late <= early, "{late} s, and {early} s was known");
    let (early, without) = late_rtt_min("sigma:memory=off", "server", quic);
    assert!(without > 1.5 * early, "{without} s, and {early} s without a queue");
}
