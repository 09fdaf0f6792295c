//! Turns what the cells of a scenario report into updates of a source of radio information: for the RNIS server, and for recordings of it.

use ranpace_rnis::update::{Cell, Signal, Slot, Strength, Update, User};
use ranpace_rnis::{AssociateId, CellInfo, Ecgi, Event, EventKind, Plmn, ReferenceSignal, SlotReport};
use ranpace_scenario::Scenario;
use ranpace_units::Time;

use crate::radio::{Radio, RadioReader};

/// Passes updates to a function.
#[derive(Debug)]
pub struct Updates<F>(pub F);

impl<F: FnMut(Update)> RadioReader for Updates<F> {
    fn on_report(&mut self, report: &SlotReport<'_>) {
        (self.0)(Update::Slot(Slot::of(report)));
    }

    fn on_event(&mut self, event: &Event) {
        (self.0)(Update::Event(*event));
    }

    fn on_signal(&mut self, time: Time, cell: u16, user: u32, signal: &ReferenceSignal, used: f64) {
        let serving = Strength {
            rsrp_dbm: signal.rsrp_dbm,
            rsrq_db: signal.rsrq_db(used),
            sinr_db: Some(signal.sinr_db()),
        };
        (self.0)(Update::Signal(Signal { user, cell, time, serving, neighbours: Vec::new() }));
    }
}

/// The cells and users of a scenario, and that the users are there from the beginning. `ids` are the identifiers of the user with
/// this number.
pub(crate) fn describe(
    scenario: &Scenario,
    radio: &Radio<'_>,
    ids: &dyn Fn(u32) -> Vec<AssociateId>,
) -> Vec<Update> {
    let mut updates: Vec<Update> = Vec::new();
    updates.extend(radio.cells().map(|info| Update::Cell(Cell { info: *info, ecgi: test_ecgi(info) })));
    let numbers = 0..scenario.users.len() as u32;
    updates.extend(
        numbers
            .zip(&scenario.users)
            .map(|(user, spec)| Update::User(User { user, name: spec.name.clone(), ids: ids(user) })),
    );
    for (user, cell, bearers) in radio.users() {
        let event = |kind| Update::Event(Event { time: Time::ZERO, cell, user, kind });
        updates.push(event(EventKind::Attached));
        updates.extend((0..bearers).map(|bearer| event(EventKind::BearerSetUp { bearer })));
    }
    updates
}

/// The identity of a scenario's cell: in the network 001 01, which is for tests (ITU-T E.212, annex D), numbered from 1 on.
fn test_ecgi(info: &CellInfo) -> Ecgi {
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    Ecgi { cell_id: format!("{:07x}", u32::from(info.cell) + 1), plmn }
}
