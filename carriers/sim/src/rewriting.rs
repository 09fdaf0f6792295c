//! Header rewriters of the scenario, which see the segments of simulated connections ([`ranpace_pep::rewriter`]).

use ranpace_cc::ReceiverReport;
use ranpace_network::{Direction, Network, PacketHandle, Reader, Source};
use ranpace_pep::rewriter::{Passage, Rewriter, TcpFields};
use ranpace_phy::Direction as Way;
use ranpace_rnis::RadioHint;
use ranpace_rnis::guidance::PADDED;
use ranpace_scenario::{Scenario, Transport};
use ranpace_tcp::{Kind, Segment};
use ranpace_units::{Span, Time};

/// Bytes of the headers of IPv4 and TCP without options, and the most bytes of options (RFC 791, RFC 9293).
const HEADERS: u32 = 40;
const OPTIONS: usize = 40;
/// Unit of timestamps, as in Linux (`TCP_TS_HZ`).
const TICK: Span = Span::from_millis(1);
/// Largest shift of a window (RFC 7323, section 2.3).
const MOST_SCALE: u8 = 14;

/// The rewriters of a scenario.
#[derive(Debug)]
pub(crate) struct Rewriters {
    all: Vec<Box<dyn Rewriter>>,
    /// By flow, what its headers have; `None` for a flow that is not rewritten.
    headers: Vec<Option<Headers>>,
}

/// What the headers of a flow's segments have.
#[derive(Clone, Copy, Debug)]
struct Headers {
    user: u32,
    /// Shift of the receiver's windows.
    scale: u8,
    mss: u16,
    timestamps: bool,
}

impl Rewriters {
    /// Those of a scenario, subscribed to the radio information of their users; `None` if there are none. Their numbers as readers
    /// follow those of proxies.
    pub fn new<E: Copy>(scenario: &Scenario, network: &mut Network<'_, E>) -> Option<Self> {
        if scenario.rewriters.is_empty() {
            return None;
        }
        let mut headers = vec![None; scenario.flows.len()];
        for (number, rewriter) in (scenario.proxies.len() as u32..).zip(&scenario.rewriters) {
            let mut readers = Vec::new();
            for watch in &rewriter.watches {
                let flow = &scenario.flows[watch.flow];
                let (Transport::Tcp { config, .. }, Some(user)) =
                    (&flow.transport, flow.path.last().and_then(|hop| hop.user()))
                else {
                    continue;
                };
                // As Linux chooses it (`tcp_select_initial_window`): the smallest with which the largest window can be written.
                let fits = |scale: &u8| config.receive_buffer_max.get() >> scale <= u16::MAX.into();
                headers[watch.flow] = Some(Headers {
                    user: user as u32,
                    scale: (0..MOST_SCALE).find(fits).unwrap_or(MOST_SCALE),
                    mss: u16::try_from(config.mss().get()).unwrap_or(u16::MAX),
                    timestamps: config.timestamps,
                });
                readers.push((user as u32, flow.bearer));
            }
            readers.sort_unstable();
            readers.dedup_by_key(|(user, _)| *user);
            for (user, bearer) in readers {
                let reader = Reader::Participant(number);
                network.subscribe_hints(Source::Edge, reader, user, Way::Downlink, bearer);
            }
        }
        Some(Self { all: scenario.rewriters.iter().map(|spec| spec.kind.build()).collect(), headers })
    }

    /// A packet passes a rewriter.
    pub fn on_passing<E: Copy>(
        &mut self,
        network: &mut Network<'_, E>,
        rewriter: usize,
        packet: &mut PacketHandle,
    ) {
        let Some(Some(headers)) = self.headers.get(packet.flow() as usize) else { return };
        let now = network.now();
        let own = network.meters.packets.at(*packet);
        let passage = Passage {
            connection: u64::from(own.flow) << 32 | u64::from(own.connection),
            user: headers.user,
            from_user: own.direction == Direction::Back,
        };
        let mut fields = headers.fields(&own.segment);
        self.all[rewriter].on_segment(now, passage, &mut fields);
        // A window that does not fit into its field, which a SYN's may not, is cut as on the wire.
        let scale = if fields.syn { 0 } else { headers.scale };
        own.segment.window = own.segment.window.min(u32::from(fields.window) << scale);
        if let Some(guidance) = fields.guidance {
            own.segment.report = ReceiverReport::new(&guidance.content());
            network.lengthen(packet, PADDED as u32);
        }
    }

    /// Radio information about a user has arrived for a rewriter.
    pub fn on_hint(&mut self, now: Time, rewriter: usize, user: u32, hint: &RadioHint) {
        if let Some(rewriter) = self.all.get_mut(rewriter) {
            rewriter.on_radio(now, user, hint);
        }
    }
}

impl Headers {
    /// A segment's header as it would be on the wire.
    fn fields(&self, segment: &Segment) -> TcpFields {
        let syn = matches!(segment.kind, Kind::Syn | Kind::SynAck);
        let ticks = |time: Time| (time.as_nanos() / TICK.as_nanos()) as u32;
        let used = segment.wire.saturating_sub(segment.length + HEADERS) as usize;
        // The window of a SYN is not scaled.
        let scale = if syn { 0 } else { self.scale };
        // A segment has one report.
        let room = if segment.report.is_some() { 0 } else { OPTIONS.saturating_sub(used) };
        TcpFields {
            syn,
            fin: false,
            rst: false,
            seq: segment.seq as u32,
            ack: (segment.kind != Kind::Syn).then_some(segment.ack as u32),
            payload: segment.length,
            scale: syn.then_some(self.scale),
            mss: syn.then_some(self.mss),
            timestamps: self.timestamps.then(|| (ticks(segment.timestamp), ticks(segment.echo))),
            room,
            window: segment.window.div_ceil(1 << scale).min(u16::MAX.into()) as u16,
            guidance: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_shows_the_header_that_it_would_have() {
        let headers = Headers { user: 0, scale: 7, mss: 1_448, timestamps: true };
        let mut segment = Segment::new(Kind::Ack, Time::from_millis(1_250));
        (segment.ack, segment.echo, segment.window, segment.wire) =
            (1 << 33 | 5, Time::from_millis(900), 1_000, 52);
        let fields = headers.fields(&segment);
        assert_eq!((fields.ack, fields.timestamps, fields.window), (Some(5), Some((1_250, 900)), 8));
        assert_eq!((fields.room, fields.syn, fields.scale, fields.payload), (28, false, None, 0));
        segment.report = ReceiverReport::new(&[1]);
        assert_eq!(headers.fields(&segment).room, 0);
        let syn = Segment { window: 65_535, ..Segment::new(Kind::Syn, Time::ZERO) };
        let fields = headers.fields(&syn);
        assert_eq!(
            (fields.ack, fields.window, fields.scale, fields.mss),
            (None, 65_535, Some(7), Some(1_448))
        );
    }
}
