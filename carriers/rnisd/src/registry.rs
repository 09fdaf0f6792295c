//! Numbers of cells and users across sources.
//!
//! A source numbers its own cells and users. [`Registry`] gives them numbers of the server: a cell of a source has one, and a user has
//! the same one in all sources, found by its identifiers.

use std::collections::HashMap;

use ranpace_rnis::EventKind;
use ranpace_rnis::etsi::AssociateId;

use crate::source::{Bearer, Cell, Signal, Update, User};

/// Most cells and users; what comes beyond is refused and counted. A source's own numbers of users are below the second one, too.
const MOST_CELLS: usize = 1 << 12;
const MOST_USERS: usize = 1 << 16;

/// Numbers of cells and users across sources.
#[derive(Debug, Default)]
pub struct Registry {
    cells: HashMap<(usize, u16), u16>,
    /// By source and its number: every row of every slot asks for one.
    users: Vec<Vec<Option<u32>>>,
    by_id: HashMap<(u8, String), u32>,
    /// The inverse of `by_id`.
    ids: HashMap<u32, Vec<(u8, String)>>,
    next_user: u32,
}

impl Registry {
    /// Rewrites an update of a source in the server's numbers; `None` if there are too many cells or users, or the cell is unknown.
    pub fn translate(&mut self, source: usize, mut update: Update) -> Option<Update> {
        match &mut update {
            Update::Cell(Cell { info, .. }) => info.cell = self.new_cell(source, info.cell)?,
            Update::User(user) => user.user = self.identify(source, user)?,
            Update::Slot(slot) => {
                slot.cell.cell = self.cell(source, slot.cell.cell)?;
                let mut is_complete = true;
                slot.users.retain_mut(|row| match self.user(source, row.user) {
                    Some(user) => {
                        row.user = user;
                        true
                    }
                    None => {
                        is_complete = false;
                        false
                    }
                });
                slot.bearers.retain_mut(|row| match self.user(source, row.user) {
                    Some(user) => {
                        row.user = user;
                        true
                    }
                    None => false,
                });
                slot.full &= is_complete;
                // Numbers of the server may be in another order.
                if !slot.users.is_sorted_by_key(|row| row.user) {
                    slot.users.sort_by_key(|row| row.user);
                    slot.bearers.sort_by_key(|row| row.user);
                }
            }
            Update::Event(event) => {
                event.cell = self.cell(source, event.cell)?;
                event.user = self.user(source, event.user)?;
                match &mut event.kind {
                    EventKind::HandoverBegun { to: other } | EventKind::HandoverCompleted { from: other } => {
                        *other = self.cell(source, *other)?;
                    }
                    _ => {}
                }
            }
            Update::Bearer(Bearer { user, cell, .. })
            | Update::Signal(Signal { user, cell, .. })
            | Update::TimingAdvance { user, cell, .. } => {
                *cell = self.cell(source, *cell)?;
                *user = self.user(source, *user)?;
            }
            // It names its user by identifiers.
            Update::Notification(_) => {}
        }
        Some(update)
    }

    fn new_cell(&mut self, source: usize, cell: u16) -> Option<u16> {
        let next = self.cells.len();
        if let Some(known) = self.cells.get(&(source, cell)) {
            return Some(*known);
        }
        let number = u16::try_from(next).ok().filter(|_| next < MOST_CELLS)?;
        self.cells.insert((source, cell), number);
        Some(number)
    }

    fn cell(&self, source: usize, cell: u16) -> Option<u16> {
        self.cells.get(&(source, cell)).copied()
    }

    /// The number of a user that may not have been described yet.
    fn user(&mut self, source: usize, user: u32) -> Option<u32> {
        if let Some(known) = self.known(source, user) {
            return Some(known);
        }
        // A source whose number is refused must not use up those of the server.
        let number = if is_allowed(user) { self.new_user()? } else { return None };
        self.set(source, user, number);
        Some(number)
    }

    fn known(&self, source: usize, user: u32) -> Option<u32> {
        *self.users.get(source)?.get(user as usize)?
    }

    /// Notes the server's number of a source's user, whose own number is [allowed](is_allowed).
    fn set(&mut self, source: usize, user: u32, number: u32) {
        let place = user as usize;
        if self.users.len() <= source {
            self.users.resize_with(source + 1, Vec::new);
        }
        let users = &mut self.users[source];
        if users.len() <= place {
            users.resize(place + 1, None);
        }
        users[place] = Some(number);
    }

    fn new_user(&mut self) -> Option<u32> {
        let number = self.next_user;
        ((number as usize) < MOST_USERS).then(|| {
            self.next_user += 1;
            number
        })
    }

    /// The number of a user with these identifiers.
    fn identify(&mut self, source: usize, user: &User) -> Option<u32> {
        if !is_allowed(user.user) {
            return None;
        }
        let key = |id: &AssociateId| (id.id_type as u8, id.value.clone());
        let own = self.known(source, user.user);
        let by_id = user.ids.iter().find_map(|id| self.by_id.get(&key(id)).copied());
        let number = match by_id.or(own) {
            Some(known) => known,
            None => self.new_user()?,
        };
        self.set(source, user.user, number);
        // Identifiers that it no longer has may become another user's.
        let ids: Vec<(u8, String)> = user.ids.iter().map(key).collect();
        for id in self.ids.insert(number, ids.clone()).unwrap_or_default() {
            if self.by_id.get(&id) == Some(&number) {
                self.by_id.remove(&id);
            }
        }
        self.by_id.extend(ids.into_iter().map(|id| (id, number)));
        Some(number)
    }
}

/// Whether a source may give a user this number.
fn is_allowed(user: u32) -> bool {
    (user as usize) < MOST_USERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_source_may_not_use_take_none_of_the_servers() {
        let mut registry = Registry::default();
        let most = MOST_USERS as u32;
        for number in most..2 * most + 1 {
            assert_eq!(registry.user(0, number), None);
        }
        assert_eq!(registry.user(0, u32::MAX), None);
        assert_eq!(registry.user(1, 0), Some(0));
        assert_eq!(registry.user(0, most - 1), Some(1));
        assert_eq!(registry.user(0, most - 1), Some(1), "known");
    }
}
