//! The queue that a single flow leaves behind in CDBEv2's STARTUP (7.10 to 7.14).
//!
//! The pacing rate is multiplied by G in each round until it first exceeds the bottleneck. The buffer then holds the excess over
//! one RTT plus G times the queue threshold that ends STARTUP: `Q = (G^n BW(t_0) - B) RTT + G Q_T` (7.13), `delay = Q / B`, lost if
//! `Q` exceeds the buffer (7.14).
//!
//! n is the number of rounds until `G^n BW(t_0) > B`. 7.11 prints floor(log_G(B / BW(t_0))), one less, with which the first term
//! could not be positive; the published table requires the larger value.

use ranpace_units::{Rate, Span};
use serde::Serialize;

use super::drawing;
use super::values::{Bits, MOST_CURVES, check_gain, check_rate, check_rtt, mega, points, within};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::plot::{Axis, Palette};
use ranpace_lab::table::TextTable;

/// Gain and initial bandwidth of STARTUP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Gain of the pacing rate and of the window.
    pub gain: f64,
    /// Bandwidth before the first report, BW(t_0).
    pub initial: Rate,
}

/// The pairs of Table 7.1; the third was selected, the last one is a reference.
pub const TABLE_PAIRS: [Pair; 5] = [
    Pair { gain: 2.0, initial: Rate::from_bits_per_s(1_000_000) },
    Pair { gain: 2.016, initial: Rate::from_bits_per_s(910_000) },
    Pair { gain: 2.175, initial: Rate::from_bits_per_s(1_000_000) },
    Pair { gain: 2.437, initial: Rate::from_bits_per_s(980_000) },
    Pair { gain: 2.855, initial: Rate::from_bits_per_s(920_000) },
];

/// The thesis's border between small and large bottlenecks; 7.2.3.
pub const SMALL_TO: Rate = Rate::from_mbit_per_s(150);

/// The path of the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// RTT without a queue.
    pub rtt: Span,
    /// Queue that ends STARTUP, Q_T; 1 Mb in Algorithm 7.2.
    pub queue_threshold: Bits,
    /// Buffer of the bottleneck; 48 Mb in the thesis.
    pub buffer: Bits,
}

/// The state at the end of STARTUP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Rounds until the pacing rate exceeds the bottleneck.
    pub rounds: u32,
    /// Bits in the queue (7.13).
    pub queue_bits: f64,
    /// Time that the bottleneck takes for them, in seconds.
    pub delay_s: f64,
    /// Whether they exceed the buffer (7.14).
    pub lost: bool,
}

impl Pair {
    /// STARTUP over a bottleneck of `rate` bit/s.
    pub fn over(&self, bottleneck: Rate, path: &Path) -> Outcome {
        let bottleneck = bottleneck.as_f64();
        let (mut rounds, mut pacing) = (0, self.initial.as_f64());
        while pacing <= bottleneck {
            rounds += 1;
            pacing = self.initial.as_f64() * libm::pow(self.gain, f64::from(rounds));
        }
        let queue_bits =
            (pacing - bottleneck) * path.rtt.as_secs_f64() + self.gain * path.queue_threshold.as_f64();
        Outcome {
            rounds,
            queue_bits,
            delay_s: queue_bits / bottleneck,
            lost: queue_bits > path.buffer.as_f64(),
        }
    }

    fn name(&self) -> String {
        format!("gain {}, {}", self.gain, self.initial)
    }
}

/// Inputs: the flows, their path and the bottlenecks.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    /// The flows.
    pub pairs: Vec<Pair>,
    /// The path.
    pub path: Path,
    /// The slowest bottleneck.
    pub from: Rate,
    /// Upper limit.
    pub to: Rate,
    /// Step.
    pub step: Rate,
    /// Whether to print a row for each bottleneck, too.
    pub each: bool,
}

/// Outcomes over a range of bottlenecks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RangeSummary {
    /// The slowest bottleneck in bit/s.
    pub from_bit_s: f64,
    /// The fastest.
    pub to_bit_s: f64,
    /// Number of bottlenecks.
    pub bottlenecks: usize,
    /// Mean of their queues in bits.
    pub mean_queue_bits: f64,
    /// Shortest of their queues.
    pub min_queue_bits: f64,
    /// Longest of their queues.
    pub max_queue_bits: f64,
    /// Longest delay in seconds.
    pub max_delay_s: f64,
    /// Share of them at which the buffer overflows.
    pub loss: f64,
    /// Rounds to the fastest.
    pub rounds: u32,
}

