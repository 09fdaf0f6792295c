//! The server's end of the channel: it requests reports, and accepts those that are genuine, new, and about one of its own flows.
//!
//! Before a message is opened, its sequence number must be fresh, and at most 2000 per second are accepted. The caller rejects a report
//! that is genuine and yet impossible (about a packet that was never sent) by [`Agent::reject`]; after more than 8 of these within a
//! second the agent ignores the PEP for 60 s.

use std::collections::HashMap;

use ranpace_units::{Span, Time};

use super::flow::FlowId;
use super::keys::{Direction, Replay, SealingKey, header_of};
use super::limit::TokenBucket;
use super::message::{Buffer, Header, Kind, MessageError, ReportMessage, Resync, Subscribe};
use super::pep::reference;

/// Messages that are examined per second.
const RATE: u32 = 2_000;
/// Impossible reports tolerated within [`IMPOSSIBLE_WITHIN`].
const IMPOSSIBLE: u32 = 8;
const IMPOSSIBLE_WITHIN: Span = Span::SECOND;
/// Silence about a flow after which a report of any epoch is accepted: a PEP that has started again counts its epochs anew.
const FORGOTTEN: Span = Span::SECOND;
/// For how long a PEP is ignored afterwards.
const DISTRUST: Span = Span::from_secs(60);

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Not a message.
    #[error("no message: {0}")]
    NoMessage(#[from] MessageError),
    /// Rate limit exceeded.
    #[error("more than 2000 messages per second")]
    TooMany,
    /// It came before, or is too old.
    #[error("sequence number {0} came before, or is too old")]
    Replayed(u64),
    /// The seal is not the PEP's.
    #[error("the seal does not fit")]
    Forged,
    /// Not a report.
    #[error("{0:?} is nothing that a server gets")]
    NotAReport(Kind),
    /// About an unknown flow.
    #[error("no flow is called {0:016x}")]
    UnknownFlow(u64),
    /// Older than the last report of its flow.
    #[error("it is older than the last one of its flow")]
    Outdated,
    /// The PEP reported something impossible.
    #[error("the PEP told what cannot be; it is not listened to for a minute")]
    Distrusted,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// Messages received.
    pub messages: u64,
    /// Messages accepted.
    pub verified: u64,
    /// Reports that were genuine and impossible.
    pub impossible: u64,
    /// Times that the PEP was ignored for a minute.
    pub distrusted: u64,
}

/// A report that passed all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The flow's number, as registered.
    pub flow: u32,
    /// The packets that passed.
    pub report: ReportMessage,
    /// Counting restarted since the last report, or this is the first report of a flow that was not seen from its beginning.
    pub new_epoch: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    flow: u32,
    id: FlowId,
    /// Epoch and packets of the last report, and when it came.
    last: Option<(u16, u32, Time)>,
}

/// The server's end, for one PEP.
#[derive(Debug)]
pub struct Agent {
    sealing: SealingKey,
    opening: SealingKey,
    pep: u32,
    key: u16,
    wanted: Subscribe,
    sequence: u64,
    renew_at: Time,
    replay: Replay,
    limit: TokenBucket,
    flows: HashMap<u64, Known>,
    impossible: (Time, u32),
    distrusted_until: Time,
    stats: AgentStats,
}

impl Agent {
    /// The agent of a server that shares `secret` with a PEP.
    pub fn new(secret: &[u8], pep: u32, key: u16, wanted: Subscribe) -> Self {
        Self {
            sealing: SealingKey::derive(secret, pep, key, Direction::ToPep),
            opening: SealingKey::derive(secret, pep, key, Direction::ToServer),
            pep,
            key,
            wanted,
            sequence: 0,
            renew_at: Time::ZERO,
            replay: Replay::default(),
            limit: TokenBucket::new(RATE, RATE / 10),
            flows: HashMap::new(),
            impossible: (Time::ZERO, 0),
            distrusted_until: Time::ZERO,
            stats: AgentStats::default(),
        }
    }

    /// The same with another sequence number for its first message than zero. An agent that starts again under the same key has to begin
    /// above all that it ever sent, because a number seals one message only.
    #[must_use]
    pub fn starting_at(self, sequence: u64) -> Self {
        Self { sequence, ..self }
    }

