//! SIGMA, MELD and RAPID side by side, and with wrong radio information.

mod common;

use common::{column, play};
use ranpace_sim::{FlowResult, RunResult};

/// A cell that loses blocks, behind a wire that loses packets.
fn lossy(flow: &str, more: &str) -> RunResult {
    play(&format!(
        "duration = \"20s\"\n\
         [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"14ms\"\nloss = 0.002\n\
         back = {{ loss = 0.0 }}\n\
         [[cell]]\nhost = \"mast\"\npreset = \"meld-oai\"\n[[user]]\nname = \"phone\"\n\
         [[flow]]\nfrom = \"server\"\nto = \"phone\"\nopener = \"receiver\"\n{flow}\n{more}"
    ))
}

/// The last value of a column: MELD's figures count from the connection's beginning.
fn last(flow: &FlowResult, name: &str) -> f64 {
    column(flow, name).iter().rev().copied().find(|value| value.is_finite()).unwrap_or(0.0)
}

/// A server behind a splitting proxy sees only wired losses, and gets no radio information.
#[test]
fn behind_a_split_proxy_meld_tells_of_every_loss_and_is_its_parent() {
    for kind in ["split", "rapid"] {
        let proxy = format!("[[proxy]]\nhost = \"mast\"\nkind = \"{kind}\"\n");
        for meld in ["meld-me", "meld-de"] {
            let with = lossy(&format!("cc = \"cubic+{meld}\""), &proxy);
            let flow = &with.flows[0];
            assert!(flow.split.is_some());
            assert_eq!(last(flow, "state_meld_silent"), 0.0, "{kind}, {meld}");
            let told = last(flow, "state_meld_notified");
            assert!(told >= 3.0, "{kind}, {meld}: the wire loses packets, {told} losses");
            let unknown =
                last(flow, "state_meld_notified_unknown") + last(flow, "state_meld_notified_timeout_again");
            assert_eq!(unknown, told, "{kind}, {meld}: for want of a report");
            let plain = lossy("cc = \"cubic\"", &proxy);
            assert_eq!(flow.delivered, plain.flows[0].delivered, "{kind}, {meld}: nothing else is different");
            assert_eq!(column(flow, "cwnd_bytes"), column(&plain.flows[0], "cwnd_bytes"), "{kind}, {meld}");
        }
    }
    let direct = lossy("cc = \"cubic+meld-de\"", "");
    assert!(
        last(&direct.flows[0], "state_meld_silent") > 0.0,
        "without a proxy losses in good radio are hidden"
    );
}

/// QUIC bypasses a proxy, and its server still gets radio information.
#[test]
fn meld_over_quic_works_beside_rapid() {
    let quic = "cc = \"cubic+meld-de\"\ntransport = \"quic\"";
    let with = lossy(quic, "[[proxy]]\nhost = \"mast\"\nkind = \"rapid\"\n");
    let flow = &with.flows[0];
    assert!(flow.split.is_none());
    assert!(last(flow, "state_meld_silent") > 0.0);
    assert_eq!(flow.delivered, lossy(quic, "").flows[0].delivered, "the proxy does not touch it");
}

/// An LTE cell under fading, with the flow under test and a neighbour's from 4 to 7 s: a few of the rows that `ranpace reproduce
/// edge` runs.
fn faded(flow: &str, neighbour: &str, more: &str) -> RunResult {
    play(&faded_text(flow, neighbour, more))
}

fn faded_text(flow: &str, neighbour: &str, more: &str) -> String {
    format!(
        "duration = \"14s\"\nseed = 2\n\
         [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"16ms\"\nduplex = true\n\
         [[cell]]\nhost = \"mast\"\npreset = \"lte\"\nharq = {{ misreading = 0.1 }}\nharq_up = {{ misreading = 0.0 }}\n\
         [[user]]\nname = \"phone\"\nposition = [200, 0]\nrlc = \"um\"\n\
         [[user]]\nname = \"other\"\nposition = [150, 100]\n\
         [[flow]]\n{flow}\n\
         [[flow]]\n{neighbour}\ncc = \"cubic\"\nstart = \"4s\"\nstop = \"7s\"\n{more}"
    )
}

