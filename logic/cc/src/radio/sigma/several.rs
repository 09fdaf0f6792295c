//! Test S-7: several flows of one device share a FIFO with a bandwidth-delay product of 200 packets, in the cell of Table
//! 3.1.

use std::collections::VecDeque;

use super::tests::{MSS, connection, millimetre, mmwave};
use super::*;
use crate::testing::testbed::{ack, sample};
use ranpace_units::Bytes;

/// A packet of 1440 B at 908.16 Mbit/s.
const PACKET: Span = Span::from_nanos(12_685);
/// Packets of one bandwidth-delay product.
const BDP: u64 = 200;
const TTI: Span = Span::from_micros(100);

struct Flow {
    control: Box<dyn CongestionControl>,
    cx: Context,
    w: Window,
    begins: Time,
    begun: bool,
    in_flight: u64,
    /// When pacing allows the next packet.
    free: Time,
    acked: u64,
}

struct Outcome {
    /// RTTs over RTTmin of the packets acknowledged in the measured part, sorted, and the last one.
    rtts: Vec<f64>,
    last: f64,
    /// Packets of each flow in the measured part.
    shares: Vec<f64>,
    /// Windows over W_max at the end.
    windows: Vec<f64>,
    /// Share of the line used in the measured part.
    utilisation: f64,
}

impl Outcome {
    fn p90(&self) -> f64 {
        self.rtts[self.rtts.len() * 9 / 10]
    }

