//! Priority for real-time UDP on the device: two bands in front of its modem.
//!
//! Source: Diarra 2022, section 3.2.2, asks that an uplink control favour real-time UDP beside it, and section 6.2 assumes
//! that SIGMA does; neither says how. All of this is ours:
//!
//! - band 0 has strict priority; a token bucket limits it to [`SHARE`] of C_max, with bursts of [`BURST`]. Excess packets join
//!   the rest in band 1;
//! - a packet is real time if it is marked so (DSCP EF, AF4x, CS5; RFC 4594), or if it is unmarked and its UDP flow has at most
//!   [`MOST_RATE`] over [`LOOK`] with even gaps between packets ([`MOST_VARIATION`]), and is not QUIC;
//! - SIGMA subtracts the rate of band 0, averaged over [`LOOK`], from C_max.
//!
//! Pure: the caller says what is offered and when, and puts each packet into the band returned.

use std::collections::BTreeMap;

use ranpace_units::{Bytes, Rate, Span, Time};

/// Largest share of C_max for band 0.
pub const SHARE: f64 = 0.5;
/// Burst that band 0 may send above its share.
const BURST: Span = Span::from_millis(100);
/// Maximum rate of an unmarked real-time flow.
pub const MOST_RATE: Rate = Rate::from_bits_per_s(1_500_000);
/// Maximum coefficient of variation of the gaps between packets (standard deviation over mean).
const MOST_VARIATION: f64 = 0.5;
/// Window over which flows are classified, and time constant of band 0's rate.
const LOOK: Span = Span::SECOND;
/// Minimum number of gaps to classify a flow.
const LEAST_GAPS: u32 = 10;
/// Most flows that are tracked; the one silent for longest is evicted.
const MOST_FLOWS: usize = 256;

/// A packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkPacket {
    /// Number of its flow.
    pub flow: u32,
    /// Size on the wire.
    pub bytes: Bytes,
    /// DSCP of its IP header; 0 if it is not marked.
    pub dscp: u8,
    /// Whether it is UDP.
    pub is_udp: bool,
    /// Whether it looks like QUIC: a long header, or port 443.
    pub is_quic: bool,
}

/// The band of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Strict priority.
    RealTime,
    /// Everything else.
    Rest,
}

/// Returns whether a DSCP means real time: EF (46), AF41 to AF43 (34, 36, 38) or CS5 (40); RFC 4594, sections 4.1 to 4.3.
pub const fn is_real_time_mark(dscp: u8) -> bool {
    matches!(dscp, 46 | 34 | 36 | 38 | 40)
}

/// State of an unmarked flow.
#[derive(Clone, Copy, Debug)]
struct Watched {
    last: Time,
    /// Start of this window, the bytes in it, and sums of its gaps and of their squares in seconds.
    since: Time,
    bytes: u64,
    gaps: u32,
    sum: f64,
    squares: f64,
    /// Result of the previous window.
    is_real_time: bool,
}

impl Watched {
    fn new(now: Time) -> Self {
        Self { last: now, since: now, bytes: 0, gaps: 0, sum: 0.0, squares: 0.0, is_real_time: false }
    }

    /// Handles a packet of the flow; returns whether the flow is real time.
    fn on_packet(&mut self, now: Time, bytes: Bytes) -> bool {
        let gap = now.since(self.last).as_secs_f64();
        self.last = now;
        self.bytes += bytes.get();
        if now > self.since {
            self.gaps += 1;
            self.sum += gap;
            self.squares += gap * gap;
        }
        // More than a window's worth of bytes disqualifies the flow at once, before the window ends.
        let looked = now.since(self.since);
        if Bytes::new(self.bytes) > MOST_RATE.bytes_in(LOOK) {
            self.is_real_time = false;
        }
        if looked >= LOOK {
            let is_slow = Rate::of(Bytes::new(self.bytes), looked) <= MOST_RATE;
            let count = f64::from(self.gaps.max(1));
            let mean = self.sum / count;
            let variance = (self.squares / count - mean * mean).max(0.0);
            let is_even =
                self.gaps >= LEAST_GAPS && variance <= (MOST_VARIATION * mean) * (MOST_VARIATION * mean);
            *self = Self { is_real_time: is_slow && is_even, ..Self::new(now) };
        }
        self.is_real_time
    }
}

