//! Controls that set a window by loss and delay: those shipped with Linux, and published algorithms of the same kind.

pub(crate) mod cubic;
pub(crate) mod hystart;
pub(crate) mod newreno;
pub(crate) mod scalable;
pub(crate) mod vegas;
pub(crate) mod veno;
pub(crate) mod westwood;
pub(crate) mod yeah;
