//! Rights of the process after it was set up: what an attacker who has got hold of it may do to the system.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

use crate::error::ProxyError;

/// What a running proxy needs: others' addresses for its sockets, its rules and devices; clients' ports below 1024; and, for kernels
/// that ask for it, to give a connection its place in the array of allocations.
const KEPT: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_BIND_SERVICE).union(CapabilitySet::BPF);

/// This thread, those that it starts from now on and the programs that they run (`nft` and `ip`) keep no other capabilities.
///
/// # Errors
///
/// The system refuses it.
pub fn keep_what_is_needed() -> Result<(), ProxyError> {
    let failed = ProxyError::system::<Errno>;
    for capability in CapabilitySet::all().iter().filter(|one| !KEPT.contains(*one)) {
        match remove_capability_from_bounding_set(capability) {
            // Not one of this kernel's; or the right to give rights up is missing, as under a service manager that gave few of them.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(error) => return Err(failed("give up capabilities")(error)),
        }
    }
    let held = capabilities(None).map_err(failed("read the capabilities"))?;
    let kept = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept).map_err(failed("give up capabilities"))
}