fn upload(cc: &str, modem: &str) -> RunResult {
    let flow = format!("from = \"phone\"\nto = \"server\"\ncc = \"{cc}\"");
    faded(&flow, "from = \"other\"\nto = \"server\"", &format!("[modem]\n{modem}\n"))
}

fn download(cc: &str, feed: &str) -> RunResult {
    let flow = format!("from = \"server\"\nto = \"phone\"\nopener = \"receiver\"\ncc = \"{cc}\"");
    faded(&flow, "from = \"server\"\nto = \"other\"", &format!("[rnis]\n{feed}\n"))
}

/// Bytes delivered from some second on.
fn since(flow: &FlowResult, from: f64) -> f64 {
    let (times, bytes) = (column(flow, "time_s"), column(flow, "delivered_bytes"));
    let before = times.iter().zip(bytes).take_while(|(time, _)| **time <= from + 1e-9).last();
    bytes.last().copied().unwrap_or(0.0) - before.map_or(0.0, |(_, bytes)| *bytes)
}

#[test]
fn information_that_is_never_fresh_leaves_the_plain_transport_bit_for_bit() {
    for late in ["delay = \"500ms\"", "period = \"1s\"\ndelay = \"200ms\""] {
        let (with, plain) = (upload("sigma", late), upload("cubic", late));
        let states = column(&with.flows[0], "state_state");
        if late.starts_with("delay") {
            assert_eq!(with.flows[0].delivered, plain.flows[0].delivered, "SIGMA, {late}");
            assert!(states.iter().all(|state| state.is_nan() || *state <= 0.0), "SIGMA never decides by it");
        } else {
            let ratio = since(&with.flows[0], 1.2) / since(&plain.flows[0], 1.2);
            assert!(ratio > 0.9, "SIGMA, {late}: {ratio}");
        }
    }
    for meld in ["meld-me", "meld-de"] {
        let (with, plain) = (download(&format!("cubic+{meld}"), "delay = \"500ms\""), download("cubic", ""));
        assert!(last(&with.flows[0], "state_meld_notified") > 0.0, "{meld}: something is lost");
        assert_eq!(with.flows[0].delivered, plain.flows[0].delivered, "{meld}");
    }
}

#[test]
fn a_feed_that_says_the_cell_is_full_makes_meld_tell_of_every_loss() {
    for meld in ["meld-me", "meld-de"] {
        let with = download(&format!("cubic+{meld}"), "content = \"full\"");
        assert_eq!(last(&with.flows[0], "state_meld_silent"), 0.0, "{meld}");
        assert_eq!(with.flows[0].delivered, download("cubic", "").flows[0].delivered, "{meld}");
    }
}

/// p95 of the bottleneck delay between two times, from means over a sampling interval.
fn waited(flow: &FlowResult, from: f64, to: f64) -> f64 {
    let rows = column(flow, "time_s").iter().zip(column(flow, "queueing_delay_mean_s"));
    let mut waits: Vec<f64> = rows
        .filter(|(time, wait)| **time > from && **time <= to && wait.is_finite())
        .map(|row| *row.1)
        .collect();
    waits.sort_by(f64::total_cmp);
    waits[(waits.len() - 1) * 95 / 100]
}

/// The value of a column in the first row from a given time on.
fn value_at(flow: &FlowResult, name: &str, from: f64) -> f64 {
    let row = column(flow, "time_s").iter().position(|time| *time >= from - 1e-9);
    row.map_or(f64::NAN, |row| column(flow, name)[row])
}

