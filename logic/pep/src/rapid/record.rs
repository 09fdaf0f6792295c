//! Records of the decisions, for observers. Without an observer they cost nothing.

use ranpace_units::{Bytes, Rate, Span, Time};

use super::FlowId;

/// Observes the decisions. `()` ignores them; an `Option` forwards them if it holds an observer.
pub trait Observer {
    /// Returns whether it observes anything; if not, no records are made.
    fn listens(&self) -> bool {
        true
    }
    /// A period of a flow has ended.
    fn on_period(&mut self, record: &FlowRecord) {
        let _ = record;
    }
    /// A radio report was accepted.
    fn on_report(&mut self, record: &UserRecord) {
        let _ = record;
    }
    /// The mode of a user's radio has changed.
    fn on_mode(&mut self, now: Time, user: u32, mode: Mode) {
        let _ = (now, user, mode);
    }
}

impl Observer for () {
    fn listens(&self) -> bool {
        false
    }
}

impl<O: Observer> Observer for Option<O> {
    fn listens(&self) -> bool {
        self.as_ref().is_some_and(Observer::listens)
    }
    fn on_period(&mut self, record: &FlowRecord) {
        if let Some(observer) = self {
            observer.on_period(record);
        }
    }
    fn on_report(&mut self, record: &UserRecord) {
        if let Some(observer) = self {
            observer.on_report(record);
        }
    }
    fn on_mode(&mut self, now: Time, user: u32, mode: Mode) {
        if let Some(observer) = self {
            observer.on_mode(now, user, mode);
        }
    }
}

/// The state of knowledge of a user's radio, by the age of the newest report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At most three reporting periods or 100 ms old, whichever is longer.
    Normal,
    /// Up to a second old: the proxy shares out a capacity of the last second ([`LateCapacity`](super::LateCapacity)) and
    /// recategorises no flow.
    Hold,
    /// Nothing is known: windows are the platform's, and an ordinary control sends to the user.
    Open,
}

/// Whether the proxy trusts a user's reports. Without a guard it always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportTrust {
    /// The reports are trusted.
    Trusted,
    /// The proxy shares out more than was reported, to see whether more is acknowledged.
    Probing,
    /// Acknowledgements contradict the reports: the mode is [`Mode::Open`] until they agree again.
    Contradicted,
}

/// The proxy's judgement of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Not known yet: the flow has its share.
    Init,
    /// It fills what it gets.
    Fast,
    /// It asks for less than its share.
    Slow,
}

/// A flow at the end of a period, or when queried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRecord {
    /// Time of the record.
    pub time: Time,
    /// Number of the user.
    pub user: u32,
    /// The flow.
    pub flow: FlowId,
    /// Its category from now on.
    pub category: Category,
    /// Whether it counts in N, that is, is not idle.
    pub active: bool,
    /// `r`: arrival rate of the last round.
    pub arrived: Rate,
    /// `r^`: the weighted mean of `r` over the period.
    pub demand: Rate,
    /// `R`: the rate that the window of the last round allowed.
    pub expected: Rate,
    /// `S`: its equal share of the user's bandwidth, as a window.
    pub share: Bytes,
    /// `RW`: the window on the server's side.
    pub window: Bytes,
    /// The same after subtracting the backlog; `None` if no window is imposed.
    pub advertised: Option<Bytes>,
    /// The window on the user's side; `None` if none is imposed.
    pub ran_window: Option<Bytes>,
    /// Smoothed RTT to the server.
    pub wan_rtt: Span,
    /// Smallest RTT to the server.
    pub wan_rtt_min: Span,
    /// Smallest RTT to the user, as defined by the settings; `None` before the first sample.
    pub ran_rtt_min: Option<Span>,
    /// Bytes waiting in the proxy.
    pub backlog: Bytes,
}

/// A user when a report was accepted, or when queried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserRecord {
    /// Time of the record.
    pub time: Time,
    /// Number of the user.
    pub user: u32,
    /// Mode of its radio.
    pub mode: Mode,
    /// Whether its reports are trusted.
    pub trust: ReportTrust,
    /// `Pa`: PRBs granted per TTI, mean.
    pub granted: f64,
    /// `Pu`: unused PRBs per TTI, mean.
    pub unused: f64,
    /// `Pe`: PRBs that it can expect.
    pub expected: f64,
    /// MCS assumed for these.
    pub mcs: u8,
    /// `TBS`: bits of a full slot of these.
    pub tbs_bits: u32,
    /// `C`: the rate shared out; above the reported one during a probe.
    pub capacity: Rate,
    /// Rate of traffic that bypasses the proxy, with `account_udp`; `C` is what remains.
    pub passing: Rate,
    /// Age of the newest report.
    pub age: Span,
    /// `N`: active flows.
    pub flows: u32,
    /// `Z`: flows that do not use their share.
    pub slow: u32,
    /// `A`: what these release, in bit/s (in bytes if the accounting is in bytes).
    pub released: f64,
}
