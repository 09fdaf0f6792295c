//! A flow in STARTUP that joins an established one (7.15 to 7.22): when CDBEv2's thresholds stop it, and with which share.
//!
//! N is the newcomer (gain G, N_0 = BW(t_0)), E the established flow (gain 1, E_0 = B), `S_n = G^n N_0 + B`:
//!
//! - shares `N_n = G^n N_0 / S_n B`, `E_n = B / S_n B` (7.17, 7.18)
//! - `RTT_n = S_n / B RTT_min`, queue `(S_n - B) RTT_min` (7.21, which counts the pipe too)
//! - `t_0 = 0`, `t_{n+1} = t_n + RTT_n`; the sender sees round n at `t_{n+1}`
//! - it leaves STARTUP at the first n with `dRTT_n > gamma RTT_min` (Thres1) or `dRTT_n > Q_T / N_n` (Thres2) (7.22)
//!
//! With `x = G^n N_0 / B`, `dRTT = x RTT_min` and `N / E = x`: Thres1 stops the newcomer at gamma times the other's share. Thres2
//! fires above `x = (k + sqrt(k^2 + 4 k)) / 2`, `k = Q_T / (B RTT_min)`. These closed forms are ours.
//!
//! The thesis swaps the subscripts of both flows between 7.15 and 7.21; this is the consistent reading.

use ranpace_units::{Rate, Span};
use serde::Serialize;

use super::drawing;
use super::startup::plain;
use super::values::{Bits, MOST_CURVES, check_gain, check_rate, check_rtt, mega, within};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::plot::{Line, Palette};
use ranpace_lab::table::TextTable;

/// Bottlenecks of Figs. 7.9 to 7.13.
pub const FIGURE_BOTTLENECKS: [Rate; 5] = [
    Rate::from_mbit_per_s(1),
    Rate::from_mbit_per_s(5),
    Rate::from_mbit_per_s(20),
    Rate::from_mbit_per_s(150),
    Rate::from_mbit_per_s(500),
];
/// Thresholds of these figures.
pub const FIGURE_THRESHOLDS: [Threshold; 5] = [
    Threshold::Rtt(1.0),
    Threshold::Rtt(2.0),
    Threshold::Rtt(3.0),
    Threshold::Queue(Bits::new(300_000)),
    Threshold::Queue(Bits::new(1_000_000)),
];
/// Most combinations of bottleneck and smallest RTT; ours.
const MOST_CASES: usize = 100;

/// A threshold of 7.22.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Thres1: the RTT has grown by this many smallest RTTs.
    Rtt(f64),
    /// Thres2: it has grown by the time that this queue takes at the newcomer's share.
    Queue(Bits),
}

/// The threshold that ends STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The one on the RTT.
    Thres1,
    /// The one on the queue.
    Thres2,
}

/// Inputs: the newcomer, the thresholds and the bottlenecks.
#[derive(Clone, Debug, PartialEq)]
pub struct Newcomer {
    /// Gain of STARTUP.
    pub gain: f64,
    /// The newcomer's bandwidth at first.
    pub initial: Rate,
    /// `gamma` of Thres1.
    pub gamma: f64,
    /// Q_T of Thres2.
    pub queue_threshold: Bits,
    /// Buffer of the bottleneck.
    pub buffer: Bits,
    /// Rates of the bottlenecks.
    pub bottlenecks: Vec<Rate>,
    /// Smallest RTTs.
    pub rtt_mins: Vec<Span>,
}

/// The end of STARTUP, at a whole round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Exit {
    /// The threshold that ends it: the lower one.
    pub rule: Rule,
    /// The round.
    pub round: u32,
    /// When that round begins, in seconds.
    pub time_s: f64,
    /// When the sender sees it.
    pub seen_s: f64,
    /// The newcomer's share over the other's.
    pub share_ratio: f64,
    /// Bits in the queue.
    pub queue_bits: f64,
    /// RTT in seconds.
    pub rtt_s: f64,
    /// Whether the queue is longer than the buffer.
    pub lost: bool,
}