/// MELD then leaves behind the window that it gave to its parent, until enough losses have been reported. The delay is gone when
/// the window fits into the pipe again.
#[test]
fn once_its_reports_have_stopped_meld_tells_of_every_loss_and_its_queue_is_gone_in_some_seconds() {
    const STOP: f64 = 5.0;
    for transport in ["tcp", "quic"] {
        for meld in ["meld-me", "meld-de"] {
            let case = format!("{meld}, {transport}");
            let with = download(
                &format!("cubic+{meld}\"\ntransport = \"{transport}"),
                &format!("stop = \"{STOP}s\""),
            );
            let flow = &with.flows[0];
            // Reports come every 8 ms, and are stale from an age of 50 ms on.
            let stale = STOP + 0.1;
            let silent = value_at(flow, "state_meld_silent", stale);
            assert!(silent > 0.0, "{case}: something is hidden while reports come");
            assert_eq!(last(flow, "state_meld_silent"), silent, "{case}: nothing more afterwards");
            let told = |name| last(flow, name) - value_at(flow, name, stale);
            let all = told("state_meld_notified");
            assert!(all >= 5.0, "{case}: {all} losses");
            let stale_or_again =
                told("state_meld_notified_stale") + told("state_meld_notified_timeout_again");
            assert_eq!(stale_or_again, all, "{case}: for the age of the report");
            let (before, after) = (value_at(flow, "cwnd_bytes", stale), last(flow, "cwnd_bytes"));
            assert!(after < before, "{case}: window {before} to {after}");
            if transport == "tcp" {
                let plain = download("cubic", "");
                let of = |run: &RunResult| waited(&run.flows[0], 11.0, 14.0);
                assert!(of(&with) <= 2.0 * of(&plain), "{case}: {} and {} s", of(&with), of(&plain));
                assert!(of(&with) < waited(flow, 2.0, 8.0) / 3.0, "{case}: it was long before");
            }
        }
    }
}

/// The time to fall back is 4 smallest RTTs until the reports are stale, plus a second.
#[test]
fn sigma_has_cubics_goodput_once_its_modem_has_been_silent_for_its_fallback_time() {
    let stop = "stop = \"5s\"";
    let (with, plain) = (upload("sigma", stop), upload("cubic", stop));
    let ratio = since(&with.flows[0], 6.2) / since(&plain.flows[0], 6.2);
    assert!(ratio > 0.9, "{ratio} of CUBIC's");
}

/// Later than fresh reports may be, but not stopped: RAPID shares out the least of the last second.
#[test]
fn rapid_with_late_or_wrong_reports_loses_little_or_halves_the_delay() {
    let flow = "from = \"server\"\nto = \"phone\"\nopener = \"receiver\"\ncc = \"cubic\"";
    let neighbour = "from = \"server\"\nto = \"other\"";
    let plain = faded(flow, neighbour, "");
    for feed in ["delay = \"200ms\"", "error = 0.3\nperiod = \"100ms\"", "stop = \"5s\""] {
        let proxy =
            format!("[[proxy]]\nhost = \"mast\"\nkind = \"rapid\"\nprofile = \"field\"\n[rnis]\n{feed}\n");
        // The proxy is at the mast: what the server sends reaches it over the wire.
        let with = faded(flow, neighbour, &proxy);
        let wait = |run: &RunResult| {
            let flow = &run.flows[0];
            let proxy = flow.split.as_ref().map_or(0.0, |split| split.delay.p95.as_secs_f64());
            flow.queueing_delay.p95.as_secs_f64() + proxy
        };
        let goodput = since(&with.flows[0], 6.2) / since(&plain.flows[0], 6.2);
        let delay = wait(&with) / wait(&plain);
        assert!(goodput >= 0.9 || delay <= 0.5, "{feed}: {goodput} of the goodput, {delay} of the delay");
    }
}

