//! What RAPID is told of each connection, and what it decides: windows towards servers, and rates and windows towards users.
//!
//! A *tick* reads the counters of the sockets whose connections have moved since the last one. A window towards a server is a clamp of
//! the socket's window. It is set when it changes, or when the kernel has replaced it, as it does when the sizes of arriving segments
//! change; for a connection at rest, when the next payload comes.

use std::collections::HashMap;
use std::net::IpAddr;

use ranpace_pep::rapid::FlowId;
use ranpace_proxy_options::{TcpInfo, set_least_readable, set_window_clamp};
use ranpace_units::{Bytes, Span, Time};

use crate::error::ProxyError;
use crate::legs;
use crate::proxy::{Proxy, TICK, now};

/// Ticks take at most this part of the time: they come later when there is much to read. Ours.
const PART: u64 = 10;
/// The kernel makes smaller clamps this one (`SOCK_MIN_RCVBUF` / 2, at most), which is below a segment.
const LEAST_CLAMP: u32 = 1_152;

/// A connection whose counters have not changed for this time is read at this interval, rather than at each tick: a thousand readers
/// that stall would otherwise make ticks late for all others. Ours.
pub(crate) const REST: Span = Span::from_millis(100);

/// From this much in a tick on, a download is moved at ticks, each of which costs less than waking up for every packet would; until less
/// than the second value comes. Ours: 131 and 33 Mbit/s, at which a millisecond is the time of many packets.
const BULK: (u64, u64) = (16 << 10, 4 << 10);

impl Proxy {
    /// Reads the counters of what has moved, and applies what follows.
    pub(crate) fn tick(&mut self, begun: Time) -> Result<(), ProxyError> {
        if begun >= self.rest_until {
            self.rest_until = begun + REST;
            while let Some(place) = self.resting.pop() {
                let Some(relay) = self.relays.get_mut(place) else { continue };
                relay.resting = false;
                self.mark_moved(place);
            }
        }
        // What moves meanwhile is read at the next tick.
        let mut due = std::mem::replace(&mut self.moved, std::mem::take(&mut self.spare));
        for place in &due {
            let Some(relay) = self.relays.get_mut(*place) else { continue };
            relay.moved = false;
            if relay.is_bulk {
                relay.server.readable = true;
                self.go(begun, *place);
            }
            self.count(begun, *place);
        }
        self.rapid.on_deadline(begun);
        self.apply_changes();
        // What was set for others may have changed what there is for these.
        for place in due.drain(..) {
            self.apply_window(place);
            self.set_server_window(place);
        }
        self.spare = due;
        let took = now()?.since(begun);
        self.ticks_are_late = took * PART > TICK;
        self.tick_at = begun + TICK.max(took * PART);
        Ok(())
    }

