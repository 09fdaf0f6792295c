//! What a control written in Python sees and sets: small classes whose times are in seconds, sizes in bytes, rates in bit/s.

use pyo3::prelude::*;
use ranpace_cc::{Pacing, PacketOutcome, Signal, State};
use ranpace_units::{Rate, Span};

/// The outputs of a control: congestion window, slow start threshold and pace. A hook changes it in place.
#[pyclass(module = "ranpace")]
pub struct Window {
    /// Congestion window in segments; only whole segments count.
    #[pyo3(get, set)]
    cwnd: f64,
    /// Slow start threshold in segments; infinite until the first congestion.
    #[pyo3(get, set)]
    ssthresh: f64,
    /// Pace in bit/s on the wire; `None` for as soon as the window allows.
    #[pyo3(get, set)]
    pacing_bit_s: Option<f64>,
}

impl Window {
    /// The endpoint's window, as Python sees it.
    pub fn of(window: &ranpace_cc::Window) -> Self {
        let pacing = match window.pacing {
            Pacing::Unlimited => None,
            Pacing::Rate(rate) => Some(rate.as_f64()),
        };
        Self { cwnd: window.cwnd, ssthresh: window.ssthresh, pacing_bit_s: pacing }
    }

    /// Copies the values back; an error says which one no sender can use.
    pub fn write(&self, window: &mut ranpace_cc::Window) -> Result<(), String> {
        if !self.cwnd.is_finite() || self.cwnd < 0.0 {
            return Err(format!("set cwnd to {}; expected segments, a finite number from 0", self.cwnd));
        }
        if self.ssthresh.is_nan() || self.ssthresh < 0.0 {
            return Err(format!("set ssthresh to {}; expected segments, from 0 to infinity", self.ssthresh));
        }
        let pacing = match self.pacing_bit_s {
            None => Pacing::Unlimited,
            // Beyond any link; as an integer it has a value.
            Some(rate) if (0.0..1e18).contains(&rate) => Pacing::Rate(Rate::from_bits_per_s(rate as u64)),
            Some(rate) => {
                return Err(format!("set pacing_bit_s to {rate}; expected a rate from 0 to 1e18, or None"));
            }
        };
        (window.cwnd, window.ssthresh, window.pacing) = (self.cwnd, self.ssthresh, pacing);
        Ok(())
    }
}

#[pymethods]
impl Window {
    /// Grows by one for each segment acknowledged, up to `ssthresh`; returns the segments left for congestion avoidance.
    fn slow_start(&mut self, acked: f64) -> f64 {
        let mut window = ranpace_cc::Window::new(self.cwnd);
        window.ssthresh = self.ssthresh;
        let left = window.slow_start(acked);
        self.cwnd = window.cwnd;
        left
    }

    fn __repr__(&self) -> String {
        let Self { cwnd, ssthresh, pacing_bit_s } = self;
        let pacing = pacing_bit_s.map_or_else(|| "None".to_owned(), |rate| rate.to_string());
        format!("Window(cwnd={cwnd}, ssthresh={ssthresh}, pacing_bit_s={pacing})")
    }
}

/// State of the connection at an event.
#[pyclass(frozen, module = "ranpace")]
pub struct Context(pub ranpace_cc::Context);

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

#[pymethods]
impl Context {
    /// Time of the event, in seconds since the run began.
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.now.as_secs_f64()
    }
    /// Payload of a full segment.
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.0.mss.get()
    }
    /// A full segment on the wire, headers included.
    #[getter]
    fn wire_bytes(&self) -> u64 {
        self.0.wire.get()
    }
    /// Smoothed RTT; 0 before the first sample.
    #[getter]
    fn srtt_s(&self) -> f64 {
        seconds(self.0.srtt)
    }
    /// Smallest RTT of the last 300 s; infinite before the first sample.
    #[getter]
    fn min_rtt_s(&self) -> f64 {
        if self.0.min_rtt == Span::MAX { f64::INFINITY } else { seconds(self.0.min_rtt) }
    }
    /// Segments sent and neither acknowledged nor declared lost.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }
    /// Segments delivered since the connection began.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    /// Segments lost since the connection began.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    /// Number of the next packet, in the order of sending.
    #[getter]
    fn next_packet(&self) -> u64 {
        self.0.next_packet
    }
    /// Loss recovery's state: "open", "disorder", "cwr", "recovery" or "loss", as Linux names them.
    #[getter]
    fn state(&self) -> &'static str {
        match self.0.state {
            State::Open => "open",
            State::Disorder => "disorder",
            State::Cwr => "cwr",
            State::Recovery => "recovery",
            State::Loss => "loss",
        }
    }
    /// Whether the window, not the application, limits the sender.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }
    /// Whether the application has nothing more to send at the moment.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
}

/// An acknowledgement, after loss detection.
#[pyclass(frozen, module = "ranpace")]
pub struct Ack(pub ranpace_cc::Ack);

#[pymethods]
impl Ack {
    /// Segments to grow the window by.
    #[getter]
    fn acked(&self) -> u64 {
        self.0.acked
    }
    /// Segments newly delivered, cumulatively or selectively.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    /// Payload newly delivered.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }
    /// RTT of the newest packet covered, if it has one.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(seconds)
    }
    /// Delivery rate in segments per second, if the sample is valid.
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        let interval = self.0.rate.interval.filter(|interval| !interval.is_zero())?;
        Some(self.0.rate.delivered as f64 / seconds(interval))
    }
    /// Whether the application limited the delivery rate.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.app_limited
    }
    /// Segments in flight before this acknowledgement.
    #[getter]
    fn prior_in_flight(&self) -> u64 {
        self.0.prior_in_flight
    }
    /// Whether it echoes an ECN mark.
    #[getter]
    fn ecn_echo(&self) -> bool {
        self.0.ecn_echo
    }
}

