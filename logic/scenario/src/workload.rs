//! `workload` of `[[flow]]`: the data that a flow carries.

use crate::key::Kind as _;
use crate::listing::WORKLOADS;
use crate::listing::workloads::*;
use crate::model::{Transport, Workload};
use crate::reader::{Field, Section};

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
    let workload = match kind {
        "bulk" => Some(Workload::Bulk),
        "fixed" => section.get(&SIZE).map(|size| Workload::Fixed { size }),
        "repeat" => {
            let (size, pause, count) = (section.get(&SIZE), section.get(&PAUSE), section.get(&COUNT));
            size.map(|size| Workload::Repeat { size, pause, count })
        }
        "paced" => {
            let (rate, interval) = (section.get(&RATE), section.get(&WRITE_INTERVAL));
            if let Some(rate) = rate.filter(|rate| rate.bytes_in(interval).is_zero()) {
                section.error(format!("workload: {rate} is less than one byte per interval of {interval}"));
            }
            rate.map(|rate| Workload::Paced { rate, interval })
        }
        "web" => {
            let (page, interval) = (section.get(&PAGE), section.get(&PAGE_INTERVAL));
            page.map(|page| Workload::Web { page, interval })
        }
        "cbr" => section.get(&RATE).map(|rate| Workload::Cbr { rate }),
        _ => read_bursts(&mut section),
    };
    section.finish();
    workload
}

fn read_bursts(section: &mut Section<'_>) -> Option<Workload> {
    let (rate, burst_mean) = (section.get(&RATE), section.get(&BURST_MEAN));
    let active_mean = section.get(&ACTIVE_MEAN);
    let hurst = section.find(&HURST).map_or(Some(HURST.default.0), |field| {
        let hurst = HURST.kind.read(&field)?;
        // Both ends of the range are excluded.
        if HURST.kind.0.start() >= &hurst || HURST.kind.0.end() <= &hurst {
            field.error(format!("expected a number above 0.5 and below 1, found {hurst}"));
            return None;
        }
        Some(hurst)
    });
    rate.zip(hurst).map(|(rate, hurst)| Workload::Ppbp { rate, burst_mean, active_mean, hurst })
}

/// Returns whether the transport can carry the workload; otherwise the problem, in words for the user.
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
