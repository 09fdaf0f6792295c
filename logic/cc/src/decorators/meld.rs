//! MELD: notifies a loss-based control only of losses that congestion explains, judged by reports of the base station.
//!
//! Source: Diarra 2022, chapter 4 ("the thesis"); Diarra, Turletti, Dabbous and Ismail, "Cross-layer Loss Discrimination
//! Algorithms for MEC in 4G networks", equations 1 and 2 and Algorithm 1 ("the paper").
//!
//! A decorator over any [`LossBased`] control, its parent, on a server that sends to a mobile user. For each loss event:
//! * condition 4.1: the user's transport block is at least `S_TB = T_PDU / N_HARQ`, so that the packet fits into one round
//!   of HARQ. If not, the radio is bad and the parent is notified.
//! * condition 4.2, MELD-ME only: the user's queue is below `Q_th = S_TBm N_HARQ`, with the block `S_TBm` that its PRBs would
//!   carry at CQI 15. If not, there is a standing queue and the parent is notified.
//! * Otherwise the loss is **silent**: the lost packets are retransmitted, while window, threshold, growth and the parent's
//!   own state continue as if nothing had been lost ([`LossResponse::Ignore`]).
//!
//! MELD-DE (download enhancement) applies only the first condition, MELD-ME (mixed flows) both.
//!
//! State: the newest report (for `radio_at=loss` the newest 256), the reporting period, whether the episode is silent, the
//! window before a silent timeout, the packets delivered and lost as of one RTT ago (for a guard), and counters.
//!
//! Ours, where the sources differ or are silent:
//! * One decision per detection pass (an ACK, or a timer that fired) covers all packets declared lost in it, by the largest
//!   of them. The thesis decides per loss event, the authors' code per packet.
//! * `T_PDU` is the IP packet's actual size; the texts use 1440 and 1460 B.
//! * `D_TBS` is the largest block of the report's period, which is at least 8 TTIs: a user that is not scheduled in the TTI
//!   of the loss is not thereby in bad radio.
//! * A report without a block takes that of the newest report of the same cell that has one, if that is not too old itself. A
//!   flow whose window does not fill the pipe pauses in each RTT and is often not scheduled when its loss is detected;
//!   without this rule its window would stay small and its pauses long. `tbs=period` follows the texts: such a loss is
//!   notified.
//! * The parent is notified if there is no report, or only one older than `max_age`; and of marks, and of a second timeout
//!   without an ACK in between.
//! * After a silent timeout the first segment is retransmitted, and slow start leads back to the previous window
//!   (`rto=keep_ssthresh`), or the window is restored with the first ACK and paced over an RTT (`rto=full`).
//! * Guards (`guard`): the parent is notified of losses during a handover, of many in an RTT ([`decision::is_heavy`]), and of
//!   losses while the buffer is nearly full ([`decision::is_near_overflow`]).

pub mod decision;

use std::collections::VecDeque;

use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate, Span, Time};

use self::decision::{
    Limits, QueueFactor, Reason, Verdict, best_block, block_limit, is_heavy, is_near_overflow, max_age,
};
use super::hidden::HiddenEpisode;
use crate::entry::Decorator;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Pacing, RadioHint, Sample, Signal,
    State, View, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// MELD-DE, as `ranpace list cc` shows it.
pub const DE: Decorator = Decorator {
    name: "meld-de",
    about: "hides losses in good radio: goodput, whatever the delay",
    source: "Diarra 2022, chapter 4",
    options: &[N_HARQ, T_PDU, TBS, MAX_AGE, RTO, RADIO_AT, GUARDS],
    wrap: |inner, options| wrap(inner, options, Variant::Download),
};

/// MELD-ME, as `ranpace list cc` shows it.
pub const ME: Decorator = Decorator {
    name: "meld-me",
    about: "hides losses in good radio without a queue",
    source: "Diarra 2022, chapter 4",
    options: &[Q_TH, N_HARQ, T_PDU, TBS, MAX_AGE, RTO, RADIO_AT, GUARDS],
    wrap: |inner, options| wrap(inner, options, Variant::Mixed),
};

const Q_TH: OptionInfo = OptionInfo {
    key: "q_th",
    values: "formula, or a multiple of it such as x8",
    about: "queue that is taken for congestion",
};
const N_HARQ: OptionInfo =
    OptionInfo { key: "n_harq", values: "0 to 32 (0: the cell's)", about: "HARQ processes of a user" };
