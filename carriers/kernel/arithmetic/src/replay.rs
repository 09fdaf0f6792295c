//! Plays what was recorded into two controls, that of `logic/cc` and the kernel's, and compares them after every event.

use core::fmt;

use ranpace_cc::{CongestionControl, LossResponse, Pacing, Signal, Window};

use crate::record::{Event, Moment};

/// How far apart the windows may be as a share, where that is more than the segments that are allowed.
const SHARE: f64 = 0.01;

/// One of the two.
#[derive(Debug)]
struct Side {
    control: Box<dyn CongestionControl>,
    window: Window,
    /// Segments of the window when the pace was set.
    paced: f64,
}

impl Side {
    /// What the endpoint does to a window between two events, as the recording shows it: PRR, the end of a recovery, a
    /// timeout, an idle time. `kept` is the threshold that this side's own control has answered, where that is in force.
    fn follow(&mut self, recorded: &Window, now: &Window, kept: bool) {
        if now.ssthresh != recorded.ssthresh && !kept {
            self.window.ssthresh = now.ssthresh.floor();
        }
        if now.cwnd != recorded.cwnd {
            let ends_recovery = now.cwnd == now.ssthresh.max(1.0);
            let cwnd = if ends_recovery { self.window.ssthresh } else { now.cwnd };
            self.window.cwnd = cwnd.floor().max(1.0);
        }
    }

    fn tell(&mut self, moment: &Moment) -> Option<LossResponse> {
        let (control, cx, w) = (self.control.as_mut(), &moment.cx, &mut self.window);
        match &moment.event {
            Event::Start => control.on_start(cx, w),
            Event::Sent(sent) => control.on_sent(cx, w, sent),
            Event::Sample(sample) => control.on_sample(cx, w, sample),
            Event::Ack(ack) => control.on_ack(cx, w, ack),
            Event::Congestion(congestion, _) => {
                let answer = control.on_congestion(cx, w, congestion);
                if let (true, LossResponse::ReduceTo(ssthresh)) = (congestion.first, answer) {
                    w.ssthresh = ssthresh;
                }
                return Some(answer);
            }
            Event::Packet(packet) => control.on_packet(cx, w, packet),
            Event::Recovered => control.on_recovered(cx, w),
            Event::Spurious(prior) => {
                let prior = Window { cwnd: prior.cwnd.floor(), ssthresh: prior.ssthresh.floor(), ..*prior };
                control.on_spurious(cx, w, &prior);
            }
            Event::IdleRestart(idle) => control.on_idle_restart(cx, w, *idle),
            Event::PathChange => control.on_path_change(cx, w),
            Event::Deadline => control.on_deadline(cx, w),
            Event::Report(report) => control.on_report(cx, w, report),
            Event::Radio(hint) => control.on_radio(cx, w, hint),
            Event::Pep(report) => control.on_pep(cx, w, report),
            Event::Allocation(allocation) => control.on_allocation(cx, w, *allocation),
        }
        None
    }
}

/// The control of `logic/cc` and the kernel's, told the same.
#[derive(Debug)]
pub struct Pair {
    logic: Side,
    kernel: Side,
    /// The recorded window after the last event, and the threshold that the endpoint may have set since by the control's answer.
    recorded: Option<Window>,
    answered: Option<f64>,
    /// Segments that the windows may be apart.
    segments: f64,
    /// What was found so far.
    pub differences: Differences,
}

impl Pair {
    /// Both fresh. Their windows may be so many segments apart.
    pub fn new(logic: Box<dyn CongestionControl>, kernel: Box<dyn CongestionControl>, segments: f64) -> Self {
        let side = |control| Side { control, window: Window::new(1.0), paced: 1.0 };
        Self {
            logic: side(logic),
            kernel: side(kernel),
            recorded: None,
            answered: None,
            segments,
            differences: Differences::default(),
        }
    }

