//! Cells and their users: one cell serves each user at a time, and handovers move users between cells.
//!
//! A handover interrupts a user: no cell serves it for a while. Its queued downlink packets are forwarded to the new cell, or
//! lost with the old one; packets that arrive during the interruption wait for the new cell. What is queued on the device stays.

use ranpace_link::Packet;
use ranpace_phy::Direction;
use ranpace_rnis::{Event, EventKind};
use ranpace_units::{Bytes, Span, Time};

use crate::cell::{Cell, CellConfig, CellError, CellSubscription, Listener, Subscriber, UserConfig};

/// The cell that serves a user.
enum Serving<P> {
    /// This cell.
    Served(usize),
    /// None: the user is on its way to a cell until a time.
    Between { user: Box<Subscriber<P>>, from: u16, to: usize, until: Time },
}

/// Cells and users. Driven like a [`Cell`].
pub struct RadioNetwork<P> {
    cells: Vec<Cell<P>>,
    /// By user number.
    homes: Vec<Serving<P>>,
    /// Users between cells.
    between: Vec<u32>,
}

impl<P: Packet> RadioNetwork<P> {
    /// Creates cells, and users with the index of the cell that serves them first (the last cell if the index is too large).
    /// Indices serve as numbers. An error carries the index of the refused cell.
    pub fn new<L: Listener<P>>(
        cells: &[CellConfig],
        users: &[(usize, &UserConfig)],
        seed: u64,
        listener: &mut L,
    ) -> Result<Self, (usize, CellError)> {
        let served = |cell: usize| users.iter().filter(|(at, _)| *at == cell).count();
        let make = |(index, config): (usize, &CellConfig)| {
            config.check(served(index)).map_err(|error| (index, error))?;
            // Cell numbers have 16 bits; cells beyond share the last number.
            Cell::new(u16::try_from(index).unwrap_or(u16::MAX), config).map_err(|error| (index, error))
        };
        let mut cells = cells.iter().enumerate().map(make).collect::<Result<Vec<_>, _>>()?;
        let mut homes = Vec::with_capacity(users.len());
        for ((cell, config), id) in users.iter().zip(0..) {
            let at = (*cell).min(cells.len().saturating_sub(1));
            if let Some(cell) = cells.get_mut(at) {
                cell.attach(Time::ZERO, Subscriber::new(id, config, seed), listener);
            }
            homes.push(Serving::Served(at));
        }
        Ok(Self { cells, homes, between: Vec::new() })
    }

    /// The cells.
    pub fn cells(&self) -> &[Cell<P>] {
        &self.cells
    }

    /// A cell.
    pub fn cell_mut(&mut self, cell: usize) -> Option<&mut Cell<P>> {
        self.cells.get_mut(cell)
    }

    /// The cell that serves a user; `None` while none does.
    pub fn serving(&self, user: u32) -> Option<usize> {
        match self.homes.get(user as usize)? {
            Serving::Served(cell) => Some(*cell),
            Serving::Between { .. } => None,
        }
    }

    /// Adds a packet for a user, or from one, to the buffer of a bearer. `false` if there is no such user; the packet is then
    /// gone.
    #[inline]
    pub fn send<L: Listener<P>>(
        &mut self,
        now: Time,
        user: u32,
        direction: Direction,
        bearer: u8,
        packet: P,
        listener: &mut L,
    ) -> bool {
        self.poll_before(now, listener);
        match self.homes.get_mut(user as usize) {
            Some(Serving::Served(cell)) => match self.cells.get_mut(*cell) {
                Some(cell) => cell.send(now, user, direction, bearer, packet, listener),
                None => false,
            },
            Some(Serving::Between { user, .. }) => {
                user.send(now, direction, bearer, packet, listener);
                true
            }
            None => false,
        }
    }

    /// When [`Self::poll`] has something to do; [`Time::MAX`] if never.
    #[inline]
    pub fn next_event(&self) -> Time {
        let cells = self.cells.iter().map(Cell::next_event).min().unwrap_or(Time::MAX);
        self.between.iter().fold(cells, |next, user| match self.homes.get(*user as usize) {
            Some(Serving::Between { until, .. }) => next.min(*until),
            _ => next,
        })
    }

    /// Processes what is due by `now`, in order of time.
    pub fn poll<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        loop {
            let next = self.next_event();
            if next > now || next == Time::MAX {
                break;
            }
            self.arrive(next, listener);
            for cell in &mut self.cells {
                cell.poll(next, listener);
            }
        }
    }

    /// Hands a user over to another cell, which serves it after `interruption`. Downlink packets that were not delivered are sent
    /// there if they are forwarded (`forward`), and lost otherwise. Ignored for a user that this cell serves already, that is
    /// under way, or that does not exist.
    pub fn hand_over<L: Listener<P>>(
        &mut self,
        now: Time,
        user: u32,
        to: usize,
        forward: bool,
        interruption: Span,
        listener: &mut L,
    ) {
        self.poll_before(now, listener);
        let Some(&mut Serving::Served(from)) = self.homes.get_mut(user as usize) else { return };
        if from == to || to >= self.cells.len() {
            return;
        }
        let Some(mut subscriber) = self.cells[from].detach(now, user, listener) else { return };
        let (from, target) = (self.cells[from].info().cell, self.cells[to].info().cell);
        listener.on_event(Event {
            time: now,
            cell: from,
            user,
            kind: EventKind::HandoverBegun { to: target },
        });
        subscriber.restart(now, forward, listener);
        let until = now + interruption;
        self.homes[user as usize] = Serving::Between { user: Box::new(subscriber), from, to, until };
        self.between.push(user);
    }

    /// Processes what was due before `now`, so that a late call changes nothing.
    #[inline]
    fn poll_before<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        if self.next_event() < now {
            self.poll(now - Span::from_nanos(1), listener);
        }
    }

    fn arrive<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        let mut at = 0;
        while let Some(&number) = self.between.get(at) {
            let home = &mut self.homes[number as usize];
            match home {
                Serving::Between { to, until, .. } if *until <= now => {
                    let to = *to;
                    let Serving::Between { user, from, until, .. } =
                        std::mem::replace(home, Serving::Served(to))
                    else {
                        return;
                    };
                    let cell = &mut self.cells[to];
                    cell.attach(until, *user, listener);
                    let (cell, kind) = (cell.info().cell, EventKind::HandoverCompleted { from });
                    listener.on_event(Event { time: until, cell, user: number, kind });
                    self.between.swap_remove(at);
                }
                _ => at += 1,
            }
        }
    }

    /// Bytes of a user's packets that are neither delivered nor dropped: queued or under way.
    pub fn waiting(&self, user: u32, direction: Direction) -> Bytes {
        match self.homes.get(user as usize) {
            Some(Serving::Served(cell)) => {
                self.cells.get(*cell).map_or(Bytes::ZERO, |cell| cell.waiting(user, direction))
            }
            Some(Serving::Between { user, .. }) => {
                user.rlc().bearers().iter().map(|bearer| bearer.channel(direction).waiting()).sum()
            }
            None => Bytes::ZERO,
        }
    }

    /// Starts reports in all cells, or stops them with `None`.
    pub fn subscribe(&mut self, now: Time, subscription: Option<CellSubscription>) {
        for cell in &mut self.cells {
            cell.subscribe(now, subscription);
        }
    }
}