const T_PDU: OptionInfo = OptionInfo {
    key: "t_pdu",
    values: "a size (0B: the IP packet that was lost)",
    about: "size that has to fit into a round of HARQ",
};
const TBS: OptionInfo =
    OptionInfo { key: "tbs", values: "held, period", about: "block of a user who was just not scheduled" };
const MAX_AGE: OptionInfo = OptionInfo {
    key: "max_age",
    values: "a time (0s: three periods, at least 50ms)",
    about: "age at which a report is not used any more",
};
const RTO: OptionInfo =
    OptionInfo { key: "rto", values: "keep_ssthresh, full", about: "window after a silent timeout" };
const RADIO_AT: OptionInfo =
    OptionInfo { key: "radio_at", values: "detect, loss", about: "of which moment the report is" };
const GUARDS: OptionInfo =
    OptionInfo { key: "guard", values: "on, off", about: "notify in handovers, heavy loss and overflow" };

fn wrap(
    inner: Box<dyn LossBased>,
    options: &mut Options,
    variant: Variant,
) -> Result<Box<dyn LossBased>, OptionError> {
    Ok(Box::new(Meld::new(inner, read_params(options, variant)?)))
}

/// Reads the options of [`DE`] or [`ME`].
///
/// # Errors
///
/// Fails if an option has an invalid value.
pub fn read_params(options: &mut Options, variant: Variant) -> Result<Params, OptionError> {
    let base = Params::new(variant);
    let queue_factor = match variant {
        Variant::Download => base.queue_factor,
        Variant::Mixed => {
            options.value("q_th", "formula or a multiple of it such as x8", base.queue_factor)?
        }
    };
    Ok(Params {
        variant,
        queue_factor,
        harq_processes: options.number("n_harq", 0.0, 32.0, 0.0)? as u64,
        packet: options.bytes("t_pdu", base.packet)?,
        hold_block: options.choice("tbs", &[("held", true), ("period", false)])?,
        max_age: options.span("max_age", base.max_age)?,
        full_after_timeout: options.choice("rto", &[("keep_ssthresh", false), ("full", true)])?,
        radio_at_loss: options.choice("radio_at", &[("detect", false), ("loss", true)])?,
        guards: options.flag("guard", base.guards)?,
    })
}

/// The losses that are attributed to congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// MELD-DE: losses in bad radio.
    Download,
    /// MELD-ME: also losses while there is a standing queue.
    Mixed,
}

/// User-configurable parameters; the module documentation explains each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The losses that are attributed to congestion.
    pub variant: Variant,
    /// Q_th over its formula.
    pub queue_factor: QueueFactor,
    /// N_HARQ; zero for the cell's value.
    pub harq_processes: u64,
    /// T_PDU; zero for the size of the lost IP packet.
    pub packet: Bytes,
    /// Whether the newest known block replaces a missing one, up to the maximum age of a report.
    pub hold_block: bool,
    /// Oldest report that is used; zero for [`max_age`] of the reporting period.
    pub max_age: Span,
    /// Whether the first ACK after a silent timeout restores the whole window.
    pub full_after_timeout: bool,
    /// Whether to use the report nearest to the loss instead of the newest at its detection.
    pub radio_at_loss: bool,
    /// Whether the guards are enabled.
    pub guards: bool,
}

impl Params {
    /// The defaults of a variant.
    pub const fn new(variant: Variant) -> Self {
        Self {
            variant,
            queue_factor: QueueFactor::FORMULA,
            harq_processes: 0,
            packet: Bytes::ZERO,
            hold_block: true,
            max_age: Span::ZERO,
            full_after_timeout: false,
            radio_at_loss: false,
            guards: true,
        }
    }
}

/// The user's radio reports.
#[derive(Clone, Debug, Default)]
struct RadioView {
    /// Reports by measurement time, the newest last; only one unless past reports are needed.
    reports: VecDeque<RadioHint>,
    /// The newest report with a block.
    scheduled: Option<RadioHint>,
    /// Intervals between the newest report and the two before it.
    gaps: [Option<Span>; 2],
}

/// Reports kept when past ones are needed; specification, section 5.2.
const RING: usize = 256;