    fn spread(&self) -> f64 {
        let most = self.shares.iter().copied().fold(0.0, f64::max);
        most / self.shares.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Runs flows that start `apart` RTTmin after one another for 200 RTTmin; `full` is the largest reported Utz.
fn play(text: &str, flows: u64, apart: u64, full: f64) -> Outcome {
    let rtt_min = PACKET * BDP;
    let way = rtt_min - PACKET;
    let end = Time::ZERO + rtt_min * 200;
    let measured = Time::ZERO + rtt_min * (3 * flows + flows * apart);
    let mut flows: Vec<Flow> = (0..flows)
        .map(|number| Flow {
            control: text.parse::<crate::Algorithm>().unwrap().build(number),
            cx: Context { srtt: rtt_min, min_rtt: rtt_min, ..connection(Time::ZERO, 1) },
            w: Window::new(10.0),
            begins: Time::ZERO + TTI * 100 + rtt_min * (apart * number),
            begun: false,
            in_flight: 0,
            free: Time::ZERO,
            acked: 0,
        })
        .collect();
    // When the link is free; acknowledgements in flight: arrival time, flow, the packet's RTT.
    let mut line = Time::ZERO;
    let mut acks: VecDeque<(Time, usize, Span)> = VecDeque::new();
    let (mut now, mut tti) = (Time::ZERO, Time::ZERO + TTI);
    let (mut busy, mut outcome) = (Span::ZERO, Vec::new());
    let (mut last, mut counted) = (0.0, vec![0_u64; flows.len()]);
    let mut first_counted = true;
    while now < end {
        // Next event: an acknowledgement, a TTI, or a flow held back by pacing or by its start time.
        let mut next = tti;
        if let Some((at, ..)) = acks.front() {
            next = next.min(*at);
        }
        for flow in &flows {
            if !flow.begun {
                next = next.min(flow.begins.max(now));
            } else if matches!(flow.w.pacing, Pacing::Rate(_))
                && (flow.in_flight as f64) < flow.w.cwnd.floor()
            {
                next = next.min(flow.free.max(now));
            }
        }
        now = next;
        if measured <= now && core::mem::take(&mut first_counted) {
            flows.iter().zip(&mut counted).for_each(|(flow, counted)| *counted = flow.acked);
        }
        if now >= tti {
            // The rest of `busy` is what the link sent in this TTI.
            let left = line.since(now);
            let used = (busy - left).ratio(TTI).min(1.0) * full;
            busy = left;
            // The handshake's grant.
            let used = if flows[0].begun { used } else { 0.01 };
            let all = f64::from(mmwave().prbs);
            let hint = millimetre(now, used * all, (1.0 - used) * all);
            for flow in &mut flows {
                flow.cx.now = now;
                flow.control.on_radio(&flow.cx, &mut flow.w, &hint);
            }
            tti += TTI;
        }
        while let Some((at, number, rtt)) = acks.front().copied()
            && at <= now
        {
            acks.pop_front();
            let flow = &mut flows[number];
            flow.cx.now = now;
            flow.in_flight -= 1;
            flow.acked += 1;
            flow.cx.in_flight = flow.in_flight;
            flow.cx.delivered += 1;
            let bytes = Bytes::new(MSS);
            flow.control.on_sample(&flow.cx, &mut flow.w, &Sample { bytes, ..sample(rtt) });
            flow.control.on_ack(&flow.cx, &mut flow.w, &Ack { bytes, ..ack(1, rtt) });
            if now >= measured {
                outcome.push(rtt.ratio(rtt_min));
            }
            last = rtt.ratio(rtt_min);
        }
        for (number, flow) in flows.iter_mut().enumerate() {
            if !flow.begun && now >= flow.begins {
                flow.begun = true;
                flow.cx.now = now;
                // The handshake waits in the queue, too.
                flow.cx.srtt = rtt_min + line.since(now);
                flow.control.on_start(&flow.cx, &mut flow.w);
            }
            while flow.begun && (flow.in_flight as f64) < flow.w.cwnd.floor() {
                if let Pacing::Rate(rate) = flow.w.pacing {
                    if flow.free > now {
                        break;
                    }
                    flow.free = flow.free.max(now) + rate.time_for(flow.cx.wire);
                }
                line = line.max(now) + PACKET;
                busy += PACKET;
                acks.push_back((line + way, number, line.since(now) + way));
                flow.in_flight += 1;
                flow.cx.next_packet += 1;
            }
            // Sent packets are in flight.
            flow.cx.in_flight = flow.in_flight;
        }
    }
    let measured_for = end.since(measured);
    let shares: Vec<f64> =
        flows.iter().zip(&counted).map(|(flow, before)| (flow.acked - before) as f64).collect();
    outcome.sort_by(f64::total_cmp);
    Outcome {
        rtts: outcome,
        last,
        utilisation: shares.iter().sum::<f64>() / measured_for.ratio(PACKET),
        windows: flows.iter().map(|flow| flow.w.cwnd / BDP as f64).collect(),
        shares,
    }
}

/// RTTmin is known to the device before later flows begin.
fn known(text: &str) -> String {
    format!("{text}:rtt_min={}us", (PACKET * BDP).as_nanos() / 1_000)
}

/// Upper bound of the 90th percentile of the RTTs, in RTTmin.
fn bound(flows: u64) -> f64 {
    1.4 * (flows as f64).sqrt().max(2.0)
}

#[test]
fn one_flow_keeps_the_line_full_without_a_queue() {
    for text in ["sigma", "sigma:profile=thesis", "sigma:p_max=own_plus_unused"] {
        let alone = play(text, 1, 0, 1.0);
        assert!(
            alone.p90() < 1.05 && alone.utilisation > 0.985,
            "{text}: {} {}",
            alone.p90(),
            alone.utilisation
        );
    }
}

#[test]
fn test_s_7_flows_that_start_together_end_without_a_queue() {
    for flows in [4, 8] {
        let found = play("sigma", flows, 0, 1.0);
        assert!(found.last < 1.05 && found.spread() <= 1.2, "{} {:?}", found.last, found.windows);
        assert!(
            found.p90() <= bound(flows) && found.utilisation > 0.95,
            "{} {}",
            found.p90(),
            found.utilisation
        );
    }
    // With two flows the RTT comes close to 2 RTTmin, where PA begins; the packets of the flow that is first in the queue
    // stay below. Windows of 1 and 1/2 are then an equilibrium (Test S-6).
    let two = play("sigma", 2, 0, 1.0);
    assert!(two.p90() <= bound(2) && two.last < 1.6 && two.spread() < 2.1, "{:?}", two.windows);
}

#[test]
fn test_s_7_flows_that_start_one_after_the_other_share_equally() {
    // The equilibrium RTT, in RTTmin, from the specification's own simulation.
    for (flows, full, rest) in [(4, 1.0, 1.94), (8, 1.0, 2.82), (4, 0.95, 2.0)] {
        let found = play(&known("sigma"), flows, 3, full);
        assert!(
            found.p90() <= bound(flows) && found.spread() <= 1.2,
            "{flows}: {} {:?}",
            found.p90(),
            found.shares
        );
        assert!((found.last - rest).abs() < 0.1, "{flows}, {full}: {}", found.last);
    }
}
