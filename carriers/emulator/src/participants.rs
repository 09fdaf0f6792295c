//! All participants of an emulation: passes each its packets, collects what they send, and tracks their deadlines.

use std::collections::VecDeque;

use ranpace_network::random::part_seed;
use ranpace_network::{PepResult, Reader, Source, SplitResult, Transit};
use ranpace_phy::Direction;
use ranpace_units::Time;

use crate::gso::OFFSET;
use crate::participant::{ArrivingPacket, Participant, Verdict};
use crate::pep::{PepAtHost, PepReport};
use crate::proxy::Proxy;
use crate::rewriting::RewriterAtHost;
use crate::topology::{Cut, Topology};

/// The participants of an emulation.
pub struct Participants<'a> {
    /// PEPs with their hosts. Packets pass the PEPs of a host first, and then its rewriters.
    peps: Vec<(usize, PepAtHost<'a>)>,
    rewriters: Vec<(usize, RewriterAtHost)>,
    proxies: Vec<(usize, Proxy<'a>)>,
    out: Out,
}

/// Packets sent by participants, with their routes.
#[derive(Debug, Default)]
struct Out {
    packets: VecDeque<(u32, Vec<u8>)>,
    /// Buffers to be reused.
    free: Vec<Vec<u8>>,
}

impl Out {
    fn push(&mut self, route: u32, packet: &[u8]) {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(packet);
        self.packets.push_back((route, buffer));
    }
}

impl<'a> Participants<'a> {
    /// The participants on the routes; `None` if no route passes one. They are subscribed to their users' radio information from
    /// the first event on.
    pub fn new<C: Copy + Default>(topology: &'a Topology, network: &mut Transit<'_, C>) -> Option<Self> {
        if topology.proxies.is_empty() && topology.peps.is_empty() && topology.rewriters.is_empty() {
            return None;
        }
        topology.cuts().next()?;
        let flows = 0..topology.scenario.flows.len() as u32;
        network.stop(flows.map(|flow| topology.cut_of(flow).is_some()).collect());
        let (users, seed) = (topology.scenario.users.len(), topology.scenario.seed);
        let proxy = |(number, spec)| {
            let spec: &ranpace_scenario::ProxySpec = spec;
            (spec.host, Proxy::new(spec, users, part_seed(seed, 6, number)))
        };
        let proxies: Vec<(usize, Proxy<'_>)> = topology.proxies.iter().enumerate().map(proxy).collect();
        let rewriters: Vec<(usize, RewriterAtHost)> =
            topology.rewriters.iter().map(|spec| (spec.host, RewriterAtHost::new(spec))).collect();
        let hosts = proxies.iter().map(|(host, proxy)| (*host, proxy.is_rapid()));
        for (reader, (host, is_reader)) in
            (0..).zip(hosts.chain(rewriters.iter().map(|(host, _)| (*host, true))))
        {
            if !is_reader {
                continue;
            }
            let mut users: Vec<(u32, u8)> = (topology.cuts().filter(|cut| cut.host == host))
                .filter_map(|cut| Some((cut.to_user?, topology.bearer(cut.route))))
                .collect();
            users.sort_unstable();
            users.dedup_by_key(|(user, _)| *user);
            for (user, bearer) in users {
                let reader = Reader::Participant(reader);
                network.subscribe_hints(Source::Edge, reader, user, Direction::Downlink, bearer);
            }
        }
        let pep = |(number, spec)| {
            let spec: &ranpace_scenario::PepSpec = spec;
            (spec.host, PepAtHost::new(spec, number, topology))
        };
        let peps = (0..).zip(&topology.peps).map(pep).collect();
        Some(Self { peps, rewriters, proxies, out: Out::default() })
    }

    fn all(&mut self) -> (impl Iterator<Item = (usize, &mut dyn Participant)>, &mut Out) {
        let Self { peps, proxies, out, .. } = self;
        let peps = peps.iter_mut().map(|(host, pep)| (*host, pep as &mut dyn Participant));
        let proxies = proxies.iter_mut().map(|(host, proxy)| (*host, proxy as &mut dyn Participant));
        (peps.chain(proxies), out)
    }

    /// A packet has reached the participants of a host. The buffer has the packet as rewriters change it, a virtio header first.
    pub fn on_packet(&mut self, now: Time, cut: &Cut, buffer: &mut Vec<u8>, marked: bool) -> Verdict {
        let Cut { host, onward, backward, route, answers, to_user, from_user } = *cut;
        let Self { peps, rewriters, proxies, out } = self;
        let mut show = |participant: &mut dyn Participant, buffer: &[u8]| {
            let packet = buffer.get(OFFSET..).unwrap_or_default();
            let passing =
                ArrivingPacket { packet, marked, onward, backward, route, answers, to_user, from_user };
            participant.on_packet(now, &passing, &mut |route, packet| out.push(route, packet))
        };
        for (_, pep) in peps.iter_mut().filter(|(at, _)| *at == host) {
            if show(pep, buffer) == Verdict::Take {
                return Verdict::Take;
            }
        }
        let mut verdict = Verdict::Pass;
        for (_, rewriter) in rewriters.iter_mut().filter(|(at, _)| *at == host) {
            if rewriter.on_packet(now, (from_user, to_user), buffer) {
                verdict = Verdict::Rewritten;
            }
        }
        for (_, proxy) in proxies.iter_mut().filter(|(at, _)| *at == host) {
            if show(proxy, buffer) == Verdict::Take {
                return Verdict::Take;
            }
        }
        verdict
    }

    /// Radio information has arrived, possibly for a participant.
    pub fn on_hint(&mut self, now: Time, delivery: &ranpace_network::HintDelivery) {
        let Self { rewriters, proxies, out, .. } = self;
        let Reader::Participant(number) = delivery.reader else { return };
        let of_rewriters = (number as usize).checked_sub(proxies.len());
        if let Some((_, rewriter)) = of_rewriters.and_then(|number| rewriters.get_mut(number)) {
            rewriter.on_hint(now, delivery.user, &delivery.hint);
        } else if let Some((_, proxy)) = proxies.get_mut(number as usize) {
            proxy.on_hint(now, delivery.user, &delivery.hint, &mut |route, packet| out.push(route, packet));
        }
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Time {
        let peps = self.peps.iter().map(|(_, pep)| pep.next_deadline());
        let proxies = self.proxies.iter().map(|(_, proxy)| proxy.next_deadline());
        peps.chain(proxies).fold(Time::MAX, Time::min)
    }

    /// Runs the deadlines due at `now`.
    pub fn on_deadline(&mut self, now: Time) {
        let (all, out) = self.all();
        for (_, participant) in all {
            if participant.next_deadline() <= now {
                participant.on_deadline(now, &mut |route, packet| out.push(route, packet));
            }
        }
    }

    /// The next packet sent by a participant: its route, and its bytes, a virtio header first.
    pub fn take(&mut self) -> Option<(u32, Vec<u8>)> {
        self.out.packets.pop_front()
    }

    /// Returns a buffer from [`Self::take`] for reuse.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.out.free.push(buffer);
    }

    /// The next report of a PEP on a TCP connection, verified by its server's agent.
    pub fn take_report(&mut self) -> Option<PepReport> {
        self.peps.iter_mut().find_map(|(_, pep)| pep.take_report())
    }

    /// Results of the PEPs.
    pub fn peps(&self) -> Vec<PepResult> {
        self.peps.iter().map(|(_, pep)| pep.result()).collect()
    }

    /// Results of the first proxy that split connections of a route.
    pub fn split(&self, route: u32) -> Option<SplitResult> {
        self.proxies.iter().find_map(|(_, proxy)| proxy.result(route))
    }
}
