//! Measurements that the common words do not say.

use ranpace_cc::{Algorithm, Context, Sample, State, Window};
use ranpace_units::{Bytes, Span, Time};
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::functions_ch7::{InTime, Quartiles};
use super::functions_edge::{self, EdgeFunction};
use super::functions_mdcc::{self, MdccFunction};
use super::functions_meld::{self, MeldFunction};
use super::functions_models::{self, ModelFunction};
use super::functions_rapid::FlowFigure;
use super::functions_sigma::Uploads;
use super::functions_thesis::{self, ThesisFunction};
use super::measure::Measured;
use crate::figures::number;

/// The functions, by the name that experiments call them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// C2TCP's conditions over a series of RTTs with the shape of its Fig. 2: 1 if they are as published.
    C2tcpConditions,
    /// RTTs of that series that are Bad in one place and Normal in another: their number.
    C2tcpHistory,
    /// Largest mean RTT over the bound of C2TCP's equation 14.
    #[serde(rename = "c2tcp_eq14")]
    C2tcpEq14,
    /// Largest mean RTT over the bound of C2TCP's equation 15.
    #[serde(rename = "c2tcp_eq15")]
    C2tcpEq15,
    /// As `c2tcp_eq14`, where the deaf second alone does not exceed the bound.
    #[serde(rename = "c2tcp_eq14_deaf")]
    C2tcpEq14Deaf,
    /// As `c2tcp_eq15`, where the deaf second alone does not exceed the bound.
    #[serde(rename = "c2tcp_eq15_deaf")]
    C2tcpEq15Deaf,
    /// Mean RTT over that of the deaf second, where that exceeds the bound of equation 15: smallest and largest.
    C2tcpDeafSecond,
    /// 95th percentile of the delay outside outages: seconds with a capacity below 0.2 Mbit/s and the 2 s after them.
    P95OutsideOutages,
    /// A figure in a window of time, of flows that join one after the other.
    InTime(InTime),
    /// Spread over drops, of one scheme over that of another.
    Quartiles(Quartiles),
    /// A figure of uploads.
    Uploads(Uploads),
    /// A figure of flows by their names, or of one over another.
    FlowFigure(FlowFigure),
    /// One of those of mechanisms at the edge, side by side and under faults.
    #[serde(untagged)]
    Edge(EdgeFunction),
    /// One of those of MELD.
    #[serde(untagged)]
    Meld(MeldFunction),
    /// One of those of Multi-Domain congestion control.
    #[serde(untagged)]
    Mdcc(MdccFunction),
    /// One of those of the thesis's chapters 4 to 6.
    #[serde(untagged)]
    Thesis(ThesisFunction),
    /// One of the analytic models, without runs.
    #[serde(untagged)]
    Models(ModelFunction),
}

/// Calls one.
pub fn call(function: &Function, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    match function {
        Function::InTime(figure) => figure.of(of, cells),
        Function::Quartiles(figure) => figure.of(of, cells),
        Function::Uploads(figure) => figure.of(of, cells),
        Function::FlowFigure(figure) => figure.of(of, cells),
        Function::Thesis(function) => functions_thesis::call(*function, of, cells),
        Function::Mdcc(function) => functions_mdcc::call(function, of, cells),
        Function::Edge(function) => functions_edge::call(function, of, cells),
        Function::Meld(function) => functions_meld::call(function, of, cells),
        Function::Models(function) => functions_models::call(*function),
        Function::C2tcpConditions => conditions(),
        Function::C2tcpHistory => history(),
        Function::C2tcpEq14 => bound(of, cells, equation_14, false),
        Function::C2tcpEq15 => bound(of, cells, equation_15, false),
        Function::C2tcpEq14Deaf => bound(of, cells, equation_14, true),
        Function::C2tcpEq15Deaf => bound(of, cells, equation_15, true),
        Function::C2tcpDeafSecond => deaf_second(of, cells),
        Function::P95OutsideOutages => {
            let mut worst = f64::NEG_INFINITY;
            for scheme in of {
                for (_, cell) in cells.of(scheme, &[])? {
                    worst = worst.max(p95_outside_outages(cell)?);
                }
            }
            Ok(Measured { value: worst, text: super::metric::Metric::DelayP95.show(worst) })
        }
    }
}

