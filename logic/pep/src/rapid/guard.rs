//! Checks whether reports of a user's radio can be trusted, by occasionally probing above them. Ours.
//!
//! A sender that obeys an under-reported capacity never exceeds it, so its own measurements cannot expose the error. The guard
//! therefore briefly gives a user who uses all of its allocation more than that (a *probe*). If clearly more than reported is
//! acknowledged, and the delay does not grow as it would if the report were true, in several probes in a row, the reports are
//! contradicted: the user is passed through, as without a feed, until for some seconds it gets no more than reported.
//!
//! States: waiting for the next probe; measuring the delay before it; settling, until the extra data can have arrived and been
//! acknowledged; measuring in [`PARTS`] parts; giving back the queue that the probe built up; contradicted.
//! `docs/algorithms/rapid.md` lists the constants, which were fixed before any simulation.

use ranpace_units::{Span, Time};

use super::record::ReportTrust;

/// Time to the first probe, once a user's radio is known and it has a flow.
const FIRST: Span = Span::SECOND;
/// Time from one probe to the next, and after a probe that found more.
const EVERY: Span = Span::from_secs(3);
const AGAIN: Span = Span::from_millis(500);
/// A probe is measured in `PARTS` parts, the delay before it in `PARTS_BEFORE`. A probe can end early from the second part on.
const PART: Span = Span::from_millis(25);
const PARTS: u32 = 8;
const PARTS_BEFORE: u32 = 4;
/// Longest time to wait until the extra data can have arrived and been acknowledged.
const MOST_SETTLING: Span = Span::from_millis(300);
/// Rate of a probe over the reported one; the whole probe adds at least this many segments, the initial window of TCP (RFC 6928).
const GAIN: f64 = 1.5;
const SEGMENTS: f64 = 10.0;
/// The share of their usual windows that servers may send after a probe that found no more, for as long as the probe took, so
/// that the excess does not stay queued in the proxy.
const GIVE_BACK: f64 = 2.0 - GAIN;
/// Acknowledged over reported bytes that count as clearly more, plus this many segments.
const CLEARLY: f64 = 1.25;
const CLEAR_SEGMENTS: f64 = 2.0;
/// A probe ends once the delay has grown by this part of what the extra data would add if reports were true, but by more than one
/// HARQ retransmission (LTE's eight subframes). It goes on while clearly more is acknowledged, which no delay can refute.
const RISE: f64 = 0.5;
const HARQ: Span = Span::from_millis(8);
/// Consecutive probes that have to find more, with fresh and with late reports; and reports that must have arrived meanwhile.
const IN_A_ROW: (u32, u32) = (3, 6);
const REPORTS: u32 = 10;
/// Time over which reports have to agree again. It doubles with each contradiction, up to this many times.
const AGREE: Span = Span::from_secs(3);
const MOST_DOUBLINGS: u32 = 4;
/// Reports agree if at most this multiple of the reported bytes is acknowledged, at no less than this part of the best rate so far,
/// which decays by an eighth per interval.
const AGREES: f64 = 1.1;
const BUSY: f64 = 0.5;
const FORGET: f64 = 1.0 / 8.0;

/// The inputs of a decision. Rates in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The reported rate.
    pub(super) reported: f64,
    /// Some flow uses all it is given.
    pub(super) demand: bool,
    /// Reports are late ([`Mode::Hold`](super::record::Mode)).
    pub(super) late: bool,
    /// Largest segment, in bytes.
    pub(super) mss: f64,
    /// The longest RTT to a server, and the smallest to the user.
    pub(super) wan_rtt: Span,
    pub(super) ran_rtt: Span,
}