/// The point between rounds at which a threshold alone would be crossed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The threshold.
    pub threshold: Threshold,
    /// The newcomer's share over the other's.
    pub share_ratio: f64,
    /// Rounds until then.
    pub rounds: f64,
    /// When, in seconds.
    pub time_s: f64,
    /// When the sender sees it.
    pub seen_s: f64,
    /// Bits in the queue.
    pub queue_bits: f64,
}

/// One bottleneck and smallest RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Rate of the bottleneck.
    pub bottleneck: Rate,
    /// Smallest RTT.
    pub rtt_min: Span,
    /// Gain of STARTUP.
    gain: f64,
    /// The newcomer's bandwidth at first.
    initial: Rate,
}

/// Results.
#[derive(Clone, Debug, PartialEq)]
pub struct NewcomerView {
    /// The input.
    pub asked: Newcomer,
    /// For each case, how STARTUP ends, and each threshold alone.
    pub cases: Vec<(Case, Exit, Vec<Crossing>)>,
}

impl Case {
    /// The newcomer's share over the other's after this many rounds: x.
    fn ratio_after(&self, rounds: f64) -> f64 {
        libm::pow(self.gain, rounds) * self.initial.as_f64() / self.bottleneck.as_f64()
    }

    /// Time in seconds at which this many rounds are over, interpolated linearly between rounds.
    fn time_after(&self, rounds: f64) -> f64 {
        let whole = libm::floor(rounds);
        let rtt = |round: f64| 1.0 + self.ratio_after(round);
        let over: f64 = (0..whole as u32).map(|round| rtt(f64::from(round))).sum();
        (over + (rounds - whole) * rtt(whole)) * self.rtt_min.as_secs_f64()
    }

    /// Bits in the queue at this ratio: `(S_n - B) RTT_min`.
    fn queue(&self, ratio: f64) -> f64 {
        ratio * self.bottleneck.as_f64() * self.rtt_min.as_secs_f64()
    }

    /// The newcomer's share in bit/s at this ratio; the other flow has the rest.
    fn share(&self, ratio: f64) -> f64 {
        self.bottleneck.as_f64() * ratio / (1.0 + ratio)
    }

    /// The ratio above which a threshold is exceeded.
    fn ratio_at(&self, threshold: Threshold) -> f64 {
        match threshold {
            Threshold::Rtt(gamma) => gamma,
            Threshold::Queue(queue) => {
                let k = queue.as_f64() / (self.bottleneck.as_f64() * self.rtt_min.as_secs_f64());
                (k + (k * k + 4.0 * k).sqrt()) / 2.0
            }
        }
    }

    /// Returns where this threshold would be crossed; at the beginning, if it is exceeded already.
    pub fn crossing(&self, threshold: Threshold) -> Crossing {
        let share_ratio = self.ratio_at(threshold).max(self.ratio_after(0.0));
        let begun = share_ratio / self.ratio_after(0.0);
        let rounds = libm::log(begun) / libm::log(self.gain);
        Crossing {
            threshold,
            share_ratio,
            rounds,
            time_s: self.time_after(rounds),
            seen_s: self.time_after(rounds + 1.0),
            queue_bits: self.queue(share_ratio),
        }
    }

    /// Returns the end of STARTUP with both thresholds (7.22).
    pub fn exit(&self, gamma: f64, queue_threshold: Bits, buffer: Bits) -> Exit {
        let rtt_min = self.rtt_min.as_secs_f64();
        let is_over = |ratio: f64| {
            let growth = ratio * rtt_min;
            ratio > gamma || growth > queue_threshold.as_f64() / self.share(ratio)
        };
        let mut round = 0;
        while !is_over(self.ratio_after(f64::from(round))) {
            round += 1;
        }
        let ratio = self.ratio_after(f64::from(round));
        let by_queue = self.ratio_at(Threshold::Queue(queue_threshold));
        Exit {
            rule: if gamma <= by_queue { Rule::Thres1 } else { Rule::Thres2 },
            round,
            time_s: self.time_after(f64::from(round)),
            seen_s: self.time_after(f64::from(round + 1)),
            share_ratio: ratio,
            queue_bits: self.queue(ratio),
            rtt_s: (1.0 + ratio) * rtt_min,
            lost: self.queue(ratio) > buffer.as_f64(),
        }
    }

