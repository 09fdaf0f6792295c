//! The senders of the kernel's client-driven controls and those of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::{Algorithm, CongestionControl};
use ranpace_kernel_arithmetic::driven::{CdbeCall, Cdbev2Call, DcicCall, KernelDriven};

use common::{Build, Played, all, compare, some, torture, uneven};

/// What an algorithm is in the kernel.
fn control(text: &str) -> Box<dyn CongestionControl> {
    let algorithm: Algorithm = text.parse().unwrap();
    let options = &mut algorithm.options();
    match algorithm.entry().name {
        "dcic" => Box::new(KernelDriven::new(DcicCall::read(options).unwrap())),
        "cdbe" => Box::new(KernelDriven::new(CdbeCall::cdbe(options).unwrap())),
        "cqic-s" => Box::new(KernelDriven::new(CdbeCall::cqic_s(options).unwrap())),
        _ => Box::new(KernelDriven::new(Cdbev2Call::read(options, 1).unwrap())),
    }
}

fn kernel(text: &'static str) -> Build {
    Arc::new(move || control(text))
}

/// Plays all: at least a million acknowledgements, losses and timeouts among them.
fn agrees(text: &'static str) {
    let found = compare(&uneven(all()), text, &kernel(text));
    assert!(found.acks > 1_000_000 && found.losses > 100 && found.timeouts > 10, "{found}");
}

/// The cells, the one of NR for a minute: where DCIC's reports come from.
fn cells() -> Vec<Played> {
    let mut cells: Vec<Played> = all().into_iter().filter(|played| played.name.starts_with("cell")).collect();
    for cell in &mut cells {
        cell.text = cell.text.replace("duration = \"10s\"", "duration = \"35s\"");
    }
    cells
}

#[test]
fn cdbev2_has_the_window_of_logic_cc_for_a_million_acknowledgements() {
    agrees("cdbev2:report=exp");
}

#[test]
fn cdbe_has_the_window_of_logic_cc_for_a_million_acknowledgements() {
    agrees("cdbe:report=exp");
}

#[test]
fn dcic_and_cqic_s_have_the_window_of_logic_cc_for_a_million_acknowledgements() {
    for text in ["dcic:report=exp", "cqic-s:report=exp"] {
        let found = compare(&cells(), text, &kernel(text));
        assert!(found.acks > 1_000_000, "{text}: {found}");
    }
}

#[test]
fn without_a_guard_they_have_it_too() {
    for text in ["cdbev2", "cdbe", "dcic", "cqic-s"] {
        let text = format!("{text}:report=exp:guard=off");
        let algorithm = text.clone();
        let found = compare(&uneven(some()), &text, &(Arc::new(move || control(&algorithm)) as Build));
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}

#[test]
fn so_it_is_with_every_option() {
    for text in [
        "cdbev2:report=exp:dd=single:ndd=2:fqm=off:gc=bdp:drain-ref=live",
        "cdbev2:report=exp:dd=off:gc=off:drain-ref=pre:recovery=assigned:thres1=rtt",
        "cdbev2:report=exp:drain-ref=filt:recovery=last:k=2:tw=20ms:report-every=3",
        "cdbev2:report=exp:drain-ref=past:k=0.5:guard=off",
        "cdbe:report=exp:dsdlmin_update=after_drain:restart=after_limit:growth=alpha",
        "cdbe:report=exp:dsdlmin_window=5s:drain_cap=8:startup=3:guard=off",
        "dcic:report=exp:pkt=segment",
        "cqic-s:report=exp:pkt=segment:estimator=per_dci",
    ] {
        // In this cell RTT_min is 30 ms to the microsecond, and a tenth above half of it is a mean of ticks too often; see `uneven`.
        let tie = |run: &Played| text.contains("growth=alpha") && run.name == "cell oai";
        let runs: Vec<Played> = uneven(some()).into_iter().filter(|run| !tie(run)).collect();
        let found = compare(&runs, text, &kernel(text));
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}

#[test]
fn hostile_events_leave_a_window_and_a_pace() {
    for (seed, text) in [
        "cdbev2:report=exp",
        "cdbe:report=exp",
        "dcic:report=exp",
        "cdbev2:report=exp:guard=off",
        "cqic-s:report=exp:guard=off",
    ]
    .into_iter()
    .enumerate()
    {
        torture(control(text).as_mut(), seed as u64, 250_000);
    }
}

#[test]
fn clocks_that_agree_are_refused() {
    for text in ["cdbe:dsdl=true", "cdbev2:dsdl=true"] {
        let options = &mut text.parse::<Algorithm>().unwrap().options();
        let refused = match text {
            "cdbe:dsdl=true" => CdbeCall::cdbe(options).map(|_| ()),
            _ => Cdbev2Call::read(options, 1).map(|_| ()),
        };
        assert!(refused.is_err(), "{text}");
    }
}
