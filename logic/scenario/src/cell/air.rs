//! The air interface of `[[cell]]`.

use ranpace_phy::{
    FrequencyRange, Layers, LteBandwidth, LtePrbs, Numerology, Prbs, QamTable, TddPattern, nr_prbs,
};
use ranpace_radio::cell::{Air, CellConfig, Duplex};
use ranpace_radio::uplink::AccessConfig;

use super::keys::{self, DuplexWord};
use crate::key::Kind as _;
use crate::measure::FREQUENCY;
use crate::reader::{Field, Section};

/// Lower end of millimetre waves: TS 38.101-2 clause 5.1, FR2.
const FR2_HZ: f64 = 24.25e9;

/// Reads the keys of the air interface into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig) {
    let (bandwidth, prbs) = (section.find(&keys::BANDWIDTH), section.find(&keys::PRBS));
    if let (Some(_), Some(prbs)) = (&bandwidth, &prbs) {
        prbs.error("a cell has a bandwidth or a number of PRBs, not both");
    }
    if !matches!(config.air, Air::Nr { .. }) {
        for field in keys::OF_NR.iter().filter_map(|key| section.field(key.name())) {
            field.error("applies only to radio = \"nr\"");
        }
    }
    match &mut config.air {
        Air::Lte { band } => {
            let read = match (bandwidth, prbs) {
                (Some(bandwidth), _) => lte_bandwidth(&bandwidth),
                (None, Some(prbs)) => lte_prbs(&prbs),
                (None, None) => None,
            };
            *band = read.unwrap_or(*band);
        }
        Air::Nr { .. } => {
            // A written `carrier` decides which bandwidths are valid; the channel reads it again and reports its errors.
            let carrier = section.find(&keys::CARRIER).and_then(|field| field.measure_quietly(&FREQUENCY));
            let carrier_hz = carrier.unwrap_or(config.channel.carrier.downlink.hz());
            read_nr(section, config, carrier_hz, bandwidth, prbs);
        }
        Air::Mmwave => {
            for field in [bandwidth, prbs].into_iter().flatten() {
                field.error(
                    "radio = \"mmwave\" always has 200 MHz, allocated by symbols; use radio = \"nr\" for other bandwidths",
                );
            }
        }
    }
}

fn read_nr(
    section: &mut Section<'_>,
    config: &mut CellConfig,
    carrier_hz: f64,
    bandwidth: Option<Field<'_>>,
    prbs: Option<Field<'_>>,
) {
    let before = slots_per_ms(&config.air);
    let Air::Nr { band, numerology, table, layers, overhead, duplex, division } = &mut config.air else {
        return;
    };
    if let Some(field) = section.find(&keys::SPACING) {
        *numerology = read_spacing(&field).unwrap_or(*numerology);
        if bandwidth.is_none() && prbs.is_none() {
            field.error("changes the number of PRBs of a bandwidth: set `bandwidth` or `prbs` too");
        }
    }
    if let Some(field) = bandwidth {
        let mhz = keys::BANDWIDTH.kind.read(&field).map(|hz| hz / 1e6);
        let range = if carrier_hz >= FR2_HZ { FrequencyRange::Fr2 } else { FrequencyRange::Fr1 };
        // A fractional bandwidth in MHz is invalid, and is refused as 0.
        let whole = |mhz: f64| if mhz % 1.0 == 0.0 { mhz as u16 } else { 0 };
        match mhz.map(|mhz| nr_prbs(range, *numerology, whole(mhz))) {
            Some(Ok(prbs)) => *band = prbs,
            Some(Err(error)) => field.error(error.to_string()),
            None => {}
        }
    } else if let Some(field) = prbs {
        let read =
            field.whole(1..=Prbs::MAX.get().into()).and_then(|prbs| Prbs::new(u16::try_from(prbs).ok()?));
        *band = read.unwrap_or(*band);
    }
    read_duplex(section, duplex);
    if let Some(field) = section.find(&keys::QAM) {
        match field.whole(64..=256) {
            Some(64) => *table = QamTable::Qam64,
            Some(256) => *table = QamTable::Qam256,
            Some(other) => field.error(format!("expected 64 or 256, found {other}")),
            None => {}
        }
    }
    let read = section.find(&keys::LAYERS).and_then(|f| f.whole(1..=Layers::MAX.get().into()));
    *layers = read.and_then(|layers| Layers::new(u8::try_from(layers).ok()?)).unwrap_or(*layers);
    section.set(overhead, &keys::OVERHEAD);
    section.set(division, &keys::DIVISION);
    // NR's access times depend on the number of slots per millisecond.
    let after = slots_per_ms(&config.air);
    if config.access == AccessConfig::nr(before) {
        config.access = AccessConfig::nr(after);
    }
}

fn slots_per_ms(air: &Air) -> u64 {
    match air {
        Air::Nr { numerology, .. } => numerology.slots_per_subframe().into(),
        Air::Lte { .. } | Air::Mmwave => 1,
    }
}

fn read_duplex(section: &mut Section<'_>, duplex: &mut Duplex) {
    let word = section.get(&keys::DUPLEX);
    let pattern = section.find(&keys::PATTERN);
    let read = pattern.as_ref().and_then(|field| {
        let text = field.text("a TDD pattern such as \"DDDSU\"")?;
        text.parse::<TddPattern>().map_err(|error| field.error(error.to_string())).ok()
    });
    match word {
        Some(DuplexWord::Fdd) => *duplex = Duplex::Fdd,
        Some(DuplexWord::Dynamic) => *duplex = Duplex::Dynamic,
        // The usual pattern of networks at 30 kHz: ours.
        Some(DuplexWord::Tdd) if !matches!(duplex, Duplex::Tdd(_)) => {
            if let Ok(usual) = "DDDSU".parse() {
                *duplex = Duplex::Tdd(usual);
            }
        }
        Some(DuplexWord::Tdd) | None => {}
    }
    match (duplex, pattern) {
        (Duplex::Tdd(place), _) => *place = read.unwrap_or(*place),
        (_, Some(field)) => field.error("applies only to duplex = \"tdd\""),
        _ => {}
    }
}

fn read_spacing(field: &Field<'_>) -> Option<Numerology> {
    let hz = keys::SPACING.kind.read(field)?;
    let found = Numerology::ALL.into_iter().find(|spacing| f64::from(spacing.spacing_khz()) * 1e3 == hz);
    if found.is_none() {
        field.error(format!("expected 15kHz, 30kHz, 60kHz or 120kHz, found {} kHz", hz / 1e3));
    }
    found
}

fn lte_bandwidth(field: &Field<'_>) -> Option<LtePrbs> {
    let hz = keys::BANDWIDTH.kind.read(field)?;
    // At most a million.
    let khz = if hz % 1e3 == 0.0 { (hz / 1e3) as u32 } else { 0 };
    match LteBandwidth::from_khz(khz) {
        Ok(bandwidth) => Some(bandwidth.prbs()),
        Err(_) => {
            field.error(format!("expected 1.4, 3, 5, 10, 15 or 20 MHz, found {} MHz", hz / 1e6));
            None
        }
    }
}

fn lte_prbs(field: &Field<'_>) -> Option<LtePrbs> {
    let prbs = field.whole(1..=LtePrbs::MAX.get().into())?;
    LtePrbs::new(u8::try_from(prbs).ok()?)
}
