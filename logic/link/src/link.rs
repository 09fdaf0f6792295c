//! A one-way link: loss, a queue, a server, propagation.

use ranpace_units::{Bytes, Rate, Span, Time};

use crate::fixed::FixedServer;
use crate::flight::Flight;
use crate::light::LightStage;
use crate::loss::LossProcess;
use crate::opportunities::TraceServer;
use crate::{LinkConfig, Observer, Packet, Queue, Service};

/// A one-way link. Times passed to it must not decrease from call to call.
pub struct Link<P> {
    lottery: LossProcess,
    light: Option<Box<LightStage<P>>>,
    queue: Queue<P>,
    server: Server<P>,
    flight: Flight<P>,
    /// Time of the earliest internal event or arrival.
    next: Time,
    /// Fixed rates so far, each with its start; empty until there is one.
    rates: Vec<(Time, Rate)>,
    /// The service before the first fixed rate, kept for its capacity.
    before: Option<Box<Server<P>>>,
}

enum Server<P> {
    Unlimited,
    Fixed(FixedServer<P>),
    Trace(TraceServer<P>),
}

/// Returns whether an event is due by `now`. Events at [`Time::MAX`] never happen.
#[inline]
fn is_due(at: Time, now: Time) -> bool {
    at <= now && at != Time::MAX
}

