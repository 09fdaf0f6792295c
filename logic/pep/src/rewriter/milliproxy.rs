//! milliProxy, as understood: lowers the window in users' acknowledgements, so that the server sends what the radio takes.
//!
//! Source: Polese et al. 2017, of which Diarra 2022, section 2.3.2, names the inputs and the place; its formulas are unknown to us. With
//! the radio rate `R`, the RLC queue `B`, the smallest RTT `D` and `n` flows:
//!
//! * `bdp`: `FW = R D`;
//! * `literal`: `FW = max(0, R D - B)`, which counts the queue twice;
//! * `bdp_buffer`: `FW = R (D + allowance) - max(0, B - R 5 ms)`. Ours, and the default, with an allowance of 2 ms;
//! * `window = min(the user's, max(FW / n, 2 MSS))`, rounded down to the unit of the window's scale.
//!
//! As published, `n` is 1 however many flows a user has. Ours:
//!
//! * `flows = "count"` divides by the user's connections with payload from the server in the last second, or in ten RTTs to it.
//! * `D` is the smallest RTT to the server plus the smallest to the user, of the handshake's segments and of timestamps.
//! * The right edge of the window never moves left (RFC 9293, section 3.8.6.2.1, discourages it): a lower window takes hold as data are
//!   acknowledged. What the edge had allowed, the server may have sent.
//! * The window is zero only where the user's is.
//! * Segments pass untouched while R or D is not known, in connections whose SYN was not seen, since their scale is unknown, and after FIN
//!   or RST.
//!
//! Left out: the buffer of the published proxy, which needs the payload, and other segment sizes on the radio than on the wire.

use std::collections::BTreeMap;

use ranpace_rnis::RadioHint;
use ranpace_units::{Span, Time};

use super::connections::Connections;
use super::user_radio::{Known, Radios};
use super::{Passage, Rewriter, TcpFields};

/// The queue that `bdp_buffer` leaves alone, as time at the radio rate. Ours.
const QUEUE: Span = Span::from_millis(5);
/// Smallest window in segments.
const FLOOR: f64 = 2.0;
/// MSS of a connection whose SYNs do not say it (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest shift of a window (RFC 7323, section 2.3).
const MOST_SCALE: u8 = 14;
/// Farthest right edge beyond an acknowledgement that is one: the largest window (RFC 7323, section 2.3).
const MOST_WINDOW: u32 = 1 << 30;
/// A connection counts among the user's flows for this long after its last payload, and for this many RTTs to the server (RAPID's rule).
const ACTIVE: Span = Span::SECOND;
const ACTIVE_RTTS: u64 = 10;

/// How the window follows from rate, RTT and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Rate times RTT.
    Bdp,
    /// Less the queue.
    Literal,
    /// Less what the queue has above 5 ms.
    BdpBuffer,
}

impl Policy {
    /// The window of all flows in bytes; it may be negative. Rate in bytes per second, queue in bytes.
    fn window(self, rate: f64, queue: f64, rtt: Span, allowance: Span) -> f64 {
        match self {
            Self::Bdp => rate * rtt.as_secs_f64(),
            Self::Literal => (rate * rtt.as_secs_f64() - queue).max(0.0),
            Self::BdpBuffer => {
                let excess = (queue - rate * QUEUE.as_secs_f64()).max(0.0);
                rate * (rtt + allowance).as_secs_f64() - excess
            }
        }
    }
}

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Period of the radio information.
    pub reports: Span,
    /// The policy.
    pub policy: Policy,
    /// Added to the smallest RTT by [`Policy::BdpBuffer`].
    pub allowance: Span,
    /// Whether the window is divided by the user's flows.
    pub counts_flows: bool,
}

/// The smallest RTT between here and one end, by timestamps: TSval passes on the way there, and is echoed on the way back.
#[derive(Clone, Copy, Debug, Default)]
struct SideRtt {
    /// The newest TSval that has passed.
    newest: Option<u32>,
    /// A TSval that has not been echoed, and when it passed first.
    pending: Option<(u32, Time)>,
    least: Option<Span>,
}

impl SideRtt {
    fn on_sent(&mut self, now: Time, value: u32) {
        // A value that has passed before says nothing about when its echo was caused.
        let is_new = self.newest.is_none_or(|newest| is_after(value, newest));
        if is_new {
            self.newest = Some(value);
            self.pending.get_or_insert((value, now));
        }
    }

