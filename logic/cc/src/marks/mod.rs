//! Controls that read the number of ECN marks.

pub(crate) mod abc;
pub(crate) mod prague;