/// Result of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing.
    Goes,
    /// A probe has begun or ended.
    Other,
    /// Reports are contradicted from now on.
    Contradicted,
    /// Reports agree again.
    Agrees,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Off,
    Waiting,
    Looking,
    Settling(Tried),
    /// The number is of parts left.
    Measuring(Tried, u32),
    GivingBack,
    Contradicted,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    /// Extra rate that is probed, at least.
    more: f64,
    since: Time,
    /// An RTT above this means that the delay has grown as it would if reports were true.
    limit: Option<Span>,
}

/// The guard of a user.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    state: State,
    until: Time,
    /// Since the last mark: bytes acknowledged, bytes reported, the smallest RTT to the user.
    acked: u64,
    promised: f64,
    promised_until: Time,
    rtt: Option<Span>,
    /// Consecutive probes that found more; the bytes acknowledged and reported in them, and the reports received since the first.
    found: u32,
    found_acked: u64,
    found_promised: f64,
    reports: u32,
    /// Number of contradictions, and the best rate since the last one.
    times: u32,
    best: f64,
}

impl Guard {
    pub(super) fn new() -> Self {
        Self {
            state: State::Off,
            until: Time::MAX,
            acked: 0,
            promised: 0.0,
            promised_until: Time::ZERO,
            rtt: None,
            found: 0,
            found_acked: 0,
            found_promised: 0.0,
            reports: 0,
            times: 0,
            best: 0.0,
        }
    }

    /// When [`Self::decide`] has to be called.
    pub(super) fn due(&self) -> Option<Time> {
        (self.state != State::Off).then_some(self.until)
    }

    /// The trust to be reported to observers.
    pub(super) fn trust(&self) -> ReportTrust {
        match self.state {
            State::Off | State::Waiting | State::Looking => ReportTrust::Trusted,
            State::Settling(_) | State::Measuring(..) | State::GivingBack => ReportTrust::Probing,
            State::Contradicted => ReportTrust::Contradicted,
        }
    }

    pub(super) fn is_contradicted(&self) -> bool {
        self.state == State::Contradicted
    }

    /// The rate to share out during a probe, in bytes per second, from the reported rate and the one that would be shared out;
    /// `None` outside a probe.
    pub(super) fn tried(&self, reported: f64, given: f64) -> Option<f64> {
        match self.state {
            State::Settling(tried) | State::Measuring(tried, _) => {
                Some((GAIN * reported).max(reported + tried.more))
            }
            State::GivingBack => Some(GIVE_BACK * given),
            _ => None,
        }
    }

    /// The user's radio is known and it has a flow.
    pub(super) fn start(&mut self, now: Time) {
        if self.state == State::Off {
            self.forget();
            self.wait(now, FIRST);
        }
    }

    /// The radio is no longer known, so there is nothing to check. Contradicted reports stay contradicted.
    pub(super) fn stop(&mut self) {
        if self.state != State::Contradicted {
            self.state = State::Off;
        }
    }

    /// Adds up what was reported; `reported` is the rate since the last call, in bytes per second.
    #[inline]
    pub(super) fn promise(&mut self, now: Time, reported: f64) {
        self.promised += reported * now.since(self.promised_until).as_secs_f64();
        self.promised_until = self.promised_until.max(now);
    }

    pub(super) fn on_report(&mut self) {
        self.reports = self.reports.saturating_add(1);
    }