    fn name(&self) -> String {
        format!("{}, RTT_min {}", self.bottleneck, self.rtt_min)
    }
}

impl Threshold {
    fn name(self) -> String {
        match self {
            Self::Rtt(gamma) => format!("gamma = {gamma}"),
            Self::Queue(queue) => format!("Q_T = {queue}"),
        }
    }
}

/// Bandwidth-delay product in bits below which Thres1 ends STARTUP, and above which Thres2 does: `Q_T (1 + gamma) / gamma^2`.
pub(crate) fn boundary(gamma: f64, queue_threshold: Bits) -> f64 {
    queue_threshold.as_f64() * (1.0 + gamma) / (gamma * gamma)
}

impl Newcomer {
    /// The thresholds of the figures, and the input's if they differ.
    fn thresholds(&self) -> Vec<Threshold> {
        let mut all = FIGURE_THRESHOLDS.to_vec();
        for own in [Threshold::Rtt(self.gamma), Threshold::Queue(self.queue_threshold)] {
            if !all.contains(&own) {
                all.push(own);
            }
        }
        all
    }

    /// One case of it.
    pub fn case(&self, bottleneck: Rate, rtt_min: Span) -> Case {
        Case { bottleneck, rtt_min, gain: self.gain, initial: self.initial }
    }

    /// Computes it.
    pub fn view(&self) -> Result<NewcomerView, ViewError> {
        /// A terabit; ours.
        const MOST: Bits = Bits::new(1_000_000_000_000);
        check_gain(self.gain)?;
        check_rate("--initial", self.initial)?;
        within("--gamma", (0.01..=100.0).contains(&self.gamma), "0.01 to 100", self.gamma)?;
        let amounts = Bits::new(1)..=MOST;
        within(
            "--queue-threshold",
            amounts.contains(&self.queue_threshold),
            "1b to 1000Gb",
            self.queue_threshold,
        )?;
        within("--buffer", amounts.contains(&self.buffer), "1b to 1000Gb", self.buffer)?;
        self.bottlenecks.iter().try_for_each(|rate| check_rate("--bottleneck", *rate))?;
        self.rtt_mins.iter().try_for_each(|rtt| check_rtt("--rtt-min", *rtt))?;
        let count = self.bottlenecks.len().saturating_mul(self.rtt_mins.len());
        let expected = format!("at most {MOST_CASES} combinations with --rtt-min");
        within("--bottleneck", (1..=MOST_CASES).contains(&count), &expected, count)?;
        let thresholds = self.thresholds();
        let all =
            self.rtt_mins.iter().flat_map(|rtt| self.bottlenecks.iter().map(|rate| self.case(*rate, *rtt)));
        let cases = all.map(|case| {
            let exit = case.exit(self.gamma, self.queue_threshold, self.buffer);
            (case, exit, thresholds.iter().map(|threshold| case.crossing(*threshold)).collect())
        });
        Ok(NewcomerView { asked: self.clone(), cases: cases.collect() })
    }

    fn shown(&self) -> String {
        let Self { gain, initial, gamma, queue_threshold, buffer, .. } = self;
        format!("gain {gain}, initial {initial}, gamma {gamma}, Q_T {queue_threshold}, buffer {buffer}")
    }
}

fn head<const N: usize>(head: [(&str, &str); N]) -> TextTable {
    TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())))
}

