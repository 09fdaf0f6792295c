//! Link adaptation and HARQ of `[[cell]]`.

use ranpace_phy::LteMcs;
use ranpace_radio::cell::{CellConfig, Errors, OuterLoop};
use ranpace_radio::harq::HarqConfig;
use ranpace_units::Span;

use super::keys::nested::{harq, outer_loop};
use super::{keys, slots};
use crate::reader::{Field, Section};

/// Reads the keys of link adaptation and of HARQ into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig, slot: Span) {
    let adaptation = &mut config.adaptation;
    section.set(&mut adaptation.thresholds, &keys::CQI_TABLE);
    section.set(&mut adaptation.worst_unit, &keys::WORST_UNIT);
    section.set(&mut adaptation.control_errors, &keys::CONTROL_ERRORS);
    section.set(&mut adaptation.rule, &keys::MCS_RULE);
    if let Some(mcs) = section.get(&keys::FIXED_MCS) {
        adaptation.fixed_mcs = mcs.and_then(LteMcs::new);
    }
    for (key, least, place) in [
        (&keys::CQI_PERIOD, 1, &mut adaptation.period),
        (&keys::CQI_DELAY, 0, &mut adaptation.delay.downlink),
        (&keys::CQI_DELAY_UP, 0, &mut adaptation.delay.uplink),
    ] {
        *place = slots(section.find(key), slot, least).unwrap_or(*place);
    }
    if let Some(field) = section.find(&keys::OUTER_LOOP) {
        adaptation.outer_loop = read_outer_loop(&field).unwrap_or(adaptation.outer_loop);
    }
    if let Some(field) = section.find(&keys::BLOCK_ERRORS) {
        adaptation.errors = read_errors(&field).unwrap_or(adaptation.errors);
    }
    read_harq(section, config, slot);
}

/// Reads `true`, `false` or a table.
fn read_outer_loop(field: &Field<'_>) -> Option<Option<OuterLoop>> {
    if !field.is_table() {
        return field.flag().map(|on| on.then_some(OuterLoop::TEN_PERCENT));
    }
    let mut section = field.section("in outer_loop of [[cell]]")?.of(&[outer_loop::KEYS]);
    let (target, step) = (section.get(&outer_loop::TARGET), section.get(&outer_loop::STEP));
    section.finish();
    Some(Some(OuterLoop { target, step }))
}

/// Reads `"awgn"`, `"ns3"`, or a probability.
fn read_errors(field: &Field<'_>) -> Option<Errors> {
    if !field.is_text() {
        return field.number(0.0..=1.0).map(Errors::Fixed);
    }
    match field.word(&["awgn", "ns3"])? {
        "ns3" => Some(Errors::Ns3),
        _ => Some(Errors::Awgn),
    }
}

/// HARQ settings that are written.
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

/// Reads `harq` for both directions, then `harq_up` for the uplink.
fn read_harq(section: &mut Section<'_>, config: &mut CellConfig, slot: Span) {
    if let Some(changes) =
        section.find(&keys::HARQ).and_then(|f| read_changes(&f, "in harq of [[cell]]", slot))
    {
        changes.apply(&mut config.harq.downlink);
        changes.apply(&mut config.harq.uplink);
    }
    let uplink = section.find(&keys::HARQ_UP);
    if let Some(changes) = uplink.and_then(|f| read_changes(&f, "in harq_up of [[cell]]", slot)) {
        changes.apply(&mut config.harq.uplink);
    }
}

fn read_changes(field: &Field<'_>, what: &str, slot: Span) -> Option<HarqChanges> {
    let mut section = field.section(what)?.of(&[harq::KEYS]);
    let changes = HarqChanges {
        processes: section.get(&harq::PROCESSES),
        retransmissions: section.get(&harq::RETRANSMISSIONS),
        decode: slots(section.find(&harq::DECODE), slot, 0),
        feedback: slots(section.find(&harq::FEEDBACK), slot, 0),
        turnaround: slots(section.find(&harq::TURNAROUND), slot, 1),
        misreading: section.get(&harq::MISREADING),
        synchronous: section.get(&harq::SYNCHRONOUS),
    };
    section.finish();
    Some(changes)
}
