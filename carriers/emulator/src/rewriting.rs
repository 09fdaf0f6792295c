//! A header rewriter of the scenario for real packets: decides as in the simulator ([`ranpace_pep::rewriter`]), and changes their bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use ranpace_cc::RadioHint;
use ranpace_pep::rewriter::{Passage, Rewriter};
use ranpace_scenario::RewriterSpec;
use ranpace_units::Time;

use crate::gso::{NEEDS_SUM, OFFSET, header};
use crate::tcp_fields::TcpSegment;

/// A rewriter at a host.
#[derive(Debug)]
pub struct RewriterAtHost {
    rewriter: Box<dyn Rewriter>,
}

impl RewriterAtHost {
    pub fn new(spec: &RewriterSpec) -> Self {
        Self { rewriter: spec.kind.build() }
    }

    /// A packet passes, a virtio header first, between users if there are any. Returns whether it was changed. Packets that are not whole
    /// TCP segments, and those between two users, are not.
    pub fn on_packet(
        &mut self,
        now: Time,
        (from_user, to_user): (Option<u32>, Option<u32>),
        buffer: &mut Vec<u8>,
    ) -> bool {
        let (user, from_user) = match (from_user, to_user) {
            (Some(user), None) => (user, true),
            (None, Some(user)) => (user, false),
            _ => return false,
        };
        let Some(segment) = buffer.get(OFFSET..).and_then(TcpSegment::read) else { return false };
        let ends = if from_user { (segment.from, segment.to) } else { (segment.to, segment.from) };
        // 64 bits are enough to tell the connections of an emulation apart.
        let mut hasher = DefaultHasher::new();
        ends.hash(&mut hasher);
        let mut fields = segment.fields;
        self.rewriter.on_segment(now, Passage { connection: hasher.finish(), user, from_user }, &mut fields);
        let is_partial = header(buffer).is_some_and(|header| header.flags & NEEDS_SUM != 0);
        segment.write(&fields, buffer, OFFSET, is_partial)
    }

    /// Radio information about a user's downlink has arrived.
    pub fn on_hint(&mut self, now: Time, user: u32, hint: &RadioHint) {
        self.rewriter.on_radio(now, user, hint);
    }
}
