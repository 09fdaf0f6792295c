//! The router of ABC: each packet tells its sender to send one more, or one less.
//!
//! Source: Goyal et al., "ABC: A Simple Explicit Congestion Controller for Wireless Networks" (NSDI 2020), as understood from its abstract
//! and its authors' code. At dequeue, with `mu` the link's capacity, `cr` the rate at which packets leave and `x` the time that what
//! waits will take:
//! `tr = ETA mu - mu / DELTA max(0, x - delay)`, `f = clamp(tr / (2 cr), 0, 1)`, `token = min(token + f, 5)`. While `token > 1` a packet that
//! came as "accelerate", ECT(1), stays so and takes a token; otherwise it leaves as "brake", ECT(0). A brake is never turned back.
//!
//! At a base station a bearer's slots tell the capacity ([`Abc::on_slot`]): `mu` is what the slots of the last 40 ms carried or could have
//! carried with the PRBs that nobody used. Two rules are of the specification of this place: `x` is the time that the head waited, and where
//! `mu` or `tr` is 0 the packet that leaves the queue empty accelerates. Ours: slots in which the bearer had nothing to send count neither
//! as capacity nor as time; otherwise a sender whose packets fill a slot each, but not every slot, would never be told to send more.
//!
//! The form `authors` has `ETA cr` in place of `ETA mu`, a window of 20 ms, and 0.49 token for each opportunity of a trace that was not
//! used, which lets a sender grow while the queue is empty. Where the capacity is not known nothing is braked.
//! `mu = 0`: only a packet that leaves nothing behind accelerates.
//!
//! State: the token, and what left in the last window; of a bearer also its slots in the last window.

use std::collections::VecDeque;

use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::fifo::Fifo;
use crate::{AbcForm, DropCause, Limit, Observer, Packet, Queued};

/// Share of the capacity that is aimed at.
const ETA: f64 = 0.98;
/// Seconds within which a queue above the target is drained.
const DELTA: f64 = 0.133;
/// Most tokens.
const TOKENS: f64 = 5.0;
/// Tokens of an unused opportunity of a trace, in the form `authors`.
const UNUSED: f64 = 0.49;
/// Bytes of an opportunity.
const OPPORTUNITY: f64 = 1_500.0;

/// A queue that brakes and accelerates.
pub struct Abc<P> {
    fifo: Fifo<P>,
    limit: Limit,
    delay: Span,
    form: AbcForm,
    token: f64,
    /// What left within the window: when, and how much.
    left: VecDeque<(Time, Bytes)>,
    left_bytes: Bytes,
    /// When the capacity was last told, and the capacity of the window before, in bytes per second.
    told: Time,
    capacity: Option<f64>,
    /// Bytes that left since.
    used: Bytes,
    /// The slots of a bearer; `None` for a link, and until the first slot.
    slots: Option<Box<Slots>>,
}

/// The slots of a bearer within the last window.
struct Slots {
    /// When a slot began, and the bytes that it could have carried.
    served: VecDeque<(Time, Bytes)>,
    served_bytes: Bytes,
    /// When slots passed in which nothing waited: from the first of them until the end of the last.
    idle: VecDeque<(Time, Time)>,
    /// The first of the slots in which nothing waits, unless something came since.
    idle_since: Option<Time>,
    /// The first slot of all.
    first: Time,
    /// Length of a slot.
    length: Span,
    /// When the capacity was computed, and what it was.
    known: (Time, Option<f64>),
}

impl Slots {
    fn new(first: Time) -> Self {
        Self {
            served: VecDeque::new(),
            served_bytes: Bytes::ZERO,
            idle: VecDeque::new(),
            idle_since: None,
            first,
            length: Span::ZERO,
            known: (first, None),
        }
    }

    fn on_slot(&mut self, now: Time, length: Span, egress: Bytes, is_idle: bool) {
        self.served.push_back((now, egress));
        self.served_bytes += egress;
        self.length = length.max(Span::from_nanos(1));
        self.idle_since = is_idle.then(|| now + self.length);
    }

    /// A packet came: the slots before it had nothing to carry.
    fn on_packet(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take()
            && since < now
        {
            let missed = (now - since).as_nanos().div_ceil(self.length.as_nanos().max(1));
            self.idle.push_back((since, since + self.length * missed));
        }
    }

    /// Bytes per second before `now`, over the slots of the window in which something waited; `None` if there was none.
    fn capacity(&mut self, now: Time, window: Span) -> Option<f64> {
        if self.known.0 != now {
            self.known = (now, self.measure(now, window));
        }
        self.known.1
    }

