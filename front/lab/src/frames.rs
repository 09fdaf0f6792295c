//! The tables of a run: maps its results to the files of its folder, and back.

use ranpace_sim::{Distribution, FlowResult, RunResult, Transfer};
use ranpace_units::{Bytes, Span, Time};

use crate::columnar::{Cells, ColumnarError, Frame};
use crate::summary::FlowSummary;

/// Every table of a run, with its file name.
pub fn of_run(run: &RunResult) -> Vec<(String, Frame)> {
    let mut files = vec![("flows.parquet".to_owned(), flows(run))];
    for (index, flow) in run.flows.iter().enumerate() {
        files.push((format!("flow-{index}.parquet"), Frame::of_series(&flow.series)));
    }
    for (index, link) in run.links.iter().enumerate() {
        files.push((format!("link-{index}.parquet"), Frame::of_series(&link.series)));
    }
    for (index, user) in run.users.iter().enumerate() {
        files.push((format!("user-{index}.parquet"), Frame::of_series(&user.series)));
    }
    files.push(("distributions.parquet".to_owned(), distributions(run)));
    if run.flows.iter().any(|flow| !flow.transfers.is_empty()) {
        files.push(("transfers.parquet".to_owned(), transfers(run)));
    }
    files.retain(|(_, frame)| !frame.columns.is_empty());
    files
}

/// Restores a table to its place in the results; `flows.parquet` repeats the summary and is ignored.
pub fn into_run(run: &mut RunResult, name: &str, frame: Frame) -> Result<(), ColumnarError> {
    let index = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix(".parquet")?.parse::<usize>().ok();
    if let Some(flow) = index("flow-").and_then(|index| run.flows.get_mut(index)) {
        flow.series = frame.into_series();
    } else if let Some(link) = index("link-").and_then(|index| run.links.get_mut(index)) {
        link.series = frame.into_series();
    } else if let Some(user) = index("user-").and_then(|index| run.users.get_mut(index)) {
        user.series = frame.into_series();
    } else if name == "distributions.parquet" {
        into_distributions(run, &frame)?;
    } else if name == "transfers.parquet" {
        into_transfers(run, &frame)?;
    }
    Ok(())
}

type TimeOf = fn(&Distribution) -> Span;

/// A row per flow, with the figures of the summary.
fn flows(run: &RunResult) -> Frame {
    let rows: Vec<FlowSummary> = run.flows.iter().map(FlowSummary::of).collect();
    let whole = |name: &str, value: fn(&FlowSummary) -> u64| {
        (name.to_owned(), Cells::Whole(rows.iter().map(|row| i64::try_from(value(row)).ok()).collect()))
    };
    let real = |name: &str, value: fn(&FlowSummary) -> Option<f64>| {
        (name.to_owned(), Cells::Real(rows.iter().map(value).collect()))
    };
    let text = |name: &str, value: fn(&FlowSummary) -> &String| {
        (name.to_owned(), Cells::Text(rows.iter().map(|row| value(row).clone()).collect()))
    };
    let time = |name: &str, quantity: &str, which: fn(&FlowSummary) -> &Distribution| {
        let figures: [(&str, TimeOf); 6] = [
            ("mean", |d| d.mean),
            ("min", |d| d.min),
            ("p50", |d| d.p50),
            ("p95", |d| d.p95),
            ("p99", |d| d.p99),
            ("max", |d| d.max),
        ];
        let samples = rows.iter().map(|row| i64::try_from(which(row).count).ok()).collect();
        let mut columns = vec![(format!("{name}_{quantity}"), Cells::Whole(samples))];
        columns.extend(figures.map(|(figure, value)| {
            let known = |own: &Distribution| (own.count > 0).then(|| value(own).as_secs_f64());
            (format!("{name}_{figure}_s"), Cells::Real(rows.iter().map(|row| known(which(row))).collect()))
        }));
        columns
    };
    let mut columns = vec![
        text("name", |row| &row.name),
        text("cc", |row| &row.cc),
        real("measured_s", |row| Some(row.measured_s)),
        whole("delivered_bytes", |row| row.delivered_bytes),
        whole("goodput_bit_s", |row| row.goodput_bit_s),
        whole("bottleneck_bytes", |row| row.bottleneck_bytes),
        whole("sent_packets", |row| row.sent_packets),
        whole("retransmitted_packets", |row| row.retransmitted_packets),
        real("retransmission_rate", |row| row.retransmission_rate),
        whole("dropped_packets", |row| row.dropped_packets),
        real("loss_rate", |row| row.loss_rate),
        whole("timeouts", |row| row.timeouts),
        whole("undone", |row| row.undone),
        whole("marked_packets", |row| row.marked_packets),
    ];
    columns.extend(time("rtt", "samples", |row| &row.rtt));
    columns.extend(time("queueing_delay", "packets", |row| &row.queueing_delay));
    columns.extend([
        real("jitter_ewma_s", |row| Some(row.jitter_ewma_s)),
        real("jitter_mean_deviation_s", |row| Some(row.jitter_mean_deviation_s)),
        whole("transfers_begun", |row| row.transfers.begun),
        whole("transfers_completed", |row| row.transfers.completed),
        real("completion_mean_s", |row| row.transfers.completion_mean_s),
        real("completion_max_s", |row| row.transfers.completion_max_s),
        real("lost_at_s", |row| row.lost.as_ref().map(|lost| lost.at.as_secs_f64())),
    ]);
    Frame { columns }
}

