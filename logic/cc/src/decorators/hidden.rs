//! An episode of losses that a decorator hides from its parent, which meanwhile sees an undisturbed connection.

use crate::interface::{Congestion, Context, State};

/// Whether the current episode is hidden, and what the parent sees of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct HiddenEpisode {
    is_hidden: bool,
    /// The connection as the parent last saw it: what [`Self::lend`] returns.
    seen: Option<Context>,
}

impl HiddenEpisode {
    /// Returns whether the parent does not know of the current episode.
    pub(super) const fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// The losses of this event are hidden. An episode that is known to the parent continues unchanged.
    pub(super) const fn hide(&mut self, event: &Congestion) {
        self.is_hidden |= event.first;
    }

    /// The parent was notified of this event.
    pub(super) const fn notify(&mut self, event: &Congestion) {
        self.is_hidden &= !event.first;
    }

    /// The losses are repaired. Returns whether the episode was hidden: the parent then does not learn of its end either.
    pub(super) const fn end(&mut self) -> bool {
        core::mem::replace(&mut self.is_hidden, false)
    }

    /// The connection as the parent sees it.
    pub(super) fn shown(&self, cx: &Context) -> Context {
        if self.is_hidden { Context { state: State::Open, ..*cx } } else { *cx }
    }

    /// The same, for [`CongestionControl::view`](crate::CongestionControl::view).
    pub(super) fn lend<'a>(&'a mut self, cx: &'a Context) -> &'a Context {
        if self.is_hidden { &*self.seen.insert(Context { state: State::Open, ..*cx }) } else { cx }
    }
}
