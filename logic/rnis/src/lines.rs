//! Radio information as lines of JSON: what a base station writes for the RNIS server, and what a recorded run consists of.
//!
//! A line is one object with one member, whose name says what it is: `stream`, `cell`, `user`, `slot`, `event`, `bearer`, `signal`,
//! `timing_advance` or `missed`. `docs/rnis-sources.md` describes the members. Objects may be written as arrays of their members in
//! the documented order, which is shorter; the rows of a slot are written so here. Unknown members and unknown lines are ignored.
//!
//! [`Writer`] writes [`Update`](crate::update::Update)s, [`Reader`] reads them. A reader keeps what earlier lines described: cells,
//! users, and counters of users whose rows have none. It accepts any input; what it cannot use is an error that says what was
//! expected, and changes nothing.

#[cfg(feature = "lines")]
mod bounds;
#[cfg(feature = "lines")]
mod form;
#[cfg(feature = "lines")]
mod read;
#[cfg(all(test, feature = "lines"))]
mod tests;
mod write;

#[cfg(feature = "lines")]
pub use bounds::LineError;
#[cfg(feature = "lines")]
pub use read::Reader;
pub use write::Writer;

/// Version of the format; the only one that is read.
pub const VERSION: u32 = 1;
/// Longest line in bytes, its end included: a slot with 4,000 users has less. Ours.
pub const LONGEST: usize = 1 << 20;
/// Cells are numbered below this. Ours: readers keep state for each number up to the largest.
pub const CELLS: u16 = 1 << 10;
/// Users are numbered below this. Ours, as for cells; 16 bits, as in the feed's datagrams.
pub const USERS: u32 = 1 << 16;

/// The clock of a stream's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LineClock {
    /// Time of day: nanoseconds since 1970-01-01 00:00 UTC.
    #[default]
    Day,
    /// `CLOCK_MONOTONIC` of the host on which writer and reader run.
    Monotonic,
    /// Since the beginning of a run.
    Run,
    /// Times are those of arrival, whatever lines contain.
    Arrival,
}

impl LineClock {
    /// Its name in lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Monotonic => "monotonic",
            Self::Run => "run",
            Self::Arrival => "arrival",
        }
    }
}
