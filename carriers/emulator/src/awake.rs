//! Processors that stay awake: what a real-time program asks of the machine's power management.
//!
//! An idle processor sleeps, and what wakes it comes late: by 100 us and more from the deep states of a server's processor, and by some 50 us
//! where a hypervisor halts a virtual one. That would be in the delay of each packet that finds the network idle. So the
//! emulator asks that no processor enters a state from which it takes time to wake, as cyclictest does, by the interface for that
//! (Linux, Documentation/power/pm_qos_interface.rst): a request holds for all processors, and ends with the file that made it, so
//! also with a killed process.

use std::fs::File;
use std::io::{self, Write as _};

/// The interface. Root's, mostly.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// As long as it is there, no processor sleeps: one with nothing to do waits actively.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks for it.
    pub fn ask() -> io::Result<Self> {
        let mut request = File::options().write(true).open(DEVICE)?;
        // Microseconds until a processor is awake.
        request.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _request: request })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// What holds for the machine at present (us).
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
