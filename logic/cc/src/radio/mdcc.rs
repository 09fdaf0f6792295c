//! Multi-Domain congestion control: one window for the wired part of the path and one for the radio, each with its own
//! control, RTT and losses. The smaller of the two limits the data in flight.
//!
//! Source: Krämer, Molnár, Solymos and Mihály, "On the Benefits of Multi-Domain Congestion Control in LTE Networks", sections
//! II-C, III and V. The design that they refer to (Krämer et al., WCNC 2019) was otherwise not available.
//!
//! State: [`Wired`], which is CUBIC, clocked by the acknowledgements of a Lightweight PEP at the edge of the radio network;
//! [`Radio`], which is Scalable TCP with `a = 0.1`, clocked by the receiver's acknowledgements; the packets that the PEP has
//! seen ([`Ledger`]); and whether there is a PEP at all ([`Mode`]).
//!
//! * `W = min(W_i, W_r)`, section II-C.
//! * `W_i`: slow start and CUBIC on packets newly seen by the PEP, with the RTT to the PEP; HyStart uses that RTT only
//!   (section V). A packet that the receiver acknowledges counts as seen by the PEP.
//! * `W_r += a n` for `n` segments that the receiver acknowledges, `a = 0.1` (section III); `W_r -= W_r / 8` on a loss
//!   (Kelly). Taken literally, the section's "after each received ACK" means `W_r += a` whatever the ACK covers: option
//!   [`Count::Acks`].
//!
//! Ours, where the source is silent:
//! * Attribution of losses: a packet that the PEP has not seen, although it saw later ones, was lost on the wired part; one
//!   that it saw was lost on the radio; without evidence both windows respond, each at most once per its round. A
//!   retransmission that is lost again is attributed to the domain of the last loss, since a PEP cannot tell it from the
//!   original by its sequence number.
//! * A reduction starts from the effective window `W`, even if the reduced window was larger and did not bind.
//! * A window grows only while `W` limits the flow, and not beyond `2 W`; otherwise the one that does not bind would grow
//!   without bound. CUBIC's clock keeps running meanwhile.
//! * HyStart++ runs on the PEP's reports because it looks at delays only: reports cover eight packets each or come every
//!   2 ms, and form no ACK trains.
//! * Start ([`Start`]): with `open_ran`, the default, the radio's window is a large constant until its first loss.
//! * Without a PEP, or when it falls silent or contradicts the receiver, CUBIC runs alone as in Linux, with PRR and its own
//!   HyStart, and sets the endpoint's window itself, starting from the effective window. Every event that lowers `W_i` must
//!   be confirmed by the receiver: a gap as a loss, a delay that ends slow start as a delay ([`Claim`]).
//! * With both windows in use, neither grows before a packet sent after its last reduction has been acknowledged; there is no
//!   PRR.
//! * Two settings of the specification are off by default: retransmitting a packet that the PEP has not seen a quarter of the
//!   RTT to the PEP after it was due (`early_retransmit`), and bounding the open radio's window by what the PEP passes
//!   (`start_cap`).

mod claim;
mod ledger;
mod opening;
mod settings;
#[cfg(test)]
mod tests;

use ranpace_units::{Span, Time};

use self::claim::{Claim, Verdict};
pub use self::ledger::{Domain, Ledger};
use self::opening::Delivery;
pub use self::settings::{Count, ENTRY, Settings, Start, read_settings};
use crate::classic::cubic::{LinuxCubic, Params};
use crate::classic::hystart;
pub use crate::classic::hystart::Kind as SlowStartEnd;
use crate::classic::newreno::MIN_SSTHRESH;
use crate::classic::scalable;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Packet, PacketOutcome, PepReport,
    Sample, Sent, Signal, State, Window,
};
use crate::round::Round;