    /// Counters.
    pub fn stats(&self) -> &AgentStats {
        &self.stats
    }

    /// Registers a flow: its reports are returned with the number `flow`.
    pub fn register(&mut self, id: FlowId, flow: u32) {
        self.flows.insert(reference(&self.wanted.flow_key, &id), Known { flow, id, last: None });
    }

    /// The flow is over.
    pub fn release(&mut self, id: &FlowId) {
        self.flows.remove(&reference(&self.wanted.flow_key, id));
    }

    /// The next message to the PEP, if one is due: the subscription, renewed after half of its lifetime.
    pub fn poll(&mut self, now: Time) -> Option<Buffer> {
        if now < self.renew_at {
            return None;
        }
        self.renew_at = now + self.wanted.lifetime / 2;
        let wanted = self.wanted;
        Some(self.send(Kind::Subscribe, |out| wanted.write(out)))
    }

    /// When [`Self::poll`] will return something.
    pub fn next_deadline(&self) -> Time {
        self.renew_at
    }

    /// Asks for a new epoch of a flow whose reports can no longer be interpreted.
    pub fn resync(&mut self, id: &FlowId) -> Option<Buffer> {
        let reference = reference(&self.wanted.flow_key, id);
        let (epoch, ..) = self.flows.get(&reference)?.last?;
        let resync = Resync { reference, epoch: epoch.wrapping_add(1) };
        Some(self.send(Kind::Resync, |out| resync.write(out)))
    }

    fn send(&mut self, kind: Kind, body: impl FnOnce(&mut Buffer)) -> Buffer {
        let header = Header { kind, flags: 0, key: self.key, pep: self.pep, sequence: self.sequence };
        self.sequence += 1;
        let mut out = Buffer::default();
        self.sealing.seal(&header, &mut out, body);
        out
    }

    /// A datagram came. It is opened in place.
    pub fn on_datagram(&mut self, now: Time, datagram: &mut [u8]) -> Result<Verified, Refusal> {
        self.stats.messages += 1;
        if !self.limit.take(now) {
            return Err(Refusal::TooMany);
        }
        if now < self.distrusted_until {
            return Err(Refusal::Distrusted);
        }
        let header = header_of(datagram)?;
        if header.kind != Kind::Report {
            return Err(Refusal::NotAReport(header.kind));
        }
        if !self.replay.is_fresh(header.sequence) {
            return Err(Refusal::Replayed(header.sequence));
        }
        let body = self.opening.open(&header, datagram).ok_or(Refusal::Forged)?;
        self.replay.note(header.sequence);
        let report = ReportMessage::read(header.flags, body)?;
        let known = self.flows.get_mut(&report.reference).ok_or(Refusal::UnknownFlow(report.reference))?;
        let new_epoch = match known.last {
            Some((epoch, packets, at)) if now.since(at) >= FORGOTTEN => {
                epoch != report.epoch || (report.packets.wrapping_sub(packets) as i32) < 0
            }
            // An epoch is older if it is behind by less than half of the number space, as with sequence numbers.
            Some((epoch, ..)) if (report.epoch.wrapping_sub(epoch) as i16) < 0 => {
                return Err(Refusal::Outdated);
            }
            Some((epoch, packets, _)) if epoch == report.epoch => {
                if (report.packets.wrapping_sub(packets) as i32) < 0 {
                    return Err(Refusal::Outdated);
                }
                false
            }
            Some(_) => true,
            None => report.epoch != 0,
        };
        known.last = Some((report.epoch, report.packets, now));
        self.stats.verified += 1;
        Ok(Verified { flow: known.flow, report, new_epoch })
    }

    /// The caller found an accepted report to be impossible.
    pub fn reject(&mut self, now: Time) {
        self.stats.impossible += 1;
        let (since, count) = self.impossible;
        self.impossible = if now.since(since) > IMPOSSIBLE_WITHIN { (now, 1) } else { (since, count + 1) };
        if self.impossible.1 > IMPOSSIBLE {
            self.impossible = (now, 0);
            self.distrusted_until = now + DISTRUST;
            self.stats.distrusted += 1;
        }
    }

    /// The flow registered under a number.
    pub fn id_of(&self, flow: u32) -> Option<FlowId> {
        self.flows.values().find(|known| known.flow == flow).map(|known| known.id)
    }
}
