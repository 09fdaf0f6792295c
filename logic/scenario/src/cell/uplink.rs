//! Scheduling, uplink access and uplink power of `[[cell]]`.

use ranpace_phy::{LteControl, LtePrbs};
use ranpace_radio::cell::{Air, CellConfig, ControlChannels};
use ranpace_radio::scheduler::Policy;
use ranpace_radio::uplink::PowerControl;
use ranpace_units::Span;

use super::keys::nested::{control_channels, scheduler, ul_power};
use super::{keys, slots};
use crate::key::{Kind as _, Whole};
use crate::reader::{Field, Section};

/// Reads the keys of the scheduler and of the uplink into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig, slot: Span) {
    if let Some(policy) = section.find(&keys::SCHEDULER).and_then(|field| read_policy(&field)) {
        config.policy = policy;
    }
    section.set(&mut config.alloc, &keys::ALLOC);
    section.set(&mut config.usable_slots, &keys::USABLE_TTIS);
    if let Some(field) = section.find(&keys::CONTROL_CHANNELS) {
        match config.air {
            Air::Lte { band } => {
                config.control = read_control(&field, band).unwrap_or(config.control);
            }
            Air::Nr { .. } | Air::Mmwave => field.error("applies only to radio = \"lte\""),
        }
    }
    let access = &mut config.access;
    for (key, least, place) in [
        (&keys::SR_PERIOD, 1, &mut access.sr_period),
        (&keys::SR_PROHIBIT, 0, &mut access.sr_prohibit),
        (&keys::SR_TO_GRANT, 0, &mut access.sr_to_grant),
        (&keys::GRANT_TO_PUSCH, 0, &mut access.grant_to_pusch),
        (&keys::BSR_PERIOD, 1, &mut access.bsr_period),
        (&keys::BSR_RETRANSMISSION, 1, &mut access.bsr_retransmission),
    ] {
        *place = slots(section.find(key), slot, least).unwrap_or(*place);
    }
    let first = section.get(&keys::FIRST_GRANT);
    access.first_grant =
        first.and_then(|bytes| u32::try_from(bytes.get()).ok()).unwrap_or(access.first_grant);
    section.set(&mut access.levels, &keys::BSR_LEVELS);
    section.set(&mut access.ideal_reports, &keys::IDEAL_REPORTS);
    if let Some(control) = section.find(&keys::UL_POWER).and_then(|field| read_power(&field)) {
        config.power.control = control;
    }
    section.set(&mut config.power.most_dbm, &keys::USER_POWER);
}

/// Reads a word, or a table with the number of control symbols.
fn read_control(field: &Field<'_>, band: LtePrbs) -> Option<ControlChannels> {
    if field.is_text() {
        return Some(match field.word(&["narrow", "3gpp", "none"])? {
            "narrow" => ControlChannels::Narrow,
            "3gpp" => ControlChannels::Standard(None),
            _ => ControlChannels::Free,
        });
    }
    let mut section = field.section("in control_channels of [[cell]]")?.of(&[control_channels::KEYS]);
    let (least, most) = LteControl::range(band);
    let symbols = section.find(&control_channels::SYMBOLS);
    let symbols = symbols.and_then(|field| Whole::new(least.into()..=most.into()).read(&field));
    section.finish();
    Some(ControlChannels::Standard(symbols))
}

fn read_policy(field: &Field<'_>) -> Option<Policy> {
    if field.is_text() {
        return scheduler::KIND.kind.read(field);
    }
    let mut section = field.section("in scheduler of [[cell]]")?.of(&[scheduler::KEYS]);
    let mut policy = section.get(&scheduler::KIND)?;
    if let Policy::ProportionalFair { window } = &mut policy {
        *window = section.get(&scheduler::WINDOW);
    }
    section.finish();
    Some(policy)
}

fn read_power(field: &Field<'_>) -> Option<PowerControl> {
    if field.is_text() {
        return ul_power::KIND.kind.read(field);
    }
    let mut section = field.section("in ul_power of [[cell]]")?.of(&[ul_power::KEYS]);
    let mut control = section.get(&ul_power::KIND)?;
    if let PowerControl::ThreeGpp { p0_dbm, alpha } | PowerControl::Lena { p0_dbm, alpha } = &mut control {
        section.set(p0_dbm, &ul_power::P0);
        section.set(alpha, &ul_power::ALPHA);
    }
    section.finish();
    Some(control)
}
