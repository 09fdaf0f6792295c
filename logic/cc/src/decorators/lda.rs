//! Loss discrimination by delay at the sender: NCPLD and LDA_EQ, as understood.
//!
//! Sources: Samaraweera 1999 (NCPLD) and Park and Chung 2010 (LDA_EQ). Neither text was at hand: what a loss is judged by is
//! known from others' descriptions of them, the estimates and constants below are our reading. Diarra 2022 finds neither apt for
//! LTE, where HARQ raises the RTT without congestion and deep buffers are filled on purpose; MELD is her answer.
//!
//! A decorator over any [`LossBased`] control, its parent. A loss is taken for random if the RTT at its detection is explained
//! without a queue; the parent then does not learn of it ([`LossResponse::Ignore`]): the packets are retransmitted, and window and
//! growth continue. The parent is notified of every other loss, and always of timeouts and marks. One judgement covers all losses of
//! a detection pass.
//!
//! * `rule=ncpld` compares the last RTT with the RTT at the knee of the load curve, where throughput over delay is largest. The
//!   sender keeps a mean RTT `r(w)` for each class of windows, four classes for each doubling; the knee is the RTT of the class with
//!   the largest power `w / r(w)^2`. A loss is random if `RTT < max(knee, RTTmin + 4 ms) * margin`. As long as fewer than
//!   [`LEAST_CLASSES`] classes have [`LEAST_SAMPLES`] samples, the parent is notified.
//! * `rule=eq` estimates the share of the bottleneck's queue that is in use, `u = (RTT - RTTmin) / (RTTmax - RTTmin)`, with the
//!   extremes of the connection. A loss is random if `u <= threshold`. As long as the extremes differ by less than [`LEAST_RANGE`],
//!   the parent is notified. The default threshold is TCP CERL's for the same quantity.
//!
//! A path change discards what was measured. Ours: the sources do not mention it.

use ranpace_units::Span;

use super::hidden::HiddenEpisode;
use crate::entry::Decorator;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, View, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// As `ranpace list cc` shows it.
pub const ENTRY: Decorator = Decorator {
    name: "lda",
    about: "hides losses at which the RTT shows no queue (NCPLD, LDA_EQ; as understood)",
    source: "Samaraweera 1999; Park and Chung 2010; certainty: low, both rules are readings of a sentence",
    options: &[
        OptionInfo {
            key: "rule",
            values: "ncpld, eq",
            about: "RTT against the knee's, or share of the queue in use",
        },
        OptionInfo { key: "margin", values: "0.1 to 10 [1]", about: "ncpld: factor of the RTT at the knee" },
        OptionInfo {
            key: "threshold",
            values: "0 to 1 [0.55]",
            about: "eq: largest share without congestion",
        },
    ],
    wrap,
};

fn wrap(inner: Box<dyn LossBased>, options: &mut Options) -> Result<Box<dyn LossBased>, OptionError> {
    Ok(Box::new(Lda::new(inner, read_params(options)?)))
}

fn read_params(options: &mut Options) -> Result<Params, OptionError> {
    let is_eq = options.choice("rule", &[("ncpld", false), ("eq", true)])?;
    let margin = options.number("margin", 0.1, 10.0, 1.0)?;
    let threshold = options.number("threshold", 0.0, 1.0, THRESHOLD)?;
    Ok(if is_eq { Params::Eq { threshold } } else { Params::Ncpld { margin } })
}

/// TCP CERL's threshold of the share of the queue in use.
const THRESHOLD: f64 = 0.55;
/// Least difference between the connection's largest and smallest RTT for a judgement by LDA_EQ, and least distance of NCPLD's
/// threshold from the smallest RTT. Ours: less is within what scheduling does to the RTT.
const LEAST_RANGE: Span = Span::from_millis(4);
/// Classes of windows with enough samples from which on NCPLD judges. Ours.
const LEAST_CLASSES: usize = 3;
/// Samples from which on a class counts. Ours.
const LEAST_SAMPLES: u32 = 10;
/// Classes for each doubling of the window. Ours.
const PER_DOUBLING: f64 = 4.0;
/// Classes: windows of up to 2^20 segments; larger ones share the last.
const CLASSES: usize = 81;
/// Weight of a new sample in a class's mean. Ours, as RFC 6298's for the smoothed RTT.
const GAIN: f64 = 1.0 / 8.0;

