//! The interface of participants at hosts on the path of packets in an emulation: splitting proxies and Lightweight PEPs. Header rewriters
//! stand beside them.
//!
//! A route past such a host is emulated in two parts. Packets at the end of the first part are shown to the [`Participant`]s of the
//! host one after another. A packet that all of them pass continues on the second part, unchanged unless a rewriter has changed it.

use ranpace_cc::RadioHint;
use ranpace_units::Time;

/// A packet as a participant sees it.
#[derive(Clone, Copy, Debug)]
pub struct ArrivingPacket<'a> {
    /// All of it, from the IP header on.
    pub packet: &'a [u8],
    /// Whether Congestion Experienced was set on the way so far.
    pub marked: bool,
    /// The route on which it continues from here.
    pub onward: u32,
    /// The route back to its origin; `None` if only one direction passes here.
    pub backward: Option<u32>,
    /// The route on which it was sent, and the route of the answers, under which results are counted.
    pub route: u32,
    /// See `route`.
    pub answers: Option<u32>,
    /// The user that receives it, and the user that sent it.
    pub to_user: Option<u32>,
    /// See `to_user`.
    pub from_user: Option<u32>,
}

/// A participant's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it unchanged.
    Pass,
    /// Forward it as a rewriter has changed it.
    Rewritten,
    /// Consume it.
    Take,
}

/// Sends a packet on a route; the virtio header comes first.
pub type Send<'a> = &'a mut dyn FnMut(u32, &[u8]);

/// A participant at a host.
pub trait Participant {
    /// A packet passes.
    fn on_packet(&mut self, now: Time, passing: &ArrivingPacket<'_>, send: Send<'_>) -> Verdict;

    /// Radio information about a user's downlink has arrived.
    fn on_hint(&mut self, now: Time, user: u32, hint: &RadioHint, send: Send<'_>);

    /// When to call [`Self::on_deadline`]; [`Time::MAX`] for never.
    fn next_deadline(&self) -> Time;

    /// Its deadline has come.
    fn on_deadline(&mut self, now: Time, send: Send<'_>);
}
