//! Link adaptation and HARQ of `[[cell]]`.

use ranpace_phy::{CqiThresholds, LteMcs, McsRule};
use ranpace_radio::cell::{CellConfig, Errors, OuterLoop};
use ranpace_radio::harq::HarqConfig;
use ranpace_units::Span;

use super::slots;
use crate::reader::{Field, Section};

/// Reads the keys of link adaptation and of HARQ into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig, slot: Span) {
    let adaptation = &mut config.adaptation;
    match section.field("cqi_table").and_then(|f| f.word(&["awgn", "ns3", "ns3-25", "piro"])) {
        Some("awgn") => adaptation.thresholds = CqiThresholds::Awgn,
        Some("ns3") => adaptation.thresholds = CqiThresholds::Ns3,
        Some("ns3-25") => adaptation.thresholds = CqiThresholds::Ns3On25Prbs,
        Some(_) => adaptation.thresholds = CqiThresholds::Ns3Piro,
        None => {}
    }
    adaptation.worst_unit = section.flag("worst_unit").unwrap_or(adaptation.worst_unit);
    adaptation.control_errors = section.flag("control_errors").unwrap_or(adaptation.control_errors);
    match section.field("mcs_rule").and_then(|f| f.word(&["lena", "oai"])) {
        Some("oai") => adaptation.rule = McsRule::Oai,
        Some(_) => adaptation.rule = McsRule::Lena,
        None => {}
    }
    if let Some(mcs) = section.field("fixed_mcs") {
        adaptation.fixed_mcs = read_fixed(&mcs).unwrap_or(adaptation.fixed_mcs);
    }
    let field = section.field("cqi_period");
    adaptation.period = slots(field, slot, 1).unwrap_or(adaptation.period);
    let field = section.field("cqi_delay");
    adaptation.delay.downlink = slots(field, slot, 0).unwrap_or(adaptation.delay.downlink);
    let field = section.field("cqi_delay_up");
    adaptation.delay.uplink = slots(field, slot, 0).unwrap_or(adaptation.delay.uplink);
    if let Some(field) = section.field("outer_loop") {
        adaptation.outer_loop = read_outer_loop(&field).unwrap_or(adaptation.outer_loop);
    }
    if let Some(field) = section.field("block_errors") {
        adaptation.errors = read_errors(&field).unwrap_or(adaptation.errors);
    }
    read_harq(section, config, slot);
}

/// `"none"` or 0 to 28.
fn read_fixed(field: &Field<'_>) -> Option<Option<LteMcs>> {
    if field.is_text() && field.text("") == Some("none") {
        return Some(None);
    }
    let mcs = field.whole(0..=LteMcs::MAX.get().into())?;
    LteMcs::new(u8::try_from(mcs).ok()?).map(Some)
}

/// `true`, `false` or a table.
fn read_outer_loop(field: &Field<'_>) -> Option<Option<OuterLoop>> {
    if !field.is_table() {
        return field.flag().map(|on| on.then_some(OuterLoop::TEN_PERCENT));
    }
    let mut section = field.section("in outer_loop of [[cell]]")?;
    let usual = OuterLoop::TEN_PERCENT;
    let target = section.number("target", 0.0001..=0.9).unwrap_or(usual.target);
    let step = section.number("step", 0.001..=10.0).unwrap_or(usual.step);
    section.finish();
    Some(Some(OuterLoop { target, step }))
}

/// `"awgn"`, `"ns3"`, or a probability.
fn read_errors(field: &Field<'_>) -> Option<Errors> {
    if !field.is_text() {
        return field.number(0.0..=1.0).map(Errors::Fixed);
    }
    match field.word(&["awgn", "ns3"])? {
        "ns3" => Some(Errors::Ns3),
        _ => Some(Errors::Awgn),
    }
}

/// What is said of HARQ.
struct HarqChanges {
    processes: Option<u8>,
    retransmissions: Option<u8>,
    decode: Option<u64>,
    feedback: Option<u64>,
    turnaround: Option<u64>,
    misreading: Option<f64>,
    synchronous: Option<bool>,
}

impl HarqChanges {
    fn apply(&self, harq: &mut HarqConfig) {
        harq.processes = self.processes.unwrap_or(harq.processes);
        harq.max_retransmissions = self.retransmissions.unwrap_or(harq.max_retransmissions);
        harq.decode = self.decode.unwrap_or(harq.decode);
        harq.feedback = self.feedback.unwrap_or(harq.feedback);
        harq.turnaround = self.turnaround.unwrap_or(harq.turnaround);
        harq.misreading = self.misreading.unwrap_or(harq.misreading);
        harq.synchronous = self.synchronous.unwrap_or(harq.synchronous);
    }
}

/// `harq` for both directions, then `harq_up` for the uplink.
fn read_harq(section: &mut Section<'_>, config: &mut CellConfig, slot: Span) {
    if let Some(changes) = section.field("harq").and_then(|f| read_changes(&f, "in harq of [[cell]]", slot)) {
        changes.apply(&mut config.harq.downlink);
        changes.apply(&mut config.harq.uplink);
    }
    let uplink = section.field("harq_up");
    if let Some(changes) = uplink.and_then(|f| read_changes(&f, "in harq_up of [[cell]]", slot)) {
        changes.apply(&mut config.harq.uplink);
    }
}

fn read_changes(field: &Field<'_>, what: &str, slot: Span) -> Option<HarqChanges> {
    let mut section = field.section(what)?;
    let changes = HarqChanges {
        processes: section.whole("processes", 1..=64),
        retransmissions: section.whole("retransmissions", 0..=255),
        decode: slots(section.field("decode"), slot, 0),
        feedback: slots(section.field("feedback"), slot, 0),
        turnaround: slots(section.field("turnaround"), slot, 1),
        misreading: section.number("misreading", 0.0..=1.0),
        synchronous: section.flag("synchronous"),
    };
    section.finish();
    Some(changes)
}
