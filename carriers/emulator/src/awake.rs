//! Keeps processors out of deep idle states while an emulation runs.
//!
//! A processor that leaves an idle state runs late: by 100 us and more on servers, and by some 50 us where a hypervisor halts a
//! virtual processor. Each packet that finds the network idle would have that in its delay. The emulator therefore requests a
//! latency of zero from Linux's power management, as cyclictest does (Documentation/power/pm_qos_interface.rst). The request holds
//! for all processors and ends when its file is closed, so also when the process is killed.

use std::fs::File;
use std::io::{self, Write as _};

/// The interface; usually only root may open it.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// While it exists, no processor sleeps: an idle one busy-waits.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Requests it.
    pub fn ask() -> io::Result<Self> {
        let mut request = File::options().write(true).open(DEVICE)?;
        // Tolerated wakeup latency in microseconds.
        request.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _request: request })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// The machine's present limit (us).
    fn latency() -> i32 {
        let mut bytes = [0; 4];
        File::open(DEVICE).unwrap().read_exact(&mut bytes).unwrap();
        i32::from_ne_bytes(bytes)
    }

    #[test]
    fn the_request_holds_while_it_is_there() {
        let Ok(awake) = Awake::ask() else { return };
        assert_eq!(latency(), 0);
        drop(awake);
    }
}