impl RadioView {
    fn note(&mut self, now: Time, hint: &RadioHint, keep: usize) {
        // Nothing is measured after it was reported: with a foreign clock, age counts from the arrival.
        let hint = RadioHint { measured_at: hint.measured_at.min(now), ..*hint };
        if let Some(newest) = self.reports.back() {
            if hint.measured_at < newest.measured_at {
                return; // reordered on the way
            }
            self.gaps = [Some(hint.measured_at - newest.measured_at), self.gaps[0]];
        }
        if hint.tbs_bits.is_some() {
            self.scheduled = Some(hint);
        }
        while self.reports.len() >= keep {
            self.reports.pop_front();
        }
        self.reports.push_back(hint);
    }

    /// The reporting period: the shorter of the last two intervals, so that a pause of the feed does not count as one.
    fn period(&self) -> Span {
        let [last, before] = self.gaps;
        last.map_or(Span::ZERO, |last| before.map_or(last, |before| last.min(before)))
    }

    fn newest(&self) -> Option<&RadioHint> {
        self.reports.back()
    }

    /// The report that was measured nearest to `at`.
    fn nearest(&self, at: Time) -> Option<&RadioHint> {
        let after = self.reports.partition_point(|hint| hint.measured_at < at);
        let (later, earlier) = (self.reports.get(after), after.checked_sub(1).map(|i| &self.reports[i]));
        match (earlier, later) {
            (Some(earlier), Some(later)) => {
                let is_earlier_nearer = at - earlier.measured_at <= later.measured_at - at;
                Some(if is_earlier_nearer { earlier } else { later })
            }
            (earlier, later) => earlier.or(later),
        }
    }
}

/// Counts of a connection at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Time,
    delivered: u64,
    lost: u64,
}

/// Counts of decisions, and extremes for checking a trace.
#[derive(Clone, Copy, Debug, Default)]
struct Decisions {
    silent: u64,
    notified: [u64; Reason::ALL.len()],
    silent_packets: u64,
    silent_timeouts: u64,
    /// Longest queue at a silent loss and largest block at a notified one, among the losses decided by the radio.
    longest_hidden_queue: Bytes,
    largest_told_block: Bytes,
}

/// A parent control with MELD in front.
#[derive(Debug)]
pub struct Meld {
    inner: Box<dyn LossBased>,
    params: Params,
    radio: RadioView,
    /// Cached S_TBm of the last cell, PRBs and layers.
    best: Option<((CellInfo, u16, u8), Bytes)>,
    /// Whether the episode is silent.
    episode: HiddenEpisode,
    /// The window before a silent timeout, until recovery ends.
    before_timeout: Option<f64>,
    /// The window that the next ACK restores (`rto=full`).
    restore: Option<f64>,
    /// Until when the restored window is paced, and the previous pacing.
    paced: Option<(Time, Pacing)>,
    /// Counts at the start of the current RTT and of the previous one.
    rounds: [Mark; 2],
    decisions: Decisions,
}

impl Meld {
    /// Puts MELD in front of `inner`.
    pub fn new(inner: Box<dyn LossBased>, params: Params) -> Self {
        Self {
            inner,
            params,
            radio: RadioView::default(),
            best: None,
            episode: HiddenEpisode::default(),
            before_timeout: None,
            restore: None,
            paced: None,
            rounds: [Mark::default(); 2],
            decisions: Decisions::default(),
        }
    }

    /// The thresholds for a loss of this size, if there is a report.
    #[cfg(test)]
    fn limits(&mut self, cx: &Context, largest: Bytes) -> Option<Limits> {
        let hint = *self.radio.newest()?;
        Some(self.limits_by(&hint, self.packet(cx, largest)))
    }

    /// T_PDU: the size of the IP packet with this payload.
    fn packet(&self, cx: &Context, payload: Bytes) -> Bytes {
        if self.params.packet.is_zero() { payload + (cx.wire - cx.mss) } else { self.params.packet }
    }

    fn limits_by(&mut self, hint: &RadioHint, packet: Bytes) -> Limits {
        let processes = match self.params.harq_processes {
            0 => u64::from(hint.info.harq_processes.downlink),
            number => number,
        };
        let queue = match self.params.variant {
            Variant::Download => None,
            Variant::Mixed => {
                let key = (hint.info, hint.most_granted, hint.layers);
                let best = match self.best {
                    Some((known, best)) if known == key => best,
                    _ => best_block(hint),
                };
                self.best = Some((key, best));
                Some((best * processes).mul_f64(self.params.queue_factor.0))
            }
        };
        Limits { block: block_limit(packet, processes), queue }
    }