    /// The next moment of the recording, in whatever units.
    pub fn play(&mut self, moment: &Moment) {
        let moment = moment.in_kernel_units();
        match self.recorded {
            None => {
                self.logic.window = moment.before;
                self.kernel.window = moment.before;
            }
            Some(recorded) => {
                let kept = self.answered == Some(moment.before.ssthresh);
                self.logic.follow(&recorded, &moment.before, kept);
                self.kernel.follow(&recorded, &moment.before, kept);
            }
        }
        self.recorded = Some(moment.after);
        self.answered = match moment.event {
            Event::Congestion(congestion, LossResponse::ReduceTo(ssthresh)) if congestion.first => {
                Some(ssthresh)
            }
            _ => None,
        };
        let pace = self.logic.window.pacing;
        let answers = (self.logic.tell(&moment), self.kernel.tell(&moment));
        if self.logic.window.pacing != pace {
            self.logic.paced = self.logic.window.cwnd.max(1.0);
        }
        self.differences.events += 1;
        let ignored = u64::from(answers.0 == Some(LossResponse::Ignore));
        self.differences.ignored += ignored;
        match moment.event {
            Event::Ack(_) => self.differences.acks += 1,
            Event::Congestion(congestion, _) => match congestion.kind {
                Signal::Timeout { .. } => {
                    self.differences.timeouts += 1;
                    self.differences.ignored_timeouts += ignored;
                }
                _ => self.differences.losses += 1,
            },
            _ => {}
        }
        if let (Some(logic), Some(kernel)) = answers
            && !answers_agree(logic, kernel, self.segments)
        {
            self.differences.add(&moment, || format!("answers {logic:?} and {kernel:?}"));
        }
        self.compare(&moment);
    }

    fn compare(&mut self, moment: &Moment) {
        let (logic, kernel) = (&self.logic.window, &self.kernel.window);
        let cwnd = (logic.cwnd.floor(), kernel.cwnd.floor());
        let ssthresh = (logic.ssthresh.floor(), kernel.ssthresh.floor());
        let pace = |window: &Window| match window.pacing {
            Pacing::Unlimited => f64::INFINITY,
            Pacing::Rate(rate) => rate.as_f64(),
        };
        let paces = (pace(logic), pace(kernel));
        let differences = &mut self.differences;
        differences.paced += u64::from(paces.0.is_finite());
        differences.equal += u64::from(cwnd.0 == cwnd.1);
        differences.worst = differences.worst.max((cwnd.0 - cwnd.1).abs());
        // A segment of the window is a segment per RTT of the pace.
        let per_segment = if paces.0.is_finite() { paces.0 / self.logic.paced * 1.01 } else { 0.0 };
        if !within(cwnd, self.segments) || !within(ssthresh, self.segments) || !within(paces, per_segment) {
            differences.add(moment, || format!("logic {logic:?}, kernel {kernel:?}"));
        }
    }
}

/// Equal (both infinite, too), or apart by at most `least` or the share.
fn within((a, b): (f64, f64), least: f64) -> bool {
    a == b || (a - b).abs() <= least.max(SHARE * a.abs())
}

fn answers_agree(logic: LossResponse, kernel: LossResponse, segments: f64) -> bool {
    match (logic, kernel) {
        (LossResponse::ReduceTo(logic), LossResponse::ReduceTo(kernel)) => {
            within((logic.floor(), kernel.floor()), segments)
        }
        _ => logic == kernel,
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    /// Events played, and among them acknowledgements, losses and marks, and timeouts.
    pub events: u64,
    /// Acknowledgements.
    pub acks: u64,
    /// Losses and marks.
    pub losses: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Losses and timeouts that the control of `logic/cc` ignored.
    pub ignored: u64,
    /// Timeouts among them.
    pub ignored_timeouts: u64,
    /// Events after which the control of `logic/cc` paced.
    pub paced: u64,
    /// Events after which the windows were the same number of whole segments.
    pub equal: u64,
    /// Events after which window, threshold, pace or answer were too far apart.
    pub too_far: u64,
    /// Most segments between the windows.
    pub worst: f64,
    /// The first of those that were too far apart.
    pub first: Option<String>,
}

impl Differences {
    fn add(&mut self, moment: &Moment, what: impl FnOnce() -> String) {
        self.too_far += 1;
        if self.first.is_none() {
            let (number, at) = (self.events, moment.cx.now.as_secs_f64());
            self.first =
                Some(format!("event {number} at {at} s, {:?}: {}; {:?}", moment.event, what(), moment.cx));
        }
    }

    /// Those of another run too.
    pub fn join(&mut self, other: &Self) {
        self.events += other.events;
        self.acks += other.acks;
        self.losses += other.losses;
        self.timeouts += other.timeouts;
        self.ignored += other.ignored;
        self.ignored_timeouts += other.ignored_timeouts;
        self.paced += other.paced;
        self.equal += other.equal;
        self.too_far += other.too_far;
        self.worst = self.worst.max(other.worst);
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            events,
            acks,
            losses,
            timeouts,
            ignored,
            ignored_timeouts,
            paced,
            equal,
            too_far,
            worst,
            ..
        } = self;
        write!(
            f,
            "{events} events, {acks} acknowledgements, {losses} losses, {timeouts} timeouts, {ignored} ignored ({ignored_timeouts} timeouts), {paced} events paced; windows equal after {equal}, \
             at most {worst} segments apart; {too_far} too far"
        )?;
        self.first.iter().try_for_each(|first| write!(f, "\n  first: {first}"))
    }
}