/// The distributions of a run: "flow" or "link", its index, and the quantity.
fn places(run: &RunResult) -> Vec<(&'static str, usize, &'static str)> {
    let flows =
        (0..run.flows.len()).flat_map(|index| [("flow", index, "rtt"), ("flow", index, "queueing_delay")]);
    flows.chain((0..run.links.len()).map(|index| ("link", index, "queueing_delay"))).collect()
}

fn at<'a>(run: &'a mut RunResult, place: &str, index: usize, quantity: &str) -> Option<&'a mut Distribution> {
    match (place, quantity) {
        ("flow", "rtt") => run.flows.get_mut(index).map(|flow| &mut flow.rtt),
        ("flow", "queueing_delay") => run.flows.get_mut(index).map(|flow| &mut flow.queueing_delay),
        ("link", "queueing_delay") => run.links.get_mut(index).map(|link| &mut link.queueing_delay),
        _ => None,
    }
}

/// A row per point: the share of samples at or below a value.
fn distributions(run: &RunResult) -> Frame {
    let (mut kinds, mut indices, mut quantities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut shares) = (Vec::new(), Vec::new());
    for (place, index, quantity) in places(run) {
        let distribution = match (place, quantity) {
            ("flow", "rtt") => &run.flows[index].rtt,
            ("flow", _) => &run.flows[index].queueing_delay,
            _ => &run.links[index].queueing_delay,
        };
        for (value, share) in &distribution.cdf {
            kinds.push(place.to_owned());
            indices.push(Some(index as i64));
            quantities.push(quantity.to_owned());
            values.push(Some(value.as_secs_f64()));
            shares.push(Some(*share));
        }
    }
    Frame {
        columns: vec![
            ("of".to_owned(), Cells::Text(kinds)),
            ("index".to_owned(), Cells::Whole(indices)),
            ("quantity".to_owned(), Cells::Text(quantities)),
            ("value_s".to_owned(), Cells::Real(values)),
            ("share".to_owned(), Cells::Real(shares)),
        ],
    }
}

fn into_distributions(run: &mut RunResult, frame: &Frame) -> Result<(), ColumnarError> {
    let (kinds, indices, quantities) = (frame.text("of")?, frame.whole("index")?, frame.text("quantity")?);
    let points = frame.real("value_s")?.iter().zip(frame.real("share")?);
    for (((kind, index), quantity), (value, share)) in kinds.iter().zip(indices).zip(quantities).zip(points) {
        let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
        if let (Some(distribution), Some(value), Some(share)) = (at(run, kind, index, quantity), value, share)
        {
            distribution.cdf.push((Span::from_secs_f64(*value), *share));
        }
    }
    Ok(())
}

/// A row per transfer.
fn transfers(run: &RunResult) -> Frame {
    let all: Vec<(usize, &FlowResult, &Transfer)> = run
        .flows
        .iter()
        .enumerate()
        .flat_map(|(index, flow)| flow.transfers.iter().map(move |transfer| (index, flow, transfer)))
        .collect();
    Frame {
        columns: vec![
            ("flow".to_owned(), Cells::Whole(all.iter().map(|row| Some(row.0 as i64)).collect())),
            ("name".to_owned(), Cells::Text(all.iter().map(|row| row.1.name.clone()).collect())),
            (
                "start_s".to_owned(),
                Cells::Real(all.iter().map(|row| Some(row.2.start.as_secs_f64())).collect()),
            ),
            (
                "size_bytes".to_owned(),
                Cells::Whole(all.iter().map(|row| i64::try_from(row.2.size.get()).ok()).collect()),
            ),
            (
                "completion_s".to_owned(),
                Cells::Real(all.iter().map(|row| row.2.completion.map(Span::as_secs_f64)).collect()),
            ),
            (
                "handed_over_s".to_owned(),
                Cells::Real(all.iter().map(|row| row.2.handed_over.map(Span::as_secs_f64)).collect()),
            ),
        ],
    }
}

fn into_transfers(run: &mut RunResult, frame: &Frame) -> Result<(), ColumnarError> {
    let rows = frame.whole("flow")?.iter().zip(frame.real("start_s")?);
    let rows = rows.zip(frame.whole("size_bytes")?.iter().zip(frame.real("completion_s")?));
    for (((flow, start), (size, completion)), handed_over) in rows.zip(frame.real("handed_over_s")?) {
        let index = flow.and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
        let Some(flow) = run.flows.get_mut(index) else { continue };
        flow.transfers.push(Transfer {
            start: Time::ZERO + Span::from_secs_f64(start.unwrap_or(0.0)),
            size: Bytes::new(size.and_then(|size| u64::try_from(size).ok()).unwrap_or(u64::MAX)),
            completion: completion.map(Span::from_secs_f64),
            handed_over: handed_over.map(Span::from_secs_f64),
        });
    }
    Ok(())
}
