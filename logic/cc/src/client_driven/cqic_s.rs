//! CQIC-S: DCIC's client with CDBE's server, nothing else.
//!
//! Source: Zhong 2020, sections 6.5.1 and 6.5.2. Client: [`crate::client_driven::dcic::client`]. Server and its states, as
//! `inspect` shows them: [`crate::client_driven::cdbe::server`].
//!
//! The first report is DCIC's rBW_0; until it arrives, CDBE's 1 MB/s applies. Reports count blocks of the radio link, so
//! packets are paced with their headers (ours, see [`pipe`]).

use crate::client_driven::cdbe::{self, server::CdbeServer};
use crate::client_driven::{dcic, guard, pipe, reporter};
use crate::entry::{Control, Entry, Transport};
use crate::interface::ReceiverHalf;
use crate::options::{OptionError, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "cqic-s",
    about: "DCIC's client with CDBE's states",
    source: "Zhong 2020, section 6.5",
    options: &[
        dcic::ESTIMATOR,
        pipe::PKT,
        cdbe::DSDL,
        cdbe::TS_GRANULARITY,
        cdbe::DSDLMIN_UPDATE,
        cdbe::DSDLMIN_WINDOW,
        cdbe::DRAIN_CAP,
        cdbe::RESTART,
        cdbe::GROWTH,
        cdbe::STARTUP,
        reporter::REPORT,
        reporter::REPORT_EVERY,
        guard::GUARD,
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let format = reporter::format(options)?;
    let params = cdbe::server_params(options)?;
    let unit = pipe::unit(options)?;
    guard::build(CdbeServer::new(format, unit, params), format, options)
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    dcic::build_receiver(options)
}