    /// Decides whether the parent is notified.
    fn judge(&mut self, cx: &Context, event: &Congestion) -> Verdict {
        match event.kind {
            Signal::Ecn => return Verdict::Notify(Reason::Mark),
            Signal::Timeout { count } if count > 1 => return Verdict::Notify(Reason::TimeoutAgain),
            Signal::Timeout { .. } | Signal::Loss => {}
        }
        // Estimated time of the loss: half an RTT after sending, for a symmetric path. Unknown for losses reported earlier.
        let lost_at = (self.params.radio_at_loss && event.lost > 0 && cx.min_rtt != Span::MAX)
            .then(|| event.newest_sent_at + cx.min_rtt / 2);
        let (hint, age) = match lost_at {
            None => match self.radio.newest() {
                Some(hint) => (*hint, cx.now - hint.measured_at),
                None => return Verdict::Notify(Reason::Unknown),
            },
            Some(at) => match self.radio.nearest(at) {
                Some(hint) => (*hint, at.since(hint.measured_at).max(hint.measured_at.since(at))),
                None => return Verdict::Notify(Reason::Unknown),
            },
        };
        let oldest =
            if self.params.max_age.is_zero() { max_age(self.radio.period()) } else { self.params.max_age };
        if age > oldest {
            return Verdict::Notify(Reason::Stale);
        }
        let hint = self.with_block(cx.now, hint, oldest);
        let Some(block) = hint.tbs_bits.map(|bits| Bytes::new(u64::from(bits / 8))) else {
            return Verdict::Notify(Reason::Unknown);
        };
        let packet = self.packet(cx, event.largest);
        let verdict = match self.limits_by(&hint, packet).judge(block, hint.queue) {
            Verdict::Hide => self.guard(cx, &hint, block, packet).map_or(Verdict::Hide, Verdict::Notify),
            notify => notify,
        };
        let decisions = &mut self.decisions;
        if verdict == Verdict::Hide {
            decisions.longest_hidden_queue = decisions.longest_hidden_queue.max(hint.queue);
        } else {
            decisions.largest_told_block = decisions.largest_told_block.max(block);
        }
        verdict
    }

    /// The report, supplemented with the block and grants of the newest one that has some, if that is enabled, not too old
    /// and of the same cell: another cell's radio is not informative.
    fn with_block(&self, now: Time, hint: RadioHint, oldest: Span) -> RadioHint {
        match &self.radio.scheduled {
            Some(last) if self.params.hold_block && hint.tbs_bits.is_none() => {
                let is_fresh = now - last.measured_at <= oldest;
                let of_cell = |hint: &RadioHint| (hint.info.technology, hint.info.cell);
                let is_of_this_cell = of_cell(last) == of_cell(&hint);
                let (most_granted, layers) = (last.most_granted, last.layers);
                let held = RadioHint { tbs_bits: last.tbs_bits, most_granted, layers, ..hint };
                if is_fresh && is_of_this_cell { held } else { hint }
            }
            _ => hint,
        }
    }

    /// Applies the guards.
    fn guard(&self, cx: &Context, hint: &RadioHint, block: Bytes, packet: Bytes) -> Option<Reason> {
        if !self.params.guards {
            return None;
        }
        let [_, since] = self.rounds;
        let (lost, delivered) =
            (cx.lost.saturating_sub(since.lost), cx.delivered.saturating_sub(since.delivered));
        if hint.handover {
            Some(Reason::Handover)
        } else if is_heavy(lost, delivered, block, packet) {
            Some(Reason::ManyLost)
        } else if hint.queue_limit.is_some_and(|limit| is_near_overflow(hint.queue, limit)) {
            Some(Reason::NearOverflow)
        } else {
            None
        }
    }

