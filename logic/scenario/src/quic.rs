//! The settings of a QUIC connection, flat in `[[flow]]` or in its table `quic`, and the algorithms that QUIC can carry.

mod keys;

use ranpace_cc::{Algorithm, EcnUse};
use ranpace_quic::Config;

pub(crate) use self::keys::KEYS;
use self::keys::*;
use crate::algorithm::read_algorithm;
use crate::flow::keys as flow;
use crate::model::Transport;
use crate::reader::Section;
use crate::settings::Settings;
use crate::tcp;

/// Reads the settings and the algorithm of a flow with `transport = "quic"`.
pub(crate) fn read(section: &mut Section<'_>) -> Option<Transport> {
    let own = |name: &str| KEYS.iter().any(|key| key.name() == name);
    let names = tcp::KEYS.iter().map(|key| key.name()).filter(|name| !own(name));
    for name in names.chain([flow::TCP.name]) {
        if let Some(field) = section.field(name) {
            field.error("applies only to TCP, but this flow's transport is \"quic\"");
        }
    }
    let (mut config, ecn) = read_config(section);
    let Some(field) = section.find(&flow::CC) else {
        section.error("missing key \"cc\" in [[flow]]");
        return None;
    };
    let algorithm = read_algorithm(&field)?;
    config.ack_every = config.ack_every.or_else(|| algorithm.ack_every());
    config.ecn = ecn.unwrap_or_else(|| algorithm.ecn() == EcnUse::Scalable);
    if let Err(problem) = fits(&algorithm) {
        field.error(problem);
        return None;
    }
    Some(Transport::Quic { algorithm, config })
}

/// Returns whether QUIC can carry the algorithm; otherwise the problem, in words for the user.
fn fits(algorithm: &Algorithm) -> Result<(), String> {
    let name = algorithm.entry().name;
    if algorithm.transport() != ranpace_cc::Transport::Tcp {
        return Err(format!("{name} has its own transport and cannot be carried by QUIC"));
    }
    if algorithm.entry().receiver.is_some() {
        return Err(format!(
            "{name} needs acknowledgements that carry reports of the receiver, which those of QUIC cannot; use transport = \"tcp\""
        ));
    }
    Ok(())
}

/// Reads the settings, and `ecn` if it is written; otherwise the algorithm's need applies.
fn read_config(flow: &mut Section<'_>) -> (Config, Option<bool>) {
    let mut settings = Settings::open(flow, &flow::QUIC, &[KEYS]);
    let mut config = Config::default();
    settings.set(&mut config.mtu, &MTU);
    settings.set(&mut config.initial_window, &INITIAL_WINDOW);
    settings.set(&mut config.max_data, &MAX_DATA);
    // A single stream carries everything, so by default its limit is that of the connection.
    config.max_stream_data = settings.get(&MAX_STREAM_DATA).unwrap_or(config.max_data);
    config.ack_every = settings.get(&ACK_EVERY);
    config.ack_delay = settings.get(&ACK_DELAY);
    let ecn = settings.get(&ECN);
    settings.set(&mut config.pacing, &PACING);
    settings.set(&mut config.opener, &OPENER);
    settings.set(&mut config.certificates, &CERTIFICATES);
    settings.finish();
    (config, ecn)
}
