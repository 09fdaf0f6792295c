//! Reads the lines that `ranpace emulate --hints` writes (`hint_json.rs`): JSON from outside, of which each value is checked.
//!
//! [`HintLine::parse`] reads a line; it is either radio information on a user ([`RadioLine`]) or what a PEP has seen of a
//! connection ([`PepLine`]).

use std::net::SocketAddr;

use ranpace_cc::RadioHint;
use ranpace_phy::{Both, LteBandwidth};
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};
use serde::Deserialize;

use crate::hint_json::{self, Origin, PepJson, RadioJson, Way};

/// Longest line, bytes: ten of the emulator's.
pub const LONGEST: usize = 4096;
/// Most that a number of seconds may be: thirty years.
const MOST_SECONDS: f64 = 1e9;
/// Most bits of a transport block: ten times NR's largest.
const MOST_BITS: u32 = 16_000_000;
/// Most PRBs of a cell; NR has 275.
const MOST_PRBS: u16 = 1000;
/// Most symbols of a slot: those of the millimetre-wave frames.
const MOST_SYMBOLS: f64 = 24.0;
/// Most ranges of a PEP's report.
const MOST_RANGES: usize = 8;
/// Longest TTI, seconds.
const LONGEST_TTI: f64 = 0.01;
/// Oldest that a hint is taken to be: older ones say nothing either.
const OLDEST: f64 = 60.0;

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum HintLine {
    /// Radio information on a user.
    Radio(RadioLine),
    /// A PEP's observations of a connection.
    Pep(PepLine),
}

impl HintLine {
    /// Reads a line without its end.
    ///
    /// # Errors
    ///
    /// It is not such a line, or a value is out of range: what was expected, and what was found.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        match PepLine::parse(text) {
            Some(line) => line.map(Self::Pep),
            None => RadioLine::parse(text).map(Self::Radio),
        }
    }
}

/// A PEP's observations of a connection, verified by the agent of its server.
#[derive(Clone, Debug, PartialEq)]
pub struct PepLine {
    /// The server's end of the connection.
    pub server: SocketAddr,
    /// The user's.
    pub user: SocketAddr,
    /// TCP's sequence number below which all passed; with `new_epoch`, what is below is unknown.
    pub cumulative: u32,
    /// The ranges that passed above: first sequence number, and one past the last; at most eight.
    pub ranges: Vec<(u32, u32)>,
    /// From the newest packet's arrival at the PEP to the report, at most 60 s.
    pub hold: Span,
    /// Packets with a congestion mark.
    pub marked: Option<u32>,
    /// The PEP counts anew.
    pub new_epoch: bool,
}

impl PepLine {
    /// Reads one without its end; `None` if it is no line of a PEP.
    fn parse(text: &[u8]) -> Option<Result<Self, String>> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            source: &'a str,
        }
        if serde_json::from_slice::<Tag<'_>>(text).ok()?.source != hint_json::PEP {
            return None;
        }
        let line: Result<PepJson<'_>, _> = serde_json::from_slice(text);
        Some(match line {
            Err(error) => {
                Err(format!("expected a PEP's line as `ranpace emulate --hints` writes it: {error}"))
            }
            Ok(line) if !(0.0..=OLDEST).contains(&line.hold_s) => {
                Err(format!("expected hold_s from 0 to {OLDEST}, found {}", line.hold_s))
            }
            Ok(line) if line.ranges.len() > MOST_RANGES => {
                Err(format!("expected at most {MOST_RANGES} ranges, found {}", line.ranges.len()))
            }
            Ok(line) => Ok(Self {
                server: line.server,
                user: line.user,
                cumulative: line.cumulative,
                ranges: line.ranges.into_owned(),
                hold: Span::from_secs_f64(line.hold_s),
                marked: line.marked,
                new_epoch: line.new_epoch,
            }),
        })
    }
}

/// Content of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioLine {
    /// The device, by its name in the feed.
    pub user: String,
    origin: Origin,
    /// Age of the measurement when the line came.
    pub age: Span,
    way: Way,
    /// The whole hint, measured at zero.
    hint: RadioHint,
}