/// The RTTs of Fig. 2's shape, in ms and 12 ms apart: below the setpoint of 40 ms, above it for longer than an
/// interval, a dip, above it for less than an interval, below it. The paper gives no values; these are ours.
const FIG_2: [u64; 12] = [20, 25, 60, 60, 60, 60, 60, 60, 30, 60, 60, 25];

/// What C2TCP makes of [`FIG_2`], sample by sample. Driven through the interface that an endpoint uses.
fn judged() -> Result<Vec<&'static str>, Absent> {
    let algorithm: Algorithm = "cubic+c2tcp:tuner=off:alpha=2:clock=ns:boost=real:kernel_compat=off"
        .parse()
        .map_err(|error: ranpace_cc::AlgorithmError| Absent::Nothing(error.to_string()))?;
    let mut control = algorithm.build(1);
    let mut window = Window::new(10.0);
    let context = |now: Time| Context {
        now,
        mss: Bytes::new(1448),
        wire: Bytes::new(1500),
        srtt: Span::from_millis(20),
        min_rtt: Span::from_millis(20),
        in_flight: 10,
        delivered: 0,
        lost: 0,
        next_packet: 0,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    };
    control.on_start(&context(Time::ZERO), &mut window);
    Ok(FIG_2
        .iter()
        .zip(1..)
        .map(|(rtt, index)| {
            let sample = Sample {
                delivered: 1,
                bytes: Bytes::new(1448),
                rtt: Some(Span::from_millis(*rtt)),
                one_way: None,
                in_flight_at_send: 10,
            };
            control.on_sample(&context(Time::from_millis(1_000 + 12 * index)), &mut window, &sample);
            let mut condition = "none";
            control.inspect(&mut |name, value| {
                if name == "condition" {
                    condition = if value == 0.0 {
                        "Good"
                    } else if value == 1.0 {
                        "Normal"
                    } else {
                        "Bad"
                    };
                }
            });
            condition
        })
        .collect())
}

fn conditions() -> Result<Measured, Absent> {
    let mut phases = judged()?;
    phases.dedup();
    let is_as_published = phases == ["Good", "Normal", "Bad", "Good", "Normal", "Good"];
    Ok(Measured { value: f64::from(u8::from(is_as_published)), text: phases.join(", ") })
}

fn history() -> Result<Measured, Absent> {
    let judged = judged()?;
    let of = |rtt: u64, condition: &str| {
        FIG_2.iter().zip(&judged).any(|(own, judged)| *own == rtt && *judged == condition)
    };
    let mut rtts = FIG_2.to_vec();
    rtts.sort_unstable();
    rtts.dedup();
    rtts.retain(|rtt| of(*rtt, "Bad") && of(*rtt, "Normal"));
    let text = rtts.iter().map(|rtt| format!("{rtt} ms is Bad in one stretch, Normal in the other"));
    Ok(Measured { value: rtts.len() as f64, text: text.collect::<Vec<_>>().join("; ") })
}

/// A bound of the mean RTT in seconds, by (RTT without a queue, packets per second, alpha).
type Bound = fn(f64, f64, f64) -> f64;

fn equation_14(rtt: f64, bw: f64, alpha: f64) -> f64 {
    alpha * (rtt + 1.0 / bw + 0.5 / bw)
}

fn equation_15(rtt: f64, bw: f64, alpha: f64) -> f64 {
    1.5 * alpha * (rtt + 1.0 / bw)
}

/// Mean RTT in seconds of a deaf second of a link that sends `bw` packets/s, where the window begins near zero. CUBIC's Reno-friendly growth
/// is 8/15 of a segment per window acknowledged, `dW/dt = 8/15 bw / W`, so that `W = sqrt(16/15 bw t)`; the RTT is `W / bw`, its mean over
/// the second two thirds of its last value. Neither alpha nor the RTT of the empty path is in it.
fn rtt_of_deaf_second(bw: f64) -> f64 {
    2.0 / 3.0 * (16.0 / 15.0 / bw).sqrt()
}