    #[inline]
    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.acked = self.acked.saturating_add(bytes);
    }

    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Span) {
        self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// The deadline named by [`Self::due`] has come.
    pub(super) fn decide(&mut self, now: Time, known: &Known) -> Outcome {
        match self.state {
            State::Off => Outcome::Goes,
            State::Waiting if !known.demand => {
                self.forget();
                self.wait(now, EVERY);
                Outcome::Goes
            }
            State::Waiting => {
                (self.state, self.until, self.rtt) = (State::Looking, now + PART * PARTS_BEFORE.into(), None);
                Outcome::Goes
            }
            State::Looking => {
                let settling = (known.wan_rtt + known.ran_rtt).min(MOST_SETTLING);
                let ten = SEGMENTS * known.mss;
                let more = ten / (settling + PART * PARTS.into()).as_secs_f64();
                let rise = |rtt: Span| {
                    let by_gain = (GAIN - 1.0) * rtt.as_secs_f64();
                    let by_segments = ten / known.reported.max(1.0);
                    let added = if more > (GAIN - 1.0) * known.reported { by_segments } else { by_gain };
                    Span::from_secs_f64(added.min(10.0) * RISE).max(HARQ)
                };
                let limit = self.rtt.map(|rtt| rtt + rise(rtt));
                (self.state, self.until) =
                    (State::Settling(Tried { more, since: now, limit }), now + settling);
                Outcome::Other
            }
            State::Settling(tried) => {
                self.mark();
                (self.state, self.until) = (State::Measuring(tried, PARTS), now + PART);
                Outcome::Goes
            }
            State::Measuring(tried, left) => {
                let rose = tried.limit.zip(self.rtt.take()).is_some_and(|(limit, rtt)| rtt > limit);
                let is_more = self.acked as f64 >= CLEARLY * self.promised;
                let ends = left == 1 || rose && !is_more && left < PARTS;
                if !ends {
                    (self.state, self.until) = (State::Measuring(tried, left - 1), now + PART);
                    return Outcome::Goes;
                }
                self.end_probe(now, now.since(tried.since), known)
            }
            State::GivingBack => {
                self.wait(now, EVERY);
                Outcome::Other
            }
            State::Contradicted => self.look_again(now),
        }
    }

    fn end_probe(&mut self, now: Time, took: Span, known: &Known) -> Outcome {
        self.found_acked = self.found_acked.saturating_add(self.acked);
        self.found_promised += self.promised;
        if (self.found_acked as f64) < CLEARLY * self.found_promised + CLEAR_SEGMENTS * known.mss {
            self.forget();
            (self.state, self.until) = (State::GivingBack, now + took);
            return Outcome::Other;
        }
        self.found += 1;
        let needed = if known.late { IN_A_ROW.1 } else { IN_A_ROW.0 };
        if self.found < needed || self.reports < REPORTS {
            self.wait(now, AGAIN);
            return Outcome::Other;
        }
        self.best = self.acked as f64 / (PART * PARTS.into()).as_secs_f64();
        self.times = self.times.saturating_add(1);
        self.forget();
        self.mark();
        (self.state, self.until) = (State::Contradicted, now + self.agreeing());
        Outcome::Contradicted
    }

    /// Factor on the rate to the user: while an excess is given back, servers are allowed less than what is sent to the user.
    pub(super) fn ran_factor(&self) -> f64 {
        if self.state == State::GivingBack { 1.0 / GIVE_BACK } else { 1.0 }
    }

    fn forget(&mut self) {
        (self.found, self.found_acked, self.found_promised, self.reports) = (0, 0, 0.0, 0);
    }

    /// Returns whether reports agree with what was acknowledged while the user was passed through.
    fn look_again(&mut self, now: Time) -> Outcome {
        let agreeing = self.agreeing();
        let rate = self.acked as f64 / agreeing.as_secs_f64();
        let agrees = self.acked as f64 <= AGREES * self.promised && rate >= BUSY * self.best;
        self.best = rate.max(self.best * (1.0 - FORGET));
        self.mark();
        self.until = now + agreeing;
        if agrees {
            self.state = State::Off;
            return Outcome::Agrees;
        }
        Outcome::Goes
    }

    fn agreeing(&self) -> Span {
        AGREE * (1 << self.times.saturating_sub(1).min(MOST_DOUBLINGS))
    }

    fn wait(&mut self, now: Time, time: Span) {
        (self.state, self.until) = (State::Waiting, now + time - PART * PARTS_BEFORE.into());
    }

    fn mark(&mut self) {
        (self.acked, self.promised, self.rtt) = (0, 0.0, None);
    }
}