impl View for NewcomerView {
    fn text(&self) -> String {
        let mut exits = head([
            ("bottleneck", "Mbit/s"),
            ("RTT_min", "ms"),
            ("left by", ""),
            ("round", ""),
            ("t", "RTT_min"),
            ("seen", "RTT_min"),
            ("share ratio", ""),
            ("queue", "Mb"),
            ("RTT", "ms"),
            ("lost", ""),
        ]);
        let mut crossings = head([
            ("bottleneck", "Mbit/s"),
            ("RTT_min", "ms"),
            ("threshold", ""),
            ("rounds", ""),
            ("t", "RTT_min"),
            ("seen", "RTT_min"),
            ("share ratio", ""),
            ("queue", "Mb"),
        ]);
        for (case, exit, crossed) in &self.cases {
            let rtt_min = case.rtt_min.as_secs_f64();
            let place = || [plain(mega(case.bottleneck.as_f64())), plain(rtt_min * 1e3)];
            let mut cells = place().to_vec();
            cells.extend([
                format!("{:?}", exit.rule),
                exit.round.to_string(),
                format!("{:.2}", exit.time_s / rtt_min),
                format!("{:.2}", exit.seen_s / rtt_min),
                format!("{:.3}", exit.share_ratio),
                format!("{:.3}", mega(exit.queue_bits)),
                format!("{:.1}", exit.rtt_s * 1e3),
                if exit.lost { "yes" } else { "no" }.to_owned(),
            ]);
            exits.push(cells);
            for crossing in crossed {
                let mut cells = place().to_vec();
                cells.extend([
                    crossing.threshold.name(),
                    format!("{:.2}", crossing.rounds),
                    format!("{:.2}", crossing.time_s / rtt_min),
                    format!("{:.2}", crossing.seen_s / rtt_min),
                    format!("{:.3}", crossing.share_ratio),
                    format!("{:.3}", mega(crossing.queue_bits)),
                ]);
                crossings.push(cells);
            }
        }
        let boundary = mega(boundary(self.asked.gamma, self.asked.queue_threshold));
        format!(
            "A newcomer in STARTUP beside an established flow: {}\n\nHow it leaves STARTUP\n{exits}\n\
             Thres1 is first where bottleneck x RTT_min is below {} Mb\n\nEach threshold by itself, between the rounds\n{}",
            self.asked.shown(),
            plain(boundary),
            crossings.to_string().trim_end()
        )
    }

