//! Reports of a Lightweight PEP for single connections, for Multi-Domain control.

use std::net::SocketAddr;

use libbpf_rs::{Object, ProgramInput};
use ranpace_units::Span;

use crate::error::KernelError;
use crate::feed::{Radio, addresses};
use crate::loaded::{Loaded, program};
use crate::pins;

/// What a PEP has seen of a TCP connection's data in one direction. Whoever brings it has verified the message that it came in: its key, its
/// sequence number, and that it is of this connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PepSeen {
    /// TCP's sequence number below which all came by; with `new_epoch`, what is below is unknown.
    pub cumulative: u32,
    /// What came by above, first sequence number and one past the last, in order; the first eight count.
    pub ranges: Vec<(u32, u32)>,
    /// From the newest packet's arrival at the PEP to the report, and what it waited since it came.
    pub hold: Span,
    /// Packets with an ECN mark that it counted.
    pub marked: Option<u64>,
    /// Its counting began anew.
    pub new_epoch: bool,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The sender has it.
    Taken,
    /// There is no such connection in this network namespace.
    NoSocket,
    /// The connection has not this control.
    NotOurs,
    /// It is of data that were never sent, or its ranges are in disorder: the PEP is wrong, or lies.
    Impossible,
}

/// Ranges of `struct ledger_report` of `bpf/arithmetic/mdcc_ledger.h`, and its size.
const RANGES: usize = 8;
const REPORT: usize = 32 + 8 * RANGES;

impl Loaded {
    /// Tells the sender at `local`, whose peer is `remote`, what a PEP has seen. The window follows with the next acknowledgement.
    ///
    /// # Errors
    ///
    /// The control is not Multi-Domain control, or the kernel refused to run the program.
    pub fn report(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        seen: &PepSeen,
    ) -> Result<Reported, KernelError> {
        run(self.object(), local, remote, seen)
    }
}

/// Reports of PEPs for a control that `ranpace kernel load` has loaded.
pub struct PepFeed(Object);

impl PepFeed {
    /// For a pinned control, by its name.
    ///
    /// # Errors
    ///
    /// There is none of this name, it is not Multi-Domain control, or another version loaded it.
    pub fn pinned(name: &str) -> Result<Self, KernelError> {
        let control = pins::control(name)?;
        match control.kind().radio() {
            Some(Radio::Pep) => pins::load_again(name, control.kind(), "pep").map(Self),
            _ => Err(KernelError::NoRadio(control.kind().name.to_owned())),
        }
    }

    /// As [`Loaded::report`].
    ///
    /// # Errors
    ///
    /// The kernel refused to run the program.
    pub fn report(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        seen: &PepSeen,
    ) -> Result<Reported, KernelError> {
        run(&self.0, local, remote, seen)
    }
}

fn run(
    object: &Object,
    local: SocketAddr,
    remote: SocketAddr,
    seen: &PepSeen,
) -> Result<Reported, KernelError> {
    let mut message = addresses(local, remote).to_vec();
    message.extend(content(seen));
    let input = ProgramInput { data_in: Some(&message), ..ProgramInput::default() };
    let output = program(object, "pep")?.test_run(input);
    let output = output.map_err(|error| KernelError::bpf("tell a sender what a PEP has seen", error))?;
    match output.return_value {
        0 => Ok(Reported::Taken),
        2 => Ok(Reported::NoSocket),
        3 => Ok(Reported::NotOurs),
        4 => Ok(Reported::Impossible),
        other => {
            let length = message.len();
            Err(KernelError::Missing(format!("message of {length} bytes (the program says {other})")))
        }
    }
}

/// `struct ledger_report`.
fn content(seen: &PepSeen) -> [u8; REPORT] {
    let mut bytes = [0; REPORT];
    let mut put = |place: usize, content: &[u8]| bytes[place..place + content.len()].copy_from_slice(content);
    let ranges = &seen.ranges[..seen.ranges.len().min(RANGES)];
    put(0, &seen.hold.as_nanos().to_ne_bytes());
    put(8, &seen.marked.unwrap_or(0).to_ne_bytes());
    put(16, &seen.cumulative.to_ne_bytes());
    put(20, &(ranges.len() as u32).to_ne_bytes());
    put(24, &u32::from(seen.marked.is_some()).to_ne_bytes());
    put(28, &u32::from(seen.new_epoch).to_ne_bytes());
    for (index, (start, end)) in ranges.iter().enumerate() {
        put(32 + 8 * index, &start.to_ne_bytes());
        put(36 + 8 * index, &end.to_ne_bytes());
    }
    bytes
}
