//! BBRv1 with the parameters of Zhong's thesis, for the reproduction of its chapters 5 to 7.
//!
//! Source: Zhong 2020, sections 4.4 and 5.2 (states, gains, durations); everything else is as in Linux `net/ipv4/tcp_bbr.c`.
//! This control shares with [`crate::rate_based::bbr1`] the bandwidth sampler, the maximum over ten rounds, the full-pipe
//! test and the windows of the RTT filter.
//!
//! | state | pacing gain | window gain | leaves when |
//! |---|---|---|---|
//! | STARTUP | [`HIGH_GAIN`] | [`HIGH_GAIN`] | bandwidth grew by less than a quarter in each of 3 rounds |
//! | DRAIN | [`DRAIN_GAIN`] | [`HIGH_GAIN`] | in flight <= BDP, or 2 minimal RTT |
//! | PROBE_BW / SOUNDING | 1.25 | [`CWND_GAIN`] | 1 minimal RTT |
//! | PROBE_BW / DRAIN | 0.75 | [`CWND_GAIN`] | 1 minimal RTT |
//! | PROBE_BW / STEADY | 1 | [`CWND_GAIN`] | 6 minimal RTT |
//! | PROBE_RTT | 1 | 4 segments | min(minimal RTT, 200 ms) with at most 4 segments in flight |
//!
//! No pacing margin, no random start of the cycle, no long-term sampling, no allowance for aggregation, no window cut on
//! loss. Ours, where neither source specifies it: STARTUP ends after three rounds, not three acknowledgements (which would
//! end it at once); a path change replaces the minimal RTT by the next sample.

use ranpace_units::{Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::filter::{MaxFilter, Rounds};
use crate::interface::{Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, Signal, Window};
use crate::options::{OptionError, OptionInfo, Options};
use crate::rate_based::bbr1::{
    BANDWIDTH_ROUNDS, Bandwidth, FullPipe, INITIAL_WINDOW, MIN_CWND, MIN_RTT_WINDOW, PROBE_RTT_TIME,
};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "bbr-zhong",
    about: "BBR version 1 with the parameters of Zhong's thesis",
    source: "Zhong 2020, sections 4.4 and 5.2",
    options: &[OptionInfo {
        key: "probe_rtt",
        values: "on or off [on]",
        about: "dip to 4 segments for a new minimal RTT",
    }],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(BbrZhong::new(options.flag("probe_rtt", true)?))))
}

/// 2/ln 2 (Eq. 4.10, section 5.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Its inverse, ln 2 / 2 (section 5.2.1).
const DRAIN_GAIN: f64 = 0.3466;
/// Pacing gain while looking for more bandwidth (section 5.2.1).
const SOUNDING_GAIN: f64 = 1.25;
/// Pacing gain that drains the queue of the sounding (section 5.2.1).
const SOUNDED_GAIN: f64 = 0.75;
/// Window over BDP in PROBE_BW; the thesis gives no value (Linux).
const CWND_GAIN: f64 = 2.0;
/// Longest stay in DRAIN in minimal RTTs (section 5.2.1).
const DRAIN_RTTS: u64 = 2;
/// Length of the steady phase in minimal RTTs: 8 less the two others (section 5.2.1).
const STEADY_RTTS: u64 = 6;

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Sounding,
    Sounded,
    Steady,
    ProbeRtt,
}

impl Mode {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => HIGH_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::Sounding => SOUNDING_GAIN,
            Self::Sounded => SOUNDED_GAIN,
            Self::Steady | Self::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            Self::Startup | Self::Drain => HIGH_GAIN,
            Self::Sounding | Self::Sounded | Self::Steady => CWND_GAIN,
            Self::ProbeRtt => 1.0,
        }
    }
}

/// Inputs of the transitions.
#[derive(Clone, Copy, Debug)]
struct TransitionInputs {
    /// Time in the state.
    since: Span,
    min_rtt: Span,
    full_pipe: bool,
    in_flight: f64,
    bdp: f64,
    /// Time since the flight became small; `None` before.
    small_for: Option<Span>,
    /// Whether the minimal RTT must be probed.
    min_rtt_old: bool,
}