    fn on_echo(&mut self, now: Time, echo: u32) {
        if let Some((value, sent)) = self.pending
            && (echo == value || is_after(echo, value))
        {
            self.pending = None;
            self.note(now.since(sent));
        }
    }

    fn note(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }
}

/// Whether a number is after another, modulo 2^32 (RFC 7323, section 5.2).
fn is_after(number: u32, other: u32) -> bool {
    number != other && number.wrapping_sub(other) < 1 << 31
}

/// The handshake, as far as it has passed.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    /// Nothing of it.
    None,
    /// A SYN has passed, from the user or not; `None` after its repetition, whose answer is ambiguous (Karn).
    Opened {
        by_user: bool,
        at: Option<Time>,
    },
    /// Its answer has passed.
    Answered {
        by_user: bool,
        at: Option<Time>,
    },
    Done,
}

#[derive(Debug)]
struct Connection {
    user: u32,
    handshake: Handshake,
    /// Shift of the user's windows, from its SYN and the server's: zero unless both have the option.
    user_scale: Option<u8>,
    server_scale: Option<u8>,
    mss: u16,
    /// Window of the user's SYN, which counts from the server's first sequence number.
    syn_window: Option<u16>,
    to_user: SideRtt,
    to_server: SideRtt,
    /// The right edge of the window that has been passed on.
    edge: Option<u32>,
    /// When payload of the server has passed.
    served: Option<Time>,
}

impl Connection {
    fn new(user: u32) -> Self {
        Self {
            user,
            handshake: Handshake::None,
            user_scale: None,
            server_scale: None,
            mss: u16::MAX,
            syn_window: None,
            to_user: SideRtt::default(),
            to_server: SideRtt::default(),
            edge: None,
            served: None,
        }
    }

    fn side(&mut self, is_user: bool) -> &mut SideRtt {
        if is_user { &mut self.to_user } else { &mut self.to_server }
    }

    /// The handshake's samples, and the options of its SYNs.
    fn on_handshake(&mut self, now: Time, from_user: bool, header: &TcpFields) {
        if header.syn {
            self.mss = self.mss.min(header.mss.unwrap_or(DEFAULT_MSS));
            let scale = header.scale.map(|scale| scale.min(MOST_SCALE));
            let own = if from_user { &mut self.user_scale } else { &mut self.server_scale };
            *own = scale;
        }
        self.handshake = match self.handshake {
            Handshake::None => Handshake::Opened { by_user: from_user, at: Some(now) },
            Handshake::Opened { by_user, at }
                if header.syn && header.ack.is_some() && by_user != from_user =>
            {
                if let Some(at) = at {
                    self.side(from_user).note(now.since(at));
                }
                Handshake::Answered { by_user, at: Some(now) }
            }
            Handshake::Opened { by_user, .. } if header.syn => Handshake::Opened { by_user, at: None },
            Handshake::Answered { by_user, .. } if header.syn => Handshake::Answered { by_user, at: None },
            Handshake::Answered { by_user, at } if by_user == from_user => {
                if let Some(at) = at {
                    self.side(from_user).note(now.since(at));
                }
                Handshake::Done
            }
            other => other,
        };
        // The window of a SYN is not scaled.
        match (header.syn, from_user, header.ack) {
            (true, true, None) => self.syn_window = Some(header.window),
            (true, true, Some(ack)) => self.advance(ack.wrapping_add(header.window.into())),
            (true, false, Some(_)) => {
                if let Some(window) = self.syn_window {
                    self.advance(header.seq.wrapping_add(1).wrapping_add(window.into()));
                }
            }
            _ => {}
        }
    }

    /// A window up to this right edge passes.
    fn advance(&mut self, edge: u32) {
        if self.edge.is_none_or(|known| is_after(edge, known)) {
            self.edge = Some(edge);
        }
    }

    /// Shift of the user's windows.
    fn scale(&self) -> u8 {
        self.server_scale.and(self.user_scale).unwrap_or(0)
    }

    /// Smallest RTT between user and server.
    fn rtt(&self) -> Option<Span> {
        Some(self.to_user.least? + self.to_server.least?)
    }

