//! Statements about the analytic models, for `reproductions/004-models` and `000-s4`. They need no runs.
//!
//! Most statements have several parts; such a statement returns the share of parts that hold, and reports each of them.

use ranpace_cc::cdbev2::filter::{THRES, filter_weight};
use ranpace_lab::cell_view::ViewError;
use ranpace_lab::number;
use ranpace_lab::reproduce::Measured;
use ranpace_units::{Rate, Span};

use crate::{
    Bits, Crossing, LossSpan, Newcomer, PacingCost, Pair, Path, Rule, Startup, Surface, TABLE_PAIRS,
    ThesisTable, Threshold, UPLOAD_SIZES, Upload, UploadPath, boundary, loss_ranges,
};

/// "Near", in smallest RTTs; ours, between the resolution of a figure and the distance of its ticks.
const NEAR: f64 = 0.75;
const SMALL_QUEUE: Threshold = Threshold::Queue(Bits::new(300_000));
const LARGE_QUEUE: Threshold = Threshold::Queue(Bits::new(1_000_000));

/// The statement with this name, as called by an experiment's `{ function = ... }`. `None` if there is none.
pub fn statement(name: &str) -> Option<Result<Measured, String>> {
    call(name).transpose()
}

fn call(name: &str) -> Result<Option<Measured>, String> {
    let at = |mbit, threshold| crossing(mbit, threshold);
    let gamma = |mbit, gamma| crossing(mbit, Threshold::Rtt(gamma));
    Ok(Some(match name {
        // Numbers of Table 7.1 that match to the printed digit.
        "model_table" => {
            let table = ThesisTable::compute().map_err(absent)?;
            let count = table.entries().count();
            Measured { value: table.exact() as f64, text: format!("{} of {count} exact", table.exact()) }
        }
        // The two that do not, as in the specification.
        "model_table_others" => {
            let table = ThesisTable::compute().map_err(absent)?;
            let others = table.entries().filter(|entry| !entry.exact);
            let expected = [("31.37", "31.73"), ("14.37", "14.56")];
            parts(others.map(|entry| {
                let shown = entry.shown();
                let holds = expected.contains(&(entry.published, shown.as_str()));
                (format!("{shown} Mb for {}", entry.published), holds)
            }))
        }
        // Bottlenecks of 1 to 150 Mbit/s at which three gains lose, with either threshold of the queue.
        "model_small_loss" => small_loss()?,
        // Bottlenecks at which four gains lose, as in the specification.
        "model_loss_ranges" => ranges()?,
        // Loss over gain and initial bandwidth, beside the published ranges.
        "model_loss_span" => {
            let view = surface()?;
            let (small, large) = (known(view.loss(0))?, known(view.loss(1))?);
            parts([
                (format!("small {}", percent(small)), small.least == 0.0 && near(small.most, 0.30, 0.05)),
                (
                    format!("large {}", percent(large)),
                    near(large.least, 0.25, 0.05) && near(large.most, 0.80, 0.05),
                ),
            ])
        }
        // Largest loss in the areas A and B over large bottlenecks.
        "model_area_loss" => area_loss(1)?,
        // Largest loss in these areas over small bottlenecks.
        "model_area_small_loss" => area_loss(0)?,
        // Loss in these areas over large bottlenecks, as in the specification.
        "model_areas" => {
            let view = surface()?;
            let (a, b) = (known(view.area_loss(0, 1))?, known(view.area_loss(1, 1))?);
            parts([
                (format!("A {}", percent(a)), percent(a) == "26.5 to 54.4 %"),
                (format!("B {}", percent(b)), percent(b) == "33.0 to 60.7 %"),
            ])
        }
        // Delay in seconds of a full buffer at 1 Mbit/s.
        "model_worst_delay" => {
            let value = ThesisTable::parameters().path.buffer.as_f64() / Rate::from_mbit_per_s(1).as_f64();
            Measured { value, text: format!("{value} s") }
        }
        // A newcomer at 1 Mbit/s.
        "model_newcomer1" => {
            let (one, three) = (gamma(1, 1.0), gamma(1, 3.0));
            parts([
                (format!("gamma 1 is seen at {:.1} RTT_min", seen(&one)), seen(&one) <= 2.0 + 1e-9),
                (format!("gamma 3 at {:.2} times the share", three.share_ratio), three.share_ratio > 2.0),
            ])
        }
        // At 5 Mbit/s, with gamma 1 and 3.
        "model_newcomer5" => {
            let (one, three) = (gamma(5, 1.0), gamma(5, 3.0));
            parts([
                (format!("gamma 1 at {:.1} RTT_min", time(&one)), near(time(&one), 3.0, NEAR)),
                (format!("{:.2} times the share", one.share_ratio), near(one.share_ratio, 1.0, 0.2)),
                (format!("gamma 3 at {:.2} times", three.share_ratio), near(three.share_ratio, 3.0, 0.2)),
            ])
        }
        // At 5 Mbit/s, gamma 2: smallest RTTs until the sender sees it.
        "model_newcomer5_gamma2" => {
            let two = gamma(5, 2.0);
            let text = format!("crossed at {:.1}, seen at {:.1} RTT_min", time(&two), seen(&two));
            Measured { value: seen(&two), text }
        }
        // At 5 Mbit/s, a threshold of 300 kb: the ratio of the shares.
        "model_newcomer5_queue" => {
            let ratio = at(5, SMALL_QUEUE).share_ratio;
            Measured { value: ratio, text: format!("{ratio:.2} times the share, gamma 3: 3 times") }
        }
        // At 20 Mbit/s, gamma 1 and 2.
        "model_newcomer20" => {
            let (one, two) = (gamma(20, 1.0), gamma(20, 2.0));
            parts([
                (format!("gamma 1 is seen at {:.1} RTT_min", seen(&one)), near(seen(&one), 6.0, NEAR)),
                (format!("gamma 2 at {:.1}", seen(&two)), near(seen(&two), 9.0, NEAR)),
            ])
        }
        // At 20 Mbit/s, both thresholds of the queue.
        "model_newcomer20_queue" => {
            let (small, large) = (at(20, SMALL_QUEUE).share_ratio, at(20, LARGE_QUEUE).share_ratio);
            parts([
                (format!("300 kb: {small:.2} times the share"), small > 1.0 && small < 1.5),
                (format!("1 Mb: {large:.2}"), near(large, 3.0, 0.5)),
            ])
        }
        // At 150 Mbit/s, a threshold of 1 Mb.
        "model_newcomer150" => {
            let crossing = at(150, LARGE_QUEUE);
            let queue_mb = crossing.queue_bits / 1e6;
            parts([
                (
                    format!("{:.2} times the share", crossing.share_ratio),
                    (0.5..1.0).contains(&crossing.share_ratio),
                ),
                (format!("queue {queue_mb:.1} Mb"), near(queue_mb, 2.0, 0.5)),
            ])
        }
        // From 150 Mbit/s on, Thres1 is never first.
        "model_newcomer_thres1" => thres1(),
        // At 500 Mbit/s, as in the specification.
        "model_newcomer500" => {
            let shown = |threshold| {
                let crossing = at(500, threshold);
                format!("{:.2} ({:.2} seen)", time(&crossing), seen(&crossing))
            };
            let (small, large) = (shown(SMALL_QUEUE), shown(LARGE_QUEUE));
            parts([
                (format!("300 kb: {small}"), small == "6.02 (7.21 seen)"),
                (format!("1 Mb: {large} RTT_min"), large == "7.05 (8.44 seen)"),
            ])
        }
        // At 500 Mbit/s: time with 300 kb less that with 1 Mb, in smallest RTTs.
        "model_newcomer500_order" => {
            let (small, large) = (time(&at(500, SMALL_QUEUE)), time(&at(500, LARGE_QUEUE)));
            Measured {
                value: small - large,
                text: format!("1 Mb at {large:.2}, 300 kb at {small:.2} RTT_min"),
            }
        }
        // The filter's weight at 20 ms with both horizons, as in the specification.
        "model_filter" => {
            let (one, two) = (weight(1.0), weight(2.0));
            parts([
                (format!("{one:.3} with n = RTT_min / TW"), format!("{one:.3}") == "0.684"),
                (format!("{two:.3} with n = 4"), format!("{two:.3}") == "0.438"),
            ])
        }
        // The filter's weight at 20 ms with 7.9 as printed.
        "model_filter_printed" => Measured { value: weight(1.0), text: format!("{:.3}", weight(1.0)) },
        // Smallest ratio of SIGMA's equation 3.5 as printed to the link's time, over the sizes of Fig. 3.7.
        "model_printed_upload" => printed_over_link(),
        // The points at which Poisson traffic costs least, and at which it costs more than bursty traffic.
        "model_poisson" => {
            let costs = PacingCost { capacity: 100.0, step: 1.0 };
            let (best, worse) = (costs.best_load(), costs.worse_than_bursty());
            let least = costs.at(best).total_poisson.unwrap_or(f64::NAN);
            let total = |load| costs.at(load).total_poisson.unwrap_or(f64::INFINITY);
            parts([
                (format!("least at {best}"), best == 90.0 && total(89.9) > least && total(90.1) > least),
                (format!("cost {least:.2}"), near(least, 0.19, 1e-9)),
                (format!("over 1 above {worse}"), worse == 99.0 && total(98.99) < 1.0 && total(99.01) > 1.0),
            ])
        }
        _ => return Ok(None),
    }))
}

