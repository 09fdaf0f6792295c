//! What a subscriber makes of the feed: the latest hints about its users, with their times on its own clock.
//!
//! The carrier opens envelopes (its keys follow from the header), and calls [`Receiver::accept`] with those that are genuine. The
//! receiver refuses what was repeated, or is of an epoch that the server has not proved to be its present one, and counts it.
//!
//! Times of measurement are the server's. They are converted ([`ClockQuality`]) by the first of these that applies: the clocks are
//! the same; their offset is known to a period or better; the latest report is as old as its arrival and half a round trip.

use ranpace_phy::Direction;
use ranpace_units::{Span, Time};

use super::clock::OffsetEstimate;
use super::message::{Answer, CLOCK_BYTES, Header, Hello, Kind, MessageError, Request};
use super::view::FeedView;
use super::{CALM, IMPATIENT};
use crate::wire::WireError;
use crate::{RadioHint, Replay, StalenessLimit, Timestamped};

/// Requests that wait for their answers.
const WAITING: usize = 8;
/// After so many answers requests become rare.
const ANSWERS: u32 = 4;

/// How a server's times were converted to the subscriber's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockQuality {
    /// Both have the same clock.
    Same,
    /// The offset is known with this uncertainty.
    Estimated(Span),
    /// The offset is too uncertain: the latest report counts as old as its arrival and half a round trip.
    Arrival,
}

/// A hint, dated on the subscriber's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgedHint {
    /// The hint, and when it was measured.
    pub hint: Timestamped<RadioHint>,
    /// How that time was found.
    pub clock: ClockQuality,
}

impl AgedHint {
    /// The hint, if it is fresh enough for this mechanism, with a feed of this period.
    pub fn fresh(&self, now: Time, limit: StalenessLimit, period: Span) -> Option<&RadioHint> {
        self.hint.fresh(now, limit.limit(period))
    }
}

/// Why a message has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It came before, or is too old to say.
    #[error("it came before")]
    Repeated,
    /// It is not of the server's present epoch.
    #[error("it is not of the server's present epoch")]
    OtherEpoch,
    /// A newer one of its cell came before, or there are too many cells.
    #[error("a newer report of its cell came before")]
    Overtaken,
    /// It is an answer to no request.
    #[error("it is an answer to no request")]
    NotRequested,
    /// A subscriber does not get such messages.
    #[error("it is meant for a server")]
    ForServers,
    /// Its body is no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Its body is no report.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// The effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// A report of a cell.
    Report {
        /// Number of the cell.
        cell: u16,
        /// The server's time of its slot.
        time: Time,
    },
    /// Descriptions of cells or users.
    Directory,
    /// An invitation to request.
    Hello,
    /// The time. A server that has restarted is recognised by it.
    Answer {
        /// The server's epoch is a new one.
        restarted: bool,
    },
}

/// Keeps what the feed reports.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// This subscriber's epoch.
    own_epoch: u64,
    own_clock: [u8; CLOCK_BYTES],
    server: Option<Server>,
    /// An epoch of which a hello came, with its cookie, until an answer proves it.
    candidate: Option<(u64, u64)>,
    requests: [Option<(Time, u64)>; WAITING],
    next_request: Time,
    /// To the candidate, and the number of requests.
    next_to_candidate: Time,
    sent: u64,
}

/// The server in its present epoch.
#[derive(Clone, Debug)]
struct Server {
    epoch: u64,
    cookie: u64,
    period: Span,
    replay: Replay,
    is_same_clock: bool,
    offset: OffsetEstimate,
    answers: u32,
    view: FeedView,
    /// The latest report: its time on the server's clock, and its arrival on ours.
    latest: Option<(Time, Time)>,
}

impl Receiver {
    /// A receiver. `own_epoch` must be unpredictable and never used before with the subscription's key; `own_clock` identifies the
    /// clock of all times here.
    pub fn new(own_epoch: u64, own_clock: [u8; CLOCK_BYTES]) -> Self {
        Self {
            own_epoch,
            own_clock,
            server: None,
            candidate: None,
            requests: [None; WAITING],
            next_request: Time::ZERO,
            next_to_candidate: Time::ZERO,
            sent: 0,
        }
    }