/// The field profile with correct reports, where a nearby proxy has windows of a few segments, where the capacity fades faster than
/// the server can follow, and on millimetre waves, whose RTT is less than LTE's 16 ms for scheduling requests.
#[test]
fn rapid_with_true_reports_has_the_goodput_of_no_proxy_at_a_third_of_its_delay() {
    for (preset, flows, wan, seconds) in [
        ("rapid-oai", 2, "2ms", 12),
        ("lte", 5, "2ms", 12),
        ("lte", 2, "15ms", 12),
        ("diarra-mmwave-los", 1, "2ms", 4),
    ] {
        let run = |proxy: &str| {
            let mut text = format!(
                "duration = \"{seconds}s\"\nwarmup = \"1s\"\nseed = 7\n\
                 [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"edge\"\nrate = \"10Gbit/s\"\ndelay = \"{wan}\"\nduplex = true\n\
                 [[link]]\nname = \"backhaul\"\nfrom = \"edge\"\nto = \"mast\"\nrate = \"10Gbit/s\"\ndelay = \"500us\"\nduplex = true\n\
                 [[cell]]\nhost = \"mast\"\npreset = \"{preset}\"\n[[user]]\nname = \"phone\"\n"
            );
            for _ in 0..flows {
                text.push_str(
                    "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\nopener = \"receiver\"\n",
                );
            }
            let result = play(&(text + proxy));
            let goodput: f64 = result.flows.iter().map(|flow| flow.goodput.as_f64()).sum();
            let rtt: f64 = result.flows.iter().map(|flow| flow.rtt.mean.as_secs_f64()).sum();
            (goodput, rtt / f64::from(flows))
        };
        let (plain, slow) = run("");
        // No profile given: this is the default.
        let (goodput, rtt) = run("[[proxy]]\nhost = \"edge\"\nkind = \"rapid\"\n");
        assert!(goodput >= 0.95 * plain, "{preset}, {flows}: {} of the goodput", goodput / plain);
        assert!(rtt <= slow / 3.0, "{preset}, {flows}: {} of the RTT", rtt / slow);
    }
}

/// Reports drawn at random each time are not low on average, but contradict each other.
#[test]
fn sigma_with_a_modem_that_says_anything_has_cubics_goodput_after_five_seconds() {
    for seed in [2, 3] {
        let seeded = |cc: &str| {
            let flow = format!("from = \"phone\"\nto = \"server\"\ncc = \"{cc}\"");
            let text =
                faded_text(&flow, "from = \"other\"\nto = \"server\"", "[modem]\ncontent = \"random\"\n");
            play(&text.replace("seed = 2", &format!("seed = {seed}")))
        };
        let ratio = since(&seeded("sigma").flows[0], 5.0) / since(&seeded("cubic").flows[0], 5.0);
        assert!(ratio > 0.9, "seed {seed}: {ratio}");
        let without =
            since(&seeded("sigma:trials=off").flows[0], 5.0) / since(&seeded("cubic").flows[0], 5.0);
        assert!(without < 0.5, "seed {seed}: {without} without trials: the case has become harmless");
    }
}

/// Far from the mast and fast, where reports differ most. The whole table: `examples/sigma_coherence.rs`.
#[test]
fn true_reports_do_not_contradict_each_other_at_any_speed_and_random_ones_do() {
    for (kmh, content, unlike) in [
        (0, "measured", 0.0..0.1),
        (30, "measured", 0.02..0.25),
        (120, "measured", 0.02..0.25),
        (0, "random", 0.4..0.7),
        (120, "random", 0.4..0.7),
    ] {
        let result = play(&format!(
            "duration = \"6s\"\n\
             [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"16ms\"\nduplex = true\n\
             [[cell]]\nhost = \"mast\"\npreset = \"lte\"\nfading = \"epa\"\nfading_speed = \"{kmh}km/h\"\n\
             [[user]]\nname = \"phone\"\nposition = [700, 0]\n\
             [[flow]]\nfrom = \"phone\"\nto = \"server\"\ncc = \"sigma\"\n[modem]\ncontent = \"{content}\"\n"
        ));
        let flow = &result.flows[0];
        let most = column(flow, "state_reports_unlike").iter().copied().filter(|share| !share.is_nan());
        let most = most.fold(0.0, f64::max);
        assert!(unlike.contains(&most), "{kmh} km/h, {content}: {most}");
        assert_eq!(last(flow, "state_contradictions") > 0.0, content == "random", "{kmh} km/h, {content}");
    }
}
