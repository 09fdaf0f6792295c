//! The server's half of an exchange with one subscriber: whether it gets reports, and which other messages are due to it.
//!
//! The carrier opens and seals envelopes, and sends what [`Session::poll`] says. Random numbers come from the carrier, too.

use ranpace_units::{Span, Time};

use super::message::{Answer, CLOCK_BYTES, Header, Hello, Kind, MessageError, Request};
use super::{CALM, COOKIE_LIFE, IMPATIENT, PATIENCE, RARE, SILENCE};
use crate::Replay;

/// Why a request has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestRefused {
    /// Servers get requests alone.
    #[error("it is meant for a subscriber")]
    ForSubscribers,
    /// It came before, or is too old to say.
    #[error("it came before")]
    Repeated,
    /// It names another epoch, or none of the last two cookies.
    #[error("it answers none of the last hellos")]
    Cookie,
    /// Its body is no request.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// An invitation.
    Hello(Hello),
    /// The entries of all cells and users that the subscription covers.
    Directory,
}

/// One subscription under one epoch.
#[derive(Clone, Debug)]
pub struct Session {
    epoch: u64,
    stream: u32,
    period: Span,
    sequence: u64,
    /// The present cookie and the one before it.
    cookies: [u64; 2],
    next_cookie: Time,
    next_hello: Time,
    /// When it was opened, asked for again or moved, or its last request came.
    last: Time,
    is_answered: bool,
    requester: Option<(u64, Replay)>,
    /// When the next directory is due at the latest, and at the soonest if something changes.
    next_directory: (Time, Time),
}

impl Session {
    /// A subscription that begins now. `epoch` must be unpredictable and never used before with the subscription's key; `cookie` is
    /// random.
    pub fn new(epoch: u64, stream: u32, period: Span, now: Time, cookie: u64) -> Self {
        Self {
            epoch,
            stream,
            period,
            sequence: 0,
            cookies: [cookie; 2],
            next_cookie: now + COOKIE_LIFE,
            next_hello: now,
            last: now,
            is_answered: false,
            requester: None,
            next_directory: (Time::MAX, Time::MAX),
        }
    }

    /// Changes the interval between reports, which later hellos say.
    pub fn set_period(&mut self, period: Span) {
        self.period = period;
    }

    /// The subscription was asked for again: a subscriber that is not served is invited at once.
    pub fn invite(&mut self, now: Time) {
        if !self.is_served(now) {
            (self.is_answered, self.last, self.next_hello) = (false, now, now);
        }
    }

    /// The subscriber has another address from now on, which gets nothing but invitations until it returns this new random cookie.
    pub fn readdress(&mut self, now: Time, cookie: u64) {
        (self.cookies, self.next_cookie) = ([cookie; 2], now + COOKIE_LIFE);
        (self.is_answered, self.last, self.next_hello) = (false, now, now);
    }

    /// Whether the present address has ever returned a cookie.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Whether reports go to the subscriber: it has sent a request, and not fallen silent.
    pub fn is_served(&self, now: Time) -> bool {
        self.is_answered && now < self.last + SILENCE
    }

    /// The header of the next message. Each number is used once.
    pub fn next_header(&mut self, kind: Kind, uplink: bool) -> Header {
        let sequence = self.sequence;
        self.sequence += 1;
        Header { kind, uplink, stream: self.stream, epoch: self.epoch, sequence }
    }

