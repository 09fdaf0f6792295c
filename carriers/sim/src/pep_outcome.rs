//! What a sender does with the report of a Lightweight PEP.

/// The outcome of delivering a report to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PepOutcome {
    /// The sender has applied it.
    Used,
    /// It contradicts what was sent; `impossible` if no loss of messages explains it. If `ask`, a new epoch is to be requested.
    Rejected { impossible: bool, ask: bool },
    /// It does not concern this sender, or came too late.
    Ignored,
}