fn printed_over_link() -> Measured {
    let model = Upload { path: UploadPath::THESIS, sizes: UPLOAD_SIZES.to_vec() };
    let each = UPLOAD_SIZES.map(|size| {
        let row = model.at(size);
        (row.max_printed_s / row.link_s, size)
    });
    let (value, size) =
        each.into_iter().fold((f64::INFINITY, 0.0), |least, one| if one.0 < least.0 { one } else { least });
    Measured { value, text: format!("{} of what the link needs at {size} BDP", number(value)) }
}

fn absent(error: ViewError) -> String {
    error.to_string()
}

fn known(span: Option<LossSpan>) -> Result<LossSpan, String> {
    span.ok_or_else(|| "there is no such range".to_owned())
}

/// The share of parts that hold, and the result of each.
fn parts(all: impl IntoIterator<Item = (String, bool)>) -> Measured {
    let (mut count, mut holding, mut texts) = (0, 0, Vec::new());
    for (text, holds) in all {
        count += 1;
        holding += u32::from(holds);
        texts.push(if holds { text } else { format!("{text} (does not hold)") });
    }
    Measured { value: f64::from(holding) / f64::from(count.max(1)), text: texts.join("; ") }
}

fn near(value: f64, expected: f64, distance: f64) -> bool {
    (value - expected).abs() <= distance
}