    /// Whether a message is worth opening.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn admit(&self, header: &Header) -> Result<(), Refusal> {
        match (header.kind, &self.server) {
            (Kind::Request, _) => Err(Refusal::ForServers),
            (_, Some(server)) if server.epoch == header.epoch => {
                if server.replay.is_fresh(header.sequence) {
                    Ok(())
                } else {
                    Err(Refusal::Repeated)
                }
            }
            (Kind::Hello | Kind::Answer, _) => Ok(()),
            (Kind::Report | Kind::Directory, _) => Err(Refusal::OtherEpoch),
        }
    }

    /// Takes the body of a genuine message that arrived now.
    ///
    /// # Errors
    ///
    /// It has no effect.
    pub fn accept(&mut self, header: &Header, body: &[u8], now: Time) -> Result<Accepted, Refusal> {
        self.admit(header)?;
        let server = self.server.as_mut().filter(|server| server.epoch == header.epoch);
        match (header.kind, server) {
            (Kind::Report, Some(server)) => {
                let report = server.view.on_report(body)?;
                server.replay.note(header.sequence);
                let report = report.ok_or(Refusal::Overtaken)?;
                server.view.set_direction(if header.uplink {
                    Direction::Uplink
                } else {
                    Direction::Downlink
                });
                if server.latest.is_none_or(|(time, _)| time < report.time) {
                    server.latest = Some((report.time, now));
                }
                Ok(Accepted::Report { cell: report.cell, time: report.time })
            }
            (Kind::Directory, Some(server)) => {
                server.replay.note(header.sequence);
                server.view.on_directory(body)?;
                Ok(Accepted::Directory)
            }
            (Kind::Hello, Some(server)) => {
                let hello = Hello::parse(body)?;
                server.replay.note(header.sequence);
                (server.cookie, server.period) = (hello.cookie, hello.period);
                Ok(Accepted::Hello)
            }
            (Kind::Hello, None) => {
                self.candidate = Some((header.epoch, Hello::parse(body)?.cookie));
                Ok(Accepted::Hello)
            }
            (Kind::Answer, _) => self.on_answer(header, &Answer::parse(body)?, now),
            _ => Err(Refusal::OtherEpoch),
        }
    }

    fn on_answer(&mut self, header: &Header, answer: &Answer, now: Time) -> Result<Accepted, Refusal> {
        let is_it = |request: &&mut Option<(Time, u64)>| **request == Some((answer.sent, header.epoch));
        let request = self.requests.iter_mut().find(is_it).filter(|_| answer.requester == self.own_epoch);
        let request = request.ok_or(Refusal::NotRequested)?;
        *request = None;
        let restarted = self.server.as_ref().is_none_or(|server| server.epoch != header.epoch);
        if restarted {
            let cookie = self.candidate.take().map_or(0, |(_, cookie)| cookie);
            self.server = Some(Server::new(header.epoch, cookie));
        }
        if let Some(server) = &mut self.server {
            server.replay.note(header.sequence);
            server.is_same_clock = answer.clock == self.own_clock;
            // Times that contradict each other teach nothing.
            server.offset.on_exchange(answer.sent, answer.received, answer.answered, now);
            server.answers = server.answers.saturating_add(1);
        }
        Ok(Accepted::Answer { restarted })
    }

    /// The request to send now, if one is due: its header and its content. One to a server that may have restarted comes in
    /// addition.
    pub fn poll_request(&mut self, now: Time, stream: u32) -> Option<(Header, Request)> {
        let (epoch, cookie) = match (&self.server, self.candidate) {
            (_, Some(candidate)) if now >= self.next_to_candidate => {
                self.next_to_candidate = now + IMPATIENT;
                candidate
            }
            (Some(server), _) if now >= self.next_request => {
                self.next_request = now + if server.answers < ANSWERS { IMPATIENT } else { CALM };
                (server.epoch, server.cookie)
            }
            _ => return None,
        };
        let sequence = self.sent;
        self.sent += 1;
        self.requests[sequence as usize % WAITING] = Some((now, epoch));
        let header = Header { kind: Kind::Request, uplink: false, stream, epoch: self.own_epoch, sequence };
        Some((header, Request { cookie, epoch, sent: now }))
    }

    /// When to call [`Self::poll_request`] again, at the latest.
    pub fn next_deadline(&self) -> Time {
        let of_server = if self.server.is_some() { self.next_request } else { Time::MAX };
        of_server.min(if self.candidate.is_some() { self.next_to_candidate } else { Time::MAX })
    }

    /// The server's epoch, once it is proved.
    pub fn epoch(&self) -> Option<u64> {
        self.server.as_ref().map(|server| server.epoch)
    }

    /// Interval between two reports, as the server says.
    pub fn period(&self) -> Option<Span> {
        self.server.as_ref().map(|server| server.period)
    }

    /// A server's time on this clock, and how it was found; `None` before the first exchange.
    pub fn local(&self, of_server: Time, now: Time) -> Option<(Time, ClockQuality)> {
        self.server.as_ref()?.local(of_server, now)
    }

    /// What the server has reported in its present epoch; `None` before it is proved. Times in it are the server's.
    pub fn view(&self) -> Option<&FeedView> {
        self.server.as_ref().map(|server| &server.view)
    }

    /// The latest hint about a user; see [`FeedView::hint`].
    pub fn hint(&self, user: u16, now: Time) -> Option<AgedHint> {
        let server = self.server.as_ref()?;
        let hint = server.view.hint(user)?;
        let (measured_at, clock) = server.local(hint.measured_at, now)?;
        let hint = RadioHint { measured_at, ..hint };
        Some(AgedHint { hint: Timestamped::new(hint, measured_at), clock })
    }
}

impl Server {
    fn new(epoch: u64, cookie: u64) -> Self {
        Self {
            epoch,
            cookie,
            period: Span::ZERO,
            replay: Replay::default(),
            is_same_clock: false,
            offset: OffsetEstimate::default(),
            answers: 0,
            view: FeedView::new(Direction::Downlink),
            latest: None,
        }
    }

    fn local(&self, of_server: Time, now: Time) -> Option<(Time, ClockQuality)> {
        if self.is_same_clock {
            return Some((of_server, ClockQuality::Same));
        }
        let offset = self.offset.offset(now)?;
        // A period of zero is one TTI, of which a millisecond is the usual.
        let most = self.period.max(Span::from_millis(1));
        if offset.uncertainty <= most {
            return Some((offset.local(of_server), ClockQuality::Estimated(offset.uncertainty)));
        }
        let (latest, arrived) = self.latest?;
        let then = arrived - self.offset.round_trip()? / 2;
        Some((then - (latest - of_server), ClockQuality::Arrival))
    }
}