/// The bands of one device.
#[derive(Clone, Debug)]
pub struct RealTimeFirst {
    /// C_max: the capacity of the modem.
    capacity: Rate,
    /// Bytes that band 0 may send now.
    tokens: f64,
    filled: Time,
    flows: BTreeMap<u32, Watched>,
    /// Rate of band 0 in bytes per second, as of `rated`.
    rate: f64,
    rated: Time,
}

impl Default for RealTimeFirst {
    fn default() -> Self {
        Self::new()
    }
}

impl RealTimeFirst {
    /// The initial state; without a capacity nothing has priority.
    pub fn new() -> Self {
        Self {
            capacity: Rate::ZERO,
            tokens: 0.0,
            filled: Time::ZERO,
            flows: BTreeMap::new(),
            rate: 0.0,
            rated: Time::ZERO,
        }
    }

    /// Sets the capacity of the modem from now on.
    pub fn set_capacity(&mut self, now: Time, capacity: Rate) {
        self.fill(now);
        if self.capacity.is_zero() {
            self.tokens = Self::burst(capacity);
        }
        self.capacity = capacity;
        self.tokens = self.tokens.min(Self::burst(capacity));
    }

    fn burst(capacity: Rate) -> f64 {
        SHARE * capacity.as_f64() / 8.0 * BURST.as_secs_f64()
    }