/// Largest ratio of the mean RTT to a bound; with `deaf`, of the runs in which the deaf second alone stays below the bound. Where it does not,
/// no alpha could keep the bound.
fn bound(of: &[String], cells: &Cells, bound: Bound, deaf: bool) -> Result<Measured, Absent> {
    let (mut worst, mut at, mut count, mut over, mut left_out) = (f64::NEG_INFINITY, String::new(), 0, 0, 0);
    for scheme in of {
        for (point, cell) in cells.of(scheme, &[])? {
            let bw = cell.number("pps")?;
            let limit = bound(cell.number("rtt")?, bw, cell.number("alpha")?);
            if deaf && rtt_of_deaf_second(bw) >= limit {
                left_out += 1;
                continue;
            }
            let ratio = cell.get(super::metric::Metric::RttMean) / limit;
            count += 1;
            over += u32::from(ratio >= 1.0);
            if ratio > worst {
                (worst, at) = (ratio, format!("{scheme}, {point}"));
            }
        }
    }
    let mut text =
        format!("at most {} of the bound ({at}); at or over it in {over} of {count} runs", number(worst));
    if left_out > 0 {
        text.push_str(&format!("; {left_out} runs left out"));
    }
    Ok(Measured { value: worst, text })
}

/// The mean RTT over that of the deaf second, of the runs that [`bound`] leaves out for equation 15. The value is the largest.
fn deaf_second(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let mut ratios = Vec::new();
    for scheme in of {
        for (_, cell) in cells.of(scheme, &[])? {
            let bw = cell.number("pps")?;
            let own = rtt_of_deaf_second(bw);
            if own >= equation_15(cell.number("rtt")?, bw, cell.number("alpha")?) {
                ratios.push(cell.get(super::metric::Metric::RttMean) / own);
            }
        }
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let text = format!("{} to {}, {} runs", number(least), number(most), ratios.len());
    Ok(Measured { value: most, text })
}

/// From the series: means over the sampling interval, weighted by what left the link in it.
fn p95_outside_outages(cell: &Cell) -> Result<f64, Absent> {
    /// Below this a second is an outage; the specification's.
    const OUTAGE: f64 = 0.2e6;
    /// Seconds after an outage that are left out too; the specification's.
    const AFTER: usize = 2;
    let missing = || Absent::Nothing("the run has no such series".to_owned());
    let flow = cell.run.flows.first().ok_or_else(missing)?;
    let link = flow.bottleneck.and_then(|link| cell.run.links.get(link)).ok_or_else(missing)?;
    let column = |name: &str| link.series.get(name).ok_or_else(missing);
    let (times, capacity, departed) =
        (column("time_s")?, column("capacity_bit_s")?, column("departed_bit_s")?);
    let delay = flow.series.get("queueing_delay_mean_s").ok_or_else(missing)?;
    // A row stands for the interval that ends at its time.
    let seconds: Vec<usize> = times.iter().map(|time| (time - 1e-6).max(0.0) as usize).collect();
    let count = seconds.last().map_or(0, |last| last + 1);
    let (mut sums, mut rows) = (vec![0.0; count], vec![0.0; count]);
    for (second, capacity) in seconds.iter().zip(capacity) {
        sums[*second] += capacity;
        rows[*second] += 1.0;
    }
    let outage = |second: usize| sums[second] / f64::max(rows[second], 1.0) < OUTAGE;
    let left_out = |second: usize| (second.saturating_sub(AFTER)..=second).any(outage);
    let mut packets: Vec<(f64, f64)> = seconds
        .iter()
        .zip(delay.iter().zip(departed))
        .filter(|(second, (delay, departed))| !left_out(**second) && delay.is_finite() && **departed > 0.0)
        .map(|(_, (delay, departed))| (*delay, *departed))
        .collect();
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = packets.iter().map(|packet| packet.1).sum();
    let mut below = 0.0;
    for (delay, weight) in packets {
        below += weight;
        if below >= 0.95 * total {
            return Ok(delay);
        }
    }
    Err(missing())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::experiment::Values;
    use crate::reproduce::metric::Metric;
    use crate::synthetic;

    #[test]
    fn conditions_of_fig_2_are_the_published_ones() {
        let measured = conditions().unwrap();
        assert_eq!((measured.value, measured.text.as_str()), (1.0, "Good, Normal, Bad, Good, Normal, Good"));
        assert_eq!(history().unwrap().value, 1.0);
    }

    #[test]
    fn bounds_follow_the_equations() {
        // 500 packets/s, 18 ms and a packet of 2 ms: MINRTT 20 ms. Eq. 14 with alpha 2: 2 (20 + 1) = 42 ms; eq. 15: 60 ms.
        let places = [("rtt", "18ms"), ("pps", "500"), ("alpha", "2")];
        let places: Values =
            places.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let cell = Cell::new(places, synthetic::run("cubic", 1)).with(Metric::RttMean, 0.030);
        let mut cells = Cells::default();
        cells.enter("x", "p", Ok(cell));
        let of = |function| call(&function, &["x".to_owned()], &cells).unwrap().value;
        assert!((of(Function::C2tcpEq14) - 30.0 / 42.0).abs() < 1e-9);
        assert!((of(Function::C2tcpEq15) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn bounds_are_judged_where_the_deaf_second_does_not_exceed_them() {
        // At 500 packets/s a deaf second has 2/3 sqrt(16 / 7500) = 30.8 ms: more than equation 15 with 10 ms and alpha 1.25 (22.5 ms), less
        // than with alpha 2 (36 ms).
        let mut cells = Cells::default();
        for (alpha, rtt) in [("1.25", 0.0308), ("2", 0.018)] {
            let places = [("rtt", "10ms"), ("pps", "500"), ("alpha", alpha)];
            let places: Values =
                places.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let cell = Cell::new(places, synthetic::run("cubic", 1)).with(Metric::RttMean, rtt);
            cells.enter("x", alpha, Ok(cell));
        }
        let of = |function| call(&function, &["x".to_owned()], &cells).unwrap();
        assert!((of(Function::C2tcpEq15).value - 0.0308 / 0.0225).abs() < 1e-9);
        let judged = of(Function::C2tcpEq15Deaf);
        assert!((judged.value - 0.5).abs() < 1e-9);
        assert!(judged.text.ends_with("in 0 of 1 runs; 1 runs left out"), "{}", judged.text);
        assert!(
            (of(Function::C2tcpDeafSecond).value - 0.0308 / (2.0 / 3.0 * (16.0f64 / 7500.0).sqrt())).abs()
                < 1e-9
        );
    }

    #[test]
    fn outages_and_the_time_after_them_do_not_count() {
        let mut run = synthetic::run("cubic", 1);
        let rows = 100;
        let column = |name: &str, value: fn(usize) -> f64| ranpace_sim::Column {
            name: name.to_owned(),
            values: (1..=rows).map(value).collect(),
        };
        // 10 s in rows of 100 ms; nothing flows in second 3, and the queue is full until the end of second 5.
        run.links[0].series.columns = vec![
            column("time_s", |row| row as f64 / 10.0),
            column("capacity_bit_s", |row| if (31..=40).contains(&row) { 0.0 } else { 5e6 }),
            column("departed_bit_s", |row| if (31..=40).contains(&row) { 0.0 } else { 5e6 }),
        ];
        run.flows[0].series.columns =
            vec![column("queueing_delay_mean_s", |row| if (31..=60).contains(&row) { 1.0 } else { 0.05 })];
        run.flows[0].bottleneck = Some(0);
        let p95 = p95_outside_outages(&Cell::new(Values::new(), run)).unwrap();
        assert_eq!(p95, 0.05);
    }
}
