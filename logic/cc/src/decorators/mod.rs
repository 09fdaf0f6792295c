//! Decorators: they wrap a loss-based control and change what it sees of losses or how its window grows.

pub(crate) mod c2tcp;
pub(crate) mod meld;