    /// Whether a message to the server is worth opening.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn admit(&self, header: &Header) -> Result<(), RequestRefused> {
        if header.kind != Kind::Request {
            return Err(RequestRefused::ForSubscribers);
        }
        match &self.requester {
            Some((epoch, replay)) if *epoch == header.epoch && !replay.is_fresh(header.sequence) => {
                Err(RequestRefused::Repeated)
            }
            _ => Ok(()),
        }
    }

    /// Takes the body of a genuine request that arrived now; returns the answer. A request after a silence, or of a subscriber that
    /// has restarted, has the directory sent: the second member of the result says so, because reports then begin with full ones.
    ///
    /// # Errors
    ///
    /// It has no effect.
    pub fn on_request(
        &mut self,
        header: &Header,
        body: &[u8],
        now: Time,
        clock: [u8; CLOCK_BYTES],
    ) -> Result<(Answer, bool), RequestRefused> {
        self.admit(header)?;
        let request = Request::parse(body)?;
        if request.epoch != self.epoch || !self.cookies.contains(&request.cookie) {
            return Err(RequestRefused::Cookie);
        }
        let is_new = self.requester.as_ref().is_none_or(|(epoch, _)| *epoch != header.epoch);
        let begins = is_new || !self.is_served(now);
        if is_new {
            self.requester = Some((header.epoch, Replay::default()));
        }
        if let Some((_, replay)) = &mut self.requester {
            replay.note(header.sequence);
        }
        (self.is_answered, self.last) = (true, now);
        if begins {
            self.next_directory = (now, now);
        }
        let answer =
            Answer { requester: header.epoch, sent: request.sent, received: now, answered: now, clock };
        Ok((answer, begins))
    }

    /// What the subscription covers has changed: the directory is due, if the last one was not a moment ago.
    pub fn request_directory(&mut self, now: Time) {
        if self.is_served(now) {
            let (latest, soonest) = self.next_directory;
            self.next_directory.0 = latest.min(now.max(soonest));
        }
    }

    /// The next message that is due, to be called until there is none. `cookie` is a random number, in case a new one is needed; without
    /// one the old one stays.
    ///
    /// A subscriber that has not answered is invited ten times a second for [`SILENCE`], once a second for [`PATIENCE`], and once in
    /// [`RARE`] from then on: whoever was named without being asked must not be flooded.
    pub fn poll(&mut self, now: Time, cookie: &mut dyn FnMut() -> Option<u64>) -> Option<Due> {
        let is_served = self.is_served(now);
        if is_served && now >= self.next_directory.0 {
            self.next_directory = (now + CALM, now + IMPATIENT);
            return Some(Due::Directory);
        }
        if now < self.next_hello {
            return None;
        }
        if now >= self.next_cookie
            && let Some(cookie) = cookie()
        {
            self.cookies = [cookie, self.cookies[0]];
            self.next_cookie = now + COOKIE_LIFE;
        }
        self.next_hello = now
            + if now >= self.last + PATIENCE {
                RARE
            } else if self.is_answered || now >= self.last + SILENCE {
                CALM
            } else {
                IMPATIENT
            };
        Some(Due::Hello(Hello { cookie: self.cookies[0], period: self.period }))
    }

    /// When to call [`Self::poll`] again, at the latest.
    pub fn next_deadline(&self) -> Time {
        if self.is_answered { self.next_hello.min(self.next_directory.0) } else { self.next_hello }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn request(cookie: u64, epoch: u64, requester: u64, sequence: u64) -> (Header, Vec<u8>) {
        let mut body = Vec::new();
        Request { cookie, epoch, sent: ms(1) }.write(&mut body);
        (Header { kind: Kind::Request, uplink: false, stream: 7, epoch: requester, sequence }, body)
    }

    /// What is due in each millisecond of a time, with cookies counted from 100.
    fn play(session: &mut Session, times: core::ops::Range<u64>) -> Vec<(u64, Due)> {
        let (mut due, mut cookie) = (Vec::new(), 100);
        for now in times {
            while let Some(one) = session.poll(ms(now), &mut || {
                cookie += 1;
                Some(cookie)
            }) {
                due.push((now, one));
            }
        }
        due
    }

    #[test]
    fn reports_go_to_those_alone_who_return_a_cookie_and_stop_when_they_fall_silent() {
        let mut session = Session::new(10, 7, Span::from_millis(1), ms(0), 5);
        let hellos = play(&mut session, 0..350);
        let hello = |cookie| Due::Hello(Hello { cookie, period: Span::from_millis(1) });
        assert_eq!(hellos, [0, 100, 200, 300].map(|now| (now, hello(5))));
        for (case, cookie, epoch, expected) in
            [("a guess", 6, 10, RequestRefused::Cookie), ("another epoch's", 5, 11, RequestRefused::Cookie)]
        {
            let (header, body) = request(cookie, epoch, 3, 0);
            assert_eq!(session.on_request(&header, &body, ms(350), [1; 8]), Err(expected), "{case}");
            assert!(!session.is_served(ms(350)), "{case}");
        }
        let (header, body) = request(5, 10, 3, 0);
        let (answer, begins) = session.on_request(&header, &body, ms(360), [1; 8]).unwrap();
        assert_eq!((answer.requester, answer.received, answer.clock, begins), (3, ms(360), [1; 8], true));
        assert_eq!(session.on_request(&header, &body, ms(361), [1; 8]), Err(RequestRefused::Repeated));
        // Directories and hellos, once a second each.
        let due = play(&mut session, 361..2_450);
        assert_eq!(
            due,
            [
                (361, Due::Directory),
                (400, hello(5)),
                (1_361, Due::Directory),
                (1_400, hello(5)),
                (2_361, Due::Directory),
                (2_400, hello(5))
            ]
        );
        assert!(session.is_served(ms(10_359)) && !session.is_served(ms(10_360)));
        let due = play(&mut session, 10_360..12_400);
        assert!(due.iter().all(|(_, due)| matches!(due, Due::Hello(_))) && due.len() == 3, "{due:?}");
        // It comes back with the cookie of before, which still counts for a while.
        let (header, body) = request(5, 10, 3, 1);
        let (_, begins) = session.on_request(&header, &body, ms(12_400), [1; 8]).unwrap();
        assert!(begins && session.is_served(ms(12_401)));
        play(&mut session, 12_401..22_000);
        let (header, body) = request(5, 10, 3, 2);
        assert_eq!(session.on_request(&header, &body, ms(22_000), [1; 8]), Err(RequestRefused::Cookie));
    }

    #[test]
    fn an_address_that_never_answers_gets_few_invitations_and_a_new_one_no_reports() {
        let mut session = Session::new(10, 7, Span::ZERO, ms(0), 5);
        let due = |session: &mut Session, times| play(session, times).len();
        assert_eq!(due(&mut session, 0..10_000), 100);
        assert_eq!(due(&mut session, 10_000..60_000), 50);
        assert_eq!(due(&mut session, 60_000..660_000), 20);
        // It is asked for again, and answers.
        session.invite(ms(660_000));
        assert_eq!(due(&mut session, 660_000..661_000), 10);
        let Some(Due::Hello(Hello { cookie, .. })) = session.poll(ms(661_000), &mut || None) else {
            panic!()
        };
        let (header, body) = request(cookie, 10, 3, 0);
        session.on_request(&header, &body, ms(661_000), [1; 8]).unwrap();
        assert!(session.is_served(ms(661_001)));
        session.readdress(ms(661_002), 77);
        assert!(!session.is_served(ms(661_003)) && !session.is_answered());
        let (header, body) = request(cookie, 10, 3, 1);
        let answer = session.on_request(&header, &body, ms(661_003), [1; 8]);
        assert_eq!(answer, Err(RequestRefused::Cookie), "of the address before");
        let (header, body) = request(77, 10, 3, 2);
        assert!(session.on_request(&header, &body, ms(661_004), [1; 8]).is_ok());
        assert!(session.is_served(ms(661_005)));
    }

    #[test]
    fn a_change_has_the_directory_sent_soon_but_not_each_time() {
        let mut session = Session::new(10, 7, Span::ZERO, ms(0), 5);
        let (header, body) = request(5, 10, 3, 0);
        session.request_directory(ms(0));
        session.on_request(&header, &body, ms(0), [1; 8]).unwrap();
        let mut times = Vec::new();
        for now in 0..400 {
            session.request_directory(ms(now));
            let due = play(&mut session, now..now + 1);
            times.extend(due.iter().filter(|(_, due)| *due == Due::Directory).map(|(now, _)| *now));
        }
        assert_eq!(times, [0, 100, 200, 300]);
        let report = session.next_header(Kind::Report, true);
        let next = session.next_header(Kind::Hello, false);
        assert_eq!((report.stream, report.epoch, report.uplink, next.sequence), (7, 10, true, 1));
        let (other, body) = (Header { kind: Kind::Hello, ..header }, body);
        assert_eq!(session.on_request(&other, &body, ms(1), [1; 8]), Err(RequestRefused::ForSubscribers));
    }
}
