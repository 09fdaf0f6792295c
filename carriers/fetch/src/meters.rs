//! The meters of the downloads that are under way, for radio information that comes from outside.

use std::sync::{Mutex, PoisonError};

use ranpace_noq::reports::Meter;

/// The meters of open connections.
#[derive(Debug, Default)]
pub struct Meters(Mutex<Vec<Meter>>);

impl Meters {
    /// Calls `tell` with each.
    pub fn each(&self, tell: impl FnMut(&Meter)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(tell);
    }

    /// Adds a meter until what is returned is dropped.
    pub(crate) fn add(&self, meter: Meter) -> Listed<'_> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(meter.clone());
        Listed { meters: self, meter }
    }
}

/// A meter in the list.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    meters: &'a Meters,
    meter: Meter,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut meters = self.meters.0.lock().unwrap_or_else(PoisonError::into_inner);
        meters.retain(|meter| !meter.is(&self.meter));
    }
}
