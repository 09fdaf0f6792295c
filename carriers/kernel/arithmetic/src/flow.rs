//! `flow.h`: the connection, its window and an acknowledgement in the kernel's units, to and from those of `logic/cc`.

use ranpace_cc::{Context, Pacing, Sample, State, Window};
use ranpace_units::{Rate, Span};

/// No slow start threshold yet.
pub const NO_SSTHRESH: u32 = 0x7fff_ffff;
/// Largest window that the arithmetic writes.
pub const MOST_CWND: u32 = 1 << 20;

mirror! {
    /// The connection and its window.
    pub struct Flow[ranpace_flow_layout] {
        /// Nanoseconds.
        pub now: u64,
        /// Bytes of payload a second; 0: the control does not pace.
        pub pacing: u64,
        /// Payload of a segment, bytes.
        pub mss: u32,
        /// Smoothed RTT; 0: none.
        pub srtt_us: u32,
        /// Smallest RTT of 300 s; 0: none.
        pub min_rtt_us: u32,
        /// Segments.
        pub in_flight: u32,
        /// Segments since the connection began; wraps.
        pub delivered: u32,
        /// Segments since the connection began; wraps.
        pub lost: u32,
        /// Segments.
        pub cwnd: u32,
        /// Segments, or [`NO_SSTHRESH`].
        pub ssthresh: u32,
        /// Loss recovery's state, as the kernel numbers it.
        pub ca_state: u8,
        /// Whether the window was the limit.
        pub cwnd_limited: u8,
        /// Whether the application is the limit.
        pub app_limited: u8,
        unused: u8,
        /// A full segment with its headers, bytes; 0: as `mss`.
        pub wire: u32,
    }
}

mirror! {
    /// One acknowledgement.
    pub struct Ack[ranpace_ack_layout] {
        /// Segments to grow by.
        pub acked: u32,
        /// Segments newly delivered.
        pub delivered: u32,
        /// 0: none.
        pub rtt_us: u32,
        /// Milliseconds from sender to receiver, up to a constant.
        pub one_way: u32,
        /// Whether `one_way` is valid.
        pub has_one_way: u32,
        /// Segments over `rate_interval_us`.
        pub rate_delivered: u32,
        /// 0: no valid sample.
        pub rate_interval_us: u32,
        /// Segments delivered when the newest packet covered was sent; wraps.
        pub prior_delivered: u32,
        /// Segments newly taken for lost.
        pub losses: u32,
        /// Segments in flight before.
        pub prior_in_flight: u32,
        /// Whether the application limited the rate sample.
        pub rate_app_limited: u32,
        /// Whether it echoes a mark.
        pub ecn_echo: u32,
        /// Payload newly delivered, bytes.
        pub bytes: u32,
    }
}

/// A time in whole microseconds; 0 for none, and at least 1 otherwise.
fn micros(span: Option<Span>) -> u32 {
    span.map_or(0, |span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX).max(1))
}

fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Flow {
    /// What the glue reads before it calls the arithmetic. The pace stays as it was written last.
    pub fn load(&mut self, cx: &Context, w: &Window) {
        let known = |span: Span| (!span.is_zero() && span != Span::MAX).then_some(span);
        *self = Self {
            now: cx.now.as_nanos(),
            pacing: self.pacing,
            mss: saturate(cx.mss.get()),
            srtt_us: micros(known(cx.srtt)),
            min_rtt_us: micros(known(cx.min_rtt)),
            in_flight: saturate(cx.in_flight),
            delivered: cx.delivered as u32, // wraps, as the kernel's does
            lost: cx.lost as u32,
            cwnd: (w.cwnd as u32).max(1),
            ssthresh: if w.ssthresh < f64::from(NO_SSTHRESH) { w.ssthresh as u32 } else { NO_SSTHRESH },
            ca_state: match cx.state {
                State::Open => 0,
                State::Disorder => 1,
                State::Cwr => 2,
                State::Recovery => 3,
                State::Loss => 4,
            },
            cwnd_limited: cx.cwnd_limited.into(),
            app_limited: cx.app_limited.into(),
            unused: 0,
            wire: saturate(cx.wire.get()),
        };
    }

    /// What the glue writes back; `loaded` is as it was before the call. What a parent keeps in the fraction of a window
    /// (the kernel's `snd_cwnd_cnt`) stays.
    pub fn store(&self, loaded: &Self, cx: &Context, w: &mut Window) {
        if self.cwnd != loaded.cwnd {
            w.cwnd += f64::from(self.cwnd) - f64::from(loaded.cwnd);
        }
        if self.ssthresh != loaded.ssthresh {
            let known = self.ssthresh < NO_SSTHRESH;
            w.ssthresh = if known { f64::from(self.ssthresh) } else { f64::INFINITY };
        }
        if self.pacing != loaded.pacing {
            w.pacing = match self.pacing {
                0 => Pacing::Unlimited,
                // The kernel counts payload, logic/cc what is on the wire.
                rate => Pacing::Rate(Rate::from_bits_per_s_f64(
                    rate as f64 * 8.0 * cx.wire.as_f64() / cx.mss.as_f64().max(1.0),
                )),
            };
        }
    }
}

impl From<&Sample> for Ack {
    fn from(sample: &Sample) -> Self {
        Self {
            delivered: saturate(sample.delivered),
            rtt_us: micros(sample.rtt),
            one_way: sample.one_way.map_or(0, |span| span.as_millis() as u32), // wraps, as timestamps do
            has_one_way: sample.one_way.is_some().into(),
            prior_in_flight: saturate(sample.in_flight_at_send),
            bytes: saturate(sample.bytes.get()),
            ..Self::default()
        }
    }
}

impl From<&ranpace_cc::Ack> for Ack {
    fn from(ack: &ranpace_cc::Ack) -> Self {
        Self {
            acked: saturate(ack.acked),
            delivered: saturate(ack.delivered),
            rtt_us: micros(ack.rtt),
            one_way: 0,
            has_one_way: 0,
            rate_delivered: saturate(ack.rate.delivered),
            rate_interval_us: micros(ack.rate.interval),
            prior_delivered: ack.rate.prior_delivered as u32, // wraps
            losses: saturate(ack.rate.lost),
            prior_in_flight: saturate(ack.prior_in_flight),
            rate_app_limited: ack.rate.app_limited.into(),
            ecn_echo: ack.ecn_echo.into(),
            bytes: saturate(ack.bytes.get()),
        }
    }
}