/// CUBIC runs alone after a silence of the PEP of this many RTTs to it, or of [`Settings::silence`] if that is longer. Ours.
const SILENT_RTTS: u64 = 3;
/// Consecutive messages after which a PEP is used again. Ours.
const RETURN_AFTER: u32 = 16;
/// A PEP that contradicted the receiver is ignored for this long, and after a false gap its gaps are for as long. Ours.
const DISTRUST: Span = Span::from_secs(60);
/// Rounds in which a loss is attributed to the radio while the RTT to the PEP shows a queue before the PEP, until the
/// attribution is no longer believed. Ours.
const SUSPICIOUS_ROUNDS: u32 = 5;
/// Rounds after which packets reported missing are checked against those that arrived after all. Ours.
const JUDGED_ROUNDS: u32 = 10;
/// Least margin of the retransmission timeout beyond the RTT (Linux `TCP_RTO_MIN`).
const MIN_TIMEOUT: Span = Span::from_millis(200);
/// Reordering margin as a fraction of the RTT to the PEP: a packet not reported by that RTT plus a quarter is retransmitted
/// on the PEP's word. Ours.
const REORDERING: u64 = 4;
/// Segments of a report that count as one acknowledgement in slow start: the most that HyStart++ counts for one (RFC 9406,
/// L).
const PART: u64 = 8;
/// Rise of the RTT to the PEP up to which there is no queue: an eighth, within these bounds (as in HyStart, RFC 9406).
const RISE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));

/// The controls in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// CUBIC alone: there is no PEP, or no reliable one.
    Alone,
    /// Both windows.
    Both,
}

/// The wired part of the path, before the PEP.
#[derive(Clone, Debug)]
struct Wired {
    cubic: LinuxCubic,
    /// While CUBIC runs alone, a copy of the endpoint's window.
    window: Window,
    /// Smoothed and smallest RTT to the PEP.
    srtt: Span,
    min_rtt: Span,
    /// Only packets from this number on reflect the window after its last reduction.
    since: u64,
    /// State to undo the last reduction: CUBIC and the window before it, and the packet whose report caused it, if one did.
    undo: Option<Box<(LinuxCubic, Window, Option<u64>)>>,
}

/// The radio part of the path, behind the PEP.
#[derive(Clone, Debug)]
struct Radio {
    window: Window,
    since: u64,
    undo: Option<Window>,
}

/// Packets covered by an acknowledgement, counted per window if sent after its last reduction.
#[derive(Clone, Copy, Debug, Default)]
struct Acked {
    radio: u64,
    wired: u64,
    /// Packets, of those for the wired window, that the PEP had not reported.
    unreported: u64,
}

/// Evidence against the PEP.
#[derive(Clone, Copy, Debug, Default)]
struct PepEvidence {
    /// Smallest RTT to the PEP in the receiver's current round.
    round_rtt: Option<Span>,
    /// A loss of this round was attributed to the radio.
    radio_loss: bool,
    suspicious: u32,
    rounds: u32,
    /// Packets that were reported missing and arrived after all; and those that were really lost.
    false_gaps: u32,
    true_gaps: u32,
}

/// The control.
#[derive(Clone, Debug)]
pub struct Mdcc {
    settings: Settings,
    mode: Mode,
    wired: Wired,
    radio: Radio,
    ledger: Ledger,
    round: Round,
    evidence: PepEvidence,
    started: bool,
    /// Congestion has occurred.
    met: bool,
    /// Consecutive messages of the PEP.
    messages: u32,
    last_message: Option<Time>,
    /// When the first packet was sent that the receiver acknowledged without the PEP having seen it since its last message; later by the
    /// idle time since then.
    unseen_since: Option<Time>,
    distrusted_until: Time,
    /// Until then nothing is retransmitted on the PEP's word: a packet was, and had not been missing.
    gaps_distrusted_until: Time,
    /// For the report being processed: newly seen packets that count for growth, and the first missing one.
    newly_seen: u64,
    newly_missing: Option<u64>,
    /// Packets counted for the acknowledgement being processed.
    acked: Acked,
    /// For the losses being processed: how many were reported, and which windows must respond.
    told: u64,
    lost: [bool; 2],
    /// Initial window of the flow.
    initial: f64,
    /// Marks that the PEP has counted, and how many of them have been answered.
    marks: Option<(u64, u64)>,
    /// The bytes that the PEP passes while the radio's window is open, for `start_cap`.
    delivery: Delivery,
    /// Set while the PEP's delays have ended slow start and the receiver has neither confirmed nor contradicted that.
    claim: Option<Box<Claim>>,
    verdict: Option<Verdict>,
    fallbacks: u32,
}

