//! The interface of what stands at hosts on the way of packets in an emulation: proxies that split connections, and Lightweight PEPs.
//!
//! A route that passes such a host is played in two parts. Packets that reach the end of the first part are shown to the
//! [`Participant`]s of the host one after another. A packet that all of them pass continues unchanged on the second part.

use ranpace_cc::RadioHint;
use ranpace_units::Time;

/// A packet as a participant sees it.
#[derive(Clone, Copy, Debug)]
pub struct ArrivingPacket<'a> {
    /// All of it, from IP's header on.
    pub packet: &'a [u8],
    /// Whether Congestion Experienced was set on the way so far.
    pub marked: bool,
    /// The route on which it goes on from here.
    pub onward: u32,
    /// The route to where it came from; `None` if packets from there come here, and those to there do not.
    pub backward: Option<u32>,
    /// The route that it was sent on, and the one that answers are sent on: what results are counted for.
    pub route: u32,
    /// See `route`.
    pub answers: Option<u32>,
    /// The user that it goes to, and the user that it comes from.
    pub to_user: Option<u32>,
    /// See `to_user`.
    pub from_user: Option<u32>,
}

/// A participant's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It ends here.
    Take,
}

/// Sends a packet on a route: its virtio header first.
pub type Send<'a> = &'a mut dyn FnMut(u32, &[u8]);

/// Something that stands at a host.
pub trait Participant {
    /// A packet passes.
    fn on_packet(&mut self, now: Time, passing: &ArrivingPacket<'_>, send: Send<'_>) -> Verdict;

    /// Radio information about a user's downlink has come.
    fn on_hint(&mut self, now: Time, user: u32, hint: &RadioHint, send: Send<'_>);

    /// When [`Self::on_deadline`] is to be called; [`Time::MAX`] for never.
    fn next_deadline(&self) -> Time;

    /// Its deadline has come.
    fn on_deadline(&mut self, now: Time, send: Send<'_>);
}
