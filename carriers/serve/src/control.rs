//! Which congestion control a QUIC connection gets. A connection has one control, so its first request decides: until then, which is
//! the handshake and little more, it has the default one.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use noq::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;
use ranpace_noq::Controls;

/// The control of one connection, which its first request chooses.
#[derive(Debug)]
pub struct Choice {
    default: Arc<Controls>,
    chosen: OnceLock<Arc<Controls>>,
}

impl Choice {
    /// A connection that has not asked for anything.
    pub fn new(default: Arc<Controls>) -> Self {
        Self { default, chosen: OnceLock::new() }
    }

    /// What a request's path leads to; of a later request it changes nothing.
    pub fn choose(&self, controls: &Arc<Controls>) {
        // It is an error where another request has chosen.
        let _ = self.chosen.set(Arc::clone(controls));
    }

    /// The factory of the control that the connection has, or will have with its next packet.
    pub fn controls(&self) -> &Arc<Controls> {
        self.chosen.get().unwrap_or(&self.default)
    }
}

impl ControllerFactory for Choice {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        match self.chosen.get() {
            // A path after a migration.
            Some(controls) => Arc::clone(controls).build(now, current_mtu),
            None => {
                let controller = Arc::clone(&self.default).build(now, current_mtu);
                Box::new(Replaceable { choice: self, controller, mtu: current_mtu, is_final: false })
            }
        }
    }
}

/// A controller that is replaced when the connection's control has been chosen. The new one takes packets that were sent before for those of
/// the handshake, and ignores them.
#[derive(Debug)]
struct Replaceable {
    choice: Arc<Choice>,
    controller: Box<dyn Controller>,
    mtu: u16,
    is_final: bool,
}

impl Replaceable {
    fn at(&mut self, now: Instant) -> &mut dyn Controller {
        if !self.is_final
            && let Some(controls) = self.choice.chosen.get()
        {
            self.is_final = true;
            if !Arc::ptr_eq(controls, &self.choice.default) {
                self.controller = Arc::clone(controls).build(now, self.mtu);
            }
        }
        self.controller.as_mut()
    }
}

impl Controller for Replaceable {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.at(now).on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.at(now).on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.at(now).on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.at(now).on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let controller = self.at(now);
        controller.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.at(now).on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.controller.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: Duration) {
        self.controller.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            choice: Arc::clone(&self.choice),
            controller: self.controller.clone_box(),
            mtu: self.mtu,
            is_final: self.is_final,
        })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    /// That of the control, which information from outside is for.
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}
