//! Real-time UDP first on the device: two bands in front of its modem.
//!
//! Source: Diarra 2022, section 3.2.2, asks that an uplink control favour real-time UDP beside it, and section 6.2 assumes
//! that SIGMA does; neither says how. All of this is ours:
//!
//! - band 0 has strict priority; it takes what a token bucket of [`SHARE`] of C_max lets through, with bursts of [`BURST`].
//!   What is more goes with the rest, in band 1;
//! - real time is what is marked so (DSCP EF, AF4x, CS5; RFC 4594), or, unmarked, a UDP flow of at most [`MOST_RATE`] over
//!   [`LOOK`] with even gaps between its packets ([`MOST_VARIATION`]), and that is not QUIC;
//! - the rate of band 0, averaged over [`LOOK`], is what SIGMA takes off C_max.
//!
//! Pure: the caller says what is offered and when, and puts each packet where it is told.

use std::collections::BTreeMap;

use ranpace_units::{Bytes, Rate, Span, Time};

/// Share of C_max that band 0 may have.
pub const SHARE: f64 = 0.5;
/// Burst that band 0 may send above its share.
const BURST: Span = Span::from_millis(100);
/// Largest rate of an unmarked real-time flow.
pub const MOST_RATE: Rate = Rate::from_bits_per_s(1_500_000);
/// Standard deviation of the gaps between packets over their mean, at most.
const MOST_VARIATION: f64 = 0.5;
/// Over what a flow is looked at, and band 0's rate is averaged.
const LOOK: Span = Span::SECOND;
/// Gaps without which nothing is known of a flow.
const LEAST_GAPS: u32 = 10;
/// Flows that are remembered; the one that was silent for longest is forgotten first.
const MOST_FLOWS: usize = 256;

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkPacket {
    /// Number of its flow.
    pub flow: u32,
    /// On the wire.
    pub bytes: Bytes,
    /// Code point of its IP header; 0 if it is not marked.
    pub dscp: u8,
    /// Whether it is UDP.
    pub is_udp: bool,
    /// Whether it looks like QUIC: a long header, or port 443.
    pub is_quic: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Before everything else.
    RealTime,
    /// With the rest.
    Rest,
}

/// Whether a mark says real time: EF (46), AF41 to AF43 (34, 36, 38) or CS5 (40); RFC 4594, sections 4.1 to 4.3.
pub const fn is_real_time_mark(dscp: u8) -> bool {
    matches!(dscp, 46 | 34 | 36 | 38 | 40)
}

/// What is known of an unmarked flow.
#[derive(Clone, Copy, Debug)]
struct Watched {
    last: Time,
    /// When this look began, what came in it, and sums of its gaps and of their squares in seconds.
    since: Time,
    bytes: u64,
    gaps: u32,
    sum: f64,
    squares: f64,
    /// What the look before said.
    is_real_time: bool,
}

impl Watched {
    fn new(now: Time) -> Self {
        Self { last: now, since: now, bytes: 0, gaps: 0, sum: 0.0, squares: 0.0, is_real_time: false }
    }

    /// A packet of the flow is offered; whether the flow is real time.
    fn on_packet(&mut self, now: Time, bytes: Bytes) -> bool {
        let gap = now.since(self.last).as_secs_f64();
        self.last = now;
        self.bytes += bytes.get();
        if now > self.since {
            self.gaps += 1;
            self.sum += gap;
            self.squares += gap * gap;
        }
        // A burst is too much at once, whatever the whole look will say.
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
    /// C_max: what the modem could send.
    capacity: Rate,
    /// What band 0 may send now, in bytes.
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
    /// Nothing is known yet; without a capacity nothing goes first.
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

    /// What the modem could send from now on.
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

    /// Where a packet goes.
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

    /// R_rt: the rate of band 0, an exponential mean over a second.
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

    /// Of packets at these distances in ms for 5 s, how many went first in the last 2 s.
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
    fn what_is_fast_uneven_or_not_udp_is_the_rest() {
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
        // 4 Mbit/s of marked packets where the modem could send 2.
        let mut bands = bands(2);
        let packet = UplinkPacket { dscp: 46, bytes: Bytes::new(1_000), ..VOICE };
        let first: u64 = (0..5_000)
            .map(|count| u64::from(bands.choose(Time::from_millis(2 * count), &packet) == Band::RealTime))
            .sum();
        // 10 s of 1 Mbit/s, and a burst of 100 ms.
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