impl Mdcc {
    /// Creates a control.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            mode: Mode::Alone,
            wired: Wired {
                cubic: LinuxCubic::new(Params::LINUX, settings.hystart),
                window: Window::new(MIN_SSTHRESH),
                srtt: Span::ZERO,
                min_rtt: Span::MAX,
                since: 0,
                undo: None,
            },
            radio: Radio { window: Window::new(MIN_SSTHRESH), since: 0, undo: None },
            ledger: Ledger::default(),
            round: Round::new(),
            evidence: PepEvidence::default(),
            started: false,
            met: false,
            messages: 0,
            last_message: None,
            unseen_since: None,
            distrusted_until: Time::ZERO,
            gaps_distrusted_until: Time::ZERO,
            newly_seen: 0,
            newly_missing: None,
            acked: Acked::default(),
            told: 0,
            lost: [false; 2],
            initial: MIN_SSTHRESH,
            marks: None,
            delivery: Delivery::default(),
            claim: None,
            verdict: None,
            fallbacks: 0,
        }
    }

    /// `W`, in segments.
    fn effective(&self) -> f64 {
        match self.mode {
            Mode::Alone => self.wired.window.cwnd,
            Mode::Both => self.wired.window.cwnd.min(self.radio.window.cwnd),
        }
    }

    /// Publishes the smaller window to the endpoint.
    fn show(&self, w: &mut Window) {
        let radio_binds = self.mode == Mode::Both && self.radio.window.cwnd < self.wired.window.cwnd;
        let binding = if radio_binds { &self.radio.window } else { &self.wired.window };
        w.cwnd = binding.cwnd.max(1.0);
        w.ssthresh = binding.ssthresh;
    }

    /// The connection as the wired CUBIC sees it: with the RTT to the PEP, and only the packets on their way to the PEP in
    /// flight.
    fn wired_context(&self, cx: &Context) -> Context {
        Context { srtt: self.wired.srtt, min_rtt: self.wired.min_rtt, in_flight: self.ledger.unseen(), ..*cx }
    }

    /// HyStart for slow start clocked by the receiver's acknowledgements: Linux's, unless it is switched off.
    fn hystart_alone(&self) -> hystart::Kind {
        match self.settings.hystart {
            hystart::Kind::Off => hystart::Kind::Off,
            hystart::Kind::Classic | hystart::Kind::PlusPlus | hystart::Kind::Ns3 => hystart::Kind::Classic,
        }
    }

    /// Slow start or CUBIC, by `acked` segments. A window that does not bind stops at `growth_cap` times the one that does;
    /// CUBIC's clock keeps running.
    fn grow_wired(&mut self, cx: &Context, acked: u64, rtt: Option<Span>) {
        if acked == 0 {
            return;
        }
        let cx = self.wired_context(cx);
        let cap = (self.settings.growth_cap * self.effective()).max(self.wired.window.cwnd);
        let mut left = acked;
        while left > 0 {
            // In slow start a report grows the window by everything that it covers: it stands for several acknowledgements,
            // and HyStart++ would limit each of them to a few segments.
            let part = if self.wired.window.in_slow_start() { left.min(PART) } else { left };
            left -= part;
            let ack = Ack {
                acked: part,
                delivered: part,
                bytes: cx.mss * part,
                rtt,
                rate: Default::default(),
                prior_in_flight: cx.in_flight,
                ecn_echo: false,
                marked: 0,
                braked: 0,
            };
            self.wired.cubic.on_ack(&cx, &mut self.wired.window, &ack);
        }
        self.wired.window.cwnd = self.wired.window.cwnd.min(cap);
    }

    /// Slow start, or `W_r += a n` (section III).
    fn grow_radio(&mut self, cx: &Context, acked: u64) {
        if acked == 0 || !cx.cwnd_limited || self.is_open() {
            return;
        }
        let cap = (self.settings.growth_cap * self.effective()).max(self.radio.window.cwnd);
        let w = &mut self.radio.window;
        let left = if w.in_slow_start() { w.slow_start(acked as f64) } else { acked as f64 };
        if left > 0.0 {
            let counted = if self.settings.count == Count::Acks { left.min(1.0) } else { left };
            scalable::avoid_congestion(w, counted, self.settings.a);
        }
        w.cwnd = w.cwnd.min(cap);
    }

    /// Returns whether the radio's window is still open: no loss has set its threshold yet.
    fn is_open(&self) -> bool {
        self.settings.start == Start::OpenRan && self.radio.window.ssthresh.is_infinite()
    }

    /// Bounds the open radio's window by what the PEP passes.
    fn bound_opening(&mut self, cx: &Context, seen: u64) {
        self.delivery.on_report(cx.now, seen, cx.min_rtt, cx.cwnd_limited);
        if let Some(segments) = self.delivery.per_rtt() {
            let most = self.settings.bound.as_f64() / cx.mss.as_f64();
            self.radio.window.cwnd = (self.settings.start_cap * segments).min(most).max(self.initial);
        }
    }

    /// Returns whether both windows grow together: before the first congestion, with [`Start::Coupled`].
    fn is_coupled(&self) -> bool {
        self.settings.start == Start::Coupled && self.mode == Mode::Both && !self.met
    }

    /// CUBIC's reduction of `W_i`, from `at`. `gap` is the packet that the PEP missed, if that caused it.
    fn reduce_wired(&mut self, cx: &Context, at: f64, gap: Option<u64>) {
        let inner = self.wired_context(cx);
        let before = (self.wired.cubic.clone(), self.wired.window, gap);
        let at = Window { cwnd: at, ..self.wired.window };
        let ssthresh = self.wired.cubic.recalc_ssthresh(&inner, &at);
        self.wired.window = Window { cwnd: ssthresh, ssthresh, ..at };
        self.wired.since = cx.next_packet;
        self.wired.undo = Some(Box::new(before));
        self.met = true;
    }

    /// Scalable's reduction of `W_r`, from `at`.
    fn reduce_radio(&mut self, cx: &Context, at: f64) {
        self.radio.undo = Some(self.radio.window);
        let kept = (at - at * self.settings.b).max(MIN_SSTHRESH);
        self.radio.window = Window { cwnd: kept, ssthresh: kept, ..self.radio.window };
        self.radio.since = cx.next_packet;
        self.met = true;
    }

    /// Reduces the windows that must respond, from the effective window.
    fn reduce(&mut self, cx: &Context, [wired, radio]: [bool; 2]) {
        let at = self.effective();
        if wired {
            self.reduce_wired(cx, at, None);
        }
        if radio {
            self.reduce_radio(cx, at);
        }
    }

    /// A timeout: both windows restart from the minimum, in slow start up to what they would have been reduced to.
    fn time_out(&mut self, cx: &Context, event: &Congestion) {
        let inner = self.wired_context(cx);
        let at = self.effective();
        if event.first {
            self.wired.undo = Some(Box::new((self.wired.cubic.clone(), self.wired.window, None)));
            self.radio.undo = Some(self.radio.window);
            let mut view = Window { cwnd: at, ..self.wired.window };
            if let LossResponse::ReduceTo(ssthresh) = self.wired.cubic.on_congestion(&inner, &mut view, event)
            {
                self.wired.window.ssthresh = ssthresh;
            }
            self.radio.window.ssthresh = (at - at * self.settings.b).max(MIN_SSTHRESH);
        }
        self.claim = None;
        self.wired.window.cwnd = MIN_SSTHRESH;
        self.radio.window.cwnd = MIN_SSTHRESH;
        self.wired.since = cx.next_packet;
        self.radio.since = cx.next_packet;
        self.met = true;
    }

    /// Undoes the last reductions.
    fn undo(&mut self) {
        self.undo_wired();
        if let Some(before) = self.radio.undo.take() {
            let w = &mut self.radio.window;
            w.cwnd = w.cwnd.max(before.cwnd);
            w.ssthresh = w.ssthresh.max(before.ssthresh);
        }
    }

    fn undo_wired(&mut self) {
        if let Some(before) = self.wired.undo.take() {
            let (cubic, window, _) = *before;
            let w = &mut self.wired.window;
            if window.cwnd > w.cwnd {
                self.wired.cubic = cubic;
            }
            w.cwnd = w.cwnd.max(window.cwnd);
            w.ssthresh = w.ssthresh.max(window.ssthresh);
        }
    }

    /// Continues with CUBIC alone from the current window. The RTTs to the PEP do not apply to it.
    fn fall_back(&mut self, cx: &Context) {
        if self.mode == Mode::Alone {
            return;
        }
        self.wired.window.cwnd = self.effective();
        if self.radio.window.cwnd <= self.wired.window.cwnd {
            self.wired.window.ssthresh = self.wired.window.ssthresh.min(self.radio.window.ssthresh);
        }
        if let Some(undo) = &mut self.wired.undo {
            // An undo restores at most what was in flight, and the radio's window bounded that too.
            undo.1.cwnd = undo.1.cwnd.min(self.radio.window.cwnd);
        }
        self.mode = Mode::Alone;
        (self.claim, self.verdict) = (None, None);
        self.messages = 0;
        self.fallbacks += 1;
        self.wired.cubic.on_path_change(cx, &mut self.wired.window);
    }

    /// Starts to use the PEP.
    fn join(&mut self, cx: &Context, w: &Window) {
        self.mode = Mode::Both;
        self.wired.window = *w;
        self.wired.cubic.use_hystart(cx, self.settings.hystart);
        self.unseen_since = None;
        self.wired.srtt = Span::ZERO;
        self.wired.min_rtt = Span::MAX;
        self.evidence = PepEvidence::default();
        // CUBIC has already answered marks counted meanwhile.
        self.marks = self.marks.map(|(counted, _)| (counted, counted));
        // The effective window stays as it is: a radio window that fell behind meanwhile restarts from it.
        let w = self.wired.window.cwnd;
        if !self.is_open() && self.radio.window.cwnd < w {
            self.radio.window.cwnd = w;
            self.radio.window.ssthresh = self.radio.window.ssthresh.min(w);
        }
        self.wired.cubic.on_path_change(&self.wired_context(cx), &mut self.wired.window);
    }

    fn distrust(&mut self, cx: &Context) {
        self.distrusted_until = cx.now + DISTRUST;
        self.fall_back(cx);
    }

    fn sample_wired(&mut self, cx: &Context, rtt: Span) {
        let wired = &mut self.wired;
        wired.srtt = if wired.srtt.is_zero() { rtt } else { (wired.srtt * 7 + rtt) / 8 };
        wired.min_rtt = wired.min_rtt.min(rtt);
        self.evidence.round_rtt = Some(self.evidence.round_rtt.map_or(rtt, |least| least.min(rtt)));
        let sample = Sample {
            delivered: self.newly_seen,
            bytes: cx.mss * self.newly_seen,
            rtt: Some(rtt),
            one_way: None,
            in_flight_at_send: 0,
        };
        let inner = self.wired_context(cx);
        let in_first = |window: &Window| window.ssthresh.is_infinite();
        let before = in_first(&self.wired.window).then(|| (self.wired.cubic.clone(), self.wired.window));
        self.wired.cubic.on_sample(&inner, &mut self.wired.window, &sample);
        if let Some(before) = before.filter(|_| !in_first(&self.wired.window)) {
            let under_way = cx.next_packet.saturating_sub(cx.in_flight)..cx.next_packet;
            self.claim = Some(Box::new(Claim::new(before, under_way, self.wired.min_rtt)));
        }
    }

    /// Applies the receiver's verdict on the end of slow start. If the receiver saw no queue, slow start resumes, with
    /// HyStart on the receiver's own delays.
    fn settle_claim(&mut self, cx: &Context) {
        let Some(verdict) = self.verdict.take() else { return };
        let Some(claim) = self.claim.take() else { return };
        if verdict == Verdict::Contradicted && self.mode == Mode::Both {
            self.wired.cubic = claim.cubic;
            self.wired.window.ssthresh = claim.ssthresh;
            self.distrust(cx);
        }
    }

    /// At the end of a receiver's round: checks whether the PEP's reports agree with the receiver's.
    fn judge(&mut self, cx: &Context) {
        if !self.round.is_over(cx) {
            return;
        }
        self.round.restart(cx);
        let base = self.wired.min_rtt;
        let evidence = &mut self.evidence;
        if evidence.radio_loss && base != Span::MAX {
            let tolerated = (base / 8).clamp(RISE.0, RISE.1);
            let queue_before = evidence.round_rtt.is_some_and(|rtt| rtt > base + tolerated);
            evidence.suspicious = if queue_before { evidence.suspicious + 1 } else { 0 };
        }
        evidence.radio_loss = false;
        evidence.round_rtt = None;
        evidence.rounds += 1;
        let invented = evidence.rounds >= JUDGED_ROUNDS && {
            let invented = evidence.false_gaps > 0 && evidence.false_gaps >= evidence.true_gaps;
            (evidence.rounds, evidence.false_gaps, evidence.true_gaps) = (0, 0, 0);
            invented
        };
        if self.mode == Mode::Both && (invented || evidence.suspicious >= SUSPICIOUS_ROUNDS) {
            evidence.suspicious = 0;
            self.distrust(cx);
        }
    }

    /// The receiver has acknowledged a packet.
    fn on_acked(&mut self, cx: &Context, w: &mut Window, packet: &Packet, rtt: Span) {
        if let (Some(claim), None) = (&mut self.claim, self.verdict) {
            self.verdict = claim.on_acked(packet.number, rtt, cx.min_rtt);
        }
        let Some((seen, called_missing)) = self.ledger.on_acked(packet.number) else { return };
        let wired = u64::from(packet.number >= self.wired.since);
        self.acked.radio += u64::from(packet.number >= self.radio.since);
        self.acked.wired += wired;
        if !seen {
            self.acked.unreported += wired;
            self.unseen_since.get_or_insert(packet.sent_at);
        }
        if called_missing {
            self.evidence.false_gaps += 1;
            let was_cause = self.wired.undo.as_ref().is_some_and(|undo| undo.2 == Some(packet.number));
            if was_cause && self.mode == Mode::Alone {
                // The window is the endpoint's, and CUBIC has no use for the RTTs to the PEP.
                self.wired.window = *w;
                self.undo_wired();
                self.wired.cubic.on_path_change(cx, &mut self.wired.window);
                self.show(w);
            } else if was_cause {
                self.undo_wired();
            }
        }
    }

    fn on_lost(&mut self, number: u64) {
        let domain = self.ledger.on_lost(number);
        self.told += 1;
        // This loss would have ended slow start in any case.
        self.claim = None;
        let (wired, radio) = (number >= self.wired.since, number >= self.radio.since);
        match (self.mode, domain) {
            (Mode::Alone, _) => {}
            (_, Domain::Internet) => {
                // With `early_retransmit` this may rest on the PEP's word alone; a `Spurious` outcome corrects the count.
                self.evidence.true_gaps += 1;
                self.lost[0] |= wired;
            }
            (_, Domain::Radio) => {
                self.evidence.radio_loss = true;
                self.lost[1] |= radio;
            }
            (_, Domain::Unknown) => {
                self.lost[0] |= wired;
                self.lost[1] |= radio;
            }
        }
    }

    /// A mark: the PEP's count shows in which domain it was set; without a count it is attributed to the smaller window.
    fn on_mark(&mut self, cx: &Context) {
        let wired = match &mut self.marks {
            Some((counted, answered)) => {
                let before = *counted > *answered;
                *answered = *counted;
                before
            }
            None => self.wired.window.cwnd <= self.radio.window.cwnd,
        };
        let due = self.due(cx);
        let answers = [wired && due[0], !wired && due[1]];
        if answers != [false; 2] {
            self.reduce(cx, answers);
        }
    }

    /// Returns, per window, whether its last reduction is at least a round ago.
    fn due(&self, cx: &Context) -> [bool; 2] {
        let oldest = cx.next_packet.saturating_sub(cx.in_flight);
        [oldest >= self.wired.since, oldest >= self.radio.since]
    }
}

