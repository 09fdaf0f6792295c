//! NATCP, NACubic and a follower of Throughput Guidance: window and pace from the user's radio rate, which the mobile edge reports, as
//! understood.
//!
//! Source: Abbasloo et al., HotEdge 2019, of which the abstract was at hand; the rule is that of the authors' public scripts, and of Diarra
//! 2022, section 2.3. It runs on a server that sends to a mobile user.
//!
//! With the user's rate `B`, the smallest RTT `D` and `N` flows of the user:
//!
//! * pace = `B`, which is not divided by `N`;
//! * NATCP: `cwnd = 2 B D / N`. The factor makes up for the difference between the window and the bytes in flight;
//! * NACubic (`keep=cubic`): CUBIC with at most that window, and the same pace.
//!
//! With `feed=guidance` the rate `G` comes in a TCP option of acknowledgements, which a provider in the radio network adds
//! ([`ranpace_rnis::guidance`]; draft-flinck-mobile-throughput-guidance-04; ETSI's white paper of 2014 names initial window, bound and reduction as uses). Ours:
//!
//! * `cwnd` is at most `max(10 MSS, gain G D)` with `keep=cubic`, and equal to it without; pace = `G`. The provider has divided by `N`.
//! * With `keep=cubic`, the first guidance in slow start ends it: `cwnd = max(cwnd, min(bound, G RTT))`.
//! * The newest by time of measurement counts, until it is a second old: it comes with acknowledgements, so that none says nothing.
//!
//! Ours, where the sources are silent:
//!
//! * `B` is what a fair scheduler would give the user if it asked for all, `max(P_cell / users, own + unused)`, as SIGMA computes it for
//!   uplinks, over `max(8 TTI, RTTmin / 2)`. In the scripts it is the capacity of a recorded link.
//! * `D` is the connection's smallest RTT, in place of a sum of parts that somebody would have to measure.
//! * `N` is an option, because reports do not have it.
//! * NATCP retransmits what is lost and keeps its window ([`LossResponse::Own`]); a timeout leaves one segment until the next ACK. Before the
//!   first report it is CUBIC.
//! * The edge's report is used for three periods, at least 100 ms. Without one CUBIC has the window at once, unpaced, until ten fresh ones in a
//!   row; the age rule that the specification gives to all mechanisms would hold the window for up to 1 s.

use ranpace_phy::Direction;
use ranpace_rnis::guidance::Guidance;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::modem::{Average, Inputs, PMaxRule};
use crate::classic::cubic::{LinuxCubic, Params as CubicParams};
use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, RadioHint, ReceiverReport, Sample,
    Sent, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "natcp",
    about: "NATCP, NACubic, Throughput Guidance: the edge reports the user's rate, which sets window and pace (as understood)",
    source: "Abbasloo et al., HotEdge 2019, abstract and scripts; Diarra 2022, section 2.3; certainty: medium, loss and start are ours",
    options: &[
        OptionInfo {
            key: "keep",
            values: "none, cubic",
            about: "cubic (NACubic): CUBIC with at most that window",
        },
        OptionInfo {
            key: "feed",
            values: "edge, guidance",
            about: "where the rate comes from: the edge's feed, or options of acknowledgements (Throughput Guidance)",
        },
        OptionInfo {
            key: "gain",
            values: "1 to 4 [2; guidance: 1.25]",
            about: "window over the bandwidth-delay product",
        },
        OptionInfo {
            key: "flows",
            values: "1 to 1000 [1]",
            about: "flows of the user, among which the window is divided",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let keeps_cubic = options.choice("keep", &[("none", false), ("cubic", true)])?;
    let feed = options.choice("feed", &[("edge", Feed::Edge), ("guidance", Feed::Guidance)])?;
    let gain = options.number("gain", 1.0, 4.0, feed.gain())?;
    let flows = options.number("flows", 1.0, 1000.0, 1.0)? as u32;
    Ok(Control::Other(Box::new(NaTcp::new(keeps_cubic, feed, gain, flows))))
}

/// Where the rate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feed {
    /// The edge's feed of radio information.
    Edge,
    /// Options of acknowledgements.
    Guidance,
}

