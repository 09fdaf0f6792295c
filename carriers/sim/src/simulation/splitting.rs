//! Packets and events of flows that a proxy splits. See [`crate::split`].

use ranpace_network::{Direction, FigureSource, PacketHandle, Reader, Source, Timer};
use ranpace_phy::Direction as Way;
use ranpace_rnis::RadioHint;

use super::Network;
use super::endpoints::{Due, Endpoints};
use crate::flow::Ends;
use crate::split::Side;

impl<'a> Endpoints<'a> {
    /// A connection of a flow begins. Returns whether it is split; if not, it continues as an ordinary one.
    pub(super) fn begin_split(&mut self, network: &mut Network<'a>, flow: u32) -> bool {
        let Some(splits) = &mut self.splits else { return false };
        let Some(split) = splits.of_flow(flow) else { return false };
        let proxy = splits.proxy_of(split);
        let is_split = splits.admit(split, network.now());
        let leg = splits.at(split).leg;
        network.routes.split(split, is_split);
        if !is_split {
            self.flows[leg as usize].renew();
            return false;
        }
        if let Some(next) = splits.begin(split, &mut self.flows, network.now()) {
            network.enter(next, Due::Write(flow));
        }
        self.listen(network, flow);
        self.pump_split(network, split);
        self.pump(network, leg, Direction::Forward);
        self.arm_sender(network, leg);
        self.pump(network, flow, Direction::Back);
        self.arm_receiver(network, flow);
        self.apply_decisions(network, proxy);
        true
    }

    /// Subscribes the proxies that need radio information, and sets their timers.
    pub(super) fn subscribe_proxies(&mut self, network: &mut Network<'a>) {
        let Some(splits) = &self.splits else { return };
        for (proxy, user, bearer) in splits.readers() {
            network.subscribe_hints(Source::Edge, Reader::Participant(proxy), user, Way::Downlink, bearer);
        }
        self.proxy_timers = vec![Timer::OFF; splits.proxies()];
    }

    /// Radio information about a user has reached a proxy.
    pub(super) fn on_proxy_hint(
        &mut self,
        network: &mut Network<'a>,
        proxy: u32,
        user: u32,
        hint: &RadioHint,
    ) {
        if let Some(splits) = &mut self.splits {
            splits.on_hint(network.now(), proxy as usize, user, hint);
            self.apply_decisions(network, proxy as usize);
        }
    }

    /// A proxy's deadline may have come.
    pub(super) fn on_proxy(&mut self, network: &mut Network<'a>, proxy: u32) {
        let Some(splits) = &mut self.splits else { return };
        if self.proxy_timers[proxy as usize].fires(network.now()) {
            if splits.next_deadline(proxy as usize) <= network.now() {
                splits.on_deadline(network.now(), proxy as usize);
            }
            self.apply_decisions(network, proxy as usize);
        }
    }

    /// Applies a proxy's decisions, and schedules its next deadline.
    fn apply_decisions(&mut self, network: &mut Network<'a>, proxy: usize) {
        while let Some(splits) = &mut self.splits
            && let Some(split) = splits.next_change(proxy, &mut self.flows, network.now())
        {
            self.send_on(network, split);
        }
        if let Some(splits) = &self.splits {
            let at = splits.next_deadline(proxy);
            network.set_timer(&mut self.proxy_timers[proxy], at, Due::Proxy(proxy as u32));
        }
    }