/// User-configurable parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Params {
    /// NCPLD.
    Ncpld {
        /// Factor of the threshold.
        margin: f64,
    },
    /// LDA_EQ.
    Eq {
        /// Largest share of the queue in use that does not count as congestion.
        threshold: f64,
    },
}

/// RTTs of one class of windows.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    samples: u32,
    /// Mean in seconds.
    rtt: f64,
}

impl Class {
    /// Throughput over delay of the class with this number, in segments per square second.
    fn power(&self, number: usize) -> f64 {
        libm::exp2(number as f64 / PER_DOUBLING) / (self.rtt * self.rtt)
    }
}

/// The RTT as a function of the window (NCPLD).
#[derive(Clone, Debug)]
struct LoadCurve {
    classes: Box<[Class; CLASSES]>,
}

impl LoadCurve {
    fn new() -> Self {
        Self { classes: Box::new([Class::default(); CLASSES]) }
    }

    fn note(&mut self, cwnd: f64, rtt: Span) {
        let number = libm::ceil(libm::log2(cwnd.max(1.0)) * PER_DOUBLING) as usize;
        let class = &mut self.classes[number.min(CLASSES - 1)];
        let rtt = rtt.as_secs_f64();
        class.rtt = if class.samples == 0 { rtt } else { class.rtt + (rtt - class.rtt) * GAIN };
        class.samples = class.samples.saturating_add(1);
    }

    /// RTT of the class with the largest power; `None` before enough classes are known.
    fn knee(&self) -> Option<Span> {
        let known = self.classes.iter().enumerate().filter(|(_, class)| class.samples >= LEAST_SAMPLES);
        if known.clone().count() < LEAST_CLASSES {
            return None;
        }
        known
            .max_by(|(a, one), (b, other)| one.power(*a).total_cmp(&other.power(*b)))
            .map(|(_, class)| Span::from_secs_f64(class.rtt))
    }
}

/// A parent control with loss discrimination by delay in front.
#[derive(Debug)]
pub struct Lda {
    inner: Box<dyn LossBased>,
    params: Params,
    curve: LoadCurve,
    /// Smallest and largest RTT of the connection; `None` before the first.
    extremes: Option<(Span, Span)>,
    last_rtt: Span,
    episode: HiddenEpisode,
    /// Losses that were taken for random, and those of which the parent was notified, in detection passes.
    random: u64,
    notified: u64,
}

impl Lda {
    /// Puts loss discrimination in front of `inner`.
    pub fn new(inner: Box<dyn LossBased>, params: Params) -> Self {
        Self {
            inner,
            params,
            curve: LoadCurve::new(),
            extremes: None,
            last_rtt: Span::ZERO,
            episode: HiddenEpisode::default(),
            random: 0,
            notified: 0,
        }
    }

    /// NCPLD's threshold: a loss at a smaller RTT is taken for random. `None` while too little is known.
    fn delay_threshold(&self, margin: f64) -> Option<Span> {
        let (least, _) = self.extremes?;
        Some(self.curve.knee()?.max(least + LEAST_RANGE).mul_f64(margin))
    }

    /// LDA_EQ's share of the queue in use, 0 to 1. `None` while too little is known.
    fn queue_usage(&self) -> Option<f64> {
        let (least, most) = self.extremes?;
        let range = most - least;
        (range >= LEAST_RANGE).then(|| (self.last_rtt - least).ratio(range))
    }

