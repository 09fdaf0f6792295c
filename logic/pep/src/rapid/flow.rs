//! One flow: its RTTs, rounds, periods and category (Diarra 2022, 5.2.3).

use ranpace_units::{Bytes, Span, Time};

use super::record::Category;
use super::settings::{Accounting, Profile, RanRttMin, Settings, Slack, WindowRule};

/// Weight of a new RTT sample; RFC 6298 section 2.3. The smoothed minimum uses the same.
const RTT_GAIN: u64 = 8;
/// Decay per round of the largest arrival rate, which bounds the backlog while the radio is unknown. Ours.
const FORGET: f64 = 1.0 / 8.0;
/// The bound of the open window over the BDP on the server's side: as Linux sizes a receive buffer (`tcp_rcv_space_adjust`).
const OPEN_BDPS: f64 = 2.0;
/// Largest smoothed minimum over the smallest RTT, where it is bounded. Ours.
const BOUND: (u64, u64) = (3, 2);
/// Least RTTs to the user and to the server of [`WindowRule::Whole`], whose clock has milliseconds (the authors' ns-3 code).
const WHOLE_LEAST: (Span, Span) = (Span::from_millis(1), Span::from_millis(2));
/// Bytes that a segment on the user's side counts for with [`WindowRule::Module`] (the power of two below 1460, in `rapid-llc.c`).
const MODULE_SEGMENT: f64 = 1_024.0;
/// RTT samples are clamped to this range. Ours.
const RTTS: (Span, Span) = (Span::from_micros(10), Span::from_secs(10));
/// Shortest round, which bounds the work for a nearby server. Ours.
const ROUND: Span = Span::from_millis(1);
/// Window of a slow flow of [`Profile::Field`] over its demand: more than 1/theta, or else a flow of constant rate would pass the
/// test of the next period. Ours.
const HEADROOM: f64 = 1.5;
/// Periods that a slow flow has to fill in a row before it is fast. Ours.
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
    fn new(first: Span, settings: &Settings) -> Self {
        let first = believed(first).max(settings.wan_rtt_least);
        Self { smoothed: first, least: first }
    }

    fn take(&mut self, rtt: Span, settings: &Settings) {
        let rtt = believed(rtt).max(settings.wan_rtt_least);
        self.smoothed = smooth(self.smoothed, rtt);
        self.least = self.least.min(rtt);
    }
}

/// Smallest RTT to the user.
#[derive(Clone, Copy, Debug, Default)]
struct RanRtt {
    smoothed: Option<Span>,
    /// Least smoothed RTT of this period, least RTT of all, and the minimum that follows the former.
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
    /// Number of its user, and its index among that user's flows.
    pub(super) user: u32,
    pub(super) place: u32,
    /// Segment size in bytes.
    pub(super) mss: f64,
    pub(super) wan: WanRtt,
    ran: RanRtt,
    /// Margin added to the smallest RTT to the user.
    allowance: Span,
    pub(super) category: Category,
    /// Whether it counts among the user's active flows.
    pub(super) active: bool,
    /// Limit of the window of a slow flow, or of one that is growing towards its share, in bytes.
    pub(super) limit: Option<f64>,
    /// Consecutive periods that a slow flow has filled.
    passes: u8,
    /// Bytes that it released according to equation 5.11 as printed.
    pub(super) released: f64,
    /// `S` and `RW` in bytes.
    pub(super) share: f64,
    window: f64,
    /// `RW` as [`Profile::Field`] applies it: it falls slowly. `fallen` is its value at `followed_at`; a larger window takes
    /// precedence.
    followed: f64,
    fallen: f64,
    followed_at: Time,
    /// The window offered to the server, after subtracting the backlog: at most `advertised`, which is what the proxy's TCP lets it
    /// know of by now.
    offered: f64,
    advertised: f64,
    /// Integrals of window and offered window over this round, in byte-seconds, up to this time; mean offered window of the
    /// previous round.
    window_sum: f64,
    offered_sum: f64,
    window_until: Time,
    offered_before: Option<f64>,
    /// Its user's backlog is above the cap: nothing is offered.
    closed: bool,
    /// Whether the backlog held the offered window below theta times the window, in this round and in the previous one.
    pinched: bool,
    pinched_before: bool,
    /// The current round, and the bytes that arrived in it.
    round_start: Time,
    pub(super) round_end: Time,
    arrived: u64,
    /// Rounds left in the period, and the window that their number follows from; `None` in the first round.
    rounds_left: u32,
    period_window: Option<f64>,
    /// `r`, `r^` and `R` in bytes per second.
    pub(super) rate: f64,
    pub(super) demand: f64,
    pub(super) expected: f64,
    sampled: bool,
    /// The largest recent `r`, decaying.
    peak: f64,
    /// When data last arrived, or were last in the backlog.
    quiet_since: Time,
    pub(super) backlog: Bytes,
    /// It is in the list of changes; it has a deadline in the queue.
    pub(super) changed: bool,
    pub(super) queued: bool,
    /// The period overlaps a probe, so it says nothing about the flow's demand.
    pub(super) disturbed: bool,
}

