//! Figures of how well a control's bandwidth tracks what the radio link of a single user delivers, from the series.
//!
//! Zhong (004), sections 5.2.2 and 5.3.2 give no numbers; the comparison of the curves is ours. Averages begin a second after the
//! first data, because before that there is nothing to track.

use ranpace_sim::{FlowResult, RunResult};

use super::series::{correlation, row_count as rows, step, trailing};
use super::{Entry, run};
use crate::figures::Quantity::{Rate, Share, Time};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    run(
        "control_bandwidth",
        "bandwidth in use",
        Rate,
        "The bandwidth that the first flow's control works with, mean over the run from its first report or sample.",
        |scope| control_bandwidth(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "phy_rate",
        "PHY rate",
        Rate,
        "Bits in the first user's transport blocks per second, mean from the first flow's first data on.",
        |scope| phy_rate(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "served_phy_rate",
        "PHY rate, served",
        Rate,
        "Bits in the first user's transport blocks over the time of the slots in which something was sent to that user.",
        |scope| served_phy_rate(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "served_report",
        "report, served",
        Rate,
        "The estimate of the first flow's receiver, mean over the rows in which something was sent to it.",
        |scope| served_report(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "receiver_report",
        "report",
        Rate,
        "The estimate of the first flow's receiver, mean over the run.",
        |scope| receiver_report(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "rlc_rate",
        "RLC rate",
        Rate,
        "Rate at which data leaves the first user's radio downlink, mean from the first flow's first data on.",
        |scope| rlc_rate(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "tracking_error",
        "tracking error",
        Share,
        "Mean distance of the bandwidth in use from the RLC rate of the last 100 ms, over the mean RLC rate.",
        |scope| tracking_error(scope.run).unwrap_or(f64::NAN),
    ),
    run(
        "report_lag",
        "lag of the report",
        Time,
        "Lag at which the receiver's estimate correlates best with the PHY rate.",
        |scope| report_lag(scope.run).unwrap_or(f64::NAN),
    ),
];

/// Left out at the beginning, in seconds.
const SETTLE_S: f64 = 1.0;
/// The RLC rate used as reference is a mean over this time, in seconds.
const SMOOTH_S: f64 = 0.1;
/// Largest lag considered, in seconds.
const MOST_LAG_S: f64 = 0.2;
/// A report is a mean over this time and valid for as long, in seconds (section 5.3.2).
const REPORT_S: f64 = 0.05;
/// A correlation below this many standard deviations of chance has no lag.
const BEYOND_CHANCE: f64 = 3.0;

/// Column with a control's bandwidth in bit/s.
const BANDWIDTH: &str = "state_bw_bit_s";
/// Column with a receiver's estimate in bit/s.
const ESTIMATE: &str = "receiver_estimate_bit_s";

/// The bandwidth used by a control, row by row, in bit/s.
pub(super) fn bandwidth(run: &RunResult, flow: &FlowResult) -> Option<Vec<f64>> {
    if let Some(column) = flow.series.get(BANDWIDTH) {
        return Some(column.to_vec());
    }
    // BBR counts segments; each is taken to be as large on the wire as the mean packet of the first link.
    let link = run.links.first()?;
    let wire = stats::ratio(link.departed.as_f64(), link.departed_packets as f64)?;
    let segments = flow.series.get("state_bw_segments_per_s")?;
    Some(segments.iter().map(|segments| segments * wire * 8.0).collect())
}

/// The receiver's report, row by row, in bit/s.
pub(super) fn estimate(flow: &FlowResult) -> Option<&[f64]> {
    flow.series.get(ESTIMATE)
}

/// The radio downlink's departures for the user of this place, row by row, in bit/s.
pub(super) fn rlc(run: &RunResult, user: usize) -> Option<&[f64]> {
    let name = format!("{}.down", run.users.get(user)?.name);
    run.links.iter().find(|link| link.name == name)?.series.get("departed_bit_s")
}

/// Returns whether a row is averaged.
fn counts(flow: &FlowResult) -> impl Fn(&f64) -> bool {
    let begin = flow.totals.first_sent.map_or(f64::INFINITY, |first| first.as_secs_f64() + SETTLE_S);
    move |time| *time > begin
}

fn mean_of(flow: &FlowResult, column: &[f64]) -> Option<f64> {
    let (time, counts) = (flow.series.get("time_s")?, counts(flow));
    let rows = time.iter().zip(column).filter(|(time, value)| counts(time) && value.is_finite());
    stats::mean(&rows.map(|(_, value)| *value).collect::<Vec<_>>())
}

fn control_bandwidth(run: &RunResult) -> Option<f64> {
    let flow = run.flows.first()?;
    mean_of(flow, &bandwidth(run, flow)?)
}

/// Blocks of HARQ's retransmissions count, at the mean size of the others.
fn phy_rate(run: &RunResult) -> Option<f64> {
    let (flow, user) = (run.flows.first()?, run.users.first()?);
    let again = stats::ratio(user.downlink.retransmissions as f64, user.downlink.blocks as f64)?;
    Some(mean_of(flow, user.series.get("scheduled_bit_s")?)? * (1.0 + again))
}

/// Blocks are sent in slots of 1 ms, as in LTE.
fn served_phy_rate(run: &RunResult) -> Option<f64> {
    const TTI_S: f64 = 1e-3;
    let link = &run.users.first()?.downlink;
    Some(stats::ratio(link.scheduled.as_f64() * 8.0, link.blocks as f64)? / TTI_S)
}

fn served_report(run: &RunResult) -> Option<f64> {
    let (flow, user) = (run.flows.first()?, run.users.first()?);
    let served = user.series.get("scheduled_bit_s")?;
    let heard = estimate(flow)?.iter().zip(served);
    let heard = heard.map(|(own, served)| if *served > 0.0 { *own } else { f64::NAN });
    mean_of(flow, &heard.collect::<Vec<_>>())
}

fn receiver_report(run: &RunResult) -> Option<f64> {
    let flow = run.flows.first()?;
    mean_of(flow, estimate(flow)?)
}

fn rlc_rate(run: &RunResult) -> Option<f64> {
    mean_of(run.flows.first()?, rlc(run, 0)?)
}

fn tracking_error(run: &RunResult) -> Option<f64> {
    let flow = run.flows.first()?;
    let (time, rlc) = (flow.series.get("time_s")?, rlc(run, 0)?);
    let smooth = trailing(rlc, rows(time, SMOOTH_S)?);
    let bandwidth = bandwidth(run, flow)?;
    let errors: Vec<f64> = bandwidth.iter().zip(&smooth).map(|(own, rlc)| (own - rlc).abs()).collect();
    stats::ratio(mean_of(flow, &errors)?, mean_of(flow, rlc)?)
}

/// None if the highest correlation could be chance: the lag of a constant rate is noise. For n reports unrelated to the rate the
/// correlation has a standard deviation of 1/sqrt(n).
fn report_lag(run: &RunResult) -> Option<f64> {
    let (flow, user) = (run.flows.first()?, run.users.first()?);
    let (time, phy) = (flow.series.get("time_s")?, user.series.get("scheduled_bit_s")?);
    let (estimate, counts) = (estimate(flow)?, counts(flow));
    let begin = time.iter().position(counts)?;
    let known = estimate[begin..].iter().filter(|own| own.is_finite()).count();
    let chance = BEYOND_CHANCE / (known as f64 * step(time)? / REPORT_S).sqrt();
    let best = (0..=rows(time, MOST_LAG_S)?)
        .filter(|lag| *lag <= begin)
        .filter_map(|lag| {
            let pairs: Vec<(f64, f64)> = (begin..time.len())
                .map(|row| (estimate[row], phy[row - lag]))
                .filter(|(own, phy)| own.is_finite() && phy.is_finite())
                .collect();
            Some((correlation(&pairs)?, lag))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > chance).then_some(best.1 as f64 * step(time)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_sim::{Column, RadioLinkResult, Series, UserResult};
    use ranpace_units::{Bytes, Rate, Time};

    fn column(name: &str, rows: usize, value: impl Fn(usize) -> f64) -> Column {
        Column { name: name.to_owned(), values: (0..rows).map(value).collect() }
    }

    /// Rows of 5 ms; the PHY rate wanders, the estimate follows 40 ms later, and the control has 10 % more than RLC.
    fn run() -> RunResult {
        let rows = 1_000;
        let phy = |row: usize| 30e6 + 1e6 * ((row * row % 977) as f64 / 97.7);
        let mut run = synthetic::run("dcic", 1);
        run.flows[0].totals.first_sent = Some(Time::from_millis(500));
        run.flows[0].series.columns = vec![
            column("time_s", rows, |row| (row + 1) as f64 * 0.005),
            column("state_bw_bit_s", rows, |_| 22e6),
            column("receiver_estimate_bit_s", rows, |row| phy(row.saturating_sub(8))),
        ];
        run.links[0].name = "phone.down".to_owned();
        run.links[0].series.columns = vec![column("departed_bit_s", rows, |_| 20e6)];
        let link = RadioLinkResult {
            scheduled: Bytes::ZERO,
            blocks: 90,
            retransmissions: 9,
            lost_blocks: 0,
            bearer_failures: 0,
            rlc_sent_again: 0,
            rate_alone: Rate::ZERO,
        };
        let series = Series { columns: vec![column("scheduled_bit_s", rows, phy)] };
        run.users = vec![UserResult {
            name: "phone".to_owned(),
            cell: None,
            downlink: link,
            uplink: link,
            handovers: 0,
            out_of_service: None,
            series,
        }];
        run
    }

    #[test]
    fn bandwidth_error_and_lag_are_found() {
        let run = run();
        assert_eq!(control_bandwidth(&run).unwrap(), 22e6);
        assert_eq!(rlc_rate(&run).unwrap(), 20e6);
        assert!((tracking_error(&run).unwrap() - 0.1).abs() < 1e-9);
        assert!((report_lag(&run).unwrap() - 0.040).abs() < 1e-9);
        assert!((phy_rate(&run).unwrap() / 35e6 / 1.1 - 1.0).abs() < 0.02, "{}", phy_rate(&run).unwrap());
    }

    #[test]
    fn lag_within_chance_is_reported_as_none() {
        // From 1.5 s on 3.5 s are 70 reports of 50 ms: three deviations are 0.36.
        let mut run = run();
        let noise = |row: usize| ((row * 7_919 + row * row * 104_729) % 1_009) as f64;
        run.flows[0].series.columns[2] =
            column("receiver_estimate_bit_s", 1_000, |row| 30e6 + noise(row / 10));
        assert_eq!(report_lag(&run), None);
        let follows = |row: usize| noise((row / 10).saturating_sub(1));
        run.users[0].series.columns = vec![column("scheduled_bit_s", 1_000, |row| 30e6 + noise(row / 10))];
        run.flows[0].series.columns[2] = column("receiver_estimate_bit_s", 1_000, follows);
        assert!((report_lag(&run).unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_report_of_served_slots_leaves_out_the_others() {
        let mut run = run();
        run.users[0].downlink.scheduled = Bytes::new(90 * 2_000);
        assert!((served_phy_rate(&run).unwrap() - 16e6).abs() < 1e-3);
        assert!((receiver_report(&run).unwrap() - served_report(&run).unwrap()).abs() < 1e-3);
        for row in (0..1_000).step_by(2) {
            run.users[0].series.columns[0].values[row] = 0.0;
            run.flows[0].series.columns[2].values[row] = 0.0;
        }
        assert!((receiver_report(&run).unwrap() * 2.0 / served_report(&run).unwrap() - 1.0).abs() < 0.01);
    }

    #[test]
    fn bbr_counts_segments() {
        let mut run = run();
        run.flows[0].series.columns[1].name = "state_bw_segments_per_s".to_owned();
        run.flows[0].series.columns[1].values.fill(1_000.0);
        (run.links[0].departed, run.links[0].departed_packets) = (Bytes::new(14_520), 10);
        assert!((control_bandwidth(&run).unwrap() - 1_000.0 * 1_452.0 * 8.0).abs() < 1e-3);
    }

    #[test]
    fn constant_series_has_no_correlation() {
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(trailing(&[1.0, 3.0, 5.0], 2), [1.0, 2.0, 4.0]);
    }
}
