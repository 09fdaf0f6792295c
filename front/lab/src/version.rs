//! The version that results carry.

/// Version of Ranpace, as written into every result: the release, and a fingerprint of the code that determines results.
pub const VERSION: &str = env!("RANPACE_VERSION");
