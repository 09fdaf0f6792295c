//! The connections that a rewriter knows, by their numbers.

use std::collections::BTreeMap;

use ranpace_units::{Span, Time};

/// Most connections; later ones pass untouched. Ours: a bound of memory.
pub(super) const MOST: usize = 1 << 16;
/// A connection without a segment for this long makes room for another. Ours.
const IDLE: Span = Span::from_secs(60);

/// State of connections.
#[derive(Debug)]
pub(super) struct Connections<S> {
    all: BTreeMap<u64, (Time, S)>,
    /// When the last search for idle ones found too few.
    searched: Option<Time>,
}

impl<S> Connections<S> {
    pub fn new() -> Self {
        Self { all: BTreeMap::new(), searched: None }
    }

    /// The state of a known connection, of which a segment passes.
    pub fn get(&mut self, now: Time, connection: u64) -> Option<&mut S> {
        let (seen, state) = self.all.get_mut(&connection)?;
        *seen = now;
        Some(state)
    }

    /// A connection's state, which `make` provides if it is not known; `None` if there is no room for it.
    pub fn get_or_insert(&mut self, now: Time, connection: u64, make: impl FnOnce() -> S) -> Option<&mut S> {
        if !self.all.contains_key(&connection) {
            // One search a second, so that a full table costs little.
            let may_search = self.searched.is_none_or(|at| now.since(at) >= Span::SECOND);
            if self.all.len() >= MOST && may_search {
                self.searched = Some(now);
                self.all.retain(|_, (seen, _)| now.since(*seen) < IDLE);
            }
            if self.all.len() >= MOST {
                return None;
            }
        }
        let (seen, state) = self.all.entry(connection).or_insert_with(|| (now, make()));
        *seen = now;
        Some(state)
    }

    pub fn forget(&mut self, connection: u64) {
        self.all.remove(&connection);
    }

    pub fn states(&self) -> impl Iterator<Item = &S> {
        self.all.values().map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_takes_a_new_connection_once_another_is_idle() {
        let mut table = Connections::new();
        for connection in 0..MOST as u64 {
            assert!(table.get_or_insert(Time::ZERO, connection, || ()).is_some());
        }
        let more = MOST as u64;
        assert!(table.get_or_insert(Time::from_secs(1), more, || ()).is_none());
        assert!(table.get(Time::from_secs(30), 7).is_some());
        assert!(table.get_or_insert(Time::from_secs(60), more, || ()).is_some());
        assert_eq!(table.states().count(), 2, "the seventh, which was in use, and the new one");
    }
}
