//! X-TCP: a window for uplinks from the grants that the device receives, as understood.
//!
//! Source: Azzino et al. 2017, of which only the abstract was at hand, and the description in Diarra 2022, sections 2.3.2 and 3.2.1. It runs on the device, for
//! its uploads. The window is the bandwidth-delay product of the granted rate and the smallest RTT; while the connection is
//! congested (the RTT exceeds the smallest by more than [`DELAY`], or the signal is poor), it is [`LAMBDA`] of that.
//!
//! Our reading, where neither text says more:
//!
//! * The granted rate is the mean over `max(8 TTI, RTTmin / 2)`, as SIGMA's. Grants are not what the device *could* get: a flow
//!   that waits for grants would never receive larger ones. The window therefore grows beyond the model by one segment an RTT as
//!   long as the window limits the flow and it has not been congested for two RTTmin; the first congested ACK ends this.
//!   `resource=reachable` takes SIGMA's P_max in place of the grants, and needs no such growth.
//! * The connection starts with slow start, until the window reaches the model or the first ACK is congested.
//! * The signal is poor if the last CQI measured is below `cqi_min`: the modem's reports carry no SINR, and a CQI of 2 takes some
//!   -4.7 dB, next to the -5 dB at which that group's simulations speak of an outage. Without a CQI the signal is not considered.
//! * The RTT is the latest one, and the smallest that of the connection.
//! * A loss changes nothing ([`LossResponse::Own`]). A timeout leaves one segment; the first ACK of new data restores the model.
//!   X-TCP's quick return after a timeout is the claim of its abstract.
//! * After an idle time of a timeout the grants say nothing about a new transfer: slow start again.
//! * Without fresh radio information, as SIGMA defines it, CUBIC sets the window.

use ranpace_phy::Direction;
use ranpace_units::{Span, Time};

use super::modem::{Average, Inputs, PMaxRule};
use crate::classic::cubic::{LinuxCubic, Params as CubicParams};
use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, RadioHint, Sample, Sent, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "xtcp",
    about: "X-TCP: uploads with a window of the granted rate times RTTmin (as understood)",
    source: "Azzino et al. 2017, abstract; Diarra 2022, sections 2.3.2, 3.2.1; certainty: low, what these lack is a reading",
    options: &[
        OptionInfo {
            key: "resource",
            values: "granted, reachable",
            about: "resources in the model: the grants, or those that this user could have",
        },
        OptionInfo {
            key: "cqi_min",
            values: "0 to 15 [2]",
            about: "CQI below which the signal is poor (0: none)",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let reachable = options.choice("resource", &[("granted", false), ("reachable", true)])?;
    let cqi_min = options.number("cqi_min", 0.0, 15.0, f64::from(CQI_MIN))? as u8;
    Ok(Control::Other(Box::new(XTcp::new(reachable, cqi_min))))
}

/// RTT beyond the smallest from which on the connection is congested (Diarra 2022, section 2.3.2).
const DELAY: Span = Span::from_millis(10);
/// Share of the model while it is congested (Diarra 2022, section 2.3.2: lambda).
const LAMBDA: f64 = 0.85;
/// CQI below which the signal is poor. Ours.
const CQI_MIN: u8 = 2;
/// Smallest window in segments. Ours.
const MIN_CWND: f64 = 2.0;
/// Age at which radio information is stale, unless four RTTmin are longer; as SIGMA's.
const STALE: Span = Span::from_millis(100);
/// Consecutive fresh hints after which the model takes over from CUBIC; as SIGMA's.
const FRESH_TO_RETURN: u32 = 10;

/// Least margin of a retransmission timeout beyond the RTT (Linux `TCP_RTO_MIN`).
const MIN_RTO: Span = Span::from_millis(200);
/// Window after an idle time, in segments (RFC 6928).
const INITIAL: f64 = 10.0;

/// What sets the window; the values are those of `inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// CUBIC: there is no fresh radio information.
    Plain = 0,
    /// Slow start towards the model.
    Start = 1,
    /// The model.
    Model = 2,
    /// One segment after a timeout, until new data are acknowledged.
    TimedOut = 3,
}

