//! Real time: the links and cells of a scenario between network namespaces, for unmodified programs.
//!
//! The same network as in virtual time ([`ranpace_network::Transit`]: `radio::Cell`, links, queues, traces) is driven by the real
//! clock. [`Topology`] says which hosts of a scenario get a namespace; [`emulate`] creates them with a TUN device each, moves
//! packets between devices and network in one thread, and runs programs behind hosts. [`Timeliness`] says whether the machine kept
//! up.
//!
//! Everything that an emulation creates belongs to its process: programs end with it, however it ends, and named objects are
//! removed by the next emulation, or by [`clean`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod addresses;
mod application;
mod headers;
mod hint_json;
mod hint_line;
mod summary;
mod tcp_fields;
mod timeliness;
mod topology;

#[cfg(target_os = "linux")]
mod awake;
#[cfg(target_os = "linux")]
mod budget;
#[cfg(target_os = "linux")]
mod daemons;
#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod delivery;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod emulation;
#[cfg(target_os = "linux")]
mod event_loop;
#[cfg(target_os = "linux")]
mod followed;
#[cfg(target_os = "linux")]
mod gro;
#[cfg(target_os = "linux")]
mod gso;
#[cfg(target_os = "linux")]
mod hints;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod merge;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod packet_buffer;
#[cfg(target_os = "linux")]
mod participant;
#[cfg(target_os = "linux")]
mod participants;
#[cfg(target_os = "linux")]
mod pcap;
#[cfg(target_os = "linux")]
mod pep;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod player;
#[cfg(target_os = "linux")]
mod poller;
#[cfg(target_os = "linux")]
mod processor;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod quic;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod rewriting;
#[cfg(target_os = "linux")]
mod rnis;
#[cfg(target_os = "linux")]
mod router;
#[cfg(target_os = "linux")]
mod routes;
#[cfg(target_os = "linux")]
mod segmentation;
#[cfg(target_os = "linux")]
mod slack;
#[cfg(target_os = "linux")]
mod split;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod tcp_info;
#[cfg(target_os = "linux")]
mod workloads;

pub use headers::{Headers, set_ecn};
pub use hint_line::{HintLine, LONGEST as LONGEST_HINT_LINE, PepLine, RadioLine};
pub use summary::EmulationSummary;
pub use tcp_fields::TcpSegment;
pub use timeliness::{LATE, LATE_SHARE, Machine, STALL, STANDSTILL, Timeliness, Watch};
pub use topology::{Topology, TopologyError};

#[cfg(target_os = "linux")]
pub use daemons::DaemonError;
#[cfg(target_os = "linux")]
pub use delivery::Delivery;
#[cfg(target_os = "linux")]
pub use emulation::{EmulationError, Outcome, emulate};
#[cfg(target_os = "linux")]
pub use live::Snapshot;
#[cfg(target_os = "linux")]
pub use namespaces::{NamespaceError, become_root, check, clean, own_folder, within};
#[cfg(target_os = "linux")]
pub use pcap::{CaptureError, Captured};
#[cfg(target_os = "linux")]
pub use plan::{Daemon, Plan, Program, Ready, Views};
#[cfg(target_os = "linux")]
pub use programs::enter;
#[cfg(target_os = "linux")]
pub use status::SOCKET as STATUS_SOCKET;
#[cfg(target_os = "linux")]
pub use workloads::{WorkloadError, Workloads};
