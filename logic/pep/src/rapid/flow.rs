//! One flow: its RTTs, its rounds and periods, and what it is taken for (Diarra 2022, 5.2.3).

use ranpace_units::{Bytes, Span, Time};

use super::record::Category;
use super::settings::{Accounting, Profile, RanRttMin, Settings, Slack, WindowRule};

/// Weight of a new sample of an RTT; RFC 6298 section 2.3. The smoothed minimum has the same.
const RTT_GAIN: u64 = 8;
/// Part of the largest rate of arrivals that is forgotten with each round, for what may wait while nothing is known of the radio.
/// Ours.
const FORGET: f64 = 1.0 / 8.0;
/// What may then come and wait, over the BDP on the server's side: as Linux sizes a receive buffer (`tcp_rcv_space_adjust`).
const OPEN_BDPS: f64 = 2.0;
/// Largest smoothed minimum over the smallest RTT, where it is bounded. Ours.
const BOUND: (u64, u64) = (3, 2);
/// Least RTTs to the user and to the server of [`WindowRule::Whole`], whose clock has milliseconds (the authors' ns-3 code).
const WHOLE_LEAST: (Span, Span) = (Span::from_millis(1), Span::from_millis(2));
/// What a segment on the user's side counts for with [`WindowRule::Module`], in bytes (the power of two in 1460, in `rapid-llc.c`).
const MODULE_SEGMENT: f64 = 1_024.0;
/// Shortest and longest RTT that is believed. Ours.
const RTTS: (Span, Span) = (Span::from_micros(10), Span::from_secs(10));
/// Shortest round, so that a server next door costs no more than others. Ours.
const ROUND: Span = Span::from_millis(1);
/// What a slow flow of [`Profile::Field`] has over its demand: more than 1/theta, or a flow of constant rate passes the test of
/// the next period. Ours.
const HEADROOM: f64 = 1.5;
/// Periods that it has to fill before it is fast. Ours.
const PASSES: u8 = 2;
/// Silence after which a flow is idle: this, or ten RTTs to the server. Ours.
const IDLE: Span = Span::SECOND;
const IDLE_RTTS: u64 = 10;

/// Smoothed and smallest RTT to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct WanRtt {
    pub(super) smoothed: Span,
    pub(super) least: Span,
}

impl WanRtt {
    fn new(first: Span) -> Self {
        let first = believed(first);
        Self { smoothed: first, least: first }
    }

    fn take(&mut self, rtt: Span) {
        let rtt = believed(rtt);
        self.smoothed = smooth(self.smoothed, rtt);
        self.least = self.least.min(rtt);
    }
}

/// Smallest RTT to the user.
#[derive(Clone, Copy, Debug, Default)]
struct RanRtt {
    smoothed: Option<Span>,
    /// Least smoothed one of this period, least of all, and the one that follows the first of these.
    of_period: Option<Span>,
    plain: Option<Span>,
    following: Option<Span>,
}

impl RanRtt {
    fn take(&mut self, rtt: Span) {
        let rtt = believed(rtt);
        let smoothed = self.smoothed.map_or(rtt, |before| smooth(before, rtt));
        self.smoothed = Some(smoothed);
        self.of_period = Some(self.of_period.map_or(smoothed, |least| least.min(smoothed)));
        self.plain = Some(self.plain.map_or(rtt, |least| least.min(rtt)));
        self.following.get_or_insert(smoothed);
    }