impl RangeSummary {
    /// Summary of outcomes by increasing bottleneck; `None` without any.
    pub fn of(outcomes: &[(Rate, Outcome)]) -> Option<Self> {
        let (first, last) = outcomes.first().zip(outcomes.last())?;
        let queues = || outcomes.iter().map(|(_, outcome)| outcome.queue_bits);
        let count = outcomes.len();
        Some(Self {
            from_bit_s: first.0.as_f64(),
            to_bit_s: last.0.as_f64(),
            bottlenecks: count,
            mean_queue_bits: queues().sum::<f64>() / count as f64,
            min_queue_bits: queues().fold(f64::INFINITY, f64::min),
            max_queue_bits: queues().fold(f64::NEG_INFINITY, f64::max),
            max_delay_s: outcomes.iter().map(|(_, outcome)| outcome.delay_s).fold(0.0, f64::max),
            loss: outcomes.iter().filter(|(_, outcome)| outcome.lost).count() as f64 / count as f64,
            rounds: last.1.rounds,
        })
    }
}

/// Bottlenecks at which the buffer overflows, as the first and last of each contiguous run.
pub fn loss_ranges(outcomes: &[(Rate, Outcome)]) -> Vec<(Rate, Rate)> {
    let mut ranges: Vec<(Rate, Rate)> = Vec::new();
    let mut goes_on = false;
    for (bottleneck, outcome) in outcomes {
        match ranges.last_mut() {
            Some(last) if outcome.lost && goes_on => last.1 = *bottleneck,
            _ if outcome.lost => ranges.push((*bottleneck, *bottleneck)),
            _ => {}
        }
        goes_on = outcome.lost;
    }
    ranges
}

/// A pair over all bottlenecks.
#[derive(Clone, Debug, PartialEq)]
pub struct PairOutcomes {
    /// The pair.
    pub pair: Pair,
    /// By increasing bottleneck.
    pub outcomes: Vec<(Rate, Outcome)>,
}

/// Results.
#[derive(Clone, Debug, PartialEq)]
pub struct StartupView {
    /// The input.
    pub asked: Startup,
    /// By pair.
    pub pairs: Vec<PairOutcomes>,
}

impl Path {
    /// Checks the input.
    pub(super) fn check(&self) -> Result<(), ViewError> {
        /// A terabit; ours.
        const MOST: Bits = Bits::new(1_000_000_000_000);
        check_rtt("--rtt", self.rtt)?;
        within("--queue-threshold", self.queue_threshold <= MOST, "0b to 1000Gb", self.queue_threshold)?;
        let buffer = Bits::new(1)..=MOST;
        within("--buffer", buffer.contains(&self.buffer), "1b to 1000Gb", self.buffer)
    }

    pub(super) fn shown(&self) -> String {
        format!("RTT {}, queue threshold {}, buffer {}", self.rtt, self.queue_threshold, self.buffer)
    }
}

impl Startup {
    pub(super) fn bottlenecks(&self) -> Result<Vec<Rate>, ViewError> {
        check_rate("--from", self.from)?;
        check_rate("--to", self.to)?;
        let [from, to, step] = [self.from, self.to, self.step].map(Rate::bits_per_s);
        let all = points(from, to, step, |rate| Rate::from_bits_per_s(rate).to_string())?;
        Ok(all.into_iter().map(Rate::from_bits_per_s).collect())
    }

    /// Computes it.
    pub fn view(&self) -> Result<StartupView, ViewError> {
        self.path.check()?;
        for pair in &self.pairs {
            check_gain(pair.gain)?;
            check_rate("--initial", pair.initial)?;
        }
        let expected = format!("at most {MOST_CURVES} pairs of gain and initial bandwidth");
        within("--gain", (1..=MOST_CURVES).contains(&self.pairs.len()), &expected, self.pairs.len())?;
        let bottlenecks = self.bottlenecks()?;
        let outcomes = |pair: &Pair| PairOutcomes {
            pair: *pair,
            outcomes: bottlenecks.iter().map(|rate| (*rate, pair.over(*rate, &self.path))).collect(),
        };
        Ok(StartupView { asked: self.clone(), pairs: self.pairs.iter().map(outcomes).collect() })
    }
}

