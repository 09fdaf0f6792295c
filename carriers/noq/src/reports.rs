//! Reports of a receiver's half over QUIC, for the client-driven controls (CDBE, CDBEv2, QUIC-CQIC, DCIC, CQIC-S): the receiver of
//! data measures, and tells the sender in DATAGRAM frames. [`ranpace_quic::reports`] has their format.
//!
//! Both ends have to want them, because an HTTP/3 connection in which nobody has agreed on DATAGRAM frames has none. A request
//! says what its client measures, and the answer says that the server listens:
//!
//! ```text
//! ranpace-reports: 1 cdbev2:guard=on        in the request: version of the format, and the control whose half measures
//! ranpace-reports: 1                        in the answer, if the connection's control is of that kind
//! ```
//!
//! Header fields were chosen because they are reliable, cost no round trip before the first byte of the answer, and pass every HTTP/3
//! implementation; a transport parameter needs a change of the QUIC library, and a first DATAGRAM frame can be lost. One such
//! request is enough for a connection; reports then leave until it ends.
//!
//! At the receiver of the data: [`Meter`]. At the sender: [`accepts`] and [`listen()`].
//!
//! Reports leave at a change, at most every [`INTERVAL`], and unchanged ones every [`REPEAT`] while data arrive, since a frame may
//! be lost and the controls take silence for a fault.

mod listen;
mod meter;

use std::str::FromStr as _;

use ranpace_cc::{ALL, Algorithm, AlgorithmError, Entry, Options, Transport};
pub use ranpace_quic::reports::{NumberedReport, ReportRefusal, VERSION};
use ranpace_units::Span;

pub use self::listen::listen;
pub use self::meter::{Meter, Sent, Unreported};
use crate::Controls;

/// The header field of a request and of its answer.
pub const HEADER: &str = "ranpace-reports";
/// The field's value in an answer: the version of the format that the server reads.
pub const ACCEPTED: &str = "1";
/// Shortest time between two reports.
pub const INTERVAL: Span = Span::from_millis(10);
/// Time after which an unchanged report is sent again, if data arrive: the controls' guard waits a second for one, so that nine may
/// be lost.
pub const REPEAT: Span = Span::from_millis(100);
/// Bytes of DATAGRAM frames that a server needs to keep for this ([`noq::TransportConfig::datagram_receive_buffer_size`]): some
/// hundred reports.
pub const RECEIVE_BUFFER: usize = 4_096;
/// Bytes of DATAGRAM frames that a client needs to keep ([`noq::TransportConfig::datagram_send_buffer_size`]): the newest
/// report replaces one that still waits.
pub const SEND_BUFFER: usize = 64;

/// Why an offer of reports is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// It is not written as an offer.
    #[error("expected {HEADER}: VERSION CONTROL, such as \"1 cdbev2\", found {found:?}")]
    Form {
        /// The field's value.
        found: String,
    },
    /// Reports have another format.
    #[error("expected reports of version {VERSION}, found {found:?}")]
    Version {
        /// The version offered.
        found: String,
    },
    /// There is no such control.
    #[error(transparent)]
    Control(#[from] AlgorithmError),
    /// The connection's control does not understand what the client measures.
    #[error("the client measures for {offered}; the connection's control is {wanted}")]
    OtherControl {
        /// The client's.
        offered: String,
        /// The connection's.
        wanted: String,
    },
}

/// Whether a control has a half that measures what a QUIC receiver sees: the messages of a cell to all users are not among that.
fn has_half(entry: &Entry) -> bool {
    let half = entry.receiver.and_then(|build| build(&mut Options::default()).ok().flatten());
    half.is_some_and(|half| !half.wants_cell()) && entry.transport == Transport::Tcp
}

/// The names of the controls whose receivers report.
pub fn reporting() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|entry| has_half(entry)).map(|entry| entry.name)
}

/// Checks the offer of a request (the value of [`HEADER`]): whether a connection with one of these controls can use what its
/// client measures. Then answer with [`ACCEPTED`], and [`listen()`].
///
/// # Errors
///
/// If the offer cannot be read, or is for another kind of control or another encoding of rates. The connection then works as
/// without reports: a guarded control is CUBIC.
pub fn accepts(offer: &str, controls: &Controls) -> Result<(), OfferError> {
    let (version, control) =
        offer.trim().split_once(' ').ok_or_else(|| OfferError::Form { found: offer.to_owned() })?;
    if version != ACCEPTED {
        return Err(OfferError::Version { found: version.to_owned() });
    }
    let offered = Algorithm::from_str(control)?;
    let wanted = controls.algorithm();
    let format = |algorithm: &Algorithm| algorithm.options().value("report", "", String::new());
    let same = offered.entry().name == wanted.entry().name && format(&offered) == format(wanted);
    if same && has_half(wanted.entry()) {
        return Ok(());
    }
    Err(OfferError::OtherControl { offered: offered.to_string(), wanted: wanted.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_must_fit_the_connections_control() {
        for (offer, control, expected) in [
            ("1 cdbev2:guard=on", "cdbev2", "yes"),
            ("1 cdbev2", "cdbev2:guard=off", "yes"),
            ("1 dcic:report=exp", "dcic:report=exp", "yes"),
            ("1 dcic", "dcic:report=exp", "the client measures for dcic:guard=on"),
            ("1 cdbe", "cdbev2", "the connection's control is cdbev2:guard=on"),
            ("1 cubic", "cubic", "the client measures for cubic"),
            ("2 cdbev2", "cdbev2", "expected reports of version 1, found \"2\""),
            ("1", "cdbev2", "such as \"1 cdbev2\", found \"1\""),
            ("", "cdbev2", "found \"\""),
            ("1 cdbe2", "cdbev2", "unknown algorithm \"cdbe2\""),
        ] {
            let found = accepts(offer, &control.parse().unwrap());
            let found = found.map_or_else(|error| error.to_string(), |()| "yes".to_owned());
            assert!(found.contains(expected), "{offer:?} for {control}: {found}");
        }
    }

    #[test]
    fn five_controls_have_receivers_that_report() {
        let mut names: Vec<&str> = reporting().collect();
        names.sort_unstable();
        assert_eq!(names, ["cdbe", "cdbev2", "cqic-s", "dcic", "quic-cqic"]);
    }
}