    fn end_period(&mut self) {
        if let (Some(least), Some(following)) = (self.of_period.take(), &mut self.following) {
            *following = smooth(*following, least);
        }
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Slot of its user, and its place among that user's flows.
    pub(super) user: u32,
    pub(super) place: u32,
    /// Bytes of a segment.
    pub(super) mss: f64,
    pub(super) wan: WanRtt,
    ran: RanRtt,
    /// What is added to the smallest RTT to the user.
    allowance: Span,
    pub(super) category: Category,
    /// It counts among the user's flows.
    pub(super) active: bool,
    /// What a slow flow, or one that is on its way to its share, may have at most, in bytes.
    pub(super) limit: Option<f64>,
    /// Periods that a slow flow has filled in a row.
    passes: u8,
    /// What equation 5.11 as printed says that it released, in bytes.
    pub(super) released: f64,
    /// `S` and `RW` in bytes.
    pub(super) share: f64,
    window: f64,
    /// `RW` as the servers of [`Profile::Field`] see it: it falls slowly. And what it had fallen to at this time, which counts
    /// unless the window is more.
    followed: f64,
    fallen: f64,
    followed_at: Time,
    /// The same after what waits in the proxy.
    offered: f64,
    /// Byte-seconds of both in this round, up to this time; mean of the latter in the round before.
    window_sum: f64,
    offered_sum: f64,
    window_until: Time,
    offered_before: Option<f64>,
    /// More of its user's waits than may: nothing is offered.
    closed: bool,
    /// What waits kept its window below what it has to fill, in this round and in the one before.
    pinched: bool,
    pinched_before: bool,
    /// The round, and what has arrived in it.
    round_start: Time,
    pub(super) round_end: Time,
    arrived: u64,
    /// Rounds to the end of the period, and the window that they follow from; unknown in its first round.
    rounds_left: u32,
    period_window: Option<f64>,
    /// `r`, `r^` and `R` in bytes per second.
    pub(super) rate: f64,
    pub(super) demand: f64,
    pub(super) expected: f64,
    sampled: bool,
    /// The largest `r` of the last rounds.
    peak: f64,
    /// Since when nothing has come, or waited.
    quiet_since: Time,
    pub(super) backlog: Bytes,
    /// It waits to be told of in the list of changes; a deadline of it is in the queue.
    pub(super) changed: bool,
    pub(super) queued: bool,
    /// More was tried in this period than was reported: it says nothing of the flow.
    pub(super) disturbed: bool,
}

/// Whose a flow is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// Slot of its user, and its place among that user's flows.
    pub(super) user: u32,
    pub(super) place: u32,
    /// What is added to the smallest RTT to the user.
    pub(super) allowance: Span,
}

/// What the end of a round has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Nothing but a sample.
    Goes,
    /// The flow is idle from now on.
    Idle,
    /// A period has ended too.
    Period,
}

impl Flow {
    pub(super) fn new(now: Time, owner: Owner, rtt: Span, mss: Bytes, settings: &Settings) -> Self {
        let mut flow = Self {
            user: owner.user,
            place: owner.place,
            allowance: owner.allowance,
            mss: mss.as_f64().max(1.0),
            wan: WanRtt::new(rtt),
            ran: RanRtt::default(),
            category: Category::Init,
            active: true,
            limit: None,
            passes: 0,
            released: 0.0,
            share: 0.0,
            window: 0.0,
            followed: 0.0,
            fallen: 0.0,
            followed_at: now,
            offered: 0.0,
            window_sum: 0.0,
            offered_sum: 0.0,
            window_until: now,
            offered_before: None,
            closed: false,
            pinched: false,
            pinched_before: false,
            round_start: now,
            round_end: now,
            arrived: 0,
            rounds_left: 0,
            period_window: None,
            rate: 0.0,
            demand: 0.0,
            expected: 0.0,
            sampled: false,
            peak: 0.0,
            quiet_since: now,
            backlog: Bytes::ZERO,
            changed: false,
            queued: false,
            disturbed: false,
        };
        flow.begin_period(now, settings);
        flow
    }

    /// `RW` in bytes.
    pub(super) fn window(&self) -> f64 {
        self.window
    }

    /// Sets it; whether it is another.
    pub(super) fn set_window(&mut self, now: Time, window: f64, settings: &Settings) -> bool {
        let follows = settings.profile == Profile::Field && self.followed != window;
        if window == self.window && !follows {
            return false;
        }
        let before = self.wanted(settings);
        self.sum_up(now);
        let (passed, time) = (now.since(self.followed_at).as_secs_f64(), settings.follow.as_secs_f64());
        if passed > 0.0 {
            let part = passed / (passed + time);
            self.fallen = self.followed + (self.window - self.followed) * part;
            self.followed_at = now;
        }
        self.followed = self.fallen.max(window);
        let is_other = window != self.window;
        self.window = window;
        self.offer(settings);
        is_other || self.wanted(settings) != before
    }

    /// What the server may send now, in bytes.
    fn offer(&mut self, settings: &Settings) {
        self.offered = self.open(settings).min(self.window);
        self.pinched |= self.offered < settings.theta * self.window;
    }

