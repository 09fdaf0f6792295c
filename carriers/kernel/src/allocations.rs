//! What a proxy allocates to its connections, for RAPID's sender.

use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::Ordering;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use ranpace_cc::Allocation;
use ranpace_rnisd_mapping::Writable;

use crate::error::KernelError;
use crate::loaded::{ALLOCATIONS, Loaded, PLACES};

/// What an error calls it.
const WHAT: &str = "allocations of a proxy (rapid does)";
/// Words of a place: rate and window, as `struct place` of `bpf/rapid.bpf.c` has them.
const WORDS: usize = 2;

/// Allocates rates and windows to connections of this process that use the control `rapid`.
///
/// A connection is given a place once. What is written there counts from the connection's next acknowledgement on, and takes no
/// system call, because the kernel's array of places is mapped into this process.
pub struct Allocations {
    places: MapHandle,
    table: Writable,
}

impl Allocations {
    /// For a control that this process has loaded.
    ///
    /// # Errors
    ///
    /// The control is not `rapid`, or the system cannot map its array.
    pub fn of(loaded: &Loaded) -> Result<Self, KernelError> {
        let array = loaded.shared_map(ALLOCATIONS, WHAT)?;
        let words = WORDS * array.max_entries() as usize;
        let table = Writable::of_words(array.as_fd(), words)
            .map_err(|error| KernelError::bpf("map the array of allocations", error.into()))?;
        Ok(Self { places: loaded.shared_map(PLACES, WHAT)?, table })
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.table.words().len() / WORDS
    }

    /// The connection has what is written at this place from now on. Before it is established, that counts from its beginning.
    ///
    /// # Errors
    ///
    /// There is no such place, `socket` is none of TCP, or the kernel has no memory for it.
    pub fn assign(&self, socket: impl AsFd, place: usize) -> Result<(), KernelError> {
        let number = u32::try_from(place).ok().filter(|_| place < self.places());
        let number =
            number.ok_or_else(|| KernelError::Missing(format!("place {place} for an allocation")))?;
        self.places
            .update(&key(socket), &number.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| KernelError::bpf("allocate a window to a connection", error))
    }

    /// The connection has no place any more, so that another one may have it: the kernel's CUBIC sends what is left.
    ///
    /// # Errors
    ///
    /// The connection had none, or `socket` is none of TCP.
    pub fn take_back(&self, socket: impl AsFd) -> Result<(), KernelError> {
        self.places.delete(&key(socket)).map_err(|error| KernelError::bpf("take an allocation back", error))
    }

    /// The connection of this place has this rate and window; with `None`, its control is the kernel's CUBIC, which goes on from the
    /// window that there is.
    pub fn write(&self, place: usize, allocation: Option<Allocation>) {
        let Some([rate, window]) = self.table.words().get(WORDS * place..WORDS * (place + 1)) else { return };
        // A window of zero means that there is none.
        let (bytes_per_s, bytes) = allocation
            .map_or((0, 0), |allocation| (allocation.rate.bits_per_s() / 8, allocation.window.get().max(1)));
        rate.store(bytes_per_s, Ordering::Relaxed);
        window.store(bytes, Ordering::Release);
    }
}

fn key(socket: impl AsFd) -> [u8; 4] {
    socket.as_fd().as_raw_fd().to_ne_bytes()
}
