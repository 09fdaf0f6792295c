//! `ranpace serve`: `GET /show` beside its metrics. docs/serve.md describes the answer.

use std::net::SocketAddr;
use std::time::Instant;

use ranpace_quic::Sample;
use serde::Deserialize;

use crate::live::reading::{Counters, MOST, Reading};
use crate::protocol::Subject;

/// The answer.
#[derive(Deserialize)]
pub struct Serve {
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    connection: u64,
    client: Option<SocketAddr>,
    control: String,
    #[serde(flatten)]
    sample: Option<Sample>,
}

/// What a server says of its QUIC connections. Goodput is what was acknowledged, with the packets' heads.
pub fn reading(serve: Serve, counters: &mut Counters, now: Instant) -> Reading {
    let mut reading = Reading { name: "server".to_owned(), ..Reading::default() };
    for flow in serve.flows.into_iter().take(MOST) {
        let client = flow.client.map_or_else(|| "a client".to_owned(), |client| client.to_string());
        let name = format!("{}: {client}", flow.connection);
        if let Some(sample) = &flow.sample {
            for (column, value) in [
                ("goodput_bit_s", counters.rate(&name, sample.acked_bytes, now)),
                ("cwnd_bytes", Some(sample.cwnd_bytes)),
                ("ssthresh_bytes", sample.ssthresh_bytes),
                ("pacing_bit_s", sample.pacing_bit_s.map(|rate| rate as f64)),
                ("in_flight_bytes", Some(sample.in_flight_bytes as f64)),
                ("srtt_s", sample.srtt_s),
                ("retransmitted_packets", Some(sample.lost_packets as f64)),
            ] {
                reading.push(Subject::Flow, &name, column, value);
            }
            for (state, value) in &sample.state {
                reading.push(Subject::Flow, &name, &format!("state_{state}"), Some(*value));
            }
        }
        reading.push_flow(&name, ["server".to_owned(), client], &flow.control, "a QUIC connection");
    }
    counters.end();
    reading
}