    fn json(&self) -> serde_json::Value {
        let crossing = |crossing: &Crossing| {
            let mut value = serde_json::json!({
                "share_ratio": crossing.share_ratio,
                "rounds": crossing.rounds,
                "time_s": crossing.time_s,
                "seen_s": crossing.seen_s,
                "queue_bits": crossing.queue_bits,
            });
            match crossing.threshold {
                Threshold::Rtt(gamma) => value["gamma"] = gamma.into(),
                Threshold::Queue(queue) => value["queue_threshold_bits"] = queue.get().into(),
            }
            value
        };
        let case = |(case, exit, crossed): &(Case, Exit, Vec<Crossing>)| {
            serde_json::json!({
                "bottleneck_bit_s": case.bottleneck.bits_per_s(),
                "rtt_min_s": case.rtt_min.as_secs_f64(),
                "exit": exit,
                "thresholds": crossed.iter().map(crossing).collect::<Vec<_>>(),
            })
        };
        serde_json::json!({
            "model": "newcomer",
            "gain": self.asked.gain,
            "initial_bit_s": self.asked.initial.bits_per_s(),
            "gamma": self.asked.gamma,
            "queue_threshold_bits": self.asked.queue_threshold.get(),
            "buffer_bits": self.asked.buffer.get(),
            "boundary_bits": boundary(self.asked.gamma, self.asked.queue_threshold),
            "cases": self.cases.iter().map(case).collect::<Vec<_>>(),
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        let shown = self.cases.len().min(MOST_CURVES);
        let some = match self.cases.len() > shown {
            true => format!(" The first {shown} of {} cases are drawn.", self.cases.len()),
            false => String::new(),
        };
        let mut plots = Vec::new();
        for (case, _, crossed) in self.cases.iter().take(shown) {
            let [shares, queue] = drawn(case, crossed, &some)?;
            plots.extend([shares, queue]);
        }
        let facts = vec![("Flows", self.asked.shown()), ("Model", "7.15 to 7.22".to_owned())];
        Ok(Pictures::new("A newcomer in STARTUP beside an established flow", facts, plots))
    }
}

/// Shares and queue of a case over time, with the thresholds as vertical lines.
fn drawn(case: &Case, crossed: &[Crossing], some: &str) -> Result<[(String, String); 2], PlotError> {
    /// Step of a curve in rounds.
    const STEP: f64 = 0.05;
    /// A threshold later than this many smallest RTTs is not drawn, so that the others can be told apart; ours.
    const LATEST: f64 = 16.0;
    let rtt_min = case.rtt_min.as_secs_f64();
    let is_late = |crossing: &&Crossing| crossing.time_s > LATEST * rtt_min;
    let late: Vec<String> =
        crossed.iter().filter(is_late).map(|crossing| crossing.threshold.name()).collect();
    let crossed: Vec<(usize, &Crossing)> =
        crossed.iter().enumerate().filter(|(_, crossing)| !is_late(crossing)).collect();
    // Slightly past the last threshold.
    let last = crossed.iter().map(|(_, crossing)| crossing.rounds).fold(1.0, f64::max) + 0.3;
    let curve = |of: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        let count = libm::ceil(last / STEP) as u32;
        let rounds = (0..=count).map(|index| f64::from(index) * STEP);
        rounds.map(|rounds| (case.time_after(rounds) / rtt_min, of(case.ratio_after(rounds)))).collect()
    };
    let share = curve(&|ratio| mega(case.share(ratio)));
    let rest = curve(&|ratio| mega(case.bottleneck.as_f64() - case.share(ratio)));
    let queue = curve(&|ratio| mega(case.queue(ratio)));
    let top = |curves: &[&Vec<(f64, f64)>]| {
        curves.iter().flat_map(|curve| curve.iter().map(|point| point.1)).fold(0.0, f64::max)
    };
    let end = share.last().map_or(1.0, |point| point.0);
    let marks = |high: f64| {
        let mark = move |(index, crossing): &(usize, &Crossing)| Line {
            label: crossing.threshold.name(),
            colour: Palette::nth(index + 2),
            dashed: true,
            points: vec![(crossing.time_s / rtt_min, 0.0), (crossing.time_s / rtt_min, high * 1.05)],
        };
        crossed.iter().map(mark).collect::<Vec<_>>()
    };
    let x = || drawing::over("time (RTT_min)", (0.0, end));
    let later = match late.is_empty() {
        true => String::new(),
        false => format!(" Later than drawn: {}.", late.join(", ")),
    };
    let caption = format!(
        "As Zhong 2020, Figs. 7.9 to 7.13. Upright: where each threshold is crossed; the sender sees it an RTT later.{later}{some}"
    );
    let high = top(&[&share, &rest]);
    let mut lines = marks(high);
    lines.push(drawing::line("newcomer", Palette::nth(0), share));
    lines.push(drawing::line("established", Palette::nth(1), rest));
    let shares = drawing::plot(
        format!("Shares at {}", case.name()),
        (x(), drawing::from_zero("share (Mbit/s)", [high])),
        lines,
        &caption,
    )?;
    let high = top(&[&queue]);
    let mut lines = marks(high);
    lines.push(drawing::line("queue", Palette::nth(0), queue));
    let y = drawing::from_zero("queue (Mb)", [high]);
    Ok([shares, drawing::plot(format!("Queue at {}", case.name()), (x(), y), lines, &caption)?])
}

#[cfg(test)]
#[path = "newcomer_tests.rs"]
mod tests;
