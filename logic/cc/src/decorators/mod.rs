//! Decorators wrap a loss-based control and change what it sees of losses or how its window grows.

pub mod c2tcp;
mod hidden;
pub mod lda;
pub mod meld;