/// The control.
#[derive(Debug)]
struct XTcp {
    reachable: bool,
    cqi_min: u8,
    mode: Mode,
    cubic: LinuxCubic,
    inputs: Inputs,
    /// The last CQI measured.
    cqi: Option<u8>,
    /// Smallest and latest RTT; `None` before the first.
    rtt: Option<(Span, Span)>,
    /// Since when the connection has not been congested; `None` while it is.
    uncongested_since: Option<Time>,
    /// Segments beyond the model.
    probe: f64,
}

impl XTcp {
    fn new(reachable: bool, cqi_min: u8) -> Self {
        Self {
            reachable,
            cqi_min,
            mode: Mode::Plain,
            cubic: plain(),
            inputs: Inputs::new(Direction::Uplink, PMaxRule::Reachable, Average::Window, 1.0, 1.0),
            cqi: None,
            rtt: None,
            uncongested_since: None,
            probe: 0.0,
        }
    }

    fn base_rtt(&self) -> Span {
        self.rtt.map_or(Span::ZERO, |(least, _)| least)
    }

    fn stale_after(&self) -> Span {
        STALE.max(self.base_rtt() * 4)
    }

    fn is_fresh(&self, now: Time) -> bool {
        self.inputs.age(now).is_some_and(|age| age <= self.stale_after())
    }

    /// The product of rate and RTTmin, in segments; `None` before the first grant or RTT.
    fn model(&self, cx: &Context) -> Option<f64> {
        let (least, _) = self.rtt?;
        let rate = if self.reachable { self.inputs.capacity() } else { self.inputs.mean_granted() };
        Some(rate?.as_f64() / 8.0 * least.as_secs_f64() / cx.mss.as_f64().max(1.0))
    }

    fn is_congested(&self) -> bool {
        let delayed = self.rtt.is_some_and(|(least, last)| last > least + DELAY);
        delayed || self.cqi.is_some_and(|cqi| cqi < self.cqi_min)
    }

    fn on_rtt(&mut self, rtt: Span) {
        let rtt = rtt.max(Span::from_micros(1));
        self.rtt = Some((self.rtt.map_or(rtt, |(least, _)| least.min(rtt)), rtt));
    }

    fn enter_model(&mut self, w: &mut Window) {
        self.mode = Mode::Model;
        (self.uncongested_since, self.probe) = (None, 0.0);
        w.ssthresh = MIN_CWND;
    }

    fn start(&mut self, w: &mut Window) {
        self.mode = Mode::Start;
        (self.uncongested_since, self.probe) = (None, 0.0);
        w.ssthresh = f64::INFINITY;
    }

    /// CUBIC continues from the current window, after a timeout in slow start.
    fn fall_back(&mut self, cx: &Context, w: &mut Window) {
        if self.mode != Mode::Start {
            w.ssthresh = self.model(cx).unwrap_or(0.0).max(w.cwnd).max(MIN_CWND);
        }
        self.mode = Mode::Plain;
        self.inputs.begin_run();
        self.cubic = plain();
        self.cubic.on_start(cx, w);
    }

    fn revert_if_stale(&mut self, cx: &Context, w: &mut Window) {
        if self.mode != Mode::Plain && !self.is_fresh(cx.now) {
            self.fall_back(cx, w);
        }
    }

    /// New data were acknowledged: the window follows the model.
    fn apply_model(&mut self, cx: &Context, w: &mut Window, acked: u64) {
        let congested = self.is_congested();
        let model = self.model(cx);
        if self.mode == Mode::Start {
            w.cwnd += acked as f64;
            if !congested && model.is_none_or(|model| w.cwnd < model) {
                return;
            }
            self.enter_model(w);
        }
        if congested {
            (self.uncongested_since, self.probe) = (None, 0.0);
        } else {
            let since = *self.uncongested_since.get_or_insert(cx.now);
            if !self.reachable && cx.cwnd_limited && cx.now.since(since) >= self.base_rtt() * 2 {
                self.probe += acked as f64 / w.cwnd.max(1.0);
            }
        }
        if let Some(model) = model {
            let share = if congested { LAMBDA } else { 1.0 };
            w.cwnd = (model * share).max(MIN_CWND) + self.probe;
        }
    }
}

/// CUBIC as in Linux.
fn plain() -> LinuxCubic {
    LinuxCubic::new(CubicParams::LINUX, hystart::Kind::Classic)
}

