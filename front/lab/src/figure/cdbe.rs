//! Figures of CDBE's states, for each flow that delivered anything (Zhong 2020, section 6.4, Fig. 6.6).

use ranpace_sim::FlowResult;

use super::estimator::of_flows;
use super::scope::Scope;
use super::series::column;
use super::tracking::bandwidth;
use super::{Entry, each};
use crate::figures::Quantity::Plain;

pub(super) const FIGURES: &[Entry] = &[
    each("startup_growth", Plain, "Mean growth of rBW in an RTT_min in STARTUP.", |scope| {
        of_flows(scope, startup_growth)
    }),
    each(
        "visits_all_states",
        Plain,
        "1 if the flow visits NORMAL, GROW and DRAIN after STARTUP, else 0.",
        |scope| of_flows(scope, |_, flow| visits_all_states(flow)),
    ),
    each(
        "grow_ends_with_rise",
        Plain,
        "For each time in GROW: 1 if it ends after DSDL has risen, else 0.",
        |scope| {
            let flows = scope.run.flows.iter().filter(|flow| flow.delivered.get() > 0);
            Ok(flows.map(grow_ends).collect::<Result<Vec<_>, _>>()?.concat())
        },
    ),
    each(
        "longest_without_drain",
        Plain,
        "Longest time with DSDL above 1.25 DSDL_min without a DRAIN, in RTT_min.",
        |scope| of_flows(scope, |_, flow| without_drain(flow)),
    ),
];

/// CDBE's states, as its server shows them; the remaining one, NORMAL, is 1.
const STARTUP: f64 = 0.0;
const DRAIN: f64 = 2.0;
const GROW: f64 = 3.0;

/// From the first to the last row of the first STARTUP; the last is where rBW peaked.
fn startup_growth(scope: &Scope<'_>, flow: &FlowResult) -> Result<f64, String> {
    let (time, state) = (column(flow, "time_s")?, column(flow, "state_state")?);
    let rates = bandwidth(scope.run, flow).ok_or_else(|| "the run has no bandwidth".to_owned())?;
    let rtt = column(flow, "state_min_rtt_s")?;
    let begin = state.iter().position(|state| *state == STARTUP);
    let begin = begin.ok_or_else(|| "the run has no STARTUP".to_owned())?;
    let end = (begin..state.len()).find(|row| state[*row] != STARTUP).unwrap_or(state.len());
    // rBW stays constant until the first reports about data arrive.
    let still = (begin..end).rev().find(|row| rates[*row] <= rates[begin]).unwrap_or(begin);
    let highest = (still..end).max_by(|a, b| rates[*a].total_cmp(&rates[*b])).unwrap_or(still);
    if highest == still {
        return Ok(1.0);
    }
    let spans = ((time[highest] - time[still]) / rtt[highest]).max(1.0);
    Ok(libm::exp(libm::log(rates[highest] / rates[still]) / spans))
}

fn visits_all_states(flow: &FlowResult) -> Result<f64, String> {
    let after = column(flow, "state_state")?.iter().skip_while(|state| **state == STARTUP || state.is_nan());
    let seen: Vec<i64> = after.filter(|state| state.is_finite()).map(|state| *state as i64).collect();
    Ok(f64::from(u8::from([1, 2, 3].iter().all(|state| seen.contains(state)))))
}

/// DSDL of the evaluation that ended GROW over that of the previous one.
fn grow_ends(flow: &FlowResult) -> Result<Vec<f64>, String> {
    let (state, delay) = (column(flow, "state_state")?, column(flow, "state_dsdl_mean_s")?);
    let least = column(flow, "state_dsdl_min_s")?;
    let ends =
        (1..state.len()).filter(|row| state[row - 1] == GROW && ![GROW, STARTUP].contains(&state[*row]));
    // Above the previous evaluation, or above the threshold of 1.25 of the smallest.
    let risen = |row: usize| delay[row] > delay[row - 1] || delay[row] > 1.25 * least[row];
    Ok(ends.map(|row| f64::from(u8::from(risen(row)))).collect())
}

fn without_drain(flow: &FlowResult) -> Result<f64, String> {
    let (time, state) = (column(flow, "time_s")?, column(flow, "state_state")?);
    let (delay, least) = (column(flow, "state_dsdl_mean_s")?, column(flow, "state_dsdl_min_s")?);
    let rtt = column(flow, "state_min_rtt_s")?;
    let (mut since, mut longest) = (None, 0.0_f64);
    for row in 0..time.len() {
        // DRAIN cannot occur in STARTUP.
        let high = delay[row] > 1.25 * least[row] && state[row] != DRAIN && state[row] != STARTUP;
        since = if high { since.or(Some(time[row])) } else { None };
        if let Some(since) = since {
            longest = longest.max((time[row] - since) / rtt[row]);
        }
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{column, run, value};

    /// STARTUP for 1 s with rBW growing by a quarter in each RTT of 100 ms from 0.2 s on; then NORMAL, GROW, NORMAL, DRAIN.
    #[test]
    fn states_and_growth_are_extracted_from_series() {
        let state = |row: usize| match row {
            ..100 => 0.0,
            100..150 => 1.0,
            150..170 => 3.0,
            170..200 => 1.0,
            _ => 2.0,
        };
        let growth = |row: usize| 8e6 * libm::pow(1.25, (row.clamp(20, 99) as f64 - 20.0) / 10.0);
        let delay = |row: usize| if (170..200).contains(&row) { 0.080 } else { 0.055 };
        let run = run(
            300,
            vec![
                column("state_state", 300, state),
                column("state_bw_bit_s", 300, growth),
                column("state_min_rtt_s", 300, |_| 0.1),
                column("state_dsdl_mean_s", 300, delay),
                column("state_dsdl_min_s", 300, |_| 0.050),
            ],
        );
        assert!((value("startup_growth", &run, &[]) - 1.25).abs() < 1e-6);
        assert_eq!(value("visits_all_states", &run, &[]), 1.0);
        assert_eq!(value("grow_ends_with_rise", &run, &[]), 1.0);
        // From row 170 to row 199.
        assert!((value("longest_without_drain", &run, &[]) - 2.9).abs() < 1e-6);
    }
}
