//! Makes a host's kernel forward packets of others, as that of a router does.
//!
//! What arrives at the host's only device leaves by it again, and the loop carries it on. The kernel passes GSO packets on whole, as
//! routers with receive offload do (Linux, Documentation/networking/segmentation-offloads.rst).

use std::{fs, io};

use crate::devices;

/// Settings below /proc/sys/net/ipv4 (Linux, Documentation/networking/ip-sysctl.rst), each for `all` devices and for the host's own.
/// Sources are not checked: all hosts are behind the same device. For the same reason nobody is told of a shorter way.
const DEVICE: [(&str, &str); 2] = [("rp_filter", "0"), ("send_redirects", "0")];
/// Forwarding. It comes first, because the kernel sets other values anew when it changes.
const FORWARDING: [&str; 2] = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

/// From now on the kernel of the calling thread's namespace forwards packets; its device has to be there.
pub fn set_up() -> io::Result<()> {
    for file in FORWARDING {
        fs::write(file, "1")?;
    }
    for device in ["all", devices::NAME] {
        for (key, value) in DEVICE {
            fs::write(format!("/proc/sys/net/ipv4/conf/{device}/{key}"), value)?;
        }
    }
    Ok(())
}