    fn measure(&mut self, now: Time, window: Span) -> Option<f64> {
        let start = Time::from_nanos(now.as_nanos().saturating_sub(window.as_nanos())).max(self.first);
        while let Some((at, bytes)) = self.served.front()
            && *at < start
        {
            self.served_bytes -= *bytes;
            self.served.pop_front();
        }
        while self.idle.front().is_some_and(|(_, end)| *end <= start) {
            self.idle.pop_front();
        }
        let idle: Span = self.idle.iter().map(|(from, end)| (*end).min(now).since((*from).max(start))).sum();
        if self.served.is_empty() && idle > Span::ZERO {
            return None;
        }
        let waited = now.since(start).as_secs_f64() - idle.as_secs_f64();
        (waited > 0.0).then(|| self.served_bytes.as_f64() / waited)
    }
}

/// The share of packets that accelerate: capacity `mu` and rate `cr` in bytes per second, waiting time `x` and its target in seconds.
fn fraction(form: AbcForm, mu: f64, cr: f64, x: f64, target: f64) -> f64 {
    let aim = match form {
        AbcForm::Capacity => ETA * mu,
        AbcForm::Authors => ETA * cr,
    };
    let rate = aim - mu / DELTA * (x - target).max(0.0);
    (0.5 * rate / cr).clamp(0.0, 1.0)
}

impl<P: Packet> Abc<P> {
    /// An empty queue.
    pub fn new(limit: Limit, delay: Span, form: AbcForm) -> Self {
        Self {
            fifo: Fifo::new(),
            limit,
            delay,
            form,
            token: 0.0,
            left: VecDeque::new(),
            left_bytes: Bytes::ZERO,
            told: Time::ZERO,
            capacity: None,
            used: Bytes::ZERO,
            slots: None,
        }
    }

    /// Time over which rates are measured.
    fn window(&self) -> Span {
        match self.form {
            AbcForm::Capacity => Span::from_millis(40),
            AbcForm::Authors => Span::from_millis(20),
        }
    }

    /// Tells the link's capacity between two instants, in bytes, before packets leave at `now`.
    pub(crate) fn on_capacity(&mut self, now: Time, between: impl Fn(Time, Time) -> Bytes) {
        let start = Time::from_nanos(now.as_nanos().saturating_sub(self.window().as_nanos()));
        let length = now.since(start).as_secs_f64();
        self.capacity = (length > 0.0).then(|| between(start, now).as_f64() / length);
        if self.form == AbcForm::Authors && now > self.told {
            // Opportunities at `now` are about to be used, those when it was last told were used first.
            let before = |at: Time| Time::from_nanos(at.as_nanos().saturating_sub(1));
            let unused = (between(before(self.told), before(now)) - self.used).as_f64() / OPPORTUNITY;
            self.token = (self.token + UNUSED * libm::floor(unused)).min(TOKENS);
        }
        (self.told, self.used) = (now, Bytes::ZERO);
    }

    /// See [`crate::Queue::on_slot`].
    pub fn on_slot(&mut self, now: Time, length: Span, egress: Bytes, is_idle: bool) {
        self.slots.get_or_insert_with(|| Box::new(Slots::new(now))).on_slot(now, length, egress, is_idle);
    }

    /// See [`crate::Queue::forget_slots`].
    pub fn forget_slots(&mut self) {
        self.slots = None;
    }

