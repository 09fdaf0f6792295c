//! CDBE, version 1: the client estimates the bandwidth from arrivals, the server's states follow the downstream delay.
//!
//! Source: Zhong 2020, chapter 6. Client, equations 6.1 to 6.5: [`client`]. Server, equations 6.6 to 6.9, and its states,
//! as `inspect` shows them: [`server`].
//!
//! Defaults that differ from the thesis: a sample ends with the arrival that closes it (`fence`), since otherwise a sample of
//! a single packet has no duration; the delay is pinned to half of RTT_min (`dsdl`), since the clocks of two hosts differ.

mod client;
pub mod server;

use ranpace_units::Span;

use client::{CdbeClient, GapUnit, SampleEnd};
use server::{CdbeServer, Growth, Params, Restart, STARTUP_EVALUATIONS};

use crate::client_driven::guard;
use crate::client_driven::pipe::Unit;
use crate::client_driven::reporter::{self, Reporter};
use crate::entry::{Control, Entry, Transport};
use crate::interface::ReceiverHalf;
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "cdbe",
    about: "sends at the rate at which the client receives, in states that follow the delay",
    source: "Zhong 2020, chapter 6",
    options: &[
        OptionInfo {
            key: "fence",
            values: "next_arrival, literal",
            about: "a sample lasts until the next packet, or until its own last one (as published)",
        },
        OptionInfo {
            key: "gap_unit",
            values: "ws, s, ms",
            about: "what the pause of equation 6.5 is counted in: sample windows, or a unit of time",
        },
        OptionInfo {
            key: "window",
            values: "a time (0s: the RTT)",
            about: "length of the long window, where the client sees no RTT or the published one is wanted",
        },
        DSDL,
        TS_GRANULARITY,
        DSDLMIN_UPDATE,
        DSDLMIN_WINDOW,
        DRAIN_CAP,
        RESTART,
        GROWTH,
        STARTUP,
        reporter::REPORT,
        reporter::REPORT_EVERY,
        guard::GUARD,
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

pub(crate) const DSDL: OptionInfo = OptionInfo {
    key: "dsdl",
    values: "pinned, true",
    about: "the smallest one-way delay is half of RTT_min, or all clocks are one (simulations)",
};
pub(crate) const TS_GRANULARITY: OptionInfo = OptionInfo {
    key: "ts_granularity",
    values: "a time (1ms)",
    about: "tick of the timestamps at both ends; 0s: exact",
};
pub(crate) const DSDLMIN_UPDATE: OptionInfo = OptionInfo {
    key: "dsdlmin_update",
    values: "off, after_drain",
    about: "whether the smallest delay may rise to that of the wait after DRAIN",
};
pub(crate) const DSDLMIN_WINDOW: OptionInfo = OptionInfo {
    key: "dsdlmin_window",
    values: "a time (0s: never)",
    about: "time after which the smallest delay is forgotten",
};
pub(crate) const DRAIN_CAP: OptionInfo = OptionInfo {
    key: "drain_cap",
    values: "0 to 1000000 (0: none)",
    about: "evaluations after which DRAIN is left and the smallest delay renewed",
};
pub(crate) const RESTART: OptionInfo = OptionInfo {
    key: "restart",
    values: "flight, after_limit",
    about: "STARTUP again whenever less than half a BDP is in flight, or only after the application was the limit",
};
pub(crate) const GROWTH: OptionInfo = OptionInfo {
    key: "growth",
    values: "beta, alpha",
    about: "how far above the smallest delay growth is obvious: a quarter (as printed), or a tenth (as explained)",
};
pub(crate) const STARTUP: OptionInfo =
    OptionInfo { key: "startup", values: "1 to 1000000 (10)", about: "longest first STARTUP in evaluations" };

/// Reads the server's options.
///
/// # Errors
///
/// Fails if an option has an invalid value.
pub fn server_params(options: &mut Options) -> Result<Params, OptionError> {
    Ok(Params {
        growth: options.choice(GROWTH.key, &[("beta", Growth::Beta), ("alpha", Growth::Alpha)])?,
        startup: options.number(STARTUP.key, 1.0, 1e6, f64::from(STARTUP_EVALUATIONS))? as u32,
        restart: options
            .choice(RESTART.key, &[("flight", Restart::Flight), ("after_limit", Restart::AfterLimit)])?,
        pinned: options.choice(DSDL.key, &[("pinned", true), ("true", false)])?,
        granularity: options.span(TS_GRANULARITY.key, Params::default().granularity)?,
        after_drain: options.choice(DSDLMIN_UPDATE.key, &[("off", false), ("after_drain", true)])?,
        min_window: options.span(DSDLMIN_WINDOW.key, Params::default().min_window)?,
        drain_cap: options.number(DRAIN_CAP.key, 0.0, 1e6, 0.0)? as u32,
    })
}

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let format = reporter::format(options)?;
    let params = server_params(options)?;
    guard::build(CdbeServer::new(format, Unit::Payload, params), format, options)
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    let fence = options
        .choice("fence", &[("next_arrival", SampleEnd::NextArrival), ("literal", SampleEnd::Literal)])?;
    let gap_unit = options.choice(
        "gap_unit",
        &[("ws", GapUnit::SampleWindows), ("s", GapUnit::Seconds), ("ms", GapUnit::Milliseconds)],
    )?;
    let granularity = options.span(TS_GRANULARITY.key, Params::default().granularity)?;
    let window = options.span("window", Span::ZERO)?;
    let client = CdbeClient::new(fence, gap_unit, granularity, Reporter::new(options)?);
    Ok(Some(Box::new(if window.is_zero() { client } else { client.with_window(window) })))
}