fn percent(span: LossSpan) -> String {
    format!("{:.1} to {:.1} %", span.least * 100.0, span.most * 100.0)
}

fn surface() -> Result<crate::SurfaceView, String> {
    Surface { startup: ThesisTable::parameters() }.view().map_err(absent)
}

/// The largest loss in both areas, over small (0) or large bottlenecks (1).
fn area_loss(range: usize) -> Result<Measured, String> {
    let view = surface()?;
    let (a, b) = (known(view.area_loss(0, range))?, known(view.area_loss(1, range))?);
    Ok(Measured { value: a.most.max(b.most), text: format!("A {}, B {}", percent(a), percent(b)) })
}

/// The single flow with these gains, from 1 Mbit/s, over the thesis's bottlenecks.
fn of_gains(gains: &[f64], queue_threshold: Bits) -> Result<crate::StartupView, String> {
    let parameters = ThesisTable::parameters();
    let pairs = gains.iter().map(|gain| Pair { gain: *gain, initial: Rate::from_mbit_per_s(1) }).collect();
    let path = Path { queue_threshold, ..parameters.path };
    Startup { pairs, path, ..parameters }.view().map_err(absent)
}

fn small_loss() -> Result<Measured, String> {
    let mut lost = 0;
    for queue_threshold in [Bits::new(200_000), Bits::new(1_000_000)] {
        for of in of_gains(&[2.0, 2.77, 2.88], queue_threshold)?.pairs {
            let small = of.outcomes.iter().filter(|(rate, _)| *rate <= crate::SMALL_TO);
            lost += small.filter(|(_, outcome)| outcome.lost).count();
        }
    }
    Ok(Measured { value: lost as f64, text: format!("{lost} of 900, threshold 0.2 and 1 Mb") })
}

fn ranges() -> Result<Measured, String> {
    let expected: [&[(u64, u64)]; 4] =
        [&[(256, 353)], &[(231, 342)], &[(164, 293), (452, 500)], &[(199, 412)]];
    let view = of_gains(&[2.0, 2.175, 2.77, 2.88], Bits::new(200_000))?;
    Ok(parts(view.pairs.iter().zip(expected).map(|(of, expected)| {
        let mbit = |rate: Rate| rate.bits_per_s() / 1_000_000;
        let found: Vec<(u64, u64)> =
            loss_ranges(&of.outcomes).into_iter().map(|(from, to)| (mbit(from), mbit(to))).collect();
        let shown: Vec<String> = found.iter().map(|(from, to)| format!("{from} to {to}")).collect();
        (format!("{}: {}", of.pair.gain, shown.join(", ")), found == expected)
    })))
}

fn newcomer() -> Newcomer {
    Newcomer {
        gain: TABLE_PAIRS[2].gain,
        initial: TABLE_PAIRS[2].initial,
        gamma: 1.0,
        queue_threshold: Bits::new(1_000_000),
        buffer: ThesisTable::parameters().path.buffer,
        bottlenecks: Vec::new(),
        rtt_mins: Vec::new(),
    }
}