    fn is_active(&self, now: Time) -> bool {
        let rtt = self.to_server.least.unwrap_or(Span::ZERO);
        self.served.is_some_and(|served| now.since(served) <= ACTIVE.max(rtt * ACTIVE_RTTS))
    }

    /// The window field for an acknowledgement whose window should be `limit` bytes, if that is known; `window` is the user's.
    fn rewrite(&mut self, ack: u32, window: u16, limit: Option<f64>) -> u16 {
        let (scale, unit) = (self.scale(), 1_u32 << self.scale());
        let wanted = limit.map_or(window, |limit| {
            // From below zero a conversion gives zero.
            ((limit as u64) >> scale).clamp(1, u16::MAX.into()) as u16
        });
        let allowed = self.edge.map_or(0, |edge| edge.wrapping_sub(ack));
        let allowed =
            if allowed <= MOST_WINDOW { allowed.div_ceil(unit).min(u16::MAX.into()) as u16 } else { 0 };
        let window = wanted.max(allowed).min(window);
        self.advance(ack.wrapping_add(u32::from(window) << scale));
        window
    }
}

/// The rewriter.
#[derive(Debug)]
pub(super) struct Milliproxy {
    settings: Settings,
    radios: Radios,
    connections: Connections<Connection>,
    /// Active flows of each user at its last report.
    flows: BTreeMap<u32, usize>,
}

impl Milliproxy {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            radios: Radios::new(settings.reports),
            connections: Connections::new(),
            flows: BTreeMap::new(),
        }
    }

    /// The window of a connection in bytes, which may be negative.
    fn window(settings: &Settings, known: &Known, rtt: Span, flows: usize, mss: u16) -> f64 {
        let whole = settings.policy.window(known.rate, known.queue.as_f64(), rtt, settings.allowance);
        (whole / flows.max(1) as f64).max(FLOOR * f64::from(mss))
    }
}

impl Rewriter for Milliproxy {
    fn on_segment(&mut self, now: Time, passage: Passage, header: &mut TcpFields) {
        let Passage { connection, user, from_user } = passage;
        if header.rst || header.fin {
            self.connections.forget(connection);
            return;
        }
        let own = if header.syn && header.ack.is_none() {
            let known = self.connections.get(now, connection);
            if known.is_some_and(|known| matches!(known.handshake, Handshake::Done)) {
                // The same ports again.
                self.connections.forget(connection);
            }
            self.connections.get_or_insert(now, connection, || Connection::new(user))
        } else {
            self.connections.get(now, connection)
        };
        let Some(own) = own else { return };
        own.on_handshake(now, from_user, header);
        if let Some((value, echo)) = header.timestamps {
            own.side(!from_user).on_sent(now, value);
            if header.ack.is_some() {
                own.side(from_user).on_echo(now, echo);
            }
        }
        if !from_user {
            if header.payload > 0 {
                own.served = Some(now);
            }
            return;
        }
        let (Some(ack), false) = (header.ack, header.syn) else { return };
        let limit = own.rtt().zip(self.radios.of(now, user)).map(|(rtt, known)| {
            let flows =
                if self.settings.counts_flows { self.flows.get(&user).copied().unwrap_or(1) } else { 1 };
            Self::window(&self.settings, &known, rtt, flows, own.mss)
        });
        header.window = own.rewrite(ack, header.window, limit);
    }