    /// The window with its headroom, of a flow that may have its share. A slow one has its own.
    pub(super) fn wanted(&self, settings: &Settings) -> f64 {
        if self.limit.is_some() {
            return self.window;
        }
        let window = if settings.profile == Profile::Field { self.followed } else { self.window };
        settings.headroom * window + f64::from(settings.spare) * self.mss
    }

    /// What the server may have on its way, in bytes: the window with its headroom, after what waits in the proxy.
    pub(super) fn open(&self, settings: &Settings) -> f64 {
        if self.closed { 0.0 } else { self.wanted(settings).min(self.room(settings)) }
    }

    /// Its user has too much waiting, or has no more. As published nobody asks why a window was not filled.
    pub(super) fn close(&mut self, now: Time, closed: bool, settings: &Settings) {
        if settings.profile == Profile::Field {
            self.sum_up(now);
            self.closed = closed;
            self.offer(settings);
        }
    }

    /// What may still come before too much waits, in bytes.
    fn room(&self, settings: &Settings) -> f64 {
        match settings.profile {
            _ if self.backlog.is_zero() => f64::INFINITY,
            // On its way and waiting together. A slow flow has no headroom, and may have as much waiting as the others.
            Profile::Field if self.limit.is_none() => {
                (self.wanted(settings) - self.backlog.as_f64()).max(0.0)
            }
            _ => (self.cap(settings) - self.backlog).as_f64(),
        }
    }

    /// What the least window is, in bytes.
    pub(super) fn floor(&self, settings: &Settings) -> f64 {
        f64::from(settings.floor) * self.mss
    }

    /// The RTT that its window is for, in seconds.
    pub(super) fn rtt_min(&self, settings: &Settings) -> f64 {
        match settings.window {
            WindowRule::Wired | WindowRule::Module => self.wan.least,
            WindowRule::Whole => {
                let ran = self.ran_rtt_min(settings).unwrap_or_default();
                ran.max(WHOLE_LEAST.0) + self.wan.smoothed.max(WHOLE_LEAST.1)
            }
        }
        .as_secs_f64()
    }

    /// What is added to the smallest RTT to the user; whether it is another.
    pub(super) fn set_allowance(&mut self, allowance: Span) -> bool {
        core::mem::replace(&mut self.allowance, allowance) != allowance
    }

    /// Smallest RTT to the user, as the settings have it.
    pub(super) fn ran_rtt_min(&self, settings: &Settings) -> Option<Span> {
        match settings.ran_rttmin {
            RanRttMin::Smoothed => self.ran.following,
            RanRttMin::Bounded => match (self.ran.following, self.ran.plain) {
                (Some(following), Some(plain)) => Some(following.min(plain.scale(BOUND.0, BOUND.1))),
                _ => None,
            },
            RanRttMin::Plain => self.ran.plain,
        }
        .map(|least| least + self.allowance)
    }

    /// Rate that the window stands for, in bytes per second.
    pub(super) fn allocation(&self, settings: &Settings) -> f64 {
        self.window / self.rtt_min(settings)
    }

    /// BDP on the user's side, in bytes; zero while no RTT is known.
    pub(super) fn ran_bdp(&self, settings: &Settings) -> f64 {
        let Some(least) = self.ran_rtt_min(settings) else { return 0.0 };
        match settings.window {
            WindowRule::Wired => self.allocation(settings) * least.as_secs_f64(),
            WindowRule::Whole => self.window,
            WindowRule::Module => {
                // RTTs are at least 10 us; see `believed`.
                let log2 = |rtt: Span| (rtt.as_nanos() / 1_000).max(1).ilog2();
                let shifted = self.window * f64::from(2 << log2(least).min(30))
                    / f64::from(1 << log2(self.wan.least).min(30));
                (shifted / MODULE_SEGMENT).floor() * self.mss
            }
        }
    }

    /// What may wait of it in the proxy, what is on its way included: so many of its BDPs, of the larger side, but not less than
    /// the settings say.
    pub(super) fn cap(&self, settings: &Settings) -> Bytes {
        let bdp = self.window.max(self.ran_bdp(settings));
        settings.caps.flow.max(Bytes::new((settings.caps.bdps * bdp) as u64))
    }