/// The smallest RTT that is consistent with the text about Figs. 7.8 to 7.13; the thesis does not state it.
const RTT_MIN: Span = Span::from_millis(20);

fn crossing(mbit: u64, threshold: Threshold) -> Crossing {
    newcomer().case(Rate::from_mbit_per_s(mbit), RTT_MIN).crossing(threshold)
}

fn time(crossing: &Crossing) -> f64 {
    crossing.time_s / RTT_MIN.as_secs_f64()
}

fn seen(crossing: &Crossing) -> f64 {
    crossing.seen_s / RTT_MIN.as_secs_f64()
}

/// Thres1 is first up to a bottleneck; from 150 Mbit/s on it never is.
fn thres1() -> Measured {
    let newcomer = newcomer();
    let first = |gamma: f64| {
        (150..=500).any(|mbit| {
            let case = newcomer.case(Rate::from_mbit_per_s(mbit), RTT_MIN);
            case.exit(gamma, newcomer.queue_threshold, newcomer.buffer).rule == Rule::Thres1
        })
    };
    parts([1.0, 2.0].map(|gamma| {
        let mbit = boundary(gamma, newcomer.queue_threshold) / RTT_MIN.as_secs_f64() / 1e6;
        (format!("gamma {gamma}: first below {mbit:.1} Mbit/s"), mbit < 150.0 && !first(gamma))
    }))
}

fn weight(k: f64) -> f64 {
    filter_weight(RTT_MIN, Span::from_millis(10), k, THRES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_lab::reproduce::{Function, Measure};

    #[test]
    fn parts_that_do_not_hold_are_named() {
        let measured = parts([("a".to_owned(), true), ("b".to_owned(), false)]);
        assert_eq!((measured.value, measured.text.as_str()), (0.5, "a; b (does not hold)"));
    }

    #[test]
    fn statements_give_what_the_specification_has() {
        for (function, value, text) in [
            ("model_table", 13.0, "13 of 15 exact"),
            ("model_table_others", 1.0, "31.73 Mb for 31.37; 14.56 Mb for 14.37"),
            ("model_small_loss", 0.0, "0 of 900"),
            ("model_loss_ranges", 1.0, "2.77: 164 to 293, 452 to 500"),
            ("model_loss_span", 1.0, "small 0.0 to 31.3 %"),
            ("model_areas", 1.0, "A 26.5 to 54.4 %; B 33.0 to 60.7 %"),
            ("model_worst_delay", 48.0, "48 s"),
            ("model_newcomer1", 1.0, "gamma 1 is seen at 2.0 RTT_min"),
            ("model_newcomer5", 1.0, "gamma 1 at 2.8 RTT_min"),
            ("model_newcomer20", 1.0, "6.7"),
            ("model_newcomer20_queue", 1.0, "1.32"),
            ("model_newcomer150", 1.0, "queue 2.3 Mb"),
            ("model_newcomer_thres1", 1.0, "first below 37.5 Mbit/s"),
            ("model_newcomer500", 1.0, "300 kb: 6.02 (7.21 seen)"),
            ("model_filter", 1.0, "0.684"),
            ("model_poisson", 1.0, "least at 90"),
        ] {
            let found = statement(function).unwrap().unwrap();
            assert_eq!(found.value, value, "{function}: {}", found.text);
            assert!(found.text.contains(text), "{function}: {}", found.text);
        }
        let value = |function| statement(function).unwrap().unwrap().value;
        // SIGMA's printed equation is faster than the link.
        let printed = statement("model_printed_upload").unwrap().unwrap();
        assert!(near(printed.value, 0.506, 1e-3) && printed.text.ends_with("at 2 BDP"), "{printed:?}");
        assert!(value("model_area_loss") > 0.6);
        assert!(near(value("model_area_small_loss"), 0.1, 1e-12));
        assert!(value("model_newcomer500_order") < -1.0);
        assert!(near(value("model_newcomer5_gamma2"), 7.5, 0.05));
        assert!(near(value("model_newcomer5_queue"), 3.79, 0.005));
        assert!(near(value("model_filter_printed"), 0.684, 0.0005));
    }

    #[test]
    fn experiments_call_statements_that_exist() {
        let experiments = ranpace_lab::reproduce::experiments().unwrap();
        let measures = experiments.iter().flat_map(|experiment| &experiment.criteria);
        for criterion in measures {
            if let Some(Measure::Function { function: Function::Named(name), .. }) = &criterion.measure {
                assert!(statement(name).is_some(), "{}: there is no statement {name:?}", criterion.id);
            }
        }
    }
}
