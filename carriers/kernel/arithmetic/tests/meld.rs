//! The kernel's MELD and that of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::meld::{Variant, read_params};
use ranpace_cc::{
    Algorithm, Congestion, CongestionControl as _, Context, LossResponse, Pacing, RadioHint, Signal, State,
    Window,
};
use ranpace_kernel_arithmetic::meld::{KernelMeld, Settings};
use ranpace_kernel_arithmetic::parent;
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};

use common::{Build, all, compare, few, torture};

fn settings(text: &str, variant: Variant) -> Settings {
    let algorithm: Algorithm = text.parse().unwrap();
    (&read_params(&mut algorithm.options(), variant).unwrap()).into()
}

fn kernel(text: &'static str, variant: Variant) -> Build {
    let settings = settings(text, variant);
    let of = if text.starts_with("newreno") { "newreno" } else { "cubic" };
    Arc::new(move || Box::new(KernelMeld::new(parent(of), settings)))
}

#[test]
fn what_is_hidden_and_the_window_are_those_of_logic_cc_for_a_million_acknowledgements() {
    let text = "cubic+meld-me";
    let found = compare(&all(), text, &kernel(text, Variant::Mixed));
    assert!(found.acks > 1_000_000 && found.losses > 500 && found.timeouts > 5, "{found}");
    assert!(found.ignored > 50, "{found}");
}

#[test]
fn so_it_is_with_every_option() {
    for (text, variant) in [
        ("cubic+meld-de", Variant::Download),
        ("cubic+meld-me:q_th=x8:rto=full:guard=off", Variant::Mixed),
        ("cubic+meld-me:q_th=x0.3:tbs=period:guard=off", Variant::Mixed),
        ("cubic+meld-de:n_harq=3:t_pdu=1440B:max_age=20ms:rto=full", Variant::Download),
        ("newreno+meld-me", Variant::Mixed),
    ] {
        let found = compare(&few(), text, &kernel(text, variant));
        assert!(found.acks > 100_000 && found.ignored > 0, "{text}: {found}");
        assert!(found.ignored_timeouts > 0 || !text.contains("guard=off"), "{text}: {found}");
    }
}

#[test]
fn hostile_events_leave_a_window() {
    for (seed, text) in
        ["cubic+meld-me:rto=full", "cubic+meld-me:guard=off:q_th=x1000"].into_iter().enumerate()
    {
        torture(&mut KernelMeld::new(parent("cubic"), settings(text, Variant::Mixed)), seed as u64, 500_000);
    }
}

fn connection(state: State) -> Context {
    Context {
        now: Time::from_millis(1_000),
        mss: Bytes::new(1_448),
        wire: Bytes::new(1_500),
        srtt: Span::from_millis(40),
        min_rtt: Span::from_millis(30),
        in_flight: 100,
        delivered: 10_000,
        lost: 1,
        next_packet: 10_200,
        state,
        cwnd_limited: false,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    }
}

#[test]
fn what_recovery_did_to_a_silent_flow_is_undone_in_the_first_acknowledgement_in_open() {
    // PRR left `during`, and the end of recovery sets the window to the threshold that `ssthresh` was answered with.
    for (case, cwnd, ssthresh, during) in [
        ("a threshold below the window", 118.0, 116.0, 118.0),
        ("none yet, and many lost at once", 1_267.0, f64::INFINITY, 569.0),
        ("slow start", 402.0, 500.0, 399.0),
    ] {
        let mut control = KernelMeld::new(parent("cubic"), settings("cubic+meld-me", Variant::Mixed));
        let (open, repairing) = (connection(State::Open), connection(State::Recovery));
        let mut w = Window { cwnd, ssthresh, pacing: Pacing::Unlimited };
        control.on_start(&open, &mut w);
        let hint = RadioHint {
            tbs_bits: Some(20_000),
            most_granted: 50,
            granted: 50.0,
            ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz10), Time::from_millis(999))
        };
        control.on_radio(&open, &mut w, &hint);
        let loss = Congestion {
            kind: Signal::Loss,
            lost: 1,
            largest: Bytes::new(1_448),
            newest_sent_at: Time::from_millis(960),
            first: true,
        };
        assert_eq!(control.on_congestion(&open, &mut w, &loss), LossResponse::Ignore, "{case}");
        // The kernel: its threshold is the answer, PRR writes the window, and `set_state(Open)` comes before the last write.
        let answered = f64::from(control.call.state.answered);
        (w.ssthresh, w.cwnd) = (answered, during);
        control.on_recovered(&repairing, &mut w);
        w.cwnd = w.cwnd.min(w.ssthresh);
        let ack = ranpace_cc::Ack {
            acked: 0,
            delivered: 1,
            bytes: Bytes::new(1_448),
            rtt: None,
            rate: ranpace_cc::RateSample::default(),
            prior_in_flight: 100,
            ecn_echo: false,
            marked: 0,
            braked: 0,
        };
        control.on_ack(&open, &mut w, &ack);
        assert_eq!((w.cwnd, w.ssthresh), (cwnd, ssthresh), "{case}");
        // Once: what the parent does later stays.
        w.cwnd = 50.0;
        control.on_ack(&open, &mut w, &ack);
        assert_eq!(w.cwnd, 50.0, "{case}");
    }
}