    /// Reads the counters of a connection.
    fn count(&mut self, now: Time, place: usize) {
        let Some(relay) = self.relays.get_mut(place) else { return };
        // A socket that cannot say is about to be reset, of which an event tells.
        let (Ok(server), Ok(user)) = (TcpInfo::read(&relay.server.socket), TcpInfo::read(&relay.user.socket))
        else {
            return;
        };
        let ((read, read_up), (stuck, stuck_up)) = (relay.read(), relay.stuck());
        let user_number = relay.user_number;
        let counted = &mut relay.counted;
        let flow = counted.flow;
        let came = server.bytes_received.saturating_sub(counted.received);
        let asked = server.bytes_acked > counted.server_acked;
        let taken = user.bytes_acked.saturating_sub(counted.user_acked);
        (counted.received, counted.server_acked, counted.user_acked) =
            (server.bytes_received, server.bytes_acked, user.bytes_acked);
        let backlog = server.bytes_received.saturating_sub(read) + stuck as u64 + u64::from(user.unsent);
        let uploaded =
            user.bytes_received.saturating_sub(read_up) + stuck_up as u64 + u64::from(server.unsent);
        counted.server_rtt = Span::from_micros(server.rtt.into());
        if came > 0 || taken > 0 || asked || (backlog, uploaded) != (counted.backlog, counted.uploaded) {
            counted.changed_at = now;
        }
        let is_bulk = !self.ticks_are_late && came >= if relay.is_bulk { BULK.1 } else { BULK.0 };
        if is_bulk != relay.is_bulk {
            relay.is_bulk = is_bulk;
            let least = if is_bulk { self.buffers.pipe as u32 } else { 1 }; // at most 256 KiB
            self.metrics.refused.inc_by(u64::from(set_least_readable(&relay.server.socket, least).is_err()));
        }
        let before = std::mem::replace(&mut counted.uploaded, uploaded);
        counted.backlog = backlog;
        // The kernel has replaced the clamp, and would advertise more by now.
        counted.clamp_due |= server.receive_threshold > counted.clamp.max(LEAST_CLAMP);
        let changes = now < counted.changed_at + REST;
        let server_rtt = counted.server_rtt;
        // The kernel tells a smoothed RTT, and the smallest one of all samples.
        let least = counted.user_min_rtt.min(user.min_rtt);
        let user_rtt = if least < counted.user_min_rtt { least } else { user.rtt };
        counted.user_min_rtt = least;
        self.rapid.on_wan_data(now, flow, Bytes::new(came));
        if asked && server.rtt > 0 {
            self.rapid.on_wan_rtt(now, flow, server_rtt);
        }
        if taken > 0 {
            self.rapid.on_ran_acked(flow, Bytes::new(taken));
            self.rapid.on_ran_rtt(now, flow, Span::from_micros(user_rtt.max(1).into()));
        }
        self.rapid.on_backlog(now, flow, Bytes::new(backlog));
        self.rapid.on_advertised(now, flow, Bytes::new(server.receive_threshold.into()));
        self.uploads.on_waiting(user_number, Bytes::new(before), Bytes::new(uploaded));
        self.set_user_window(place, user.receive_threshold, stuck_up > 0 || server.unsent > 0);
        let is_over = backlog == 0 && uploaded == 0 && user.unacked == 0 && came == 0 && taken == 0 && !asked;
        if is_over {
            return;
        }
        if changes {
            self.mark_moved(place);
        } else if let Some(relay) = self.relays.get_mut(place).filter(|relay| !relay.resting) {
            relay.resting = true;
            self.resting.push(place);
        }
    }

    /// Limits the window towards the user, which is `advertised` now, where the socket's buffer would allow more; `stalls`: the server
    /// has not taken all that was read from the user.
    fn set_user_window(&mut self, place: usize, advertised: u32, stalls: bool) {
        let Some(relay) = self.relays.get_mut(place) else { return };
        let counted = &mut relay.counted;
        let (own, mss) = (Bytes::new(counted.uploaded), Bytes::new(counted.mss.into()));
        let window = self.uploads.window(relay.user_number, own, mss).get();
        // A shut buffer drops what is on its way: not for a single server that is slower than its user.
        let holds = stalls && window == 0 && self.uploads.is_half_full(relay.user_number);
        if std::mem::replace(&mut relay.holds_upload, holds) != holds {
            // A clamp leaves a window of a kilobyte, again and again; a receive buffer that is full leaves none.
            let limited = match holds {
                true => legs::shut(&relay.user.socket),
                false => legs::limit(&relay.user.socket, &self.buffers),
            };
            self.metrics.refused.inc_by(u64::from(limited.is_err()));
            if !holds && !relay.queued {
                relay.queued = true;
                self.queue.push(place);
            }
        }
        let is_limit = window < self.buffers.receive as u64;
        let clamp = if is_limit { window as u32 } else { u32::MAX }; // a receive buffer has at most 512 MiB
        // The kernel replaces clamps; and what nobody has been allowed yet needs none.
        let is_other = clamp != counted.user_clamp && (is_limit || counted.user_clamp != u32::MAX);
        if is_other || advertised > clamp.max(LEAST_CLAMP) {
            counted.user_clamp = clamp;
            if set_window_clamp(&relay.user.socket, clamp.max(1)).is_err() {
                self.metrics.refused.inc();
            }
        }
    }

    /// The counters of this connection are read at the next tick.
    pub(crate) fn mark_moved(&mut self, place: usize) {
        let Some(relay) = self.relays.get_mut(place).filter(|relay| !relay.moved) else { return };
        relay.moved = true;
        self.moved.push(place);
    }

