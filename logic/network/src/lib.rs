//! The network of a scenario: its links, cells, routes and radio information combined.
//!
//! It is pure: its driver passes in the time and handles what is due. `ranpace-sim` drives it in virtual time with endpoints at its
//! hosts, `ranpace-emulator` by the real clock for packets from outside ([`Transit`]).
#![forbid(unsafe_code)]

mod control_channels;
mod device_bands;
mod event_queue;
mod feed;
mod histogram;
mod measured;
mod meter;
mod network;
mod packet;
mod pep;
mod radio;
pub mod random;
mod results;
mod route;
mod series;
mod tap;
mod transit;
mod udp_source;
mod updates;

pub use event_queue::{Event, EventQueue, Timer};
pub use feed::{HintDelivery, Reader, Source};
pub use histogram::Histogram;
pub use meter::{FlowMeter, Meters};
pub use network::{Drive, Hosts, Network, NetworkResult, link_names, mean_rate};
pub use packet::{Direction, Packet, PacketHandle, PacketPool};
pub use pep::{PEP_SERVER, PEP_TAG_KEY, PepDelivery, Seen, WatchingPep, message_delays};
pub use radio::RadioReader;
pub use results::{
    CellResult, Column, Distribution, FeedResult, FlowCounts, FlowResult, FlowTotals, Ledger, LinkResult,
    LostConnection, Moment, PepResult, RadioLinkResult, RunResult, Series, SplitResult, Transfer, UserResult,
};
pub use route::{Place, Routes, Stop, splits};
pub use series::{FigureSource, FlowRow, FlowRows, LinkRows, flow_columns};
pub use tap::{Tap, TapEvent};
pub use transit::{Arrived, PacketInfo, Transit};
pub use udp_source::UdpSource;
pub use updates::Updates;