impl Feed {
    /// Window over the bandwidth-delay product: Diarra 2022, section 2.3; for guidance ours.
    const fn gain(self) -> f64 {
        match self {
            Self::Edge => 2.0,
            Self::Guidance => 1.25,
        }
    }

    /// Smallest window in segments, also while the rate is zero. Ours.
    const fn floor(self) -> f64 {
        match self {
            Self::Edge => MIN_CWND,
            Self::Guidance => 10.0,
        }
    }
}

/// Smallest window in segments without guidance. Ours.
const MIN_CWND: f64 = 2.0;
/// Age from which guidance is not used any more. Ours.
const GUIDANCE_STALE: Span = Span::SECOND;
/// Least age at which a report is not used any more. Ours.
const STALE: Span = Span::from_millis(100);
/// Longest period of reports: with rarer ones CUBIC has the window in between. Ours.
const LONGEST_PERIOD: Span = Span::from_secs(1);
/// Consecutive fresh reports after which the reports take over from CUBIC; as SIGMA's.
const FRESH_TO_RETURN: u32 = 10;

/// The window in bytes (Diarra 2022, section 2.3): the gain times the product of the user's rate and the smallest RTT, divided by its flows.
fn window(gain: f64, rate: Rate, min_rtt: Span, flows: u32) -> Bytes {
    Bytes::new((gain * rate.as_f64() / 8.0 * min_rtt.as_secs_f64() / f64::from(flows.max(1))) as u64)
}

/// The control.
#[derive(Debug)]
struct NaTcp {
    keeps_cubic: bool,
    feed: Feed,
    gain: f64,
    flows: u32,
    cubic: LinuxCubic,
    inputs: Inputs,
    /// The newest guidance, and when it was measured.
    guidance: Option<(Rate, Time)>,
    /// Interval between the last two reports.
    period: Span,
    /// Smallest RTT; `None` before the first.
    min_rtt: Option<Span>,
    /// Whether the reports set the window or its bound.
    driven: bool,
    /// Whether a timeout left one segment until the next ACK.
    timed_out: bool,
}

impl NaTcp {
    fn new(keeps_cubic: bool, feed: Feed, gain: f64, flows: u32) -> Self {
        Self {
            keeps_cubic,
            feed,
            gain,
            flows,
            cubic: plain(),
            inputs: Inputs::new(Direction::Downlink, PMaxRule::Reachable, Average::Window, 1.0, 1.0),
            guidance: None,
            period: Span::ZERO,
            min_rtt: None,
            driven: false,
            timed_out: false,
        }
    }

    fn is_fresh(&self, now: Time) -> bool {
        match self.feed {
            Feed::Edge => self.inputs.age(now).is_some_and(|age| age <= STALE.max(self.period * 3)),
            Feed::Guidance => self.guidance.is_some_and(|(_, at)| now.since(at) <= GUIDANCE_STALE),
        }
    }

    /// Whether CUBIC's hooks are called: always in NACubic.
    fn is_cubic(&self) -> bool {
        self.keeps_cubic || !self.driven
    }

    /// The last report's rate.
    fn rate(&self) -> Option<Rate> {
        match self.feed {
            Feed::Edge => self.inputs.capacity(),
            Feed::Guidance => self.guidance.map(|(rate, _)| rate),
        }
    }

    /// The window in segments; `None` before a rate or an RTT is known.
    fn bound(&self, cx: &Context) -> Option<f64> {
        let window = window(self.gain, self.rate()?, self.min_rtt?, self.flows);
        Some((window.as_f64() / cx.mss.as_f64().max(1.0)).max(self.feed.floor()))
    }

    /// CUBIC continues from the current window if reports have stopped.
    fn revert_if_stale(&mut self, cx: &Context, w: &mut Window) {
        if self.driven && !self.is_fresh(cx.now) {
            (self.driven, self.timed_out) = (false, false);
            self.inputs.begin_run();
            w.pacing = Pacing::Unlimited;
            if !self.keeps_cubic {
                w.ssthresh = w.cwnd.max(MIN_CWND);
                self.cubic = plain();
                self.cubic.on_start(cx, w);
            }
        }
    }