/// The state table.
fn next(mode: Mode, facts: &TransitionInputs) -> Mode {
    if facts.min_rtt_old && mode != Mode::ProbeRtt {
        return Mode::ProbeRtt;
    }
    let drained = |mode_since: Span| facts.in_flight <= facts.bdp || mode_since >= facts.min_rtt * DRAIN_RTTS;
    match mode {
        // Linux checks at once whether there is anything to drain.
        Mode::Startup if facts.full_pipe && drained(Span::ZERO) => Mode::Sounding,
        Mode::Startup if facts.full_pipe => Mode::Drain,
        Mode::Drain if drained(facts.since) => Mode::Sounding,
        Mode::Sounding if facts.since >= facts.min_rtt => Mode::Sounded,
        Mode::Sounded if facts.since >= facts.min_rtt => Mode::Steady,
        Mode::Steady if facts.since >= facts.min_rtt * STEADY_RTTS => Mode::Sounding,
        Mode::ProbeRtt if facts.small_for.is_some_and(|time| time >= facts.min_rtt.min(PROBE_RTT_TIME)) => {
            if facts.full_pipe {
                Mode::Sounding
            } else {
                Mode::Startup
            }
        }
        same => same,
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct BbrZhong {
    probe_rtt: bool,
    mode: Mode,
    mode_since: Time,
    rounds: Rounds,
    bandwidth: MaxFilter,
    full_pipe: FullPipe,
    min_rtt: Span,
    min_rtt_at: Time,
    /// The next RTT replaces the minimum (path change).
    min_rtt_void: bool,
    small_since: Option<Time>,
    /// The window to return to after PROBE_RTT and after a timeout.
    prior_cwnd: f64,
    timed_out: bool,
    idle_restart: bool,
}

impl BbrZhong {
    fn new(probe_rtt: bool) -> Self {
        Self {
            probe_rtt,
            mode: Mode::Startup,
            mode_since: Time::ZERO,
            rounds: Rounds::default(),
            bandwidth: MaxFilter::default(),
            full_pipe: FullPipe::default(),
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            min_rtt_void: false,
            small_since: None,
            prior_cwnd: 0.0,
            timed_out: false,
            idle_restart: false,
        }
    }

    fn bandwidth(&self) -> Bandwidth {
        Bandwidth(self.bandwidth.get())
    }

    /// `gain * bw * RTT_min` in segments.
    fn target(&self, gain: f64) -> f64 {
        if self.min_rtt == Span::MAX {
            return INITIAL_WINDOW as f64;
        }
        self.bandwidth().segments_per_s() * self.min_rtt.as_secs_f64() * gain
    }

    fn set_pace(&self, cx: &Context, w: &mut Window) {
        let pace = self.bandwidth().pace_f64(cx, self.mode.pacing_gain());
        let faster = match w.pacing {
            Pacing::Unlimited => true,
            Pacing::Rate(current) => pace > current,
        };
        // The pace never decreases before the pipe is full (Linux).
        if self.full_pipe.reached || faster {
            w.pacing = Pacing::Rate(pace);
        }
    }

    fn update_model(&mut self, cx: &Context, ack: &Ack) -> bool {
        self.rounds.started = false;
        if let Some(sample) = Bandwidth::sample(&ack.rate) {
            self.rounds.update(ack.rate.prior_delivered, cx.delivered);
            if !ack.rate.app_limited || sample >= self.bandwidth() {
                self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, sample.0);
            }
            if self.rounds.started && !ack.rate.app_limited {
                self.full_pipe.on_round(self.bandwidth());
            }
        }
        let expired = cx.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt
            && (rtt <= self.min_rtt || self.min_rtt_void || (expired && !ack.rate.delayed))
        {
            (self.min_rtt, self.min_rtt_at, self.min_rtt_void) = (rtt, cx.now, false);
        }
        expired && self.probe_rtt && !self.idle_restart
    }

    fn update_mode(&mut self, cx: &Context, w: &mut Window, min_rtt_old: bool) {
        if self.mode == Mode::ProbeRtt && self.small_since.is_none() && cx.in_flight <= MIN_CWND {
            self.small_since = Some(cx.now);
        }
        let facts = TransitionInputs {
            since: cx.now - self.mode_since,
            min_rtt: self.min_rtt,
            full_pipe: self.full_pipe.reached,
            in_flight: cx.in_flight as f64,
            bdp: self.target(1.0),
            small_for: self.small_since.map(|since| cx.now - since),
            min_rtt_old,
        };
        let mode = next(self.mode, &facts);
        if mode == self.mode {
            return;
        }
        if mode == Mode::ProbeRtt {
            self.prior_cwnd = if self.timed_out { self.prior_cwnd.max(w.cwnd) } else { w.cwnd };
            self.small_since = None;
        } else if self.mode == Mode::ProbeRtt {
            self.min_rtt_at = cx.now; // ten seconds until the next probe
            w.cwnd = w.cwnd.max(self.prior_cwnd);
            self.small_since = None;
        }
        (self.mode, self.mode_since) = (mode, cx.now);
    }

    fn set_cwnd(&mut self, cx: &Context, w: &mut Window, delivered: f64) {
        if self.mode == Mode::ProbeRtt {
            w.cwnd = MIN_CWND as f64;
            return;
        }
        if core::mem::take(&mut self.timed_out) {
            w.cwnd = w.cwnd.max(self.prior_cwnd);
        }
        let target = self.target(self.mode.cwnd_gain());
        if self.full_pipe.reached {
            w.cwnd = (w.cwnd + delivered).min(target);
        } else if w.cwnd < target || cx.delivered < INITIAL_WINDOW {
            w.cwnd += delivered;
        }
        w.cwnd = w.cwnd.max(MIN_CWND as f64);
    }
}

impl CongestionControl for BbrZhong {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        (self.min_rtt, self.min_rtt_at, self.mode_since) = (cx.min_rtt, cx.now, cx.now);
        self.rounds.restart(cx.delivered);
        // Ten segments per handshake RTT, whatever the initial window.
        let bandwidth = Bandwidth::of(INITIAL_WINDOW, cx.srtt.max(Span::from_millis(1)));
        w.pacing = Pacing::Rate(bandwidth.pace_f64(cx, HIGH_GAIN));
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        // This control ignores losses; a timeout leaves the path empty until the next acknowledgement.
        if let Signal::Timeout { .. } = event.kind {
            if !self.timed_out && self.mode != Mode::ProbeRtt {
                self.prior_cwnd = w.cwnd;
            }
            self.timed_out = true;
            w.cwnd = (cx.in_flight + 1) as f64;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let min_rtt_old = self.update_model(cx, ack);
        self.update_mode(cx, w, min_rtt_old);
        self.set_pace(cx, w);
        self.set_cwnd(cx, w, ack.delivered as f64);
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_idle_restart(&mut self, _: &Context, _: &mut Window, _: Span) {
        self.idle_restart = true;
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        (self.min_rtt_void, self.min_rtt_at) = (true, cx.now);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("pacing_gain", self.mode.pacing_gain());
        show("cwnd_gain", self.mode.cwnd_gain());
        show("bw_segments_per_s", self.bandwidth().segments_per_s());
        if self.min_rtt != Span::MAX {
            show("min_rtt_s", self.min_rtt.as_secs_f64());
        }
        show("rounds", self.rounds.count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fifo::{Flow, Path, WIRE};

    #[test]
    fn the_state_table_is_the_published_one() {
        let ms = Span::from_millis;
        let idle = TransitionInputs {
            since: ms(0),
            min_rtt: ms(40),
            full_pipe: true,
            in_flight: 100.0,
            bdp: 50.0,
            small_for: None,
            min_rtt_old: false,
        };
        use Mode::{Drain, ProbeRtt, Sounded, Sounding, Startup, Steady};
        for (case, mode, facts, expected) in [
            (
                "pipe not full",
                Startup,
                TransitionInputs { full_pipe: false, since: ms(900), ..idle },
                Startup,
            ),
            ("pipe full", Startup, idle, Drain),
            ("pipe full and nothing queued", Startup, TransitionInputs { in_flight: 50.0, ..idle }, Sounding),
            ("still draining", Drain, TransitionInputs { since: ms(79), ..idle }, Drain),
            ("drained", Drain, TransitionInputs { in_flight: 50.0, ..idle }, Sounding),
            ("2 RTT of draining", Drain, TransitionInputs { since: ms(80), ..idle }, Sounding),
            ("within the sounding RTT", Sounding, TransitionInputs { since: ms(39), ..idle }, Sounding),
            (
                "after it, whatever is in flight",
                Sounding,
                TransitionInputs { since: ms(40), ..idle },
                Sounded,
            ),
            (
                "does not end early",
                Sounded,
                TransitionInputs { since: ms(39), in_flight: 1.0, ..idle },
                Sounded,
            ),
            ("after the draining RTT", Sounded, TransitionInputs { since: ms(40), ..idle }, Steady),
            ("within 6 RTT", Steady, TransitionInputs { since: ms(239), ..idle }, Steady),
            ("after 6 RTT", Steady, TransitionInputs { since: ms(240), ..idle }, Sounding),
            ("old minimum, STARTUP", Startup, TransitionInputs { min_rtt_old: true, ..idle }, ProbeRtt),
            ("old minimum, STEADY", Steady, TransitionInputs { min_rtt_old: true, ..idle }, ProbeRtt),
            ("flight not small yet", ProbeRtt, TransitionInputs { since: ms(900), ..idle }, ProbeRtt),
            (
                "small for less than an RTT",
                ProbeRtt,
                TransitionInputs { small_for: Some(ms(39)), ..idle },
                ProbeRtt,
            ),
            ("small for an RTT", ProbeRtt, TransitionInputs { small_for: Some(ms(40)), ..idle }, Sounding),
            (
                "RTT above 200 ms: 200 ms do",
                ProbeRtt,
                TransitionInputs { small_for: Some(ms(200)), min_rtt: ms(500), ..idle },
                Sounding,
            ),
            (
                "pipe never full",
                ProbeRtt,
                TransitionInputs { small_for: Some(ms(40)), full_pipe: false, ..idle },
                Startup,
            ),
        ] {
            assert_eq!(next(mode, &facts), expected, "{case}");
        }
    }

    #[test]
    fn gains_are_the_published_ones() {
        for (mode, pacing, cwnd) in [
            (Mode::Startup, 2.885, 2.885),
            (Mode::Drain, 0.3466, 2.885),
            (Mode::Sounding, 1.25, 2.0),
            (Mode::Sounded, 0.75, 2.0),
            (Mode::Steady, 1.0, 2.0),
            (Mode::ProbeRtt, 1.0, 1.0),
        ] {
            assert_eq!((mode.pacing_gain(), mode.cwnd_gain()), (pacing, cwnd), "{mode:?}");
        }
    }

    #[test]
    fn full_and_with_two_bdp_in_flight_at_most() {
        for (rate, rtt) in [(1.0, 50), (5.0, 20), (24.0, 20), (24.0, 100), (100.0, 40)] {
            let mut flow = Flow::new(Path::new(rate, rtt, 100_000), "bbr-zhong", 7);
            let bdp = flow.path.bdp();
            flow.run(Time::from_secs(4));
            flow.max_in_flight = 0;
            let utilisation = flow.utilisation_until(Time::from_secs(9));
            assert!(utilisation > 0.95, "{rate} Mbit/s, {rtt} ms: {utilisation}");
            // The BDP includes a packet's own transmission time.
            let limit = (2.0 * (bdp + 1.0)).max(4.0) + 1.0;
            assert!((flow.max_in_flight as f64) < limit, "{} in flight, limit {limit}", flow.max_in_flight);
        }
    }

    #[test]
    fn doubling_takes_about_four_cycles() {
        // Zhong 2020, sections 5.2.2 and 6.5.4: 1.25^3 = 1.95, 1.25^4 = 2.44.
        let mut flow = Flow::new(Path::new(10.0, 40, 10_000).then(4, 20.0), "bbr-zhong", 5);
        flow.run(Time::from_secs(4));
        let mut found = None;
        flow.run_with(Time::from_secs(8), &mut |flow| {
            let mbit = flow.figure("bw_segments_per_s") * (WIRE * 8) as f64 / 1e6;
            if mbit > 19.8 && found.is_none() {
                found = Some(flow.now);
            }
        });
        let cycles = (found.unwrap() - Time::from_secs(4)).as_secs_f64() / (8.0 * 0.041);
        assert!((3.0..=5.0).contains(&cycles), "{cycles} cycles");
    }

    #[test]
    fn min_rtt_probe_is_shorter_than_in_linux() {
        let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr-zhong", 3);
        let (mut small, mut dips, mut last) = (Span::ZERO, 0, (Time::ZERO, false));
        flow.run_with(Time::from_secs(30), &mut |flow| {
            let now = flow.figure("state") == f64::from(Mode::ProbeRtt as u8);
            if now && !last.1 {
                dips += 1;
                small = Span::ZERO;
            }
            if now && last.1 {
                small += flow.now - last.0;
            }
            last = (flow.now, now);
        });
        assert!((1..=3).contains(&dips), "{dips} dips");
        assert!(small < Span::from_millis(150), "{small}");
    }

    #[test]
    fn loss_does_not_cut_the_window_and_a_timeout_only_until_the_next_acknowledgement() {
        let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr-zhong", 3);
        flow.run(Time::from_secs(3));
        let (cx, mut w) = (flow.context(), flow.window);
        let event = |kind| Congestion { kind, lost: 3, largest: cx.mss, newest_sent_at: cx.now, first: true };
        assert_eq!(flow.control.on_congestion(&cx, &mut w, &event(Signal::Loss)), LossResponse::Own);
        assert_eq!(w, flow.window);
        flow.control.on_congestion(&cx, &mut w, &event(Signal::Timeout { count: 1 }));
        assert_eq!(w.cwnd, (cx.in_flight + 1) as f64);
    }
}
