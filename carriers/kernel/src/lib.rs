//! Congestion controls inside the Linux kernel: eBPF programs (`bpf/*.bpf.c`), and what loads, chooses, shows and removes them.
//!
//! A [`Control`] is an algorithm of `ranpace-cc` that the kernel can run, with its options. [`Loaded`] has put it into the kernel:
//! as long as it lives, or until [`unload`] where it was pinned. [`Cgroup`] makes the sockets of programs use it without their
//! knowledge. The arithmetic of each algorithm is in `bpf/arithmetic`, without calls of the kernel, and is tested beside the Rust
//! logic by `ranpace-kernel-arithmetic`.
//!
//! Everything here needs the feature `bpf`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg(all(target_os = "linux", feature = "bpf"))]

mod allocations;
mod cgroup;
mod check;
mod choice;
mod control;
mod error;
mod feed;
mod layout;
mod loaded;
mod pep;
mod pins;
mod radio;
mod running;
mod settings;
mod sockets;

pub use allocations::Allocations;
pub use cgroup::Cgroup;
pub use check::{Finding, check};
pub use choice::{Choice, Prefix};
pub use control::{Control, KINDS, Kind, fingerprint};
pub use error::KernelError;
pub use feed::{DeviceConnections, Hinted, Radio};
pub use loaded::{Attachment, Loaded};
pub use pep::{PepFeed, PepSeen, Reported};
pub use pins::{Pinned, list, set, sockets, unload};
pub use radio::RadioFeed;
pub use running::{Running, cgroup_folders, running};
pub use sockets::Socket;
