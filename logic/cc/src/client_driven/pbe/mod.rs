//! PBE-CC: the receiver sees the whole cell by decoding its control channel, and reports its share; the sender follows, as understood.
//!
//! Source: Xie, Yi, Jamieson, "PBE-CC: Congestion Control via Endpoint-Centric, Physical-Layer Bandwidth Measurements", SIGCOMM 2020, of which
//! the abstract was at hand; Diarra 2022, section 2.3; the capacity and its constant follow a public re-implementation of the client. The
//! rules are known, three details are not: the form of the goodput, when the receiver returns from Internet, and the window's cap.
//!
//! The capacity: [`cell`]. The receiver's states: [`client`]. The report: [`crate::client_driven::pbe_report`]. The sender: [`server`]. Ranpace's users have one serving
//! cell, so the sums over cells have one term, and no cell is ever added to others. The control channel comes from
//! [`crate::interface::ReceiverHalf::on_cell`]; without it the receiver reports nothing, and the [`guard`] makes the flow CUBIC.

pub mod cell;
pub mod client;
pub mod server;

use client::{BlockErrors, OVERHEAD, PbeClient};
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
            key: "gamma",
            values: "0 to 0.5 [0.068]",
            about: "share of a block that is overhead of the protocols",
        },
        OptionInfo {
            key: "tber",
            values: "measured, or a bit error rate from 0 to 0.001",
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

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    guard::build(PbeServer::new(), Format::PacketInterval, options)
}

/// Largest bit error rate that the option takes: with more, hardly a block arrives.
const MOST_BIT_ERRORS: f64 = 0.001;

fn build_receiver(options: &mut Options) -> Result<Box<dyn ReceiverHalf>, OptionError> {
    let text: String = options.value("tber", "", "measured".to_owned())?;
    let errors = match text.parse() {
        _ if text == "measured" => BlockErrors::Measured,
        Ok(p) if (0.0..=MOST_BIT_ERRORS).contains(&p) => BlockErrors::Bits(p),
        _ => {
            let expected = format!("measured, or a number from 0 to {MOST_BIT_ERRORS}");
            return Err(OptionError { key: "tber", expected, found: text });
        }
    };
    let overhead = options.number("gamma", 0.0, 0.5, OVERHEAD)?;
    Ok(Box::new(PbeClient::new(overhead, errors, options.number("miss", 0.0, 1.0, 0.0)?)))
}

#[cfg(test)]
mod tests;
