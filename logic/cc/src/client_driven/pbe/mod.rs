//! PBE-CC: the receiver sees the whole cell by decoding its control channel, and reports its share; the sender follows, as understood.
//!
//! Source: Xie, Yi, Jamieson, "PBE-CC: Congestion Control via Endpoint-Centric, Physical-Layer Bandwidth Measurements", SIGCOMM 2020, of which
//! the abstract was at hand; Diarra 2022, section 2.3; the capacity and its constant follow a public re-implementation of the client. The
//! rules are known, three details are not: the form of the goodput, when the receiver returns from Internet, and the window's cap.
//!
//! The capacity: [`cell`]. The receiver's states: [`client`]. The report: [`crate::client_driven::pbe_report`]. The sender: [`server`]. Ranpace's users have one serving
//! cell, so the sums over cells have one term, and no cell is ever added to others. The control channel comes from
//! [`crate::interface::ReceiverHalf::on_cell`]; without it the receiver reports nothing, and the [`guard`] makes the flow CUBIC. With
//! `source=edge` no device takes part: [`edge`].

pub mod cell;
pub mod client;
mod edge;
pub mod server;

use client::{BlockErrors, OVERHEAD, PbeClient};
use edge::EdgePbe;
use server::PbeServer;

use crate::client_driven::bw_report::Format;
use crate::client_driven::guard;
use crate::entry::{Control, Entry, Transport};
use crate::interface::ReceiverHalf;
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "pbe",
    about: "PBE-CC: the device decodes the whole cell's grants and reports its share (as understood)",
    source: "Xie et al., SIGCOMM 2020, abstract; Diarra 2022, section 2.3; certainty: medium, three details are readings",
    options: &[
        OptionInfo {
            key: "source",
            values: "device, edge",
            about: "who knows the cell: the device, which decodes its control channel, or the edge, whose reports the sender reads",
        },
        OptionInfo {
            key: "gamma",
            values: "0 to 0.5 [0.068]",
            about: "share of a block that is overhead of the protocols",
        },
        OptionInfo {
            key: "tber",
            values: "measured, or a bit error rate from 0 to 0.001 [edge: 0.000001]",
            about: "block errors: the share of the device's blocks that are sent again, or from bit errors",
        },
        OptionInfo {
            key: "miss",
            values: "0 to 1 [0]",
            about: "share of the messages to other users that are not decoded",
        },
        guard::GUARD,
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

/// Who knows the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Device,
    Edge,
}

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let (source, estimator) = read(options)?;
    let control = guard::build(PbeServer::new(), Format::PacketInterval, options)?;
    Ok(match (source, control) {
        (Source::Edge, Control::Other(follower)) => {
            Control::Other(Box::new(EdgePbe::new(follower, estimator)))
        }
        (_, control) => control,
    })
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    let (source, client) = read(options)?;
    Ok((source == Source::Device).then(|| Box::new(client) as Box<dyn ReceiverHalf>))
}

/// Largest bit error rate that the option takes: with more, hardly a block arrives.
const MOST_BIT_ERRORS: f64 = 0.001;
/// Bit error rate with `source=edge`: the least that the source names.
const EDGE_BIT_ERRORS: &str = "0.000001";

/// Reads what the device has, or the sender for it.
fn read(options: &mut Options) -> Result<(Source, PbeClient), OptionError> {
    let source = options.choice("source", &[("device", Source::Device), ("edge", Source::Edge)])?;
    let default = if source == Source::Edge { EDGE_BIT_ERRORS } else { "measured" };
    let text: String = options.value("tber", "", default.to_owned())?;
    let errors = match (text.parse(), source) {
        (_, Source::Device) if text == "measured" => BlockErrors::Measured,
        (Ok(p), _) if (0.0..=MOST_BIT_ERRORS).contains(&p) => BlockErrors::Bits(p),
        _ => {
            let expected = match source {
                Source::Device => format!("measured, or a number from 0 to {MOST_BIT_ERRORS}"),
                Source::Edge => format!(
                    "a bit error rate from 0 to {MOST_BIT_ERRORS} with source=edge, because the edge's reports do not say which blocks \
                     are sent again"
                ),
            };
            return Err(OptionError { key: "tber", expected, found: text });
        }
    };
    let overhead = options.number("gamma", 0.0, 0.5, OVERHEAD)?;
    let miss = options.number("miss", 0.0, 1.0, 0.0)?;
    if source == Source::Edge && miss > 0.0 {
        let expected = "0 with source=edge, which decodes no messages".to_owned();
        return Err(OptionError { key: "miss", expected, found: miss.to_string() });
    }
    Ok((source, PbeClient::new(overhead, errors, miss)))
}

#[cfg(test)]
mod tests;