    /// A packet of a split flow has reached the end of its path: the server, the proxy or the user.
    pub(super) fn arrive_split(
        &mut self,
        network: &mut Network<'a>,
        split: usize,
        side: Side,
        handle: PacketHandle,
    ) {
        let packet = *network.meters.packets.at(handle);
        network.deliver(handle);
        let (flow, now) = (packet.flow, network.now());
        if packet.connection != self.flows[flow as usize].connection {
            return;
        }
        let Some(splits) = &mut self.splits else { return };
        match (side, packet.direction) {
            (Side::Server, Direction::Forward) => {
                splits.on_server_segment(split, &mut self.flows, now, &packet.segment);
                self.pump_split(network, split);
            }
            (Side::User, Direction::Back) => {
                let rtt = splits.on_user_segment(split, &mut self.flows, now, &packet.segment);
                if let Some(whole) = rtt.and_then(|rtt| splits.whole_rtt(split, rtt)) {
                    network.meters.on_rtt(flow, whole);
                }
                self.pump_split(network, split);
            }
            (Side::Server, Direction::Back) => {
                if let Some(rtt) = self.flows[flow as usize].on_feedback(now, &packet.segment) {
                    network.meters.on_rtt(flow, rtt);
                    let ends = &self.flows[flow as usize].ends;
                    let is_quiet = matches!(ends, Ends::Tcp(server, _) if server.in_flight() == 0);
                    splits.on_wan_rtt(split, rtt, is_quiet);
                }
                self.pump(network, flow, Direction::Forward);
                self.arm_sender(network, flow);
            }
            (Side::User, Direction::Forward) => {
                let state = &mut self.flows[flow as usize];
                let was_complete = state.is_complete();
                let workload = &self.scenario.flows[flow as usize].workload;
                let next = state.on_data(workload, now, &packet.segment);
                let is_over = !was_complete && (state.finished.is_some() || next.is_some());
                let proxy = is_over.then(|| {
                    splits.release(split, now);
                    splits.proxy_of(split)
                });
                if let Some(proxy) = proxy {
                    self.apply_decisions(network, proxy);
                }
                if let Some(next) = next {
                    network.enter(next, Due::Start(flow));
                }
                self.pump(network, flow, Direction::Back);
                self.arm_receiver(network, flow);
            }
        }
    }

    /// Sends on both sides, and applies what else the proxy has decided on the arrival.
    fn pump_split(&mut self, network: &mut Network<'a>, split: usize) {
        self.send_on(network, split);
        if let Some(splits) = &self.splits {
            let proxy = splits.proxy_of(split);
            self.apply_decisions(network, proxy);
        }
    }

    /// Lets the proxy send all that it may on both sides.
    fn send_on(&mut self, network: &mut Network<'a>, split: usize) {
        let Some(splits) = &self.splits else { return };
        let (flow, leg) = (splits.at(split).flow, splits.at(split).leg);
        self.pump(network, flow, Direction::Forward);
        self.arm_sender(network, flow);
        if let Some(splits) = &mut self.splits {
            splits.settle(split, &mut self.flows, network.now());
        }
        self.pump(network, leg, Direction::Back);
        self.arm_receiver(network, leg);
    }

    /// The sender of a flow has sent after its deadline.
    pub(super) fn after_sending(&mut self, network: &mut Network<'a>, flow: u32) {
        if let Some((split, Side::User)) = self.splits.as_ref().and_then(|splits| splits.of(flow)) {
            self.pump_split(network, split);
        }
    }

    /// The application wrote.
    pub(super) fn write_to_leg(&mut self, network: &mut Network<'a>, flow: u32) {
        let Some(splits) = &mut self.splits else { return };
        let Some((split, _)) = splits.of(flow) else { return };
        splits.supply(split, &mut self.flows);
        let leg = splits.at(split).leg;
        self.pump(network, leg, Direction::Forward);
        self.arm_sender(network, leg);
    }

    /// The application stops: the server sends nothing new.
    pub(super) fn stop_leg(&mut self, network: &mut Network<'a>, flow: u32) {
        let Some((split, _)) = self.splits.as_ref().and_then(|splits| splits.of(flow)) else { return };
        let Some(splits) = &self.splits else { return };
        let leg = splits.at(split).leg;
        self.flows[leg as usize].stop();
        self.arm_sender(network, leg);
    }

    /// Adds to the rows of split flows what their legs measured and what proxies show.
    pub(super) fn sample_splits(&mut self, network: &mut Network<'a>) {
        let Some(splits) = &self.splits else { return };
        for split in 0..splits.legs() {
            let (flow, leg) = (splits.at(split).flow as usize, splits.at(split).leg as usize);
            if let Ok([meter, behind]) = network.meters.flows.get_disjoint_mut([flow, leg]) {
                meter.take_row(behind);
            }
            let rows = &mut self.rows[flow];
            splits.inspect(split, &self.flows, network.now(), &mut |name, value| {
                rows.show_next(FigureSource::Proxy, name, value)
            });
        }
    }
}