    fn hide(&mut self, cx: &Context, w: &Window, event: &Congestion) -> LossResponse {
        self.decisions.silent += 1;
        self.decisions.silent_packets += event.lost;
        if let Signal::Timeout { .. } = event.kind {
            self.decisions.silent_timeouts += 1;
            // While PRR is active, the window is on its way down to the threshold.
            let is_reduced = !self.episode.is_hidden() && matches!(cx.state, State::Recovery | State::Cwr);
            let before = if is_reduced { w.ssthresh } else { w.cwnd };
            self.before_timeout = Some(before);
            self.restore = self.params.full_after_timeout.then_some(before);
        }
        self.episode.hide(event);
        LossResponse::Ignore
    }

    fn notify(&mut self, cx: &Context, w: &mut Window, event: &Congestion, reason: Reason) -> LossResponse {
        self.decisions.notified[reason as usize] += 1;
        self.restore = None;
        let answer = match (event.kind, self.before_timeout) {
            // The endpoint has cut the window meanwhile, unknown to the parent.
            (Signal::Timeout { .. }, Some(before)) => {
                let mut shown = Window { cwnd: before.max(w.cwnd), ..*w };
                self.inner.on_congestion(cx, &mut shown, event)
            }
            _ => self.inner.on_congestion(cx, w, event),
        };
        self.episode.notify(event);
        if event.first {
            self.before_timeout = None;
        }
        answer
    }

    /// `rto=full`: restores the window and paces it over an RTT.
    fn bring_back(&mut self, cx: &Context, w: &mut Window) {
        if let Some(before) = self.restore.take() {
            w.cwnd = w.cwnd.max(before);
            if !cx.srtt.is_zero() {
                let own = self.paced.map_or(w.pacing, |(_, own)| own);
                self.paced = Some((cx.now + cx.srtt, own));
                w.pacing = Pacing::Rate(Rate::of(cx.wire.mul_f64(w.cwnd), cx.srtt));
            }
        } else if let Some((until, own)) = self.paced
            && cx.now >= until
        {
            w.pacing = own;
            self.paced = None;
        }
    }
}

impl CongestionControl for Meld {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.inner.as_mut())
    }

    fn view<'a>(&'a mut self, cx: &'a Context, w: &'a mut Window) -> Option<View<'a>> {
        Some(View { control: self.inner.as_mut(), cx: self.episode.lend(cx), window: w })
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.rounds = [Mark { at: cx.now, delivered: cx.delivered, lost: cx.lost }; 2];
        self.inner.on_start(cx, w);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        let [this, _] = self.rounds;
        if cx.now - this.at >= cx.srtt {
            self.rounds = [Mark { at: cx.now, delivered: cx.delivered, lost: cx.lost }, this];
        }
        self.inner.on_sample(&self.episode.shown(cx), w, sample);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        match self.judge(cx, event) {
            Verdict::Hide => self.hide(cx, w, event),
            Verdict::Notify(reason) => self.notify(cx, w, event, reason),
        }
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.inner.on_ack(&self.episode.shown(cx), w, ack);
        if self.restore.is_some() || self.paced.is_some() {
            self.bring_back(cx, w);
        }
    }

    /// The parent is not notified if it did not know of the episode.
    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.before_timeout = None;
        if !self.episode.end() {
            self.inner.on_recovered(cx, w);
        }
    }

    /// Ours: reports are discarded, since they are of the old cell.
    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.radio = RadioView::default();
        self.inner.on_path_change(&self.episode.shown(cx), w);
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.radio.note(cx.now, hint, if self.params.radio_at_loss { RING } else { 1 });
        self.inner.on_radio(&self.episode.shown(cx), w, hint);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let d = &self.decisions;
        show("meld_silent", d.silent as f64);
        show("meld_silent_packets", d.silent_packets as f64);
        show("meld_silent_timeouts", d.silent_timeouts as f64);
        show("meld_notified", d.notified.iter().sum::<u64>() as f64);
        for reason in Reason::ALL {
            show(reason.counter(), d.notified[reason as usize] as f64);
        }
        show("meld_longest_hidden_queue_bytes", d.longest_hidden_queue.as_f64());
        show("meld_largest_told_block_bytes", d.largest_told_block.as_f64());
        self.inner.inspect(show);
    }
}

impl LossBased for Meld {
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64 {
        self.inner.recalc_ssthresh(&self.episode.shown(cx), w)
    }

    fn parent(&self) -> Option<&dyn LossBased> {
        Some(self.inner.as_ref())
    }
}

#[cfg(test)]
mod tests;
