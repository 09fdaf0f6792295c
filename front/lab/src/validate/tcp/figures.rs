//! The figures compared of a run. Both clocks yield results of the same form, so that one function measures both.

use ranpace_sim::{FlowResult, RunResult};

/// Allowed difference of goodput, % of the kernel's (issue: 5 %).
pub const GOODPUT_PERCENT: f64 = 5.0;
/// The same for the mean RTT.
pub const RTT_PERCENT: f64 = 10.0;
/// The same for completion times.
pub const COMPLETION_PERCENT: f64 = 10.0;

/// The figures of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Goodput and mean RTT.
    Bulk,
    /// For all flows together; beside it the share of the first flow, which is not judged.
    Together,
    /// The mean completion time.
    Transfers,
}

/// A figure: its name with its unit, and its allowed difference in %; `None` if it is not judged.
pub type Measure = (&'static str, Option<f64>);

impl Figures {
    /// The figures in display order.
    pub const fn measures(self) -> &'static [Measure] {
        match self {
            Self::Bulk => &[("goodput, Mbit/s", Some(GOODPUT_PERCENT)), ("mean RTT, ms", Some(RTT_PERCENT))],
            Self::Together => &[
                ("goodput, Mbit/s", Some(GOODPUT_PERCENT)),
                ("mean RTT, ms", Some(RTT_PERCENT)),
                ("share of the first flow", None),
            ],
            Self::Transfers => &[("completion time, ms", Some(COMPLETION_PERCENT))],
        }
    }

    /// Their values in a run; `flows` is the number of flows of the scenario (others may follow them).
    pub fn of(self, result: &RunResult, flows: usize) -> Vec<f64> {
        let flows = &result.flows[..flows.min(result.flows.len())];
        let goodput = |flow: &FlowResult| flow.delivered.get() as f64 * 8e-6 / result.end.as_secs_f64();
        let total: f64 = flows.iter().map(goodput).sum();
        match self {
            Self::Bulk => vec![total, mean(flows.iter().flat_map(rtts))],
            Self::Together => {
                vec![
                    total,
                    mean(flows.iter().flat_map(rtts)),
                    flows.first().map_or(f64::NAN, goodput) / total,
                ]
            }
            Self::Transfers => {
                let transfers = flows.iter().flat_map(|flow| &flow.transfers);
                vec![mean(transfers.filter_map(|transfer| Some(transfer.completion?.as_secs_f64() * 1e3)))]
            }
        }
    }
}

/// The smoothed RTT at each sample, ms, which TCP_INFO (`tcpi_rtt`) and the simulator's sender both have.
fn rtts(flow: &FlowResult) -> impl Iterator<Item = f64> {
    let column = flow.series.get("srtt_s").unwrap_or_default();
    column.iter().filter(|rtt| rtt.is_finite()).map(|rtt| rtt * 1e3)
}

/// NaN without values.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use ranpace_sim::{Column, Series, Simulation, Transfer};
    use ranpace_units::{Bytes, Span, Time};

    use super::*;

    #[test]
    fn figures_are_means_over_existing_values() {
        let text = super::super::grid::scenario(&super::super::grid::rows(true)[0], 1);
        let text = text.replace("30s", "1s");
        let (scenario, _) = crate::TraceLibrary::default().parse(&text, "a").expect("it is right");
        let mut result = Simulation::new(&scenario).run();
        result.end = Time::from_millis(2_000);
        let mut flow = result.flows[0].clone();
        flow.delivered = Bytes::new(1_000_000);
        let values = vec![f64::NAN, 0.020, 0.040];
        flow.series = Series { columns: vec![Column { name: "srtt_s".to_owned(), values }] };
        let transfer = |ms: Option<u64>| Transfer {
            start: Time::ZERO,
            size: Bytes::new(1),
            completion: ms.map(Span::from_millis),
            handed_over: None,
        };
        flow.transfers = vec![transfer(Some(100)), transfer(Some(300)), transfer(None)];
        let mut second = flow.clone();
        second.delivered = Bytes::new(3_000_000);
        result.flows = vec![flow, second];
        assert_eq!(Figures::Bulk.of(&result, 1), [4.0, 30.0]);
        assert_eq!(Figures::Together.of(&result, 2), [16.0, 30.0, 0.25]);
        assert_eq!(Figures::Transfers.of(&result, 1), [200.0]);
        for figures in [Figures::Bulk, Figures::Together, Figures::Transfers] {
            assert_eq!(figures.of(&result, 2).len(), figures.measures().len());
        }
        result.flows.clear();
        assert!(Figures::Bulk.of(&result, 1)[1].is_nan());
    }
}
