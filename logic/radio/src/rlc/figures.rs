//! Figures that both modes give of their stream.

/// The figures that are the same in both modes.
macro_rules! reports {
    () => {
        /// Transmitter: bytes of new data to be sent, PDCP headers included.
        pub fn unsent(&self) -> Bytes {
            self.stream.unsent()
        }
        /// Bytes of packets in the buffer, none of whose bytes were sent; what the buffer's limit is for.
        pub fn buffered(&self) -> Bytes {
            self.stream.buffered()
        }
        /// Bytes of packets that are neither delivered nor dropped, wherever they are.
        pub fn waiting(&self) -> Bytes {
            self.stream.waiting()
        }
        /// Transmitter: for how long the packet waits whose byte is the next new one to be sent; zero if there is none.
        pub fn head_of_line_delay(&self, now: Time) -> ranpace_units::Span {
            self.head_arrived().map_or(ranpace_units::Span::ZERO, |arrived| now.since(arrived))
        }
        /// Transmitter: when that packet came.
        pub fn head_arrived(&self) -> Option<Time> {
            self.stream.head_arrived()
        }
        /// Transmitter: drops what waits in the buffer ([`DropCause::Reset`](crate::rlc::DropCause::Reset)).
        pub fn empty(&mut self, now: ranpace_units::Time, observer: &mut impl crate::rlc::Observer<P>) {
            self.stream.empty(now, observer);
        }
        /// What it did so far.
        pub fn counters(&self) -> &Counters {
            &self.stream.counters
        }
    };
}
pub(super) use reports;