    fn is_random(&self, event: &Congestion) -> bool {
        if event.kind != Signal::Loss {
            return false;
        }
        match self.params {
            Params::Ncpld { margin } => {
                self.delay_threshold(margin).is_some_and(|limit| self.last_rtt < limit)
            }
            Params::Eq { threshold } => self.queue_usage().is_some_and(|share| share <= threshold),
        }
    }
}

impl CongestionControl for Lda {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.inner.as_mut())
    }

    fn view<'a>(&'a mut self, cx: &'a Context, w: &'a mut Window) -> Option<View<'a>> {
        Some(View { control: self.inner.as_mut(), cx: self.episode.lend(cx), window: w })
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.last_rtt = rtt;
            self.extremes =
                Some(self.extremes.map_or((rtt, rtt), |(least, most)| (least.min(rtt), most.max(rtt))));
            if matches!(self.params, Params::Ncpld { .. }) {
                self.curve.note(w.cwnd, rtt);
            }
        }
        self.inner.on_sample(&self.episode.shown(cx), w, sample);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if self.is_random(event) {
            self.random += 1;
            self.episode.hide(event);
            return LossResponse::Ignore;
        }
        self.notified += 1;
        self.episode.notify(event);
        self.inner.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.inner.on_ack(&self.episode.shown(cx), w, ack);
    }

    /// The parent is not notified if it did not know of the episode.
    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if !self.episode.end() {
            self.inner.on_recovered(cx, w);
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.curve = LoadCurve::new();
        self.extremes = None;
        self.inner.on_path_change(&self.episode.shown(cx), w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("lda_random", self.random as f64);
        show("lda_notified", self.notified as f64);
        match self.params {
            Params::Ncpld { margin } => {
                if let Some(limit) = self.delay_threshold(margin) {
                    show("lda_threshold_s", limit.as_secs_f64());
                }
            }
            Params::Eq { .. } => {
                if let Some(share) = self.queue_usage() {
                    show("lda_queue_usage", share);
                }
            }
        }
        self.inner.inspect(show);
    }
}

impl LossBased for Lda {
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64 {
        self.inner.recalc_ssthresh(&self.episode.shown(cx), w)
    }

