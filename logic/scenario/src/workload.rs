//! `workload` of `[[flow]]`: what data there is to carry.

use ranpace_units::{Bytes, Span};

use crate::link::{LEAST_RATE, LEAST_SPAN, MOST_RATE};
use crate::listing::WORKLOADS;
use crate::model::{Transport, Workload};
use crate::reader::Field;

/// Largest transfer that is believed.
const MOST_SIZE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Shortest interval between two writes. Ours: a shorter one is a rate.
const LEAST_INTERVAL: Span = Span::from_micros(1);
/// Longest interval.
const MOST_INTERVAL: Span = Span::from_secs(86_400);

/// Reads `workload = "bulk"` or a table.
pub(crate) fn read(field: &Field<'_>) -> Option<Workload> {
    let kinds = WORKLOADS.map(|kind| kind.name);
    if field.is_text() {
        let kind = field.word(&kinds)?;
        if kind == "bulk" {
            return Some(Workload::Bulk);
        }
        field.error(format!("{kind:?} has settings: write workload = {{ kind = {kind:?}, ... }}"));
        return None;
    }
    let mut section = field.section("in workload of [[flow]]")?;
    let kind = section.required("kind")?.word(&kinds)?;
    let one = Bytes::new(1);
    let rates = LEAST_RATE..=MOST_RATE;
    let intervals = LEAST_INTERVAL..=MOST_INTERVAL;
    let workload = match kind {
        "bulk" => Some(Workload::Bulk),
        "fixed" => {
            let size = section.required("size").and_then(|f| f.quantity(one..=MOST_SIZE));
            size.map(|size| Workload::Fixed { size })
        }
        "repeat" => {
            let size = section.required("size").and_then(|f| f.quantity(one..=MOST_SIZE));
            let pause = section.quantity("pause", Span::ZERO..=MOST_INTERVAL).unwrap_or(Span::ZERO);
            let count = section.whole("count", 1..=u64::from(u32::MAX));
            size.map(|size| Workload::Repeat { size, pause, count })
        }
        "paced" => {
            let rate = section.required("rate").and_then(|f| f.quantity(rates));
            let interval = section.quantity("interval", intervals).unwrap_or(Span::from_millis(10));
            if let Some(rate) = rate.filter(|rate| rate.bytes_in(interval).is_zero()) {
                section.error(format!("workload: {rate} is less than a byte in {interval}"));
            }
            rate.map(|rate| Workload::Paced { rate, interval })
        }
        "web" => {
            let page = section.required("page").and_then(|f| f.quantity(one..=MOST_SIZE));
            let interval = section.quantity("interval", intervals).unwrap_or(Span::SECOND);
            page.map(|page| Workload::Web { page, interval })
        }
        "cbr" => section.required("rate").and_then(|f| f.quantity(rates)).map(|rate| Workload::Cbr { rate }),
        _ => {
            let rate = section.required("rate").and_then(|f| f.quantity(rates));
            let bursts = LEAST_SPAN..=MOST_INTERVAL;
            let burst_mean = section.quantity("burst_mean", bursts).unwrap_or(Span::from_millis(100));
            let active_mean = section.field("active_mean").and_then(|f| f.positive(100_000.0)).unwrap_or(3.0);
            let hurst = section.field("hurst");
            // The shape of the Pareto law, 3 - 2 H, lies between 1 (no mean) and 2 (no long memory).
            let hurst = hurst.map_or(Some(0.7), |field| {
                let hurst = field.number(0.5..=1.0)?;
                if hurst <= 0.5 || hurst >= 1.0 {
                    field.error(format!("expected a number above 0.5 and below 1, found {hurst}"));
                    return None;
                }
                Some(hurst)
            });
            rate.zip(hurst).map(|(rate, hurst)| Workload::Ppbp { rate, burst_mean, active_mean, hurst })
        }
    };
    section.finish();
    workload
}

/// Whether the transport can carry the workload; otherwise what is wrong, in words for the user.
pub(crate) fn fits(workload: &Workload, transport: &Transport) -> Result<(), String> {
    let kind = match workload {
        Workload::Bulk => "bulk",
        Workload::Fixed { .. } => "fixed",
        Workload::Repeat { .. } => "repeat",
        Workload::Paced { .. } => "paced",
        Workload::Web { .. } => "web",
        Workload::Cbr { .. } => "cbr",
        Workload::Ppbp { .. } => "ppbp",
    };
    let (carrier, possible) = match transport {
        Transport::Tcp { .. } => ("TCP".to_owned(), ["bulk", "fixed", "repeat", "paced", "web"].as_slice()),
        Transport::Quic { .. } => ("QUIC".to_owned(), ["bulk", "fixed", "repeat", "paced", "web"].as_slice()),
        Transport::Datagram { algorithm, .. } => {
            (format!("the datagrams of {algorithm}"), ["bulk"].as_slice())
        }
        Transport::Udp { .. } => ("UDP".to_owned(), ["cbr", "ppbp"].as_slice()),
    };
    if possible.contains(&kind) {
        return Ok(());
    }
    let hint = if matches!(kind, "cbr" | "ppbp") { "; it needs transport = \"udp\"" } else { "" };
    Err(format!("{kind:?} cannot be carried by {carrier}, which carries {}{hint}", possible.join(", ")))
}