/// The owner of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// Number of its user, and its index among that user's flows.
    pub(super) user: u32,
    pub(super) place: u32,
    /// Margin added to the smallest RTT to the user.
    pub(super) allowance: Span,
}

/// Result of the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// A sample, and nothing else.
    Goes,
    /// The flow is idle from now on.
    Idle,
    /// A period has ended, too.
    Period,
}

impl Flow {
    pub(super) fn new(now: Time, owner: Owner, rtt: Span, mss: Bytes, settings: &Settings) -> Self {
        let mut flow = Self {
            user: owner.user,
            place: owner.place,
            allowance: owner.allowance,
            mss: mss.as_f64().max(1.0),
            wan: WanRtt::new(rtt, settings),
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
            advertised: f64::INFINITY,
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

    /// Sets the window; returns whether it, or the server's window, has changed.
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

    /// Updates what the server may send now, in bytes.
    fn offer(&mut self, settings: &Settings) {
        self.offered = self.open(settings).min(self.window).min(self.advertised);
        self.pinched |= self.offered < settings.theta * self.window;
    }

    /// The window with its headroom. A limited flow gets none on top: the limit of a slow flow includes its own.
    pub(super) fn wanted(&self, settings: &Settings) -> f64 {
        if self.limit.is_some() {
            return self.window;
        }
        let window = if settings.profile == Profile::Field { self.followed } else { self.window };
        settings.headroom * window + f64::from(settings.spare) * self.mss
    }

    /// Returns the bytes that the server may have in flight: the window with its headroom, limited by the backlog.
    pub(super) fn open(&self, settings: &Settings) -> f64 {
        if self.closed { 0.0 } else { self.wanted(settings).min(self.room(settings)) }
    }

    /// Closes or reopens the flow according to its user's backlog. The published algorithm does not consider why a window was not
    /// filled.
    pub(super) fn close(&mut self, now: Time, closed: bool, settings: &Settings) {
        if settings.profile == Profile::Field {
            self.sum_up(now);
            self.closed = closed;
            self.offer(settings);
        }
    }

    /// Bytes that may still come before the backlog is too large.
    fn room(&self, settings: &Settings) -> f64 {
        if self.backlog.is_zero() {
            return f64::INFINITY;
        }
        let (wanted, backlog) = (self.wanted(settings), self.backlog.as_f64());
        let limit = match settings.profile {
            // Bounds data in flight and backlog together. A slow flow has no headroom, but may have as much backlog as others.
            Profile::Field if self.limit.is_none() => wanted,
            _ => self.cap(settings).as_f64(),
        };
        (limit - backlog).max(least_open(wanted, limit, backlog, settings))
    }

    /// The least window, in bytes.
    pub(super) fn floor(&self, settings: &Settings) -> f64 {
        f64::from(settings.floor) * self.mss
    }

    /// The RTT that the window is computed for, in seconds.
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

    /// Sets the margin on the smallest RTT to the user; returns whether it has changed.
    pub(super) fn set_allowance(&mut self, allowance: Span) -> bool {
        core::mem::replace(&mut self.allowance, allowance) != allowance
    }

    /// Smallest RTT to the user, as defined by the settings.
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

    /// Rate that the window corresponds to, in bytes per second.
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

    /// Limit of its backlog plus data in flight: the configured multiple of its BDP (the larger one of both sides), but at least
    /// the configured minimum.
    pub(super) fn cap(&self, settings: &Settings) -> Bytes {
        let bdp = self.window.max(self.ran_bdp(settings));
        settings.caps.flow.max(Bytes::new((settings.caps.bdps * bdp) as u64))
    }

    /// The bytes that may still come while the radio is unknown: the arrival rate shows what the user's side takes, and may double with
    /// each RTT.
    pub(super) fn open_room(&self, settings: &Settings) -> Bytes {
        let bdp = self.peak * self.wan.smoothed.as_secs_f64();
        let cap = settings.caps.flow.max(Bytes::new((OPEN_BDPS * bdp) as u64));
        let least = least_open(cap.as_f64(), cap.as_f64(), self.backlog.as_f64(), settings);
        (cap - self.backlog).max(Bytes::new(least as u64))
    }

    /// Returns whether the backlog reduces the window.
    pub(super) fn is_tight(&self, settings: &Settings) -> bool {
        self.room(settings) < self.wanted(settings)
    }

    /// Payload has come; returns whether the flow was idle.
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
        self.offer_from(now, settings);
    }

    /// The server knows of a window of at most `window`.
    pub(super) fn advertise(&mut self, now: Time, window: Bytes, settings: &Settings) {
        self.advertised = window.as_f64();
        self.offer_from(now, settings);
    }

    /// Updates what the server may send from now on.
    fn offer_from(&mut self, now: Time, settings: &Settings) {
        let before = self.offered;
        self.offer(settings);
        if self.offered != before {
            let offered = core::mem::replace(&mut self.offered, before);
            self.sum_up(now);
            self.offered = offered;
        }
    }

    /// An RTT sample of the server's side; returns whether it is a new minimum, which changes the shares.
    pub(super) fn take_wan_rtt(&mut self, rtt: Span, settings: &Settings) -> bool {
        let least = self.wan.least;
        self.wan.take(rtt, settings);
        self.wan.least < least
    }

    pub(super) fn take_ran_rtt(&mut self, rtt: Span) {
        self.ran.take(rtt);
    }

    /// The radio has changed: discards the RTTs to the user.
    pub(super) fn forget_ran_rtt(&mut self) {
        self.ran = RanRtt::default();
    }

    /// Discards what is known of its behaviour.
    pub(super) fn begin_anew(&mut self, now: Time, settings: &Settings) {
        (self.category, self.limit, self.passes, self.released) = (Category::Init, None, 0, 0.0);
        self.offered_before = None;
        (self.pinched, self.pinched_before) = (false, false);
        self.begin_period(now, settings);
    }

    /// The first round begins after the slack, so that each sample covers exactly one RTT.
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

    /// Ends a round with a sample of the arrival rate (5.9).
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
            // (5.7) uses the mean window of the first round, so that the order of events at one instant does not matter.
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
        // R of (5.8) is what the server could send, that is, what it knows to be offered. That less than the window is offered is ours:
        // the thesis's buffer was never full, and its module wrote each window into the next acknowledgement. A flow closed by its
        // backlog would otherwise pass for slow with zero demand. An offer takes effect one RTT later; only the field profile allows
        // for that.
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

    /// Judges the flow after a period (5.8 to 5.11) if `judge` is set, and begins a new period.
    pub(super) fn end_period(&mut self, now: Time, judge: bool, settings: &Settings) {
        // The authors' ns-3 code decides only when data arrive.
        let keeps = settings.window == WindowRule::Whole && self.rate == 0.0 && !self.backlog.is_zero();
        if judge && !keeps {
            self.judge(settings);
        }
        self.end_pinch(settings);
        self.ran.end_period();
        self.begin_period(now, settings);
    }

    /// The next round starts in the state in which this one ended.
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
            // A closed window that was not filled says nothing about the server.
            if !passed && (self.pinched || self.pinched_before) {
                return;
            }
        }
        let demand = self.demand * rtt; // (5.10): r^ / R times the window of R
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

/// What stays open of a window whose backlog is limited, in bytes: see [`Settings::ticking`].
fn least_open(window: f64, limit: f64, backlog: f64, settings: &Settings) -> f64 {
    if backlog <= limit + window { settings.least_open * window } else { 0.0 }
}

/// The least that a server with enough data delivers in an RTT: whole segments, less the one for which a delayed acknowledgement
/// waits (RFC 9293, 3.8.6.3: one acknowledgement for every two segments), but at least one. In bytes. Ours.
fn whole_segments(window: f64, mss: f64) -> f64 {
    // Windows are computed in floats; a segment short by a millionth counts as whole.
    let sent = (window / mss + 1e-6) as u64;
    sent.saturating_sub(1).max(1) as f64 * mss * (1.0 - 1e-6)
}

/// Returns how often `from` must be doubled to reach `to`: log2 of their quotient, rounded up, at least 0.
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

/// The smoothed RTT of RFC 6298.
fn smooth(before: Span, sample: Span) -> Span {
    (before * (RTT_GAIN - 1) + sample) / RTT_GAIN
}