impl CongestionControl for XTcp {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        if !cx.srtt.is_zero() {
            self.on_rtt(cx.srtt);
        }
        if self.is_fresh(cx.now) {
            self.start(w);
        } else {
            self.cubic.on_start(cx, w);
        }
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.mode == Mode::Plain {
            self.cubic.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.on_rtt(rtt);
        }
        self.revert_if_stale(cx, w);
        if self.mode == Mode::Plain {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.revert_if_stale(cx, w);
        if self.mode == Mode::Plain {
            return self.cubic.on_congestion(cx, w, event);
        }
        if let Signal::Timeout { .. } = event.kind {
            self.mode = Mode::TimedOut;
            w.cwnd = 1.0;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        match self.mode {
            Mode::Plain => self.cubic.on_ack(cx, w, ack),
            _ if ack.acked == 0 => {}
            Mode::TimedOut => {
                self.enter_model(w);
                self.apply_model(cx, w, ack.acked);
            }
            Mode::Start | Mode::Model => self.apply_model(cx, w, ack.acked),
        }
    }

    /// Recovery is PRR's after CUBIC's `ReduceTo`, and the model's after `Own`.
    fn owns_recovery(&self) -> bool {
        self.mode != Mode::Plain
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if self.mode == Mode::Plain {
            self.cubic.on_recovered(cx, w);
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        match self.mode {
            Mode::Plain => self.cubic.on_spurious(cx, w, prior),
            Mode::TimedOut => {
                self.enter_model(w);
                w.cwnd = prior.cwnd;
            }
            Mode::Start | Mode::Model => {}
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.revert_if_stale(cx, w);
        if self.mode == Mode::Plain {
            self.cubic.on_idle_restart(cx, w, idle);
        } else if idle > cx.srtt + MIN_RTO {
            w.cwnd = w.cwnd.min(INITIAL);
            self.start(w);
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.rtt = None;
        if self.mode == Mode::Plain {
            self.cubic.on_path_change(cx, w);
        }
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        let (base, stale_after) = (self.base_rtt(), self.stale_after());
        let Some(moved) = self.inputs.on_hint(cx.now, hint, base, stale_after) else { return };
        if moved {
            (self.rtt, self.cqi) = (None, None);
        }
        self.cqi = hint.cqi.or(self.cqi);
        if self.mode == Mode::Plain
            && self.inputs.run() >= FRESH_TO_RETURN
            && self.model(cx).is_some()
            && matches!(cx.state, State::Open | State::Disorder)
        {
            if w.in_slow_start() {
                self.start(w);
            } else {
                self.enter_model(w);
            }
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("probe_segments", self.probe);
        let rate = if self.reachable { self.inputs.capacity() } else { self.inputs.mean_granted() };
        if let Some(rate) = rate {
            show("model_bit_s", rate.as_f64());
        }
        if let Some((least, _)) = self.rtt {
            show("min_rtt_s", least.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use ranpace_phy::Direction;
    use ranpace_units::Bytes;

    use super::*;
    use crate::radio::sigma::tests::mmwave;
    use crate::testing::testbed::{MSS, ack, context, loss, sample};

    const MS: Span = Span::from_millis(1);

    /// A control that has had grants of `rate` bit/s for 100 ms, with RTTs of 20 ms, and has left slow start.
    struct Rig {
        control: XTcp,
        cx: Context,
        w: Window,
    }

    impl Rig {
        fn new(rate: f64) -> Self {
            let cx =
                Context { srtt: MS * 20, mss: Bytes::new(MSS), cwnd_limited: true, ..context(Time::ZERO) };
            let mut rig = Self { control: XTcp::new(false, CQI_MIN), cx, w: Window::new(10.0) };
            rig.grants(rate, 200);
            rig.control.on_start(&rig.cx, &mut rig.w);
            assert_eq!(rig.control.mode, Mode::Start);
            for _ in 0..400 {
                rig.ack(20);
            }
            assert_eq!(rig.control.mode, Mode::Model);
            rig
        }

        fn grants(&mut self, rate: f64, count: u64) {
            for _ in 0..count {
                self.cx.now += hint(self.cx.now, rate).tti;
                self.control.on_radio(&self.cx, &mut self.w, &hint(self.cx.now, rate));
            }
        }

        /// An ACK of ten segments with this RTT in milliseconds; returns the whole segments of the window.
        fn ack(&mut self, rtt: u64) -> u64 {
            self.control.on_sample(&self.cx, &mut self.w, &sample(MS * rtt));
            self.control.on_ack(&self.cx, &mut self.w, &ack(10, MS * rtt));
            self.w.cwnd as u64
        }
    }

    /// A grant of the share of the cell that gives `rate`.
    fn hint(at: Time, rate: f64) -> RadioHint {
        let hint = RadioHint { mcs: 15, active_users: 1, ..RadioHint::of(mmwave(), at) };
        let whole = hint.rate(Direction::Uplink, hint.cell.into()).as_f64();
        assert!(rate <= whole, "the cell has {whole} bit/s");
        RadioHint { granted: f64::from(hint.cell) * rate / whole, ..hint }
    }

    #[test]
    fn the_window_is_the_product_of_grants_and_smallest_rtt_and_lambda_of_it_beyond_10_ms() {
        // Specification: 800 Mbit/s and 20 ms are 1381 segments of 1448 B; 1174 at an RTT of 31 ms; at 30 ms exactly still 1381.
        let mut rig = Rig::new(800e6);
        assert_eq!(rig.ack(30), 1381);
        assert_eq!(rig.ack(31), 1174);
        assert!((rig.w.cwnd - 1174.0).abs() < 0.2, "{}", rig.w.cwnd);
    }

    #[test]
    fn several_flows_on_a_device_fill_its_queue() {
        // Specification: K flows that each see the whole rate settle at RTT = max(1, 0.85 K) RTTmin: 34, 51, 68 ms.
        for (flows, settled) in [(1, 20), (2, 34), (3, 51), (4, 68)] {
            let mut rigs: Vec<Rig> = (0..flows).map(|_| Rig::new(800e6)).collect();
            let mut rtt = 40;
            for _ in 0..10 {
                let window: f64 = rigs.iter_mut().map(|rig| rig.ack(rtt) as f64).sum();
                let queue = window * MSS as f64 * 8.0 / 800e6;
                rtt = (queue * 1e3).round().max(20.0) as u64;
            }
            assert_eq!(rtt, settled, "{flows} flows");
        }
    }

    #[test]
    fn a_flow_that_waits_for_grants_probes_until_it_is_congested() {
        let mut rig = Rig::new(80e6);
        let model = rig.ack(20);
        for _ in 0..60 {
            rig.grants(80e6, 100);
            rig.ack(20);
        }
        let probed = rig.w.cwnd as u64;
        assert!(probed > model, "{probed} segments");
        rig.ack(31);
        rig.ack(20);
        assert_eq!(rig.w.cwnd as u64, 138, "congestion ends the probe");
    }

    #[test]
    fn a_poor_signal_is_congestion() {
        let mut rig = Rig::new(800e6);
        rig.cx.now += MS;
        let poor = RadioHint { cqi: Some(1), ..hint(rig.cx.now, 800e6) };
        rig.control.on_radio(&rig.cx, &mut rig.w, &poor);
        assert_eq!(rig.ack(20), 1174);
    }

    #[test]
    fn a_loss_changes_nothing_and_the_first_ack_after_a_timeout_restores_the_model() {
        let mut rig = Rig::new(800e6);
        assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &loss()), LossResponse::Own);
        assert_eq!(rig.w.cwnd as u64, 1381);
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &timeout), LossResponse::Own);
        assert_eq!(rig.w.cwnd, 1.0);
        assert_eq!(rig.ack(20), 1381);
    }

    #[test]
    fn stale_information_leaves_the_window_to_cubic_until_ten_fresh_hints() {
        let mut rig = Rig::new(800e6);
        rig.cx.now += MS * 101;
        let before = rig.w.cwnd;
        rig.ack(20);
        assert_eq!(rig.control.mode, Mode::Plain);
        assert!(rig.w.cwnd >= before && !rig.control.owns_recovery());
        rig.grants(400e6, 9);
        assert_eq!(rig.control.mode, Mode::Plain);
        rig.grants(400e6, 1);
        assert_eq!(rig.control.mode, Mode::Model);
    }
}