    /// Sets window and pace by the last report.
    fn apply_report(&self, cx: &Context, w: &mut Window) {
        let (true, Some(bound), Some(rate)) = (self.driven, self.bound(cx), self.rate()) else {
            return;
        };
        if self.keeps_cubic {
            w.cwnd = w.cwnd.min(bound);
        } else if !self.timed_out {
            w.cwnd = bound;
        }
        // The endpoint's pace counts bytes on the wire, as the radio's rate does; a rate of zero leaves one segment an RTT.
        let least = Rate::of(cx.wire, self.min_rtt.unwrap_or(Span::SECOND).max(Span::from_millis(1)));
        w.pacing = Pacing::Rate(rate.max(least));
    }
}

/// CUBIC as in Linux.
fn plain() -> LinuxCubic {
    LinuxCubic::new(CubicParams::LINUX, hystart::Kind::Classic)
}

impl CongestionControl for NaTcp {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        if !cx.srtt.is_zero() {
            self.min_rtt = Some(cx.srtt);
        }
        self.cubic.on_start(cx, w);
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.is_cubic() {
            self.cubic.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.revert_if_stale(cx, w);
        if self.is_cubic() {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.revert_if_stale(cx, w);
        if self.is_cubic() {
            return self.cubic.on_congestion(cx, w, event);
        }
        if let Signal::Timeout { .. } = event.kind {
            self.timed_out = true;
            w.cwnd = 1.0;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if self.is_cubic() {
            self.cubic.on_ack(cx, w, ack);
        } else if ack.acked > 0 {
            self.timed_out = false;
        }
        self.apply_report(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        !self.is_cubic()
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if self.is_cubic() {
            self.cubic.on_recovered(cx, w);
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.timed_out = false;
        if self.is_cubic() {
            self.cubic.on_spurious(cx, w, prior);
        }
        self.apply_report(cx, w);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.revert_if_stale(cx, w);
        if self.is_cubic() {
            self.cubic.on_idle_restart(cx, w, idle);
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.min_rtt = None;
        if self.is_cubic() {
            self.cubic.on_path_change(cx, w);
        }
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        let Some(Guidance { rate, age: Some(age) }) = Guidance::read(report.as_bytes()) else { return };
        let at = cx.now - age;
        if self.feed != Feed::Guidance || self.guidance.is_some_and(|(_, newest)| newest > at) {
            return;
        }
        // The last one may have been stale until now.
        self.revert_if_stale(cx, w);
        self.guidance = Some((rate, at));
        let (true, State::Open | State::Disorder) = (self.is_fresh(cx.now), cx.state) else { return };
        let Some(bound) = self.bound(cx) else { return };
        if !std::mem::replace(&mut self.driven, true) && self.keeps_cubic && w.cwnd < w.ssthresh {
            let fair = rate.bytes_in(cx.srtt).as_f64() / cx.mss.as_f64().max(1.0);
            w.cwnd = w.cwnd.max(bound.min(fair));
            w.ssthresh = w.cwnd;
        }
        self.apply_report(cx, w);
    }

    fn wants_radio(&self) -> bool {
        self.feed == Feed::Edge
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        // It may have been stale until now.
        self.revert_if_stale(cx, w);
        let base = self.min_rtt.unwrap_or(Span::ZERO);
        let before = self.inputs.last();
        let Some(moved) = self.inputs.on_hint(cx.now, hint, base, STALE.max(self.period * 3)) else { return };
        if let (Some((before, _)), Some((at, _))) = (before, self.inputs.last()) {
            // A pause of the feed is no period.
            let gap = at - before;
            if self.period.is_zero() || gap <= STALE.max(self.period * 3) {
                self.period = gap.min(LONGEST_PERIOD);
            }
        }
        if moved {
            // Another cell: the old rate is void until a grant there.
            self.min_rtt = None;
        }
        self.driven |= self.inputs.run() >= FRESH_TO_RETURN
            && self.bound(cx).is_some()
            && matches!(cx.state, State::Open | State::Disorder);
        if self.driven && matches!(cx.state, State::Open | State::Disorder) {
            self.apply_report(cx, w);
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("driven", f64::from(u8::from(self.driven)));
        if let Some(rate) = self.rate() {
            show("rate_bit_s", rate.as_f64());
        }
        if let Some(rtt) = self.min_rtt {
            show("min_rtt_s", rtt.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use ranpace_phy::{Both, LteBandwidth};
    use ranpace_rnis::CellInfo;

    use super::*;
    use crate::testing::testbed::{MSS, ack, context, loss, sample};

    const MS: Span = Span::from_millis(1);

    #[test]
    fn the_window_is_twice_the_product_divided_by_the_flows() {
        // Specification: base delay 5 ms, so that the smallest RTT is 12000 bit / rate + 10 ms, and 63160 and 4200 B, 43.6 segments in
        // the first case. The scripts compute with whole kbit/s, us and bytes, and round the product down before it is doubled; this
        // control has the RTT measured, bit/s, and rounds once.
        for (bits_per_s, expected_us, pace, product) in
            [(24_064_000_u64, 10_499, 3_008_000, 31_580), (481_280, 34_934, 60_125, 2_100)]
        {
            let min_rtt_us = (12_000 * 1_000_000_u64).div_ceil(bits_per_s) + 10_000;
            assert_eq!(min_rtt_us, expected_us);
            let whole_kbit = Rate::from_bits_per_s(bits_per_s / 1_000 * 1_000);
            assert_eq!(whole_kbit.bits_per_s() / 8, pace);
            assert_eq!(window(1.0, whole_kbit, Span::from_micros(min_rtt_us), 1), Bytes::new(product));
        }
        let fast = Rate::from_bits_per_s(24_064_000);
        assert_eq!(window(2.0, fast, Span::from_micros(10_499), 1), Bytes::new(63_161));
        assert_eq!(window(2.0, fast, Span::from_micros(10_499), 2), Bytes::new(31_580));
        let slow = Rate::from_bits_per_s(481_280);
        assert_eq!(window(2.0, slow, Span::from_micros(34_934), 1), Bytes::new(4_203));
        // Comparators at the end hosts: 40 Mbit/s and 30 ms, alone and with three other flows.
        let lte = Rate::from_bits_per_s(40_000_000);
        assert_eq!([1, 4].map(|flows| window(2.0, lte, MS * 30, flows)), [300_000, 75_000].map(Bytes::new));
        // 80 Mbit/s and 30 ms: kbit/s times us does not fit 32 bits.
        assert_eq!(window(2.0, Rate::from_mbit_per_s(80), MS * 30, 1), Bytes::new(600_000));
        // Throughput Guidance, section 2: 32.98 segments of 1448 B.
        let guided = Rate::from_bits_per_s(6_112_000);
        assert_eq!(window(1.25, guided, Span::from_millis(50), 1), Bytes::new(47_750));
        assert!((47_750.0 / MSS as f64 - 32.98).abs() < 0.005);
    }

    struct Rig {
        control: NaTcp,
        cx: Context,
        w: Window,
    }

    impl Rig {
        fn new(keeps_cubic: bool) -> Self {
            Self::fed(keeps_cubic, Feed::Edge)
        }

        fn fed(keeps_cubic: bool, feed: Feed) -> Self {
            let cx =
                Context { srtt: MS * 20, mss: Bytes::new(MSS), cwnd_limited: true, ..context(Time::ZERO) };
            let mut rig =
                Self { control: NaTcp::new(keeps_cubic, feed, feed.gain(), 1), cx, w: Window::new(10.0) };
            rig.control.on_start(&rig.cx, &mut rig.w);
            rig
        }

        /// Reports of a user that has all PRBs at MCS 28 of a cell of 20 MHz.
        fn reports(&mut self, count: u64) -> Rate {
            self.reports_of(count, CellInfo::lte(1, LteBandwidth::Mhz20), 28)
        }

        /// Reports of a user that has all PRBs of a cell at this MCS.
        fn reports_of(&mut self, count: u64, info: CellInfo, mcs: u8) -> Rate {
            let mut rate = Rate::ZERO;
            for _ in 0..count {
                self.cx.now += MS;
                let hint =
                    RadioHint { granted: 100.0, mcs, active_users: 1, ..RadioHint::of(info, self.cx.now) };
                rate = hint.rate(Direction::Downlink, 100.0);
                self.control.on_radio(&self.cx, &mut self.w, &hint);
            }
            rate
        }

        fn ack(&mut self) {
            self.control.on_sample(&self.cx, &mut self.w, &sample(MS * 20));
            self.control.on_ack(&self.cx, &mut self.w, &ack(10, MS * 20));
        }
    }

    #[test]
    fn reports_set_window_and_pace_and_without_them_there_is_cubic() {
        let mut rig = Rig::new(false);
        rig.reports(9);
        rig.ack();
        assert_eq!((rig.control.driven, rig.w.pacing), (false, Pacing::Unlimited));
        let rate = rig.reports(1);
        let expected = window(2.0, rate, MS * 20, 1).as_f64() / MSS as f64;
        assert!((rig.w.cwnd - expected).abs() < 0.01, "{} for {expected}", rig.w.cwnd);
        assert_eq!(rig.w.pacing, Pacing::Rate(rate));
        assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &loss()), LossResponse::Own);
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        rig.control.on_congestion(&rig.cx, &mut rig.w, &timeout);
        rig.reports(1);
        assert_eq!(rig.w.cwnd, 1.0, "until the next ACK");
        rig.ack();
        assert!((rig.w.cwnd - expected).abs() < 0.01);
        rig.cx.now += MS * 101;
        rig.ack();
        assert_eq!((rig.control.driven, rig.w.pacing), (false, Pacing::Unlimited));
        assert!(!rig.control.owns_recovery());
    }

    #[test]
    fn a_pause_of_the_feed_is_no_period() {
        let mut rig = Rig::new(false);
        rig.reports(20);
        assert!(rig.control.driven);
        rig.cx.now += MS * 30_000;
        rig.reports(1);
        assert_eq!((rig.control.driven, rig.control.period), (false, MS), "stale until now");
        rig.reports(10);
        assert!(rig.control.driven);
    }

    #[test]
    fn nacubic_grows_as_cubic_up_to_the_bound() {
        let mut rig = Rig::new(true);
        rig.reports(20);
        rig.ack();
        assert_eq!(rig.w.cwnd, 20.0, "slow start");
        let bound = rig.control.bound(&rig.cx).unwrap();
        for _ in 0..200 {
            rig.reports(1);
            rig.ack();
        }
        assert!((rig.w.cwnd - bound).abs() < 0.01, "{} for {bound}", rig.w.cwnd);
        assert!(matches!(rig.control.on_congestion(&rig.cx, &mut rig.w, &loss()), LossResponse::ReduceTo(_)));
    }

    impl Rig {
        /// Guidance of this rate, measured this long ago.
        fn guide(&mut self, kbit_s: u64, age: Span) {
            let guidance = Guidance { rate: Rate::from_bits_per_s(kbit_s * 1_000), age: Some(age) };
            let report = ReceiverReport::new(&guidance.content()).unwrap();
            self.control.on_report(&self.cx, &mut self.w, &report);
        }
    }

    #[test]
    fn guidance_ends_slow_start_and_bounds_the_window() {
        let mut rig = Rig::fed(true, Feed::Guidance);
        rig.cx.now += MS * 500;
        rig.ack();
        assert_eq!((rig.w.cwnd, rig.w.pacing), (20.0, Pacing::Unlimited), "slow start of the parent alone");
        // 20 Mbit/s in 20 ms are 50 000 B; the bound is a quarter more.
        rig.guide(20_000, MS * 10);
        let fair = 50_000.0 / MSS as f64;
        assert!((rig.w.cwnd - fair).abs() < 0.01, "{}", rig.w.cwnd);
        assert_eq!(rig.w.ssthresh, rig.w.cwnd);
        assert_eq!(rig.w.pacing, Pacing::Rate(Rate::from_mbit_per_s(20)));
        // An older measurement that arrives later says nothing.
        rig.guide(2_000, MS * 20);
        assert_eq!(rig.w.pacing, Pacing::Rate(Rate::from_mbit_per_s(20)));
        rig.cx.now += MS * 100;
        rig.guide(2_000, MS * 10);
        assert_eq!(rig.w.cwnd, 10.0, "the smallest bound");
        rig.guide(0, Span::ZERO);
        assert_eq!(rig.w.cwnd, 10.0);
        rig.cx.now += MS * 1_001;
        rig.ack();
        assert_eq!((rig.control.driven, rig.w.pacing), (false, Pacing::Unlimited));
    }

    #[test]
    fn the_pace_is_the_rate_in_whole_kbit_s_only_if_it_comes_as_guidance() {
        // The specification's examples. The scripts have whole kbit/s, as the option of an acknowledgement has: 60125 B/s. The edge's
        // feed has the rate itself: 60160 B/s.
        for (bits_per_s, min_rtt_us, pace) in [(24_064_000, 10_499, 3_008_000), (481_280, 34_934, 60_125)] {
            let mut rig = Rig::fed(false, Feed::Guidance);
            let min_rtt = Span::from_micros(min_rtt_us);
            rig.cx.now += MS * 500;
            rig.control.min_rtt = None;
            rig.control.on_sample(&rig.cx, &mut rig.w, &sample(min_rtt));
            let guidance = Guidance { rate: Rate::from_bits_per_s(bits_per_s), age: Some(Span::ZERO) };
            let report = ReceiverReport::new(&guidance.content()).unwrap();
            rig.control.on_report(&rig.cx, &mut rig.w, &report);
            assert_eq!(rig.w.pacing, Pacing::Rate(Rate::from_bits_per_s(pace * 8)));
        }
        // A cell that carries 481.28 kbit/s: MCS 0 on 100 PRBs is 2.792 Mbit/s (TS 36.213), in part of the slots.
        let share = Both { downlink: 481_280.5 / 2_792_000.0, uplink: 0.5 };
        let slow = CellInfo { fdd: false, share, ..CellInfo::lte(1, LteBandwidth::Mhz20) };
        let mut rig = Rig::new(false);
        rig.control.min_rtt = Some(Span::from_micros(34_934));
        let rate = rig.reports_of(20, slow, 0);
        assert_eq!(rate.bits_per_s(), 481_280);
        assert_eq!(rig.w.pacing, Pacing::Rate(Rate::from_bits_per_s(60_160 * 8)));
    }

    #[test]
    fn flows_of_the_user_divide_the_window_and_not_the_pace() {
        let [one, two] = [1, 2].map(|flows| {
            let mut rig = Rig::new(false);
            rig.control.flows = flows;
            rig.reports(20);
            rig
        });
        assert_eq!(one.w.pacing, two.w.pacing);
        assert!((two.w.cwnd * 2.0 - one.w.cwnd).abs() < 0.01, "{} and {}", two.w.cwnd, one.w.cwnd);
    }

    #[test]
    fn without_cubic_guidance_drives_the_window_and_a_loss_does_not() {
        let mut rig = Rig::fed(false, Feed::Guidance);
        rig.cx.now += MS * 500;
        rig.guide(20_000, MS * 10);
        let expected = 1.25 * 50_000.0 / MSS as f64;
        assert!((rig.w.cwnd - expected).abs() < 0.01, "{}", rig.w.cwnd);
        assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &loss()), LossResponse::Own);
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        rig.control.on_congestion(&rig.cx, &mut rig.w, &timeout);
        rig.guide(20_000, Span::ZERO);
        assert_eq!(rig.w.cwnd, 1.0, "until the next ACK");
        rig.ack();
        assert!((rig.w.cwnd - expected).abs() < 0.01);
    }

    #[test]
    fn other_reports_and_guidance_of_unknown_age_are_no_guidance() {
        let mut rig = Rig::fed(true, Feed::Guidance);
        let old = Guidance { rate: Rate::from_mbit_per_s(20), age: None };
        for content in [&old.content()[..], &[1, 2, 3], &[]] {
            let report = ReceiverReport::new(content).unwrap();
            rig.control.on_report(&rig.cx, &mut rig.w, &report);
            assert!(!rig.control.driven, "{content:?}");
        }
        let mut edge = Rig::new(true);
        edge.guide(20_000, Span::ZERO);
        assert!(!edge.control.driven, "of the other feed");
    }
}
