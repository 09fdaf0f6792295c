//! Records of the decisions, for observers. They cost nothing without one.

use ranpace_units::{Bytes, Rate, Span, Time};

use super::FlowId;

/// Listens to the decisions. `()` does not, and an `Option` does where it holds something.
pub trait Observer {
    /// Whether anything is listened to: otherwise no record is made.
    fn listens(&self) -> bool {
        true
    }
    /// A period of a flow has ended.
    fn on_period(&mut self, record: &FlowRecord) {
        let _ = record;
    }
    /// A radio report was taken in.
    fn on_report(&mut self, record: &UserRecord) {
        let _ = record;
    }
    /// What can be told of a user's radio has changed.
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

/// What is known of a user's radio, by the age of the newest report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Not older than three reporting periods or 100 ms.
    Normal,
    /// Up to a second old: the proxy gives out a capacity of the last second ([`LateCapacity`](super::LateCapacity)), and
    /// recategorises no flow.
    Hold,
    /// Nothing: windows are the platform's, and the control on the user's side is an ordinary one.
    Open,
}

/// Whether the proxy trusts a user's reports. It always does where there is no guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportTrust {
    /// It does.
    Trusted,
    /// It gives out more than was reported, to see whether more is acknowledged.
    Probing,
    /// Acknowledgements contradict the reports: the mode is [`Mode::Open`] until they agree again.
    Contradicted,
}

/// What a flow is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Not known yet: it has its share.
    Init,
    /// It fills what it gets.
    Fast,
    /// It asks for less than its share.
    Slow,
}

/// A flow at the end of a period, or when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRecord {
    /// When.
    pub time: Time,
    /// Number of the user.
    pub user: u32,
    /// The flow.
    pub flow: FlowId,
    /// What it is taken for from now on.
    pub category: Category,
    /// Whether it counts among the user's flows: it is not idle.
    pub active: bool,
    /// `r`: rate of arrivals of the last round.
    pub arrived: Rate,
    /// `r^`: the same, weighted over the period.
    pub demand: Rate,
    /// `R`: what the window of the last round allowed.
    pub expected: Rate,
    /// `S`: its equal share of the user's bandwidth, as a window.
    pub share: Bytes,
    /// `RW`: the window on the server's side.
    pub window: Bytes,
    /// The same after what waits in the proxy; `None` if it is not imposed.
    pub advertised: Option<Bytes>,
    /// The window on the user's side; `None` if it is not imposed.
    pub ran_window: Option<Bytes>,
    /// Smoothed RTT to the server.
    pub wan_rtt: Span,
    /// The smallest.
    pub wan_rtt_min: Span,
    /// Smallest RTT to the user, as the settings have it; `None` before the first sample.
    pub ran_rtt_min: Option<Span>,
    /// Bytes waiting in the proxy.
    pub backlog: Bytes,
}

/// A user when a report was taken in, or when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserRecord {
    /// When.
    pub time: Time,
    /// Number of the user.
    pub user: u32,
    /// What is known of its radio.
    pub mode: Mode,
    /// Whether that is believed.
    pub trust: ReportTrust,
    /// `Pa`: PRBs granted per TTI, mean.
    pub granted: f64,
    /// `Pu`: PRBs that nobody used per TTI, mean.
    pub unused: f64,
    /// `Pe`: PRBs that it can expect.
    pub expected: f64,
    /// MCS that they are taken to carry.
    pub mcs: u8,
    /// `TBS`: bits of a full slot of them.
    pub tbs_bits: u32,
    /// `C`: the rate that is given out, more than was reported while more is tried.
    pub capacity: Rate,
    /// Rate of what passes by the proxy, with `account_udp`; `C` is what it leaves.
    pub passing: Rate,
    /// How old the report is.
    pub age: Span,
    /// `N`: flows that are active.
    pub flows: u32,
    /// `Z`: those that do not use their share.
    pub slow: u32,
    /// `A`: what these leave, in bit/s (in bytes where the accounting is of bytes).
    pub released: f64,
}
