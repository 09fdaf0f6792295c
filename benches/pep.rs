//! Cost of a packet at a Lightweight PEP: TCP and encrypted, in one flow and in thousands, the share of its reports included;
//! and what a report costs the server.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_pep::lightweight::message::Subscribe;
use ranpace_pep::lightweight::{Agent, Body, FlowId, Packet, Pep, PepSettings};
use ranpace_units::{Span, Time};

const PACKETS: u64 = 100_000;
const SERVER: [u8; 16] = [1; 16];
const SECRET: &[u8] = b"a secret of the operator and the server";

fn id(flow: u32, protocol: u8) -> FlowId {
    let mut destination = [2; 16];
    destination[..4].copy_from_slice(&flow.to_be_bytes());
    FlowId { source: SERVER, destination, source_port: 443, destination_port: 50_000, protocol }
}

fn pair() -> (Pep, Agent) {
    let mut pep = Pep::new(PepSettings::default());
    pep.add_server(SERVER, SECRET, 1);
    let mut agent = Agent::new(SECRET, PepSettings::default().id, 1, Subscribe::new([7; 32], [9; 16]));
    let mut asked = agent.poll(Time::ZERO).unwrap();
    pep.on_datagram(Time::ZERO, SERVER, asked.as_mut_slice());
    (pep, agent)
}

/// The packet `number` of all, the flows taking turns, 10 us apart; with more than a thousand flows 1 us, so that none is silent for
/// as long as the 20 ms after which a report closes it.
fn pass(pep: &mut Pep, number: u64, flows: u64, tcp: bool, payload: &mut [u8; 64]) {
    let apart = Span::from_micros(if flows > 1_000 { 1 } else { 10 });
    let now = Time::ZERO + apart * number;
    let (flow, turn) = ((number % flows) as u32, number / flows);
    let body = if tcp {
        Body::Tcp { seq: (turn * 1_448) as u32, length: 1_448, syn: false, reset: false }
    } else {
        payload[..8].copy_from_slice(&turn.to_be_bytes());
        Body::Opaque { payload, length: 1_252 }
    };
    let flow = id(flow, if tcp { 6 } else { 17 });
    pep.on_packet(now, &Packet { flow, bytes: 1_480, marked: false, body });
    while pep.next_deadline() <= now && pep.poll(now).is_some() {}
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("lightweight_pep");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, tcp) in [("tcp", true), ("opaque", false)] {
        for flows in [1, 100, 1_000, 10_000] {
            group.bench_with_input(BenchmarkId::new(name, flows), &flows, |b, &flows| {
                let (mut pep, _) = pair();
                let mut payload = [3; 64];
                let mut number = 0;
                b.iter(|| {
                    for _ in 0..PACKETS {
                        pass(&mut pep, number, flows, tcp, &mut payload);
                        number += 1;
                    }
                });
            });
        }
    }
    group.finish();
}

fn reports(c: &mut Criterion) {
    let mut group = c.benchmark_group("lightweight_agent");
    let (mut pep, _) = pair();
    let mut sealed = Vec::new();
    for number in 0..8_000u64 {
        let now = Time::ZERO + Span::from_micros(125) * number;
        let body = Body::Tcp { seq: (number * 1_448) as u32, length: 1_448, syn: false, reset: false };
        pep.on_packet(now, &Packet { flow: id(0, 6), bytes: 1_480, marked: false, body });
        while let Some(datagram) = pep.poll(now) {
            sealed.push((now, datagram.content));
        }
    }
    group.throughput(Throughput::Elements(sealed.len() as u64));
    group.bench_function("report", |b| {
        b.iter(|| {
            let mut agent =
                Agent::new(SECRET, PepSettings::default().id, 1, Subscribe::new([7; 32], [9; 16]));
            agent.register(id(0, 6), 0);
            let mut verified = 0;
            for (now, content) in &sealed {
                let mut content = *content;
                verified += u32::from(agent.on_datagram(*now, content.as_mut_slice()).is_ok());
            }
            assert!(verified > 0);
        });
    });
    group.finish();
}

criterion_group!(benches, packets, reports);
criterion_main!(benches);
