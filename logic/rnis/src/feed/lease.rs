//! Keeps a subscription at a server alive: creates it, renews it before it expires, and creates it again if the server has lost it.
//!
//! Time comes in as an argument and requests go out as values; the carrier sends them, and says what came back. Ours.

use ranpace_units::{Span, Time};

/// Time for an answer.
pub const ANSWER_TIMEOUT: Span = Span::from_secs(5);
/// Wait after a failure; it doubles with each one, up to [`RETRY_AT_MOST`].
pub const RETRY: Span = Span::from_millis(250);
/// Longest wait after a failure.
pub const RETRY_AT_MOST: Span = Span::from_secs(5);
/// A feed that has been silent for so long makes the subscriber ask whether its subscription is still there.
pub const DOUBT: Span = Span::from_secs(2);

/// A request to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Create the subscription.
    Create,
    /// Extend its life.
    Renew,
}

/// A subscription, as its subscriber knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    state: State,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none.
    Idle { retry_at: Time },
    /// A request is on its way.
    Asked { give_up_at: Time, request: LeaseRequest },
    /// There is one.
    Live { renew_at: Time, asked_at: Time },
}

impl Default for Lease {
    fn default() -> Self {
        Self { state: State::Idle { retry_at: Time::ZERO }, failures: 0 }
    }
}

impl Lease {
    /// The server has created or extended the subscription, for so long. It is renewed after half of that.
    pub fn on_accepted(&mut self, now: Time, lifetime: Span) {
        self.state = State::Live { renew_at: now + lifetime / 2, asked_at: now };
        self.failures = 0;
    }

    /// The server does not know the subscription any more: it is created again at once.
    pub fn on_lost(&mut self, now: Time) {
        self.state = State::Idle { retry_at: now };
    }

    /// The request failed: the server did not answer, or refused. A subscription that could not be renewed is asked for again.
    pub fn on_failed(&mut self, now: Time) {
        let wait = RETRY * u64::from(1_u32 << self.failures.min(16));
        let retry_at = now + wait.min(RETRY_AT_MOST);
        self.failures = self.failures.saturating_add(1);
        self.state = match self.state {
            State::Asked { request: LeaseRequest::Renew, .. } => {
                State::Live { renew_at: retry_at, asked_at: now }
            }
            _ => State::Idle { retry_at },
        };
    }

    /// The feed has been silent since `last`: a subscription that is believed to be there is renewed, which shows whether it is.
    pub fn on_silence(&mut self, now: Time, last: Time) {
        if let State::Live { renew_at, asked_at } = &mut self.state
            && now >= last.max(*asked_at) + DOUBT
        {
            *renew_at = now.min(*renew_at);
        }
    }

    /// The request to send now, if one is due.
    pub fn poll_request(&mut self, now: Time) -> Option<LeaseRequest> {
        if let State::Asked { give_up_at, .. } = self.state
            && now >= give_up_at
        {
            self.on_failed(now);
        }
        let request = match self.state {
            State::Idle { retry_at } if now >= retry_at => LeaseRequest::Create,
            State::Live { renew_at, .. } if now >= renew_at => LeaseRequest::Renew,
            _ => return None,
        };
        self.state = State::Asked { give_up_at: now + ANSWER_TIMEOUT, request };
        Some(request)
    }

    /// When to call [`Self::poll_request`] again, at the latest.
    pub fn next_deadline(&self) -> Time {
        match self.state {
            State::Idle { retry_at } => retry_at,
            State::Asked { give_up_at, .. } => give_up_at,
            State::Live { renew_at, .. } => renew_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_subscription_is_renewed_and_created_again_when_it_is_lost() {
        let mut lease = Lease::default();
        assert_eq!(lease.poll_request(ms(0)), Some(LeaseRequest::Create));
        assert_eq!((lease.poll_request(ms(1)), lease.next_deadline()), (None, ms(5_000)));
        lease.on_accepted(ms(10), Span::from_secs(60));
        assert_eq!((lease.poll_request(ms(30_009)), lease.next_deadline()), (None, ms(30_010)));
        assert_eq!(lease.poll_request(ms(30_010)), Some(LeaseRequest::Renew));
        // No answer: it is asked again, and may be gone by then.
        assert_eq!((lease.poll_request(ms(35_010)), lease.next_deadline()), (None, ms(35_260)));
        assert_eq!(lease.poll_request(ms(35_260)), Some(LeaseRequest::Renew));
        lease.on_lost(ms(35_300));
        assert_eq!(lease.poll_request(ms(35_300)), Some(LeaseRequest::Create));
    }

    #[test]
    fn failures_are_retried_at_growing_intervals() {
        let mut lease = Lease::default();
        let mut times = Vec::new();
        for now in 0..20_000 {
            if lease.poll_request(ms(now)).is_some() {
                times.push(now);
                lease.on_failed(ms(now));
            }
        }
        assert_eq!(times, [0, 250, 750, 1_750, 3_750, 7_750, 12_750, 17_750]);
        lease.poll_request(ms(22_750));
        lease.on_accepted(ms(22_750), Span::from_secs(60));
        lease.poll_request(ms(60_000));
        lease.on_failed(ms(60_000));
        assert_eq!(lease.next_deadline(), ms(60_250), "the count began anew");
    }

    #[test]
    fn a_silent_feed_is_asked_about_once_a_while() {
        let mut lease = Lease::default();
        lease.poll_request(ms(0));
        lease.on_accepted(ms(0), Span::from_secs(60));
        let mut times = Vec::new();
        for now in 1..7_000 {
            lease.on_silence(ms(now), ms(500));
            if lease.poll_request(ms(now)).is_some() {
                times.push(now);
                lease.on_accepted(ms(now), Span::from_secs(60));
            }
        }
        assert_eq!(times, [2_500, 4_500, 6_500]);
    }
}