    fn on_radio(&mut self, now: Time, user: u32, hint: &RadioHint) {
        self.radios.on_report(now, user, hint);
        if self.settings.counts_flows {
            let is_active = |own: &&Connection| own.user == user && own.is_active(now);
            self.flows.insert(user, self.connections.states().filter(is_active).count());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ranpace_units::Bytes;

    use super::super::user_radio::whole_cell;
    use super::*;

    const MS: Span = Span::from_millis(1);
    const SCALE: u8 = 7;

    fn settings(policy: Policy) -> Settings {
        Settings { reports: MS, policy, allowance: MS * 2, counts_flows: false }
    }

    fn known(mbit_s: u64, queue: u64) -> Known {
        Known { rate: mbit_s as f64 * 125_000.0, queue: Bytes::new(queue), age: Span::ZERO }
    }

    #[test]
    fn the_window_follows_the_policy_down_to_two_segments() {
        // Specification, section 1: RTTmin 20 ms, a scale of 7.
        for (policy, mbit_s, queue, window, field) in [
            (Policy::BdpBuffer, 400, 100_000, 1_100_000.0, 8_593),
            (Policy::BdpBuffer, 400, 500_000, 850_000.0, 6_640),
            (Policy::BdpBuffer, 96, 1_100_000, 2_920.0, 22),
            (Policy::Bdp, 400, 500_000, 1_000_000.0, 7_812),
            (Policy::Literal, 400, 500_000, 500_000.0, 3_906),
            (Policy::Literal, 96, 1_100_000, 2_920.0, 22),
            (Policy::Bdp, 0, 0, 2_920.0, 22),
        ] {
            let got = Milliproxy::window(&settings(policy), &known(mbit_s, queue), MS * 20, 1, 1_460);
            assert!((got - window).abs() < 1e-6, "{policy:?}, {queue}: {got}");
            let mut connection = Connection::new(0);
            (connection.user_scale, connection.server_scale) = (Some(SCALE), Some(SCALE));
            assert_eq!(connection.rewrite(1, u16::MAX, Some(got)), field, "{policy:?}, {queue}");
        }
        let four = Milliproxy::window(&settings(Policy::Bdp), &known(400, 0), MS * 20, 4, 1_460);
        assert!((four - 250_000.0).abs() < 1e-6);
    }

    /// A connection that a user has opened through the proxy, 8 ms from the server and 12 ms from the user, with a window of 64 KiB.
    struct Path {
        proxy: Milliproxy,
        now: Time,
    }

    const USER: Passage = Passage { connection: 1, user: 0, from_user: true };
    const SERVER: Passage = Passage { from_user: false, ..USER };

    impl Path {
        fn opened(policy: Policy, timestamps: bool) -> Self {
            let mut path = Self { proxy: Milliproxy::new(settings(policy)), now: Time::from_secs(1) };
            let syn = TcpFields {
                syn: true,
                scale: Some(SCALE),
                mss: Some(1_460),
                window: 65_535,
                timestamps: timestamps.then_some((100, 0)),
                ..TcpFields::default()
            };
            path.pass(USER, syn);
            path.now += MS * 8;
            let timestamps = timestamps.then_some((900, 100));
            path.pass(SERVER, TcpFields { ack: Some(1), timestamps, ..syn });
            path.now += MS * 12;
            let timestamps = timestamps.map(|_| (120, 900));
            path.pass(USER, TcpFields { timestamps, ..ack(1, 512) });
            path
        }

        fn pass(&mut self, passage: Passage, mut header: TcpFields) -> TcpFields {
            self.proxy.on_segment(self.now, passage, &mut header);
            header
        }

        fn report(&mut self) {
            self.proxy.on_radio(self.now, 0, &whole_cell(self.now));
        }
    }

    fn ack(ack: u32, window: u16) -> TcpFields {
        TcpFields { ack: Some(ack), window, ..TcpFields::default() }
    }

    #[test]
    fn windows_are_lowered_once_rate_and_rtt_are_known() {
        for timestamps in [false, true] {
            let mut path = Path::opened(Policy::Bdp, timestamps);
            assert_eq!(path.pass(USER, ack(1, 40_000)).window, 40_000, "no radio information");
            path.report();
            let rate = whole_cell(path.now).rate(ranpace_phy::Direction::Downlink, 100.0).as_f64() / 8.0;
            let field = ((rate * 0.02) as u64 >> SCALE) as u16;
            // The edge that has passed stays until data are acknowledged up to it.
            assert_eq!(path.pass(USER, ack(1, 40_000)).window, 40_000);
            let lowered = path.pass(USER, ack(1 + (40_000 << SCALE), 40_000)).window;
            assert_eq!(lowered, field, "20 ms at the radio rate, timestamps {timestamps}");
            assert_eq!(path.pass(USER, ack(1 + (40_000 << SCALE), 9)).window, 9, "the user's is smaller");
            assert_eq!(path.pass(USER, ack(1 + (40_000 << SCALE), 0)).window, 0, "the user's is closed");
            path.now += Span::from_secs(2);
            assert_eq!(path.pass(USER, ack(9_000_000, 40_000)).window, 40_000, "the information is gone");
        }
    }

    #[test]
    fn what_is_not_understood_passes() {
        let mut path = Path::opened(Policy::Bdp, true);
        path.report();
        let far = 1 + (40_000 << SCALE);
        let other = Passage { connection: 2, ..USER };
        assert_eq!(path.pass(other, ack(far, 40_000)).window, 40_000, "no SYN was seen");
        let data = TcpFields { payload: 1_448, window: 500, ..ack(1, 500) };
        assert_eq!(path.pass(SERVER, data), data, "the server's window is its own");
        let fin = TcpFields { fin: true, ..ack(far, 40_000) };
        assert_eq!(path.pass(USER, fin), fin);
        assert_eq!(path.pass(USER, ack(far, 40_000)).window, 40_000, "it is over");
    }

    #[test]
    fn without_the_option_of_both_ends_windows_are_not_scaled() {
        let mut connection = Connection::new(0);
        connection.user_scale = Some(SCALE);
        assert_eq!(connection.scale(), 0);
        assert_eq!(connection.rewrite(1, u16::MAX, Some(20_000.0)), 20_000);
    }

    #[test]
    fn counted_flows_share_the_window() {
        let mut path = Path::opened(Policy::Bdp, true);
        path.proxy.settings.counts_flows = true;
        let mut served = Connection::new(0);
        served.served = Some(path.now);
        path.proxy.connections.get_or_insert(path.now, 2, || served);
        path.pass(SERVER, TcpFields { payload: 1_448, ..ack(1, 500) });
        path.report();
        let rate = whole_cell(path.now).rate(ranpace_phy::Direction::Downlink, 100.0).as_f64() / 8.0;
        let expected = ((rate * 0.02 / 2.0) as u64 >> SCALE) as u16;
        assert_eq!(path.pass(USER, ack(1 + (512 << SCALE), 40_000)).window, expected);
    }

    #[test]
    fn the_smallest_rtt_is_of_new_timestamps_alone() {
        let mut side = SideRtt::default();
        side.on_sent(Time::from_millis(10), 5);
        side.on_sent(Time::from_millis(12), 6);
        side.on_echo(Time::from_millis(40), 5);
        assert_eq!(side.least, Some(MS * 30));
        // 6 has passed at 12 ms already: an echo soon after 41 ms says nothing.
        side.on_sent(Time::from_millis(41), 6);
        side.on_echo(Time::from_millis(42), 6);
        assert_eq!(side.least, Some(MS * 30));
        // Across the wrap.
        side.newest = Some(u32::MAX);
        side.on_sent(Time::from_millis(50), 1);
        side.on_echo(Time::from_millis(75), 2);
        assert_eq!(side.least, Some(MS * 25));
    }

    /// What passes next: an acknowledgement of this much more, with the user's right edge this much further, and a rate.
    fn step() -> impl Strategy<Value = (u32, u32, Option<u64>)> {
        (0..100_000_u32, 0..400_000_u32, prop::option::of(0..600_u64))
    }

    proptest! {
        /// Whatever the radio does, the right edge never moves left, never passes the user's, and no open window is closed.
        #[test]
        fn the_right_edge_never_moves_left(
            scale in 0..=MOST_SCALE,
            begin in any::<u32>(),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let mut connection = Connection::new(0);
            (connection.user_scale, connection.server_scale) = (Some(scale), Some(scale));
            let (mut acked, mut edge, mut passed) = (0_u64, 65_535_u64, 0_u64);
            for (more, further, rate) in steps {
                acked = (acked + u64::from(more)).min(passed.max(edge.min(acked + 10_000)));
                edge = edge.max(acked) + u64::from(further);
                // As Linux rounds: up, so that its own edge never moves left.
                let field = (edge - acked).div_ceil(1 << scale).min(u16::MAX.into()) as u16;
                edge = edge.min(acked + (u64::from(field) << scale));
                let limit = rate.map(|rate| Milliproxy::window(
                    &settings(Policy::BdpBuffer), &known(rate, 300_000), MS * 20, 1, 1_460,
                ));
                let got = connection.rewrite(begin.wrapping_add(acked as u32), field, limit);
                let now = acked + (u64::from(got) << scale);
                let users = acked + (u64::from(field) << scale);
                prop_assert!(got <= field);
                prop_assert!(now >= passed.min(users), "{now} after {passed}, the user's {users}");
                prop_assert!(got > 0 || field == 0);
                passed = passed.max(now);
            }
        }
    }
}
