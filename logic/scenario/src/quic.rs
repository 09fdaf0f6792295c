//! The settings of a QUIC connection, flat in `[[flow]]` or in its table `quic`, and what QUIC can carry.

use core::ops::RangeInclusive;

use ranpace_cc::Algorithm;
use ranpace_quic::{Config, Opener};
use ranpace_units::{Bytes, Span};

use crate::flow::read_algorithm;
use crate::link::LEAST_SPAN;
use crate::model::Transport;
use crate::reader::{Field, Section};
use crate::tcp;

/// The keys of the settings.
pub(crate) const KEYS: [&str; 10] = [
    "mtu",
    "initial_window",
    "max_data",
    "max_stream_data",
    "ack_every",
    "ack_delay",
    "ecn",
    "pacing",
    "opener",
    "certificates",
];

/// Largest IP packet: what its length field holds (RFC 791).
const MTU: RangeInclusive<Bytes> = Config::LEAST_MTU..=Bytes::new(65_535);
/// Receive windows: at least a packet of Ethernet, at most what is believed.
const WINDOW: RangeInclusive<Bytes> = Bytes::new(1_500)..=Bytes::new(1 << 40);
/// A chain that the handshake's buffer holds.
const CERTIFICATES: RangeInclusive<Bytes> = Bytes::new(0)..=Bytes::new(12_000);

/// Reads the settings and the algorithm of a flow with `transport = "quic"`.
pub(crate) fn read(flow: &mut Section<'_>) -> Option<Transport> {
    for key in tcp::KEYS.into_iter().filter(|key| !KEYS.contains(key)).chain(["tcp"]) {
        if let Some(field) = flow.field(key) {
            field.error("belongs to TCP, and this flow's transport is \"quic\"");
        }
    }
    let mut config = read_config(flow);
    let Some(field) = flow.field("cc") else {
        flow.error("missing key \"cc\" in [[flow]]");
        return None;
    };
    let algorithm = read_algorithm(&field)?;
    config.ack_every = config.ack_every.or_else(|| algorithm.ack_every());
    if let Err(problem) = fits(&algorithm) {
        field.error(problem);
        return None;
    }
    Some(Transport::Quic { algorithm, config })
}

/// Whether QUIC can carry the algorithm; otherwise what is wrong, in words for the user.
fn fits(algorithm: &Algorithm) -> Result<(), String> {
    let name = algorithm.entry().name;
    if algorithm.transport() != ranpace_cc::Transport::Tcp {
        return Err(format!("{name} has a transport of its own, and cannot be carried by QUIC"));
    }
    if algorithm.entry().receiver.is_some() {
        return Err(format!(
            "{name} needs reports of the receiver on its acknowledgements; those of QUIC cannot carry any, use transport = \"tcp\""
        ));
    }
    Ok(())
}

fn read_config(flow: &mut Section<'_>) -> Config {
    let mut table = flow.field("quic").and_then(|field| field.section("in quic of [[flow]]"));
    let [
        mtu,
        initial_window,
        max_data,
        max_stream_data,
        ack_every,
        ack_delay,
        ecn,
        pacing,
        opener,
        certificates,
    ] = KEYS.map(|key| {
        let (flat, inner) = (flow.field(key), table.as_mut().and_then(|table| table.field(key)));
        if let (Some(flat), Some(_)) = (&flat, &inner) {
            flat.error("is given twice, here and in `quic`");
        }
        inner.or(flat)
    });
    if let Some(table) = table {
        table.finish();
    }
    let size =
        |field: Option<Field<'_>>, range, default| field.and_then(|f| f.quantity(range)).unwrap_or(default);
    let whole = |field: Option<Field<'_>>, range| {
        field.and_then(|f| f.whole(range)).and_then(|number| u32::try_from(number).ok())
    };
    let flag = |field: Option<Field<'_>>, default| field.and_then(|f| f.flag()).unwrap_or(default);
    let default = Config::default();
    let max_data = size(max_data, WINDOW, default.max_data);
    Config {
        mtu: size(mtu, MTU, default.mtu),
        initial_window: whole(initial_window, 1..=65_535).unwrap_or(default.initial_window),
        max_data,
        // One stream carries all: what the connection takes, it may take.
        max_stream_data: size(max_stream_data, WINDOW, max_data),
        ack_every: whole(ack_every, 1..=1_000),
        ack_delay: ack_delay.and_then(|f| f.quantity(LEAST_SPAN..=Span::from_secs(10))),
        ecn: flag(ecn, default.ecn),
        pacing: flag(pacing, default.pacing),
        opener: match opener.and_then(|f| f.word(&["sender", "receiver"])) {
            Some("receiver") => Opener::Receiver,
            Some(_) => Opener::Sender,
            None => default.opener,
        },
        certificates: size(certificates, CERTIFICATES, default.certificates),
    }
}
