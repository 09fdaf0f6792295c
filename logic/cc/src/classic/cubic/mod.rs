//! CUBIC: the window is a cubic function of the time since the last congestion.
//!
//! Sources: RFC 9438; Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant" (2008); `net/ipv4/tcp_cubic.c`
//! of Linux 6.x.
//!
//! * [`LinuxCubic`] counts in whole segments, as Linux does. It is the default.
//! * [`RfcCubic`] (option `rfc9438`) computes the RFC's formulas unmodified.
//! * [`equations`] has one function for each equation; [`Curve`] holds the state shared by both forms.
//!
//! Ours: `K` is exact, whereas Linux uses a table and one step of Newton's method.

mod curve;
mod equations;
mod linux;
mod rfc9438;
#[cfg(test)]
mod tests;

use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::options::{OptionError, OptionInfo, Options};

pub(crate) use self::linux::LinuxCubic;
pub(crate) use self::rfc9438::RfcCubic;

#[cfg(doc)]
use self::curve::Curve;

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "cubic",
    about: "cubic growth towards the last maximum, as in Linux",
    source: "RFC 9438; Linux 6.x net/ipv4/tcp_cubic.c",
    options: &[
        OptionInfo { key: "rfc9438", values: "off, on", about: "the RFC's formulas instead of Linux's" },
        OptionInfo {
            key: "hystart",
            values: "classic, plusplus, ns-3, off",
            about: "how slow start ends without loss",
        },
        OptionInfo {
            key: "c",
            values: "0.001 to 100 (410/1024; RFC: 0.4)",
            about: "steepness in segments per s^3",
        },
        OptionInfo {
            key: "beta",
            values: "0.1 to 0.99 (717/1024; RFC: 0.7)",
            about: "window kept on congestion",
        },
        OptionInfo {
            key: "fast_convergence",
            values: "on, off",
            about: "give way if the last maximum was not reached",
        },
        OptionInfo { key: "friendliness", values: "on, off", about: "grow at least as a Reno flow would" },
    ],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let rfc9438 = options.flag("rfc9438", false)?;
    let kinds = [
        ("classic", hystart::Kind::Classic),
        ("plusplus", hystart::Kind::PlusPlus),
        ("ns-3", hystart::Kind::Ns3),
        ("off", hystart::Kind::Off),
    ];
    let hystart = options.choice("hystart", &kinds)?;
    let base = if rfc9438 { Params::RFC } else { Params::LINUX };
    let params = Params {
        c: options.number("c", 0.001, 100.0, base.c)?,
        beta: options.number("beta", 0.1, 0.99, base.beta)?,
        fast_convergence: options.flag("fast_convergence", base.fast_convergence)?,
        friendliness: options.flag("friendliness", base.friendliness)?,
    };
    Ok(Control::LossBased(if rfc9438 {
        Box::new(RfcCubic::new(params, hystart))
    } else {
        Box::new(LinuxCubic::new(params, hystart))
    }))
}

/// User-configurable parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// `C`, in segments per cubic second.
    pub c: f64,
    /// `beta_cubic`.
    pub beta: f64,
    /// Fast convergence.
    pub fast_convergence: bool,
    /// The Reno-friendly region.
    pub friendliness: bool,
}

impl Params {
    /// Linux's defaults: `bic_scale` 41, `beta` 717.
    pub const LINUX: Self =
        Self { c: 410.0 / 1024.0, beta: 717.0 / 1024.0, fast_convergence: true, friendliness: true };
    /// RFC 9438, sections 4.6 and 5.
    pub const RFC: Self = Self { c: 0.4, beta: 0.7, ..Self::LINUX };
}