impl PairOutcomes {
    /// The small and the large bottlenecks, both including the border as in the thesis, or all of them.
    pub fn ranges(&self) -> Vec<RangeSummary> {
        let all = self.outcomes.as_slice();
        let small = all.partition_point(|(rate, _)| *rate <= SMALL_TO);
        let large = all.partition_point(|(rate, _)| *rate < SMALL_TO);
        // The border alone is not a range.
        let parts =
            if large == 0 || small == all.len() { vec![all] } else { vec![&all[..small], &all[large..]] };
        parts.into_iter().filter_map(RangeSummary::of).collect()
    }
}

/// "231 to 342 and 500", in Mbit/s.
fn shown_ranges(ranges: &[(Rate, Rate)]) -> String {
    let mbit = |rate: Rate| plain(mega(rate.as_f64()));
    let shown = |(from, to): &(Rate, Rate)| match from == to {
        true => mbit(*from),
        false => format!("{} to {}", mbit(*from), mbit(*to)),
    };
    match ranges.len() {
        0 => "none".to_owned(),
        1..=4 => ranges.iter().map(shown).collect::<Vec<_>>().join(", "),
        count => format!("{}, ... ({count} ranges)", shown(&ranges[0])),
    }
}

/// A number with as many places as needed, at most six.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl StartupView {
    fn each_table(&self, of: &PairOutcomes) -> String {
        let head = [("bottleneck", "Mbit/s"), ("rounds", ""), ("queue", "Mb"), ("delay", "ms"), ("lost", "")];
        let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
        for (rate, outcome) in &of.outcomes {
            table.push(vec![
                plain(mega(rate.as_f64())),
                outcome.rounds.to_string(),
                format!("{:.3}", mega(outcome.queue_bits)),
                format!("{:.2}", outcome.delay_s * 1e3),
                if outcome.lost { "yes" } else { "no" }.to_owned(),
            ]);
        }
        format!("{}\n{table}", of.pair.name())
    }
}

impl View for StartupView {
    fn text(&self) -> String {
        let head = [
            ("gain", ""),
            ("initial", "Mbit/s"),
            ("bottleneck", "Mbit/s"),
            ("mean queue", "Mb"),
            ("min", "Mb"),
            ("max", "Mb"),
            ("max delay", "ms"),
            ("loss", "%"),
            ("rounds", ""),
        ];
        let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
        let mut losses = String::new();
        for of in &self.pairs {
            for range in of.ranges() {
                let [from, to] = [range.from_bit_s, range.to_bit_s].map(|rate| plain(mega(rate)));
                table.push(vec![
                    plain(of.pair.gain),
                    plain(mega(of.pair.initial.as_f64())),
                    if from == to { from } else { format!("{from} to {to}") },
                    format!("{:.2}", mega(range.mean_queue_bits)),
                    format!("{:.2}", mega(range.min_queue_bits)),
                    format!("{:.2}", mega(range.max_queue_bits)),
                    format!("{:.1}", range.max_delay_s * 1e3),
                    format!("{:.2}", range.loss * 100.0),
                    range.rounds.to_string(),
                ]);
            }
            let ranges = shown_ranges(&loss_ranges(&of.outcomes));
            losses.push_str(&format!("  {}: {ranges}\n", of.pair.name()));
        }
        let mut text = format!(
            "STARTUP of a single flow: {}, every {}\n\n{table}\nlost at (Mbit/s)\n{losses}",
            self.asked.path.shown(),
            self.asked.step
        );
        if self.asked.each {
            for of in &self.pairs {
                text.push_str(&format!("\n{}", self.each_table(of)));
            }
        }
        text.trim_end().to_owned()
    }

