//! What a proxy allocates to its connections, for RAPID's sender.

use std::os::fd::{AsFd, AsRawFd as _};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use ranpace_cc::Allocation;

use crate::error::KernelError;
use crate::loaded::{ALLOCATIONS, Loaded};
use crate::pins;

/// What an error calls it.
const WHAT: &str = "allocations of a proxy (rapid does)";

/// Allocates rates and windows to connections of this process that use the control `rapid`.
pub struct Allocations(MapHandle);

impl Allocations {
    /// For a control that this process has loaded.
    ///
    /// # Errors
    ///
    /// The control is not `rapid`.
    pub fn of(loaded: &Loaded) -> Result<Self, KernelError> {
        loaded.shared_map(ALLOCATIONS, WHAT).map(Self)
    }

    /// For a pinned control, by its name.
    ///
    /// # Errors
    ///
    /// There is none of this name, or it is not `rapid`.
    pub fn pinned(name: &str) -> Result<Self, KernelError> {
        pins::shared_map(name, ALLOCATIONS, WHAT).map(Self)
    }

    /// The connection has this rate and window from its next acknowledgement on; with `None`, its control is the kernel's CUBIC, which
    /// goes on from the window that there is. An allocation before the connection is established counts from its beginning.
    ///
    /// # Errors
    ///
    /// `socket` is none of TCP, or the kernel has no memory for what is allocated.
    pub fn allocate(&self, socket: impl AsFd, allocation: Option<Allocation>) -> Result<(), KernelError> {
        let key = socket.as_fd().as_raw_fd().to_ne_bytes();
        self.0
            .update(&key, &content(allocation), MapFlags::ANY)
            .map_err(|error| KernelError::bpf("allocate a window to a connection", error))
    }
}

/// `struct rapid_allocation` of `bpf/arithmetic/rapid.h`.
fn content(allocation: Option<Allocation>) -> [u8; 24] {
    let mut bytes = [0; 24];
    if let Some(Allocation { rate, window }) = allocation {
        bytes[..8].copy_from_slice(&(rate.bits_per_s() / 8).to_ne_bytes());
        bytes[8..16].copy_from_slice(&window.get().to_ne_bytes());
        bytes[16..20].copy_from_slice(&1_u32.to_ne_bytes());
    }
    bytes
}