impl RadioLine {
    /// Reads one without its end. The error says what was expected, and what was found.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let raw: RadioJson<'_> = serde_json::from_slice(text)
            .map_err(|error| format!("expected a line as `ranpace emulate --hints` writes it: {error}"))?;
        let within = |what: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(format!("expected {what} from {least} to {most}, found {value}"))
            }
        };
        let at = within("at_s", raw.at_s, 0.0, MOST_SECONDS)?;
        let measured = within("measured_at_s", raw.measured_at_s, 0.0, MOST_SECONDS)?;
        let tti = within("tti_s", raw.tti_s.unwrap_or(0.001), 1e-6, LONGEST_TTI)?;
        let cell = within("cell_prbs", raw.cell_prbs.into(), 1.0, MOST_PRBS.into())?;
        within("granted_prbs", raw.granted_prbs, 0.0, cell)?;
        within("layers", raw.layers.into(), 1.0, 8.0)?;
        within("cqi", raw.cqi.unwrap_or(0).into(), 0.0, 15.0)?;
        within("tbs_bits", raw.tbs_bits.unwrap_or(0).into(), 0.0, MOST_BITS.into())?;
        within("most_granted_prbs", raw.most_granted_prbs.into(), 0.0, cell)?;
        within("unused_prbs", raw.unused_prbs, 0.0, cell)?;
        let plain = CellInfo {
            slot: Span::from_secs_f64(tti),
            prbs: raw.cell_prbs,
            layers: raw.layers,
            ..CellInfo::lte(0, LteBandwidth::Mhz20)
        };
        let info = match raw.cell {
            None => plain,
            Some(cell) => {
                for share in [cell.share.0, cell.share.1] {
                    within("share", share, 0.0, 1.0)?;
                }
                for symbols in [cell.symbols, cell.data_symbols.0, cell.data_symbols.1] {
                    within("symbols", symbols.into(), 1.0, MOST_SYMBOLS)?;
                }
                CellInfo {
                    cell: cell.number,
                    technology: cell.technology.into(),
                    symbols: cell.symbols,
                    fdd: cell.fdd,
                    share: Both { downlink: cell.share.0, uplink: cell.share.1 },
                    data_symbols: Both { downlink: cell.data_symbols.0, uplink: cell.data_symbols.1 },
                    shared: cell.shared,
                    by_symbols: cell.by_symbols,
                    overhead: cell.overhead,
                    harq_processes: Both { downlink: cell.harq_processes.0, uplink: cell.harq_processes.1 },
                    ..plain
                }
            }
        };
        Ok(Self {
            user: raw.user.into_owned(),
            origin: raw.source,
            // A hint is never newer than its arrival.
            age: Span::from_secs_f64((at - measured).clamp(0.0, OLDEST)),
            way: raw.direction.unwrap_or(if raw.source == Origin::Modem {
                Way::Uplink
            } else {
                Way::Downlink
            }),
            hint: RadioHint {
                cqi: raw.cqi,
                mcs: raw.mcs,
                layers: raw.layers,
                tbs_bits: raw.tbs_bits,
                granted: raw.granted_prbs,
                most_granted: raw.most_granted_prbs,
                unused: raw.unused_prbs,
                active_users: raw.active_users,
                queue: Bytes::new(raw.queue_bytes),
                queue_limit: raw.queue_limit_bytes.map(Bytes::new),
                handover: raw.handover,
                ..RadioHint::of(info, Time::ZERO)
            },
        })
    }

    /// Returns the hint for the receivers of its device, measured at this time of their clock: a grant or a quality; `None` without either.
    pub fn for_receivers(&self, measured_at: Time) -> Option<RadioHint> {
        let said = &self.hint;
        let hint = RadioHint { layers: said.layers, ..RadioHint::of(said.info, measured_at) };
        match self.origin {
            Origin::Dci => Some(RadioHint { tbs_bits: Some(said.tbs_bits?), granted: said.granted, ..hint }),
            Origin::Modem => Some(RadioHint { cqi: Some(said.cqi?), ..hint }),
            Origin::Rnis => None,
        }
    }

    /// Returns the hint for the senders of its device: the modem's knowledge of the uplink.
    pub fn for_senders(&self, measured_at: Time) -> Option<RadioHint> {
        let is_meant = self.origin == Origin::Modem && self.way == Way::Uplink;
        is_meant.then_some(RadioHint { measured_at, ..self.hint })
    }

    /// Returns the hint for servers that send to its device: the edge's report on the downlink.
    pub fn for_servers(&self, measured_at: Time) -> Option<RadioHint> {
        let is_meant = self.origin == Origin::Rnis && self.way == Way::Downlink;
        is_meant.then_some(RadioHint { measured_at, ..self.hint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: &str = r#"{"at_s":2.5,"measured_at_s":2.25,"source":"dci","user":"phone","direction":"downlink","cqi":null,"mcs":28,
        "layers":1,"tbs_bits":18336,"tti_s":0.001,"granted_prbs":25.0,"unused_prbs":0.0,"cell_prbs":25,"active_users":1,
        "queue_bytes":30000,"handover":false}"#;

    #[test]
    fn a_grant_and_a_quality_are_hints_for_receivers_and_the_edges_reports_are_not() {
        let line = RadioLine::parse(GRANT.as_bytes()).expect("it is right");
        assert_eq!((line.user.as_str(), line.age), ("phone", Span::from_millis(250)));
        let hint = line.for_receivers(Time::from_millis(7)).expect("a grant");
        assert_eq!((hint.tbs_bits, hint.granted, hint.cell, hint.cqi), (Some(18_336), 25.0, 25, None));
        assert_eq!((hint.measured_at, hint.tti), (Time::from_millis(7), Span::from_millis(1)));
        let of = |source: &str, cqi: &str| {
            let text = GRANT.replace("\"dci\"", source).replace("\"cqi\":null", cqi);
            RadioLine::parse(text.as_bytes()).expect("it is right").for_receivers(Time::ZERO)
        };
        assert!(
            of("\"modem\"", "\"cqi\":7").is_some_and(|hint| hint.cqi == Some(7) && hint.tbs_bits.is_none())
        );
        assert_eq!(of("\"modem\"", "\"cqi\":null"), None);
        assert_eq!(of("\"rnis\"", "\"cqi\":7"), None);
        // From the future: it is as old as its arrival.
        let future = GRANT.replace("2.25", "99.0");
        assert_eq!(RadioLine::parse(future.as_bytes()).expect("it is right").age, Span::ZERO);
    }

    #[test]
    fn a_peps_line_is_what_it_has_seen() {
        let text = r#"{"at_s":2.5,"source":"pep","pep":"edge","server":"10.77.0.1:5201","user":"[fd00::2]:4711","cumulative":7,
            "ranges":[[9,12]],"hold_s":0.001,"marked":3,"new_epoch":false}"#;
        let line = PepLine::parse(text.as_bytes()).expect("a PEP's").expect("it is right");
        assert_eq!((line.server.port(), line.user.is_ipv6()), (5201, true));
        assert_eq!((line.cumulative, &line.ranges[..], line.marked), (7, &[(9, 12)][..], Some(3)));
        assert_eq!(line.hold, Span::from_millis(1));
        assert!(PepLine::parse(GRANT.as_bytes()).is_none() && PepLine::parse(b"{").is_none());
        for (what, with, expected) in [
            ("10.77.0.1:5201", "home", "socket address"),
            ("0.001", "-1", "hold_s from 0 to 60"),
            (
                "[[9,12]]",
                "[[9,12],[9,12],[9,12],[9,12],[9,12],[9,12],[9,12],[9,12],[9,12]]",
                "at most 8 ranges",
            ),
            ("\"cumulative\":7", "\"cumulative\":-7", "u32"),
        ] {
            let error =
                PepLine::parse(text.replacen(what, with, 1).as_bytes()).expect("a PEP's").expect_err(with);
            assert!(error.contains(expected), "{with}: {error}");
        }
    }

    #[test]
    fn hostile_lines_are_refused_with_what_was_expected() {
        for (what, with, expected) in [
            ("\"cqi\":null", "\"cqi\":16", "cqi from 0 to 15, found 16"),
            ("\"cqi\":null", "\"cqi\":300", "u8"),
            ("25.0", "26.0", "granted_prbs from 0 to 25"),
            ("25.0", "-1", "granted_prbs"),
            ("25.0", "NaN", "expected a line as"),
            ("2.5", "1e999", "expected a line as"),
            ("2.5", "-1", "at_s from 0"),
            ("2.25", "1e300", "measured_at_s"),
            ("18336", "4294967295", "tbs_bits"),
            ("18336", "4294967296", "u32"),
            ("0.001", "0", "tti_s"),
            ("\"cell_prbs\":25", "\"cell_prbs\":0", "cell_prbs"),
            ("\"layers\":1", "\"layers\":0", "layers"),
            ("\"dci\"", "\"phone\"", "source"),
            ("\"user\":\"phone\",", "", "missing field `user`"),
            ("false}", "fal", "EOF"),
        ] {
            let text = GRANT.replacen(what, with, 1);
            assert_ne!(text, GRANT, "{what}");
            let error = RadioLine::parse(text.as_bytes()).expect_err(with);
            assert!(
                error.contains(expected) || expected == "u8" || expected == "u32" || expected == "source",
                "{with}: {error}"
            );
        }
        for text in [&b""[..], b"[]", b"null", b"\xff\xfe", b"{}"] {
            assert!(RadioLine::parse(text).is_err());
        }
    }
}