/// Measurements of an acknowledgement, before loss detection.
#[pyclass(frozen, module = "ranpace")]
pub struct Sample(pub ranpace_cc::Sample);

#[pymethods]
impl Sample {
    /// Segments newly delivered.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    /// Payload newly delivered.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }
    /// RTT of the newest packet covered, if it has one.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(seconds)
    }
    /// One-way delay, up to a constant offset between the clocks.
    #[getter]
    fn one_way_s(&self) -> Option<f64> {
        self.0.one_way.map(seconds)
    }
    /// Segments in flight when the newest packet covered was sent.
    #[getter]
    fn in_flight_at_send(&self) -> u64 {
        self.0.in_flight_at_send
    }
}

/// Lost segments, a timeout or an ECN mark.
#[pyclass(frozen, module = "ranpace")]
pub struct Congestion(pub ranpace_cc::Congestion);

#[pymethods]
impl Congestion {
    /// The signal: "loss", "timeout" or "ecn".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            Signal::Loss => "loss",
            Signal::Timeout { .. } => "timeout",
            Signal::Ecn => "ecn",
        }
    }
    /// Segments newly declared lost; 0 for a mark.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    /// Whether this begins an episode; within one, another threshold has no effect.
    #[getter]
    fn first(&self) -> bool {
        self.0.first
    }
}

/// A packet was sent.
#[pyclass(frozen, module = "ranpace")]
pub struct Sent(pub ranpace_cc::Sent);

#[pymethods]
impl Sent {
    /// Its place in the order of sending.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }
    /// Payload.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }
    /// Whether its data had been sent before.
    #[getter]
    fn retransmission(&self) -> bool {
        self.0.retransmission
    }
}

/// The outcome of one packet.
#[pyclass(frozen, module = "ranpace")]
pub struct Packet(pub ranpace_cc::Packet);

#[pymethods]
impl Packet {
    /// Its place in the order of sending.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }
    /// Payload.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }
    /// When it was sent, in seconds since the run began.
    #[getter]
    fn sent_at_s(&self) -> f64 {
        self.0.sent_at.as_secs_f64()
    }
    /// What became of it: "acked", "seen" or "missing" (both at a proxy), "lost" or "spurious".
    #[getter]
    fn fate(&self) -> &'static str {
        match self.0.fate {
            PacketOutcome::Acked { .. } => "acked",
            PacketOutcome::Seen { .. } => "seen",
            PacketOutcome::Missing => "missing",
            PacketOutcome::Lost => "lost",
            PacketOutcome::Spurious => "spurious",
        }
    }
    /// From its sending until it was acknowledged, or seen.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        match self.0.fate {
            PacketOutcome::Acked { rtt, .. } | PacketOutcome::Seen { rtt } => Some(seconds(rtt)),
            _ => None,
        }
    }
}

/// Radio information about the flow's user.
#[pyclass(frozen, module = "ranpace")]
pub struct RadioHint(pub ranpace_rnis::RadioHint);

#[pymethods]
impl RadioHint {
    /// When it was measured, in seconds since the run began.
    #[getter]
    fn measured_at_s(&self) -> f64 {
        self.0.measured_at.as_secs_f64()
    }
    /// Scheduling interval.
    #[getter]
    fn tti_s(&self) -> f64 {
        seconds(self.0.tti)
    }
    /// Largest transport block of the reporting period, in bits, if there was one.
    #[getter]
    fn tbs_bits(&self) -> Option<u32> {
        self.0.tbs_bits
    }
    /// PRBs granted to the user per TTI, mean of the period.
    #[getter]
    fn granted_prbs(&self) -> f64 {
        self.0.granted
    }
    /// PRBs of the cell per TTI.
    #[getter]
    fn cell_prbs(&self) -> u16 {
        self.0.cell
    }
    /// Unused PRBs per TTI, mean of the period.
    #[getter]
    fn unused_prbs(&self) -> f64 {
        self.0.unused
    }
    /// Users with a grant in the last 100 ms.
    #[getter]
    fn active_users(&self) -> u16 {
        self.0.active_users
    }
    /// CQI, 0 to 15, if one was measured.
    #[getter]
    fn cqi(&self) -> Option<u8> {
        self.0.cqi
    }
    /// MCS index of the last grant.
    #[getter]
    fn mcs(&self) -> u8 {
        self.0.mcs
    }
    /// RLC transmit queue of the flow's bearer.
    #[getter]
    fn queue_bytes(&self) -> u64 {
        self.0.queue.get()
    }
    /// Limit of that queue, if known.
    #[getter]
    fn queue_limit_bytes(&self) -> Option<u64> {
        self.0.queue_limit.map(|limit| limit.get())
    }
    /// Whether a handover of the user is in progress.
    #[getter]
    fn handover(&self) -> bool {
        self.0.handover
    }
    /// Rate of the user in bit/s if it got this many PRBs in every slot of the downlink.
    fn rate_bit_s(&self, prbs: f64) -> f64 {
        self.0.rate(ranpace_phy::Direction::Downlink, prbs).as_f64()
    }
}

/// Report of a Lightweight PEP on the path.
#[pyclass(frozen, module = "ranpace")]
pub struct PepReport(pub ranpace_cc::PepReport);

#[pymethods]
impl PepReport {
    /// Payload that the PEP has newly seen.
    #[getter]
    fn seen_bytes(&self) -> u64 {
        self.0.seen.get()
    }
    /// RTT between sender and PEP.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(seconds)
    }
    /// Packets found missing at the PEP.
    #[getter]
    fn missing(&self) -> u64 {
        self.0.missing
    }
}
