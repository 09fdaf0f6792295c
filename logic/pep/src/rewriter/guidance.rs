//! Throughput Guidance's provider: writes the rate that it expects for each connection of a user into acknowledgements on the uplink.
//!
//! Source: draft-flinck-mobile-throughput-guidance-04 (2017, expired) for purpose and place; Diarra 2022, section 2.3.2, for equal shares.
//! The option is that of [`ranpace_rnis::guidance`]. Ours: once a period each connection's next pure acknowledgement with room for the option
//! gets `G = efficiency R / N`, where N is the number of the user's connections with an uplink segment in the last second.

use ranpace_rnis::RadioHint;
use ranpace_rnis::guidance::{Guidance, PADDED};
use ranpace_units::{Rate, Span, Time};

use super::connections::Connections;
use super::user_radio::Radios;
use super::{Passage, Rewriter, TcpFields};

/// A connection counts until this long after its last segment on the uplink. Ours.
const ACTIVE: Span = Span::SECOND;

/// Settings of the provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Period of the radio information.
    pub reports: Span,
    /// Interval between two options on a connection.
    pub period: Span,
    /// Part of the radio rate that is shared out, above 0 to 1.
    pub efficiency: f64,
}

#[derive(Debug)]
struct Connection {
    user: u32,
    /// Its last segment on the uplink, and its last option.
    seen: Time,
    told: Option<Time>,
}

/// The provider.
#[derive(Debug)]
pub(super) struct Provider {
    settings: Settings,
    radios: Radios,
    connections: Connections<Connection>,
}

impl Provider {
    pub fn new(settings: Settings) -> Self {
        Self { settings, radios: Radios::new(settings.reports), connections: Connections::new() }
    }

    /// The rate for each connection of a user of this rate.
    fn share(&self, now: Time, user: u32, rate: f64) -> Rate {
        let is_active = |one: &&Connection| one.user == user && now.since(one.seen) <= ACTIVE;
        let active = self.connections.states().filter(is_active).count().max(1);
        Rate::from_bits_per_s_f64(8.0 * self.settings.efficiency * rate / active as f64)
    }
}

impl Rewriter for Provider {
    fn on_segment(&mut self, now: Time, passage: Passage, header: &mut TcpFields) {
        let Passage { connection, user, from_user } = passage;
        if !from_user {
            return;
        }
        let new = || Connection { user, seen: now, told: None };
        let Some(own) = self.connections.get_or_insert(now, connection, new) else { return };
        own.seen = now;
        let is_pure =
            header.payload == 0 && header.ack.is_some() && !(header.syn || header.fin || header.rst);
        let is_due = own.told.is_none_or(|told| now.since(told) >= self.settings.period);
        // Selective acknowledgements go first: the guidance waits for the next one.
        if !is_pure || !is_due || header.room < PADDED {
            return;
        }
        let Some(known) = self.radios.of(now, user) else { return };
        header.guidance = Some(Guidance { rate: self.share(now, user, known.rate), age: Some(known.age) });
        if let Some(own) = self.connections.get(now, connection) {
            own.told = Some(now);
        }
    }

    fn on_radio(&mut self, now: Time, user: u32, hint: &RadioHint) {
        self.radios.on_report(now, user, hint);
    }
}

#[cfg(test)]
mod tests {
    use super::super::user_radio::whole_cell;
    use super::*;

    const MS: Span = Span::from_millis(1);

    fn provider() -> Provider {
        Provider::new(Settings { reports: MS * 8, period: MS * 100, efficiency: 1.0 })
    }

    fn ack() -> TcpFields {
        TcpFields { ack: Some(1), room: 28, ..TcpFields::default() }
    }

    fn passes(
        provider: &mut Provider,
        now: Time,
        connection: u64,
        mut header: TcpFields,
    ) -> Option<Guidance> {
        provider.on_segment(now, Passage { connection, user: 0, from_user: true }, &mut header);
        header.guidance
    }

    #[test]
    fn connections_of_a_user_have_equal_shares() {
        // Specification, section 2: 18.336 Mbit/s among three.
        let mut provider = provider();
        for connection in 0..3 {
            passes(&mut provider, Time::ZERO, connection, ack());
        }
        assert_eq!(provider.share(Time::ZERO, 0, 2_292_000.0), Rate::from_bits_per_s(6_112_000));
        assert_eq!(provider.share(Time::ZERO, 1, 2_292_000.0), Rate::from_bits_per_s(18_336_000));
        let now = Time::from_millis(1_001);
        passes(&mut provider, now, 1, ack());
        assert_eq!(provider.share(now, 0, 2_292_000.0), Rate::from_bits_per_s(18_336_000), "two are silent");
    }

    #[test]
    fn one_pure_acknowledgement_with_room_has_it_in_each_period() {
        let mut provider = provider();
        assert_eq!(passes(&mut provider, Time::ZERO, 0, ack()), None, "no radio information");
        provider.on_radio(Time::ZERO, 0, &whole_cell(Time::ZERO));
        let at = Time::ZERO + MS * 25;
        for (case, header) in [
            ("data", TcpFields { payload: 1, ..ack() }),
            ("FIN", TcpFields { fin: true, ..ack() }),
            ("RST", TcpFields { rst: true, ..ack() }),
            ("SYN", TcpFields { syn: true, ..ack() }),
            ("full", TcpFields { room: 11, ..ack() }),
        ] {
            assert_eq!(passes(&mut provider, at, 0, header), None, "{case}");
        }
        let told = passes(&mut provider, at, 0, ack());
        let rate = whole_cell(at).rate(ranpace_phy::Direction::Downlink, 100.0);
        assert_eq!(told.map(|told| (told.rate, told.age)), Some((rate, Some(MS * 25))));
        assert_eq!(passes(&mut provider, at + MS * 99, 0, ack()), None);
        assert!(passes(&mut provider, at + MS * 100, 0, ack()).is_some());
        assert_eq!(passes(&mut provider, Time::from_secs(3), 0, ack()), None, "too old");
    }
}
