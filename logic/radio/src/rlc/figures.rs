//! Queries on the stream that both modes answer in the same way.

/// Defines these methods.
macro_rules! reports {
    () => {
        /// Transmitter: bytes of new data to be sent, PDCP headers included.
        pub fn unsent(&self) -> Bytes {
            self.stream.unsent()
        }
        /// Bytes of packets in the buffer, of which nothing was sent; the buffer's limit applies to them.
        pub fn buffered(&self) -> Bytes {
            self.stream.buffered()
        }
        /// Bytes of packets that are neither delivered nor dropped, wherever they are.
        pub fn waiting(&self) -> Bytes {
            self.stream.waiting()
        }
        /// Transmitter: how long the packet with the next new byte has waited; zero if there is none.
        pub fn head_of_line_delay(&self, now: Time) -> ranpace_units::Span {
            self.head_arrived().map_or(ranpace_units::Span::ZERO, |arrived| now.since(arrived))
        }
        /// Transmitter: when that packet arrived.
        pub fn head_arrived(&self) -> Option<Time> {
            self.stream.head_arrived()
        }
        /// Transmitter: drops the packets in the buffer ([`DropCause::Reset`](crate::rlc::DropCause::Reset)).
        pub fn empty(&mut self, now: ranpace_units::Time, observer: &mut impl crate::rlc::Observer<P>) {
            self.stream.empty(now, observer);
        }
        /// Transmitter: whether it has stages above RLC.
        pub fn is_staged(&self) -> bool {
            self.stream.is_staged()
        }
        /// Transmitter: whether a queue goes by what slots carry.
        pub fn wants_slots(&self) -> bool {
            self.stream.wants_slots()
        }
        /// Transmitter: bytes that wait above RLC.
        pub fn waiting_above(&self) -> Bytes {
            self.stream.waiting_above()
        }
        /// Transmitter: takes from the stages above RLC what they pass on by `now`.
        pub fn refill(&mut self, now: ranpace_units::Time, observer: &mut impl crate::rlc::Observer<P>) {
            self.stream.refill(now, observer);
        }
        /// Transmitter: tells its queues of a slot that could have carried `egress` of this channel.
        pub fn on_slot(&mut self, now: ranpace_units::Time, slot: ranpace_units::Span, egress: Bytes) {
            self.stream.on_slot(now, slot, egress);
        }
        /// Its counters.
        pub fn counters(&self) -> &Counters {
            &self.stream.counters
        }
    };
}
pub(super) use reports;