impl CongestionControl for Mdcc {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.wired.window = *w;
        self.initial = w.cwnd;
        self.started = true;
        let segments = (self.settings.bound.as_f64() / cx.mss.as_f64()).max(w.cwnd);
        self.radio.window = match self.settings.start {
            Start::OpenRan => Window { cwnd: segments, ..*w },
            Start::Literal | Start::Coupled => *w,
        };
        self.wired.cubic.on_start(cx, w);
        self.round.restart(cx);
    }

    fn on_sent(&mut self, _: &Context, _: &mut Window, sent: &Sent) {
        self.ledger.on_sent(sent.number, sent.retransmission);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if self.mode == Mode::Alone {
            self.wired.cubic.use_hystart(cx, self.hystart_alone());
            self.wired.cubic.on_sample(cx, w, sample);
        }
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        match packet.fate {
            PacketOutcome::Acked { rtt, .. } => self.on_acked(cx, w, packet, rtt),
            PacketOutcome::Seen { .. } => {
                if self.ledger.on_seen(packet.number) {
                    self.newly_seen += u64::from(packet.number >= self.wired.since);
                }
            }
            PacketOutcome::Missing => {
                if self.ledger.on_missing(packet.number) && packet.number >= self.wired.since {
                    self.newly_missing.get_or_insert(packet.number);
                }
            }
            PacketOutcome::Lost => self.on_lost(packet.number),
            // Only this outcome shows that a packet retransmitted on the PEP's word had not been missing.
            PacketOutcome::Spurious if self.settings.early_retransmit => {
                self.evidence.true_gaps = self.evidence.true_gaps.saturating_sub(1);
                self.evidence.false_gaps += 1;
                self.gaps_distrusted_until = cx.now + DISTRUST;
            }
            PacketOutcome::Spurious => {}
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let (told, answers) = (core::mem::take(&mut self.told), core::mem::take(&mut self.lost));
        if self.mode == Mode::Alone {
            self.met = true;
            // A reduction by the endpoint itself supersedes the last one.
            self.wired.undo = self.wired.undo.take().filter(|_| !event.first);
            return self.wired.cubic.on_congestion(cx, w, event);
        }
        let answers = match event.kind {
            Signal::Timeout { .. } => {
                self.time_out(cx, event);
                [false; 2]
            }
            Signal::Ecn => {
                self.on_mark(cx);
                [false; 2]
            }
            // A loss repaired by a loss probe is reported without its packet, so its domain is unknown.
            Signal::Loss if told == 0 && event.lost > 0 => self.due(cx),
            Signal::Loss => answers,
        };
        if answers != [false; 2] {
            self.reduce(cx, answers);
        }
        self.show(w);
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let Acked { radio, wired, unreported } = core::mem::take(&mut self.acked);
        // An acknowledgement that does not advance grows nothing, as in Linux.
        let most = |segments: u64| segments.min(ack.acked);
        if self.mode == Mode::Both {
            let limit = self.settings.silence.max(self.wired.srtt * SILENT_RTTS);
            let heard = self.last_message.max(self.unseen_since);
            if self.unseen_since.is_some() && heard.is_some_and(|heard| cx.now.since(heard) > limit) {
                self.fall_back(cx);
            } else {
                self.settle_claim(cx);
            }
            if self.mode == Mode::Both {
                let counts = if self.is_coupled() { wired } else { unreported };
                self.grow_wired(cx, most(counts), None);
                self.grow_radio(cx, most(radio));
                self.judge(cx);
            }
            self.show(w);
            return;
        }
        // A reduction made with both windows in use has no PRR: until its round is over only packets sent after it count.
        let acked = if self.due(cx)[0] { ack.acked } else { most(wired) };
        self.wired.cubic.on_ack(cx, w, &Ack { acked, ..*ack });
        self.wired.window = *w;
    }

    /// While losses are repaired, the PEP's reports must be able to open the window; PRR would overwrite it.
    fn owns_recovery(&self) -> bool {
        self.mode == Mode::Both
    }

    fn on_recovered(&mut self, _: &Context, _: &mut Window) {
        self.radio.undo = None;
        // A reduction made on the PEP's word alone can still turn out to be wrong.
        if self.wired.undo.as_ref().is_some_and(|undo| undo.2.is_none()) {
            self.wired.undo = None;
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.mode == Mode::Alone {
            return self.wired.cubic.on_spurious(cx, w, prior);
        }
        self.undo();
        self.show(w);
    }

    /// As in Linux, an idle time shifts the epoch; the windows, untested meanwhile, are halved per timeout. If CUBIC runs
    /// alone, the endpoint does that.
    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        // The PEP is silent only while acknowledgements arrive, so the time after the last one does not count.
        if let Some(since) = self.unseen_since {
            let silent_since = self.last_message.map_or(since, |heard| heard.max(since));
            self.unseen_since = Some((silent_since + (idle - cx.srtt)).min(cx.now));
        }
        if self.mode == Mode::Alone {
            return self.wired.cubic.on_idle_restart(cx, w, idle);
        }
        let inner = self.wired_context(cx);
        self.wired.cubic.on_idle_restart(&inner, &mut self.wired.window, idle);
        let timeout = cx.srtt + MIN_TIMEOUT;
        let mut left = idle;
        let radio = !self.is_open();
        while left > timeout && self.effective() > self.initial {
            for w in
                [Some(&mut self.wired.window), radio.then_some(&mut self.radio.window)].into_iter().flatten()
            {
                w.ssthresh = w.ssthresh.max(0.75 * w.cwnd);
                w.cwnd = (w.cwnd / 2.0).max(self.initial.min(w.cwnd));
            }
            left -= timeout;
        }
        self.show(w);
    }

    /// The new path may have another PEP: the RTT to the old one is discarded, `W_i` stays.
    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.wired.srtt = Span::ZERO;
        self.wired.min_rtt = Span::MAX;
        self.ledger.forget_order();
        if self.mode == Mode::Alone {
            return self.wired.cubic.on_path_change(cx, w);
        }
        let inner = self.wired_context(cx);
        self.wired.cubic.on_path_change(&inner, &mut self.wired.window);
        self.show(w);
    }

    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        let gap = self.newly_missing.take();
        let seen = core::mem::take(&mut self.newly_seen);
        if !self.started || !self.settings.listens || cx.now < self.distrusted_until {
            return;
        }
        if report.new_epoch {
            self.on_path_change(cx, w);
        }
        self.last_message = Some(cx.now);
        self.unseen_since = None;
        self.messages = self.messages.saturating_add(1);
        if let Some(marked) = report.marked {
            let answered = self.marks.map_or(marked, |(_, answered)| answered.min(marked));
            self.marks = Some((marked, answered));
        }
        if self.mode == Mode::Alone {
            // Before the first congestion a PEP is trusted at once; afterwards only once it has been heard for a while.
            if self.met && self.messages < RETURN_AFTER {
                return;
            }
            // PRR, or slow start after a timeout, owns the window; joining waits until they have finished.
            if !matches!(cx.state, State::Open | State::Disorder) {
                return;
            }
            self.join(cx, w);
        }
        if self.settings.start_cap > 0.0 && self.is_open() {
            self.bound_opening(cx, seen);
        }
        if let Some(rtt) = report.rtt {
            self.newly_seen = seen;
            self.sample_wired(cx, rtt);
            self.newly_seen = 0;
        }
        if let Some(gap) = gap
            && gap >= self.wired.since
        {
            let at = self.effective();
            self.reduce_wired(cx, at, Some(gap));
        } else {
            let coupled = self.is_coupled();
            self.grow_wired(cx, seen, report.rtt);
            if coupled {
                self.grow_radio(cx, seen);
            }
        }
        self.show(w);
    }

    /// Acting on its word alone, the PEP can cost a retransmission; the congestion event that follows has already been
    /// answered when its report came.
    fn believes_gaps(&self, now: Time) -> Option<Time> {
        let asked = self.settings.early_retransmit && self.mode == Mode::Both && !self.wired.srtt.is_zero();
        let asked = asked && now >= self.gaps_distrusted_until;
        asked.then(|| now - self.wired.srtt - self.wired.srtt / REORDERING)
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let radio = match self.mode {
            Mode::Both => self.radio.window.cwnd,
            Mode::Alone => f64::NAN,
        };
        show("w_i", self.wired.window.cwnd);
        show("w_r", radio);
        show("ssthresh_i", self.wired.window.ssthresh);
        show("ssthresh_r", self.radio.window.ssthresh);
        show("rtt_i", self.wired.srtt.as_secs_f64());
        show("both", f64::from(u8::from(self.mode == Mode::Both)));
        show("fallbacks", f64::from(self.fallbacks));
        self.wired.cubic.inspect(show);
    }
}