    fn parent(&self) -> Option<&dyn LossBased> {
        Some(self.inner.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Time;

    use super::*;
    use crate::Algorithm;
    use crate::classic::newreno::NewReno;
    use crate::testing::testbed::{Bed, context, loss, reduced_to, sample};

    const MS: Span = Span::from_millis(1);

    fn lda(params: Params) -> Lda {
        Lda::new(Box::new(NewReno), params)
    }

    fn at(ms: u64) -> Context {
        Context { min_rtt: MS * 40, srtt: MS * 40, ..context(Time::from_millis(ms)) }
    }

    /// Feeds RTTs in milliseconds at a window.
    fn feed(control: &mut Lda, cwnd: f64, rtts: impl IntoIterator<Item = u64>) {
        let mut w = Window::new(cwnd);
        for rtt in rtts {
            control.on_sample(&at(0), &mut w, &sample(MS * rtt));
        }
    }

    #[test]
    fn eq_takes_a_loss_for_random_up_to_its_share_of_the_queue() {
        // Specification: RTTmin 40, RTTmax 140 ms; u = 0.55 at 95 ms is random, 96 ms is congestion.
        let mut control = lda(Params::Eq { threshold: THRESHOLD });
        let mut w = Window::new(20.0);
        feed(&mut control, 20.0, [40, 140, 95]);
        assert_eq!(control.on_congestion(&at(1), &mut w, &loss()), LossResponse::Ignore);
        assert!(control.episode.is_hidden());
        feed(&mut control, 20.0, [96]);
        assert_eq!(reduced_to(control.on_congestion(&at(2), &mut w, &loss())), 10.0);
        assert!(!control.episode.is_hidden());
    }

    #[test]
    fn eq_leaves_losses_to_the_parent_without_a_range_of_rtts() {
        let mut control = lda(Params::Eq { threshold: THRESHOLD });
        let mut w = Window::new(20.0);
        assert_eq!(reduced_to(control.on_congestion(&at(1), &mut w, &loss())), 10.0, "no RTT");
        feed(&mut control, 20.0, [43, 40]);
        assert_eq!(reduced_to(control.on_congestion(&at(1), &mut w, &loss())), 10.0, "3 ms");
        feed(&mut control, 20.0, [44, 40]);
        assert_eq!(control.on_congestion(&at(1), &mut w, &loss()), LossResponse::Ignore, "4 ms");
    }

    #[test]
    fn ncpld_judges_by_the_rtt_of_the_window_with_the_largest_power() {
        // Specification: classes (16, 40), (32, 40), (64, 64) have powers of .010, .020, .0156: the knee is 40 ms, and the
        // threshold 44 ms.
        let mut control = lda(Params::Ncpld { margin: 1.0 });
        let mut w = Window::new(20.0);
        feed(&mut control, 16.0, [40; 10]);
        feed(&mut control, 32.0, [40; 10]);
        assert_eq!(reduced_to(control.on_congestion(&at(1), &mut w, &loss())), 10.0, "two classes");
        feed(&mut control, 64.0, [64; 10]);
        for (number, power) in [(16, 0.010), (20, 0.020), (24, 0.015_625)] {
            let found = control.curve.classes[number].power(number) / 1e6; // per square millisecond
            assert!((found - power).abs() < 1e-9, "class {number}: {found}");
        }
        assert_eq!(control.curve.knee(), Some(MS * 40));
        assert_eq!(control.delay_threshold(1.0), Some(MS * 44));
        feed(&mut control, 16.0, [44]);
        assert_eq!(reduced_to(control.on_congestion(&at(1), &mut w, &loss())), 10.0, "at the threshold");
        feed(&mut control, 16.0, [43]);
        assert_eq!(control.on_congestion(&at(1), &mut w, &loss()), LossResponse::Ignore, "below it");
    }

    #[test]
    fn timeouts_and_marks_are_the_parents() {
        let mut control = lda(Params::Eq { threshold: 1.0 });
        let mut w = Window::new(20.0);
        feed(&mut control, 20.0, [140, 40]);
        for kind in [Signal::Timeout { count: 1 }, Signal::Ecn] {
            let event = Congestion { kind, ..loss() };
            assert_eq!(reduced_to(control.on_congestion(&at(1), &mut w, &event)), 10.0, "{kind:?}");
        }
    }

    #[test]
    fn a_path_change_discards_what_was_measured() {
        let mut control = lda(Params::Eq { threshold: 1.0 });
        let mut w = Window::new(20.0);
        feed(&mut control, 20.0, [140, 40]);
        control.on_path_change(&at(1), &mut w);
        assert_eq!(reduced_to(control.on_congestion(&at(2), &mut w, &loss())), 10.0);
    }

    /// Goodput in segments a second of a minute over 20 Mbit/s and 50 ms with a buffer of one BDP.
    fn bed(name: &str, lose_every: u64) -> Bed {
        let name: Algorithm = name.parse().unwrap();
        let mut bed = Bed::with(name.build(1), 1_727, 50);
        bed.buffer = 86;
        bed.lose_every = lose_every;
        bed.run(60);
        bed
    }

    #[test]
    fn random_loss_costs_little_and_overflow_is_noticed() {
        // Specification: at 1 % of random loss at least 3 times the plain parent's goodput; without, at least 90 % of the losses
        // by overflow are called congestion.
        let plain = bed("newreno", 100).figures.acked;
        for rule in ["ncpld", "eq"] {
            let name = format!("newreno+lda:rule={rule}");
            let lossy = bed(&name, 100);
            assert!(lossy.figures.acked >= 3 * plain, "{rule}: {} for {plain} segments", lossy.figures.acked);
            let clean = bed(&name, 0);
            let (random, notified) = (clean.figure("lda_random"), clean.figure("lda_notified"));
            assert!(notified >= 0.9 * (random + notified), "{rule}: {random} random, {notified} notified");
        }
    }
}