impl<P: Packet> Link<P> {
    /// An empty link at [`Time::ZERO`]. Loss, jitter, reordering and the queue use separate random streams,
    /// all derived from `seed`.
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        let mut rates = Vec::new();
        let server = match &config.service {
            Service::Unlimited => Server::Unlimited,
            Service::Fixed(rate) => {
                rates.push((Time::ZERO, *rate));
                Server::Fixed(FixedServer::new(*rate))
            }
            Service::Trace(service) => Server::Trace(TraceServer::new(service)),
        };
        Self {
            lottery: LossProcess::new(&config.loss, seed),
            light: config.light.as_ref().map(|light| Box::new(LightStage::new(light))),
            queue: Queue::new(&config.queue, seed),
            server,
            flight: Flight::new(config.delay, config.jitter, config.reorder, seed),
            next: Time::MAX,
            rates,
            before: None,
        }
    }

    /// Adds `overhead` bytes to the size of each packet on a fixed rate: the headers of a tunnel. A trace has
    /// its own setting ([`crate::TraceService`]).
    #[must_use]
    pub fn with_overhead(mut self, overhead: Bytes) -> Self {
        if let Server::Fixed(server) = &mut self.server {
            server.overhead = overhead;
        }
        self
    }

    /// Offers a packet. Loss (random or listed) is decided here, before the queue, and counts every packet
    /// offered. Events due by `now` happen first: a packet that leaves the queue at this instant makes room.
    #[inline]
    pub fn send(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.advance(now, observer);
        if let Some(cause) = self.lottery.draw(packet.size()) {
            observer.on_dropped(now, &packet, cause);
            self.set_next();
            return;
        }
        match &mut self.light {
            Some(light) => light.accept(now, packet.size(), packet),
            None => self.enqueue(now, packet, observer),
        }
        self.set_next();
    }

    /// A packet comes to the queue. Inlined where a packet is sent, although it is called from the light stage, too: `benches/instructions.txt`.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        match &mut self.server {
            Server::Unlimited => self.pass(now, packet, observer),
            Server::Fixed(server) => {
                self.queue.push(now, packet, observer);
                if server.current.is_none() {
                    server.start(now, &mut self.queue, observer);
                }
            }
            Server::Trace(server) => {
                if server.current.is_none() && self.queue.packets() == 0 {
                    server.cursor.seek(now);
                }
                self.queue.push(now, packet, observer);
            }
        }
    }

    /// A packet does not wait.
    #[inline]
    fn pass(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        observer.on_enqueued(now, &packet, Bytes::ZERO);
        observer.on_departed(now, &packet, Span::ZERO, false);
        self.flight.launch(now, packet);
    }

    /// When [`Link::poll`] must be called next; [`Time::MAX`] if nothing is under way.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.next
    }

    /// Earliest time at which a packet can arrive at the far end; [`Time::MAX`] if nothing is under way. Callers that only want
    /// packets may postpone [`Link::poll`] until then: server events happen at their own instants, however late the call.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.flight.next().min(self.next_release().min(self.next_departure()) + self.flight.delay)
    }

    /// Advances to `now` and returns the next packet that has arrived at the far end by then, or `None` if
    /// nothing more happens until [`Link::next_event`]. Call it until it returns `None`.
    #[inline]
    pub fn poll(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<P> {
        if !is_due(self.next, now) {
            return None;
        }
        self.advance(now, observer);
        let packet = self.flight.land(now);
        self.set_next();
        packet
    }

    /// Processes the events due by `now`, each at its instant.
    #[inline]
    fn advance(&mut self, now: Time, observer: &mut impl Observer<P>) {
        if self.light.is_some() {
            self.release(now, observer);
        }
        self.serve(now, observer);
    }

    /// Lets packets out of the light stage that leave it by `now`. At the same instant the server comes first: an opportunity serves only
    /// packets that came before it.
    #[inline(never)]
    fn release(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while is_due(self.next_release(), now) {
            self.serve(self.next_release(), observer);
            let Some((at, passes, packet)) = self.light.as_mut().and_then(|light| light.pop(now)) else {
                break;
            };
            if passes && self.queued_packets() == 0 {
                self.pass(at, packet, observer);
            } else {
                self.enqueue(at, packet, observer);
            }
        }
    }

    /// When the next packet leaves the light stage.
    #[inline]
    fn next_release(&self) -> Time {
        self.light.as_ref().map_or(Time::MAX, |light| light.next())
    }

    /// Processes the server events due by `now`, each at its instant. Inlined for the same reason as [`Self::enqueue`].
    #[inline(always)]
    fn serve(&mut self, now: Time, observer: &mut impl Observer<P>) {
        match &mut self.server {
            Server::Unlimited => {}
            Server::Fixed(server) => {
                while is_due(server.done, now) {
                    let at = server.done;
                    if let Some(queued) = server.current.take() {
                        observer.on_departed(at, &queued.packet, at.since(queued.enqueued), queued.marked);
                        self.flight.launch(at, queued.packet);
                    }
                    server.start(at, &mut self.queue, observer);
                }
            }
            Server::Trace(server) => {
                while (server.current.is_some() || self.queue.packets() > 0) && is_due(server.cursor.at, now)
                {
                    let at = server.cursor.at;
                    self.queue.on_capacity(at, |from, to| server.capacity(from, to));
                    let mut budget = server.cursor.count.saturating_mul(server.opportunity);
                    while budget > 0 {
                        let Some(queued) = server.current.take().or_else(|| {
                            let queued = self.queue.pop(at, observer)?;
                            server.left = queued.packet.size().get().saturating_add(server.overhead);
                            Some(queued)
                        }) else {
                            break;
                        };
                        if server.left > budget {
                            server.left -= budget;
                            server.current = Some(queued);
                            break;
                        }
                        budget -= server.left;
                        observer.on_departed(at, &queued.packet, at.since(queued.enqueued), queued.marked);
                        self.flight.launch(at, queued.packet);
                    }
                    server.cursor.step();
                }
            }
        }
    }

    /// The next event of the server.
    #[inline]
    fn next_departure(&self) -> Time {
        match &self.server {
            Server::Unlimited => Time::MAX,
            Server::Fixed(server) => server.done,
            Server::Trace(server) if server.current.is_some() || self.queue.packets() > 0 => server.cursor.at,
            Server::Trace(_) => Time::MAX,
        }
    }

    #[inline]
    fn set_next(&mut self) {
        self.next = self.next_departure().min(self.flight.next()).min(self.next_release());
    }

    /// Bytes waiting or in service.
    pub fn queued(&self) -> Bytes {
        self.queue.bytes() + self.in_service().map_or(Bytes::ZERO, Packet::size)
    }

    /// Number of packets waiting or in service.
    pub fn queued_packets(&self) -> usize {
        self.queue.packets() + usize::from(self.in_service().is_some())
    }

    fn in_service(&self) -> Option<&P> {
        match &self.server {
            Server::Unlimited => None,
            Server::Fixed(server) => server.current.as_ref(),
            Server::Trace(server) => server.current.as_ref(),
        }
        .map(|queued| &queued.packet)
    }

    /// A propagating packet, `places` behind the next one to arrive; packets held back are not counted. For
    /// callers that want to prefetch it: another packet may still arrive first.
    #[inline]
    pub fn upcoming(&self, places: usize) -> Option<&P> {
        self.flight.upcoming(places)
    }

    /// Number of propagating packets, with those that wait for an opportunity under light load.
    pub fn in_flight(&self) -> usize {
        self.flight.len() + self.light.as_ref().map_or(0, |light| light.len())
    }

    /// The queue, for queries that only one kind of queue supports.
    pub fn queue(&self) -> &Queue<P> {
        &self.queue
    }

    /// Capacity after `from` and up to `to`, in bytes as counted by [`Packet::size`]: rate times time, or what
    /// the opportunities carry less one packet's overhead each (12 kbit per opportunity with mahimahi's numbers).
    /// `None` for a link that was unlimited for some of that time.
    pub fn capacity(&self, from: Time, to: Time) -> Option<Bytes> {
        match &self.server {
            Server::Unlimited => None,
            Server::Trace(server) => Some(server.capacity(from, to)),
            Server::Fixed(_) => {
                let ends = self.rates.iter().skip(1).map(|(at, _)| *at).chain([Time::MAX]);
                let parts = self.rates.iter().zip(ends);
                let fixed: Bytes = parts
                    .map(|(&(start, rate), end)| rate.bytes_in(to.min(end).since(from.max(start))))
                    .sum();
                let since = self.rates.first().map_or(Time::ZERO, |(at, _)| *at);
                match self.before.as_deref() {
                    Some(Server::Unlimited) if from < since => None,
                    Some(Server::Trace(server)) if from < since => {
                        Some(fixed + server.capacity(from, to.min(since)))
                    }
                    _ => Some(fixed),
                }
            }
        }
    }

    /// Changes the rate at `now`; the packet in service continues at the new rate. An unlimited link or one with a
    /// trace has a fixed rate from then on. Call it when [`Link::poll`] has nothing more for `now`.
    /// Every change is recorded (16 B) for [`Link::capacity`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        let fixed = match &mut self.server {
            Server::Unlimited => Some(FixedServer::new(rate)),
            Server::Fixed(server) => {
                server.set_rate(now, rate);
                None
            }
            Server::Trace(server) => {
                let (current, left) = (server.current.take(), server.left);
                Some(FixedServer::taking_over(now, rate, current, left))
            }
        };
        if let Some(fixed) = fixed {
            self.before = Some(Box::new(core::mem::replace(&mut self.server, Server::Fixed(fixed))));
        }
        self.rates.push((now, rate));
        self.set_next();
    }

    /// Changes the propagation delay of packets that leave the server from now on. They do not overtake
    /// earlier ones.
    pub fn set_delay(&mut self, delay: Span) {
        self.flight.delay = delay;
    }

    /// Takes out all packets that have not arrived: propagating, in service or waiting. For the end of a run.
    pub fn drain(&mut self) -> impl Iterator<Item = P> + use<P> {
        let mut rest: Vec<P> = std::iter::from_fn(|| self.flight.take()).collect();
        if let Some(light) = &mut self.light {
            rest.extend(std::iter::from_fn(|| light.take()));
        }
        rest.extend(match &mut self.server {
            Server::Unlimited => None,
            Server::Fixed(server) => {
                server.done = Time::MAX;
                server.current.take().map(|queued| queued.packet)
            }
            Server::Trace(server) => server.current.take().map(|queued| queued.packet),
        });
        rest.extend(std::iter::from_fn(|| self.queue.take()).map(|queued| queued.packet));
        self.set_next();
        rest.into_iter()
    }
}

#[cfg(test)]
mod tests;
