//! Controls that estimate the rate or the delay of the path and pace or forecast by it.

pub(crate) mod bbr1;
pub(crate) mod bbr3;
pub(crate) mod bbr_zhong;
pub(crate) mod copa;
pub(crate) mod sprout;
pub(crate) mod verus;
pub(crate) mod vivace;
