//! What a packet costs a Lightweight PEP, in ns of real time, the share of its reports included: the best of many tries, so that
//! a busy machine counts little. `benches/pep.rs` has the same for comparison between versions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use ranpace_pep::lightweight::message::Subscribe;
use ranpace_pep::lightweight::{Agent, Body, FlowId, Packet, Pep, PepSettings};
use ranpace_units::{Span, Time};

const PACKETS: u64 = 20_000;
const TRIES: usize = 200;
const SERVER: [u8; 16] = [1; 16];

fn main() {
    for (name, tcp) in [("tcp", true), ("opaque", false)] {
        for flows in [1, 100, 1_000] {
            let mut pep = Pep::new(PepSettings::default());
            pep.add_server(SERVER, b"secret", 1);
            let mut agent = Agent::new(b"secret", 1, 1, Subscribe::new([7; 32], [9; 16]));
            let mut asked = agent.poll(Time::ZERO).unwrap();
            pep.on_datagram(Time::ZERO, SERVER, asked.as_mut_slice());
            let (mut payload, mut number, mut best) = ([3; 64], 0u64, f64::INFINITY);
            for _ in 0..TRIES {
                let begin = Instant::now();
                for _ in 0..PACKETS {
                    let now = Time::ZERO + Span::from_micros(10) * number;
                    let (flow, turn) = ((number % flows) as u32, number / flows);
                    let body = if tcp {
                        Body::Tcp { seq: (turn * 1_448) as u32, length: 1_448, syn: false, reset: false }
                    } else {
                        payload[..8].copy_from_slice(&turn.to_be_bytes());
                        Body::Opaque { payload: &payload, length: 1_252 }
                    };
                    let mut destination = [2; 16];
                    destination[..4].copy_from_slice(&flow.to_be_bytes());
                    let protocol = if tcp { 6 } else { 17 };
                    let (source_port, destination_port) = (443, 50_000);
                    let flow =
                        FlowId { source: SERVER, destination, source_port, destination_port, protocol };
                    pep.on_packet(now, &Packet { flow, bytes: 1_480, marked: false, body });
                    while pep.next_deadline() <= now && pep.poll(now).is_some() {}
                    number += 1;
                }
                best = best.min(begin.elapsed().as_nanos() as f64 / PACKETS as f64);
            }
            let reports = pep.stats().reports as f64 / number as f64;
            println!("{name}, {flows} flows: {best:.0} ns a packet, {reports:.3} reports a packet");
        }
    }
    println!("{} B a flow", Pep::bytes_per_flow());
}