    fn fill(&mut self, now: Time) {
        let more = SHARE * self.capacity.as_f64() / 8.0 * now.since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + more).min(Self::burst(self.capacity));
        self.filled = self.filled.max(now);
    }

    /// The band of a packet.
    pub fn choose(&mut self, now: Time, packet: &UplinkPacket) -> Band {
        let is_real_time = match packet.dscp {
            0 => packet.is_udp && !packet.is_quic && self.watch(now, packet),
            mark => is_real_time_mark(mark),
        };
        if !is_real_time {
            return Band::Rest;
        }
        self.fill(now);
        let bytes = packet.bytes.as_f64();
        if self.tokens < bytes {
            return Band::Rest;
        }
        self.tokens -= bytes;
        self.decay(now);
        self.rate += bytes / LOOK.as_secs_f64();
        Band::RealTime
    }

    fn watch(&mut self, now: Time, packet: &UplinkPacket) -> bool {
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&packet.flow) {
            let silent = self.flows.iter().min_by_key(|(_, flow)| flow.last).map(|(number, _)| *number);
            silent.and_then(|number| self.flows.remove(&number));
        }
        self.flows.entry(packet.flow).or_insert_with(|| Watched::new(now)).on_packet(now, packet.bytes)
    }

    fn decay(&mut self, now: Time) {
        self.rate *= libm::exp(-now.since(self.rated).ratio(LOOK));
        self.rated = self.rated.max(now);
    }

    /// R_rt: the rate of band 0, an exponential average with a time constant of one second.
    pub fn rate(&mut self, now: Time) -> Rate {
        self.decay(now);
        Rate::from_bits_per_s_f64(8.0 * self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOICE: UplinkPacket =
        UplinkPacket { flow: 1, bytes: Bytes::new(200), dscp: 0, is_udp: true, is_quic: false };

    fn bands(mbit: u64) -> RealTimeFirst {
        let mut bands = RealTimeFirst::new();
        bands.set_capacity(Time::ZERO, Rate::from_mbit_per_s(mbit));
        bands
    }

    /// Returns how many packets of the last 2 s of 5 s had priority, and how many there were, with these gaps in ms.
    fn first(bands: &mut RealTimeFirst, packet: UplinkPacket, gaps_ms: &[u64]) -> (u64, u64) {
        let (mut now, mut counts) = (Time::ZERO, (0, 0));
        for gap in gaps_ms.iter().cycle() {
            now += Span::from_millis(*gap);
            if now > Time::from_secs(5) {
                return counts;
            }
            let band = bands.choose(now, &packet);
            if now > Time::from_secs(3) {
                counts.0 += u64::from(band == Band::RealTime);
                counts.1 += 1;
            }
        }
        counts
    }

    #[test]
    fn marks_decide_at_once_and_flows_without_marks_after_a_second() {
        for (dscp, band) in
            [(46, Band::RealTime), (34, Band::RealTime), (40, Band::RealTime), (10, Band::Rest)]
        {
            let packet = UplinkPacket { dscp, is_udp: false, ..VOICE };
            assert_eq!(bands(10).choose(Time::from_millis(1), &packet), band, "{dscp}");
        }
        let mut bands = bands(10);
        let found: Vec<Band> =
            (0..60).map(|count| bands.choose(Time::from_millis(20 * count), &VOICE)).collect();
        assert_eq!(found.iter().position(|band| *band == Band::RealTime), Some(50));
        assert!(found[50..].iter().all(|band| *band == Band::RealTime));
    }

    #[test]
    fn fast_uneven_or_other_flows_than_udp_have_no_priority() {
        let all = |packet: UplinkPacket, gaps: &[u64]| {
            let (first, of) = first(&mut bands(100), packet, gaps);
            (first > 0).then_some(first == of)
        };
        assert_eq!(all(VOICE, &[20]), Some(true), "a voice call: 80 kbit/s");
        let large = Bytes::new(1_250);
        assert_eq!(all(UplinkPacket { bytes: large, ..VOICE }, &[7]), Some(true), "1.43 Mbit/s");
        assert_eq!(all(UplinkPacket { bytes: large, ..VOICE }, &[6]), None, "1.67 Mbit/s");
        assert_eq!(all(VOICE, &[10, 30]), Some(true), "gaps 20 ms apart from their mean by half of it");
        assert_eq!(all(VOICE, &[1, 1, 1, 97]), None, "bursts");
        assert_eq!(all(VOICE, &[200]), None, "too few packets");
        assert_eq!(all(UplinkPacket { is_quic: true, ..VOICE }, &[20]), None, "QUIC");
        assert_eq!(all(UplinkPacket { is_udp: false, ..VOICE }, &[20]), None, "TCP");
    }

    #[test]
    fn band_0_has_half_of_the_capacity_at_most() {
        // 4 Mbit/s of marked packets on a modem of 2 Mbit/s.
        let mut bands = bands(2);
        let packet = UplinkPacket { dscp: 46, bytes: Bytes::new(1_000), ..VOICE };
        let first: u64 = (0..5_000)
            .map(|count| u64::from(bands.choose(Time::from_millis(2 * count), &packet) == Band::RealTime))
            .sum();
        // 10 s at 1 Mbit/s, and a burst of 100 ms.
        assert!((1_262..=1_263).contains(&first), "{first}");
        let rate = bands.rate(Time::from_secs(10)).as_f64();
        assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate}");
        let later = bands.rate(Time::from_secs(15)).as_f64();
        assert!(later < 0.01e6, "{later}");
    }

    #[test]
    fn without_a_capacity_nothing_goes_first() {
        let packet = UplinkPacket { dscp: 46, ..VOICE };
        assert_eq!(RealTimeFirst::new().choose(Time::from_secs(9), &packet), Band::Rest);
    }

    #[test]
    fn the_number_of_flows_that_are_remembered_is_bounded() {
        let mut bands = bands(10);
        for flow in 0..10_000 {
            bands.choose(Time::from_millis(u64::from(flow)), &UplinkPacket { flow, ..VOICE });
        }
        assert_eq!(bands.flows.len(), MOST_FLOWS);
    }
}