    /// The same where nothing is known of the radio: the rate of arrivals tells what the user's side takes, and may double with
    /// each RTT.
    pub(super) fn open_cap(&self, settings: &Settings) -> Bytes {
        let bdp = self.peak * self.wan.smoothed.as_secs_f64();
        settings.caps.flow.max(Bytes::new((OPEN_BDPS * bdp) as u64))
    }

    /// Whether what waits makes the window smaller.
    pub(super) fn is_tight(&self, settings: &Settings) -> bool {
        self.room(settings) < self.wanted(settings)
    }

    /// Payload has come; whether the flow was idle.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, bytes: Bytes) -> bool {
        if now >= self.round_start {
            self.arrived += bytes.get();
        }
        self.quiet_since = now;
        !self.active
    }

    pub(super) fn wait(&mut self, now: Time, backlog: Bytes, settings: &Settings) {
        if !self.backlog.is_zero() {
            self.quiet_since = self.quiet_since.max(now);
        }
        self.backlog = backlog;
        let before = self.offered;
        self.offer(settings);
        if self.offered != before {
            let offered = core::mem::replace(&mut self.offered, before);
            self.sum_up(now);
            self.offered = offered;
        }
    }

    /// An RTT to the server; whether it is the smallest, so that shares change.
    pub(super) fn take_wan_rtt(&mut self, rtt: Span) -> bool {
        let least = self.wan.least;
        self.wan.take(rtt);
        self.wan.least < least
    }

    pub(super) fn take_ran_rtt(&mut self, rtt: Span) {
        self.ran.take(rtt);
    }

    /// The radio is another one: RTTs to the user are measured anew.
    pub(super) fn forget_ran_rtt(&mut self) {
        self.ran = RanRtt::default();
    }

    /// All that is known of its behaviour is forgotten.
    pub(super) fn begin_anew(&mut self, now: Time, settings: &Settings) {
        (self.category, self.limit, self.passes, self.released) = (Category::Init, None, 0, 0.0);
        self.offered_before = None;
        (self.pinched, self.pinched_before) = (false, false);
        self.begin_period(now, settings);
    }

    /// Its first round begins after the slack, so that each sample is of one RTT.
    fn begin_period(&mut self, now: Time, settings: &Settings) {
        let slack = match settings.slack {
            Slack::Fixed(slack) => slack,
            Slack::HalfRtt => self.wan.smoothed / 2,
        };
        (self.rounds_left, self.period_window, self.sampled) = (1, None, false);
        self.begin_round(now + slack);
    }

    fn begin_round(&mut self, start: Time) {
        (self.round_start, self.arrived) = (start, 0);
        self.round_end = start + self.wan.smoothed.max(ROUND);
        (self.window_sum, self.offered_sum, self.window_until) = (0.0, 0.0, start);
    }

    fn sum_up(&mut self, now: Time) {
        let seconds = now.since(self.window_until).as_secs_f64();
        self.window_sum += self.window * seconds;
        self.offered_sum += self.offered * seconds;
        self.window_until = self.window_until.max(now);
    }

    /// The round is over: a sample of the rate of arrivals (5.9).
    pub(super) fn end_round(&mut self, now: Time, settings: &Settings) -> Round {
        self.sum_up(now);
        let seconds = now.since(self.round_start).as_secs_f64().max(1e-9);
        let (window, offered) = (self.window_sum / seconds, self.offered_sum / seconds);
        self.rate = self.arrived as f64 / seconds;
        self.demand = if self.sampled {
            settings.alpha * self.demand + (1.0 - settings.alpha) * self.rate
        } else {
            self.rate
        };
        self.sampled = true;
        self.peak = self.rate.max(self.peak * (1.0 - FORGET));
        let silence = IDLE.max(self.wan.smoothed * IDLE_RTTS);
        if self.backlog.is_zero() && now.since(self.quiet_since) >= silence {
            self.active = false;
            (self.category, self.limit, self.passes, self.released) = (Category::Init, None, 0, 0.0);
            return Round::Idle;
        }
        match self.period_window {
            // (5.7), of the mean window of the first round: what else happens at the same instant does not matter.
            None => {
                (self.rounds_left, self.period_window) = (1 + doublings(self.mss, window), Some(window));
            }
            Some(before) if window > 2.0 * before => {
                self.rounds_left += doublings(before, window);
                self.period_window = Some(window);
            }
            Some(_) => {}
        }
        self.rounds_left = self.rounds_left.saturating_sub(1);
        // R of (5.8) is what the server could send: what was offered to it. The bound of the proxy's buffer is ours (the thesis's was
        // never full), and a flow that it shuts would pass for slow, with a demand of nothing. That what was offered comes to effect one
        // RTT later is allowed for in the field profile only.
        let could = match settings.profile {
            Profile::Thesis => offered,
            Profile::Field => offered.min(self.offered_before.unwrap_or(offered)),
        };
        self.expected = could / self.wan.smoothed.as_secs_f64(); // (5.8)
        self.offered_before = Some(offered);
        if self.rounds_left == 0 {
            return Round::Period;
        }
        self.end_pinch(settings);
        self.begin_round(now);
        Round::Goes
    }

    /// What the flow is taken for after a period (5.8 to 5.11), if anything can be said; a new one begins.
    pub(super) fn end_period(&mut self, now: Time, judge: bool, settings: &Settings) {
        // In the authors' ns-3 code nothing is decided but on what comes.
        let keeps = settings.window == WindowRule::Whole && self.rate == 0.0 && !self.backlog.is_zero();
        if judge && !keeps {
            self.judge(settings);
        }
        self.end_pinch(settings);
        self.ran.end_period();
        self.begin_period(now, settings);
    }

    /// The next round begins as this one ended.
    fn end_pinch(&mut self, settings: &Settings) {
        self.pinched_before = self.pinched;
        self.pinched = self.offered < settings.theta * self.window;
    }

    fn judge(&mut self, settings: &Settings) {
        let rtt = self.wan.smoothed.as_secs_f64();
        let window = self.expected * rtt;
        let mut passed = self.rate >= settings.theta * self.expected;
        if settings.profile == Profile::Field && !passed {
            passed = self.rate * rtt >= whole_segments(window, self.mss);
            // That it did not fill what was shut says nothing of the server.
            if !passed && (self.pinched || self.pinched_before) {
                return;
            }
        }
        let demand = self.demand * rtt; // (5.10): r^ / R times the window that R is of
        match settings.profile {
            Profile::Thesis if passed => (self.category, self.limit) = (Category::Fast, None),
            Profile::Thesis => (self.category, self.limit) = (Category::Slow, Some(demand)),
            Profile::Field => {
                self.passes = if passed { self.passes.saturating_add(1) } else { 0 };
                match (self.category, self.limit) {
                    _ if !passed => {
                        (self.category, self.limit) = (Category::Slow, Some(HEADROOM * demand));
                    }
                    (Category::Slow, _) if self.passes < PASSES => self.limit = Some(HEADROOM * demand),
                    (Category::Slow, _) | (_, Some(_)) => {
                        let limit = 2.0 * window.max(self.floor(settings));
                        self.category = Category::Fast;
                        self.limit = (limit < self.share).then_some(limit);
                    }
                    (_, None) => self.category = Category::Fast,
                }
            }
        }
        self.released = match (settings.accounting, self.limit) {
            (Accounting::Literal, Some(limit)) => {
                (window - limit.min(self.share).max(self.floor(settings))).abs()
            }
            _ => 0.0,
        };
    }
}

/// What a server that has enough to send brings in an RTT, at least: whole segments, less the one that a delayed
/// acknowledgement holds back (RFC 9293, 3.8.6.3: one for every two segments), but not less than one. In bytes. Ours.
fn whole_segments(window: f64, mss: f64) -> f64 {
    // Windows are worked out in floats; a segment that lacks a millionth is one.
    let sent = (window / mss + 1e-6) as u64;
    sent.saturating_sub(1).max(1) as f64 * mss * (1.0 - 1e-6)
}

/// How often `from` has to be doubled to reach `to`: the logarithm of their quotient to base 2, rounded up, at least 0.
fn doublings(from: f64, to: f64) -> u32 {
    let mut reached = from.max(1.0);
    let mut count = 0;
    while reached < to && count < 64 {
        reached *= 2.0;
        count += 1;
    }
    count
}

fn believed(rtt: Span) -> Span {
    rtt.clamp(RTTS.0, RTTS.1)
}

/// RFC 6298's mean.
fn smooth(before: Span, sample: Span) -> Span {
    (before * (RTT_GAIN - 1) + sample) / RTT_GAIN
}