    /// See [`crate::Queue::push`].
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        if let Some(slots) = &mut self.slots {
            slots.on_packet(now);
        }
        if self.fifo.has_room(self.limit, &packet) {
            self.fifo.push(now, packet, false, observer);
        } else {
            observer.on_dropped(now, &packet, DropCause::Overflow);
        }
    }

    /// See [`crate::Queue::pop`].
    pub fn pop(&mut self, now: Time, _: &mut impl Observer<P>) -> Option<Queued<P>> {
        let waiting = self.fifo.bytes();
        let mut queued = self.fifo.pop()?;
        let size = queued.packet.size();
        self.left.push_back((now, size));
        self.left_bytes += size;
        self.used += size;
        let window = self.window();
        while let Some((at, old)) = self.left.front()
            && now.since(*at) >= window
        {
            self.left_bytes -= *old;
            self.left.pop_front();
        }
        let cr = self.left_bytes.as_f64() / window.as_secs_f64();
        let is_last = f64::from(u8::from(self.fifo.packets() == 0));
        let share = if let Some(slots) = &mut self.slots {
            let Some(mu) = slots.capacity(now, window) else { return Some(queued) };
            let waited = now.since(queued.enqueued).as_secs_f64();
            let share = fraction(self.form, mu, cr, waited, self.delay.as_secs_f64());
            if share > 0.0 { share } else { is_last }
        } else {
            let Some(mu) = self.capacity else { return Some(queued) };
            if mu > 0.0 {
                fraction(self.form, mu, cr, waiting.as_f64() / mu, self.delay.as_secs_f64())
            } else {
                is_last
            }
        };
        if self.brakes(queued.packet.ecn(), share) {
            queued.packet.set_ecn(Ecn::Ect0);
        }
        Some(queued)
    }

    /// Adds the share to the token, as each packet that leaves does; returns whether a packet of this code point is braked.
    fn brakes(&mut self, came: Ecn, share: f64) -> bool {
        self.token = (self.token + share).min(TOKENS);
        if came != Ecn::Ect1 {
            return false;
        }
        let brakes = self.token <= 1.0;
        self.token -= f64::from(u8::from(!brakes));
        brakes
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }

    /// Number of waiting packets.
    #[inline]
    pub fn packets(&self) -> usize {
        self.fifo.packets()
    }

    pub(crate) fn take(&mut self) -> Option<Queued<P>> {
        self.fifo.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestPacket};

    #[test]
    fn the_share_of_accelerating_packets_is_that_of_the_rule() {
        let mbit = |mbit: f64| mbit * 125_000.0;
        for (ms, cr, expected) in [
            (20.0, 12.0, 0.49),
            (50.0, 12.0, 0.49),
            (90.0, 12.0, 0.339_624),
            (180.34, 12.0, 0.0),
            (20.0, 6.0, 0.98),
            (20.0, 4.0, 1.0),
        ] {
            let found = fraction(AbcForm::Capacity, mbit(12.0), mbit(cr), ms / 1e3, 0.050);
            assert!((found - expected).abs() < 1e-6, "{ms} ms, {cr} Mbit/s: {found}");
        }
        // What is aimed at with so much queue, in Mbit/s.
        for (ms, expected) in [(20.0, 11.76), (50.0, 11.76), (90.0, 8.150_977)] {
            let aimed =
                2.0 * mbit(12.0) * fraction(AbcForm::Capacity, mbit(12.0), mbit(12.0), ms / 1e3, 0.050);
            assert!((aimed - mbit(expected)).abs() < 1.0, "{ms} ms: {aimed}");
        }
    }

    /// Where this function, which falls, is zero.
    fn zero_of(falls: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
        assert!(falls(low) > 0.0 && falls(high) < 0.0, "{} and {}", falls(low), falls(high));
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            *if falls(middle) > 0.0 { &mut low } else { &mut high } = middle;
        }
        low
    }

    /// 12 Mbit/s are 1000 packets of 1500 B in a second; base RTT 100 ms, target 50 ms.
    #[test]
    fn in_equilibrium_the_queue_is_that_of_the_closed_form() {
        const MU: f64 = 1_000.0;
        let share = |cr: f64, x: f64| fraction(AbcForm::Capacity, MU, cr, x, 0.050);
        // A packet moves the sum of `flows` windows by +1 or -1, and each window by 1 / w besides: `flows / W` for all of them.
        let drift = |flows: f64, cr: f64, x: f64| 2.0 * share(cr, x) - 1.0 + flows / (cr * (0.100 + x));
        let waiting = zero_of(|x| drift(5.0, MU, x), 0.0, 1.0);
        assert!((waiting - 0.051_722_99).abs() < 1e-8, "{waiting}");
        let closed = |flows: f64, x: f64| 0.050 + DELTA * (ETA - 1.0 + flows / (MU * (0.100 + x)));
        assert!((closed(5.0, waiting) - waiting).abs() < 1e-12, "{}", closed(5.0, waiting));
        // For one flow the closed form has 48.24 ms, which is below the target, where the law does not ask for a queue: the
        // windows shrink with any queue, and the link is left with 1 % unused.
        let alone = zero_of(|x| closed(1.0, x) - x, 0.0, 1.0);
        assert!((alone - 0.048_237).abs() < 1e-6, "{alone}");
        assert!(drift(1.0, MU, 0.0) < 0.0);
        let used = zero_of(|share| drift(1.0, share * MU, 0.0), 0.5, 1.0);
        assert!((used - 0.99).abs() < 1e-12, "{used}");
    }

    #[test]
    fn half_of_the_packets_accelerate_in_equilibrium() {
        let mut queue = Abc::<TestPacket>::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
        let found: String = (0..20).map(|_| if queue.brakes(Ecn::Ect1, 0.49) { 'B' } else { 'A' }).collect();
        assert_eq!(found, "BBABABABABABABABABAB");
    }

    #[test]
    fn a_second_router_brakes_no_more_than_the_first() {
        // Every other packet was braked by the first, and is a token for the next one all the same.
        let mut queue = Abc::<TestPacket>::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
        let mut accelerated = 0;
        for _ in 0..500 {
            assert!(!queue.brakes(Ecn::Ect0, 0.49));
            accelerated += u32::from(!queue.brakes(Ecn::Ect1, 0.49));
        }
        assert!((485..=490).contains(&accelerated), "{accelerated} of 1000 packets");
    }

    #[test]
    fn only_accelerating_packets_are_braked_and_only_if_the_capacity_is_known() {
        for known in [false, true] {
            let mut queue = Abc::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
            let mut log = Log::default();
            for (flow, ecn) in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect0, Ecn::Ce].into_iter().enumerate() {
                queue.push(Time::ZERO, TestPacket { ecn, ..TestPacket::new(flow as u32, 1500) }, &mut log);
            }
            let now = Time::from_millis(100);
            if known {
                queue.on_capacity(now, |from, to| Bytes::new(to.since(from).as_nanos() / 1_000_000 * 1_500));
            }
            let left: Vec<Ecn> =
                std::iter::from_fn(|| queue.pop(now, &mut log)).map(|queued| queued.packet.ecn).collect();
            let of_first = if known { Ecn::Ect0 } else { Ecn::Ect1 };
            assert_eq!(left, [of_first, Ecn::NotEct, Ecn::Ect0, Ecn::Ce]);
        }
    }

    #[test]
    fn unused_opportunities_are_tokens_in_the_authors_form() {
        let mut queue = Abc::<TestPacket>::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Authors);
        queue.on_capacity(Time::from_millis(3), |from, to| {
            Bytes::new(to.since(from).as_nanos() / 1_000_000 * 1_500)
        });
        assert!((queue.token - 2.0 * 0.49).abs() < 1e-12, "{}: that of now is about to be used", queue.token);
    }

    /// Plays a bearer whose slots of 1 ms carry 1500 B each, of which `offered` says how many packets come before each slot. Returns
    /// the share of packets that accelerated after 200 ms, and the largest queue in that time.
    fn bearer(slots: u64, offered: impl Fn(u64) -> u64) -> (f64, usize) {
        let mut queue = Abc::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
        let mut log = Log::default();
        let (mut left, mut accelerated, mut longest) = (0, 0, 0);
        for slot in 0..slots {
            let now = Time::from_millis(slot);
            for _ in 0..offered(slot) {
                let packet = TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) };
                queue.push(Time::from_nanos(now.as_nanos().saturating_sub(1)), packet, &mut log);
            }
            let Some(queued) = queue.pop(now, &mut log) else { continue };
            queue.on_slot(now, Span::from_millis(1), Bytes::new(1500), queue.packets() == 0);
            if slot >= 200 {
                left += 1;
                accelerated += u64::from(queued.packet.ecn == Ecn::Ect1);
                longest = longest.max(queue.packets());
            }
        }
        (accelerated as f64 / left as f64, longest)
    }

    #[test]
    fn the_share_in_a_bearer_is_that_of_the_rule() {
        // With every slot used and a queue of no more than 50 ms: 0.98 / 2. With 90 ms: (0.98 - 40 / 133) / 2. With 180.34 ms: none.
        for (ahead, expected) in [(1, 0.49), (51, 0.49), (91, 0.339_6), (182, 0.0)] {
            let (found, _) = bearer(2_100, |slot| if slot == 0 { ahead } else { 1 });
            assert!((found - expected).abs() < 0.003, "{ahead} packets ahead: {found}");
        }
    }

    #[test]
    fn slots_without_anything_to_send_are_no_lack_of_capacity() {
        // With half of the slots used, twice as much could be sent, and so 0.98 accelerate; with two thirds 0.735.
        for (every, of, expected) in [(1, 2, 0.98), (2, 3, 0.735)] {
            let (found, longest) = bearer(3_100, |slot| u64::from(slot % of < every));
            assert!((found - expected).abs() < 0.02 && longest == 0, "{every} of {of}: {found}, {longest}");
        }
    }

    #[test]
    fn a_bearer_that_was_not_served_for_long_brakes_all_but_the_last() {
        let mut queue = Abc::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
        let mut log = Log::default();
        queue.on_slot(Time::ZERO, Span::from_millis(1), Bytes::new(1500), false);
        for _ in 0..3 {
            let packet = TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) };
            queue.push(Time::from_millis(1), packet, &mut log);
        }
        queue.token = 1.0;
        let now = Time::from_millis(500);
        let left: Vec<Ecn> =
            std::iter::from_fn(|| queue.pop(now, &mut log)).map(|queued| queued.packet.ecn).collect();
        assert_eq!(left, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1]);
        // In a new cell nothing is known, and nothing braked.
        queue.forget_slots();
        queue.push(now, TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) }, &mut log);
        assert_eq!(queue.pop(now, &mut log).unwrap().packet.ecn, Ecn::Ect1);
    }

    /// A sender with a window, as ABC's is, on a bearer of 12 Mbit/s with a base RTT of 100 ms: the loop of router and sender settles
    /// where the closed form says.
    #[test]
    fn a_sender_and_its_bearer_settle_at_the_equilibrium() {
        for (flows, expected, slack) in [(5.0, 51.7, 8.0), (1.0, 0.0, 12.0)] {
            let mut queue = Abc::new(Limit::Unlimited, Span::from_millis(50), AbcForm::Capacity);
            let mut log = Log::default();
            let mut window: f64 = 50.0;
            let (mut flight, mut returning) = (0u64, VecDeque::<(Time, Ecn)>::new());
            let (mut waited, mut left) = (0.0, 0.0);
            for slot in 0..60_000u64 {
                let now = Time::from_millis(slot);
                while returning.front().is_some_and(|(at, _)| *at <= now) {
                    let Some((_, ecn)) = returning.pop_front() else { break };
                    flight -= 1;
                    // The sum of the windows of `flows` senders.
                    window += flows / window + if ecn == Ecn::Ect1 { 1.0 } else { -1.0 };
                }
                // A pace of twice the window in a round trip, as the sender has it: at most three packets in a slot here.
                for _ in 0..3 {
                    if (flight as f64) < window {
                        flight += 1;
                        queue.push(now, TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) }, &mut log);
                    }
                }
                let Some(queued) = queue.pop(now, &mut log) else { continue };
                queue.on_slot(now, Span::from_millis(1), Bytes::new(1500), queue.packets() == 0);
                returning.push_back((now + Span::from_millis(100), queued.packet.ecn));
                if slot >= 30_000 {
                    (waited, left) = (waited + now.since(queued.enqueued).as_secs_f64() * 1e3, left + 1.0);
                }
            }
            let mean = waited / left;
            assert!((mean - expected).abs() < slack && left > 0.97 * 30_000.0, "{flows}: {mean} ms, {left}");
        }
    }

    proptest::proptest! {
        /// Whatever slots and packets come, and whenever: shares are shares, and the capacity is a number.
        #[test]
        fn a_bearers_capacity_is_a_number(
            steps in proptest::collection::vec((0..5u64, 0..4u32, 0..3_000u64), 1..300),
        ) {
            let mut queue = Abc::new(Limit::Packets(20), Span::from_millis(50), AbcForm::Capacity);
            let mut log = Log::default();
            let mut now = Time::ZERO;
            for (wait, step, bytes) in steps {
                now += Span::from_millis(wait);
                match step {
                    0 => queue.forget_slots(),
                    1 => {
                        // A slot comes once in a millisecond.
                        now += Span::from_millis(1);
                        let idle = queue.packets() == 0;
                        queue.on_slot(now, Span::from_millis(1), Bytes::new(bytes), idle);
                    }
                    _ => {
                        queue.push(now, TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) }, &mut log);
                        if step == 3 {
                            queue.pop(now, &mut log);
                        }
                    }
                }
                proptest::prop_assert!((0.0..=TOKENS).contains(&queue.token));
                if let Some(slots) = &mut queue.slots {
                    let sum: Bytes = slots.served.iter().map(|(_, bytes)| *bytes).sum();
                    proptest::prop_assert_eq!(slots.served_bytes, sum);
                    if let Some(mu) = slots.capacity(now, Span::from_millis(40)) {
                        proptest::prop_assert!(mu.is_finite() && mu >= 0.0, "{}", mu);
                    }
                }
            }
        }
    }
}