    /// The feed says which addresses are one user's: connections become those of the users that they turn out to be of, and so does
    /// what waits of them.
    pub(crate) fn regroup(&mut self, now: Time, told: HashMap<IpAddr, IpAddr>) {
        if !self.users.on_addresses(told) {
            return;
        }
        let (mut flows, mut places) = (Vec::new(), Vec::new());
        for (place, relay) in &mut self.relays {
            let number = self.users.number(relay.ends.client.ip());
            let Some(number) = number.filter(|number| *number != relay.user_number) else { continue };
            let before = std::mem::replace(&mut relay.user_number, number);
            let uploaded = Bytes::new(relay.counted.uploaded);
            self.uploads.on_waiting(before, uploaded, Bytes::ZERO);
            self.uploads.on_waiting(number, Bytes::ZERO, uploaded);
            flows.push((relay.counted.flow, number));
            places.push(place);
        }
        self.rapid.assign(now, flows);
        self.apply_changes();
        // The next tick sets their windows towards users.
        places.into_iter().for_each(|place| self.mark_moved(place));
    }

    /// Applies all decisions that have changed.
    pub(crate) fn apply_changes(&mut self) {
        while let Some(flow) = self.rapid.next_change() {
            let Some(place) = self.by_flow.get(flow.index()).copied() else { continue };
            if self.relays.get(place).is_some_and(|relay| relay.counted.flow == flow) {
                self.apply_allocation(place, flow);
                self.apply_window(place);
            }
        }
    }

    /// Sets the window towards the server. Where the server has no news from the proxy until it has sent more, this waits for that:
    /// a report may change the windows of a thousand connections of which few have something to send.
    fn apply_window(&mut self, place: usize) {
        let Some(relay) = self.relays.get_mut(place) else { return };
        let flow = relay.counted.flow;
        let window = self
            .rapid
            .window(flow)
            .unwrap_or_else(|| self.rapid.room(flow))
            .min(self.config.limits.flow_buffer);
        let counted = &mut relay.counted;
        let clamp = scaled(window.get() as u32, counted.scale, 2 * counted.mss); // at most `flow_buffer`
        counted.clamp_due |= clamp != counted.clamp;
        // A window of two segments lets the server send; one that it has used up has to be opened for it.
        let can_wait = counted.clamp > LEAST_CLAMP.max(2 * counted.mss) && clamp > LEAST_CLAMP;
        counted.clamp = clamp;
        if !relay.moved && !can_wait {
            self.set_server_window(place);
        }
    }

    /// Tells the kernel the window towards the server, if it is another one.
    pub(crate) fn set_server_window(&mut self, place: usize) {
        let Some(relay) = self.relays.get_mut(place).filter(|relay| relay.counted.clamp_due) else { return };
        relay.counted.clamp_due = false;
        if set_window_clamp(&relay.server.socket, relay.counted.clamp.max(1)).is_err() {
            self.metrics.refused.inc();
        }
    }

    /// Tells the sender towards the user.
    fn apply_allocation(&mut self, place: usize, flow: FlowId) {
        let allocation = self.rapid.allocation(flow).zip(self.rapid.ran_window(flow));
        let Some(relay) = self.relays.get_mut(place).filter(|relay| relay.counted.allocation != allocation)
        else {
            return;
        };
        relay.counted.allocation = allocation;
        let is_first = !std::mem::replace(&mut relay.counted.allocated, true);
        if self.sender.allocate(&relay.user.socket, place, is_first, allocation).is_err() {
            self.metrics.refused.inc();
        }
    }
}

/// A window as it can be advertised: a multiple of a power of two. It is rounded down, except that one of `whole` bytes or more, which
/// the least window of RAPID's has, keeps as many: at a scale of 10, half of two segments would be lost, and with it half of the rate
/// that is expected of the server. A window of less stops the server in the end, which the kernel's own rounding must not prevent.
fn scaled(window: u32, scale: u8, whole: u32) -> u32 {
    let down = window >> scale << scale;
    if window >= whole { down.max(whole.next_multiple_of(1 << scale)) } else { down }
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn windows_are_rounded_down_but_two_segments_stay_two() {
        // Diarra's windows of Test R-1 of the specification, at the scale 7; Linux 6.18 has 10 unless it is told otherwise.
        for (window, scale, expected) in [
            (3_997, 7, 3_968),
            (20_921, 7, 20_864),
            (2_896, 7, 2_944),
            (2_896, 10, 3_072),
            (3_500, 10, 3_072),
            (5_000, 10, 4_096),
            (2_895, 10, 2_048),
            (900, 10, 0),
            (0, 10, 0),
        ] {
            assert_eq!(scaled(window, scale, 2 * 1_448), expected, "{window} at {scale}");
        }
    }
}