    fn json(&self) -> serde_json::Value {
        let outcome = |(rate, outcome): &(Rate, Outcome)| {
            serde_json::json!({
                "bottleneck_bit_s": rate.bits_per_s(),
                "rounds": outcome.rounds,
                "queue_bits": outcome.queue_bits,
                "delay_s": outcome.delay_s,
                "lost": outcome.lost,
            })
        };
        let pair = |of: &PairOutcomes| {
            let lost = loss_ranges(&of.outcomes);
            let lost = lost.iter().map(|(from, to)| [from.bits_per_s(), to.bits_per_s()]);
            serde_json::json!({
                "gain": of.pair.gain,
                "initial_bit_s": of.pair.initial.bits_per_s(),
                "ranges": of.ranges(),
                "lost_bit_s": lost.collect::<Vec<_>>(),
                "rows": of.outcomes.iter().map(outcome).collect::<Vec<_>>(),
            })
        };
        serde_json::json!({
            "model": "startup",
            "rtt_s": self.asked.path.rtt.as_secs_f64(),
            "queue_threshold_bits": self.asked.path.queue_threshold.get(),
            "buffer_bits": self.asked.path.buffer.get(),
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        let buffer = self.asked.path.buffer.as_f64();
        let ends = |rates: (Rate, Rate)| (mega(rates.0.as_f64()), mega(rates.1.as_f64()));
        let whole = (self.asked.from, self.asked.to);
        let curves = |of: &dyn Fn(&Outcome) -> f64, (from, to): (Rate, Rate)| -> Vec<_> {
            let curve = |(index, pair): (usize, &PairOutcomes)| {
                let inside = pair.outcomes.iter().filter(|(rate, _)| *rate >= from && *rate <= to);
                let points = inside.map(|(rate, outcome)| (mega(rate.as_f64()), of(outcome))).collect();
                drawing::line(pair.pair.name(), Palette::nth(index), points)
            };
            self.pairs.iter().enumerate().map(curve).collect()
        };
        let highest = |lines: &[ranpace_lab::plot::Line]| {
            lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).fold(0.0, f64::max)
        };
        let mut plots = Vec::new();
        let mut queues = curves(&|outcome| mega(outcome.queue_bits), whole);
        let top = highest(&queues).max(mega(buffer));
        let level = [whole.0, whole.1].map(|rate| (mega(rate.as_f64()), mega(buffer)));
        queues.push(drawing::reference("buffer", level.to_vec()));
        let x = |range| drawing::over("bottleneck (Mbit/s)", ends(range));
        plots.push(drawing::plot(
            "Queue after STARTUP".to_owned(),
            (x(whole), drawing::from_zero("queue (Mb)", [top])),
            queues,
            "A single flow (7.13). Above the buffer it is lost.",
        )?);
        let inner = self.asked.from < SMALL_TO && self.asked.to > SMALL_TO;
        let parts = match inner {
            true => vec![whole, (self.asked.from, SMALL_TO), (SMALL_TO, self.asked.to)],
            false => vec![whole],
        };
        for (index, part) in parts.into_iter().enumerate() {
            let mut delays = curves(&|outcome| outcome.delay_s, part);
            let top = highest(&delays);
            let rates = self.pairs.first().map(|pair| pair.outcomes.as_slice()).unwrap_or_default();
            let inside = rates.iter().filter(|(rate, _)| *rate >= part.0 && *rate <= part.1);
            let full: Vec<(f64, f64)> =
                inside.map(|(rate, _)| (mega(rate.as_f64()), buffer / rate.as_f64())).collect();
            let all = || delays.iter().flat_map(|line| &line.points).chain(&full).map(|point| point.1);
            // The buffer's delay falls from 48 s to 0.1 s.
            let y = match index {
                0 => Axis::log("delay", ranpace_lab::Quantity::Time, all()),
                _ => Axis::from_zero("delay", ranpace_lab::Quantity::Time, [top]),
            };
            // In a linear plot, values outside the range would be drawn at its edge.
            let shown = full.iter().filter(|point| index == 0 || point.1 <= top * 1.05).copied().collect();
            delays.push(drawing::reference("delay of a full buffer", shown));
            let title = match index {
                0 => "Queueing delay after STARTUP".to_owned(),
                _ => format!("Queueing delay after STARTUP, {} to {}", part.0, part.1),
            };
            let caption = "As Zhong 2020, Figs. 7.3 and 7.7: above the dashed line the buffer overflows.";
            plots.push(drawing::plot(title, (x(part), y), delays, caption)?);
        }
        let facts = vec![("Path", self.asked.path.shown()), ("Model", "7.10 to 7.14".to_owned())];
        Ok(Pictures::new("STARTUP of a single flow", facts, plots))
    }
}

#[cfg(test)]
#[path = "startup_tests.rs"]
mod tests;
