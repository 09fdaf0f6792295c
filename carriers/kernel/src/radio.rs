//! Reports on users' radio, for the controls that judge losses by them (MELD).

use std::net::IpAddr;
use std::os::fd::AsFd as _;

use libbpf_rs::{MapHandle, Object, ObjectBuilder, ProgramInput};
use ranpace_cc::RadioHint;
use ranpace_cc::meld::decision::best_block;
use ranpace_rnis::Technology;

use crate::error::KernelError;
use crate::loaded::{Loaded, USERS, program};
use crate::pins;

/// The program that takes reports.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/radio.bpf.o"));
/// What an error calls it.
const WHAT: &str = "reports on users' radio (cubic+meld-me and its like do)";
/// `struct message` of `bpf/radio.bpf.c`.
const MESSAGE: usize = 48;

/// Tells a loaded MELD of its users' radio.
///
/// The reports are kept by the user's address, for all connections to it and for those that come. A control keeps what it knows of
/// 16,384 users.
pub struct RadioFeed(Object);

impl RadioFeed {
    /// For a control that this process has loaded.
    ///
    /// # Errors
    ///
    /// The control is no MELD, or the kernel refused the program.
    pub fn of(loaded: &Loaded) -> Result<Self, KernelError> {
        Self::new(loaded.shared_map(USERS, WHAT)?)
    }

    /// For a pinned control, by its name.
    ///
    /// # Errors
    ///
    /// There is none of this name, it is no MELD, or the kernel refused the program.
    pub fn pinned(name: &str) -> Result<Self, KernelError> {
        Self::new(pins::shared_map(name, USERS, WHAT)?)
    }

    fn new(users: MapHandle) -> Result<Self, KernelError> {
        let failed = |error| KernelError::bpf("load the program that takes reports on users' radio", error);
        let mut open = ObjectBuilder::default()
            .name("ranpace_radio")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(failed)?;
        let mut own = open.maps_mut().find(|map| map.name() == USERS);
        let own = own.as_mut().ok_or_else(|| KernelError::Missing(format!("map {USERS}")))?;
        own.reuse_fd(users.as_fd()).map_err(failed)?;
        open.load().map(Self).map_err(failed)
    }

    /// A report on the downlink of the user with this address. `hint.measured_at` is on the kernel's monotonic clock
    /// (CLOCK_MONOTONIC); a time to come counts as now. One that is older than the newest is dropped.
    ///
    /// # Errors
    ///
    /// The kernel refused to run the program, or has no memory for the user.
    pub fn report(&self, user: IpAddr, hint: &RadioHint) -> Result<(), KernelError> {
        let mut message = message(user, hint);
        let input = ProgramInput { context_in: Some(&mut message), ..ProgramInput::default() };
        let output = program(&self.0, "report")?.test_run(input);
        match output.map_err(|error| KernelError::bpf("take a report on a user's radio", error))?.return_value
        {
            0 => Ok(()),
            _ => Err(KernelError::NoRoom("what is known of users' radio")),
        }
    }
}

/// The message that the program reads: the address, and `struct meld_report` of `bpf/arithmetic/meld.h`.
fn message(user: IpAddr, hint: &RadioHint) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    let mut put = |place: usize, content: &[u8]| bytes[place..place + content.len()].copy_from_slice(content);
    let address = match user {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let count = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    // Cells of two technologies may have one number.
    let technology: u32 = match hint.info.technology {
        Technology::Lte => 0,
        Technology::Nr { qam256: false } => 1,
        Technology::Nr { qam256: true } => 2,
        Technology::Mmwave => 3,
    };
    put(0, &address.octets());
    put(16, &hint.measured_at.as_nanos().to_ne_bytes());
    put(24, &(hint.tbs_bits.unwrap_or(0) / 8).to_ne_bytes());
    put(28, &count(best_block(hint).get()).to_ne_bytes());
    put(32, &count(hint.queue.get()).to_ne_bytes());
    put(36, &count(hint.queue_limit.map_or(0, |limit| limit.get())).to_ne_bytes());
    put(40, &(technology << 16 | u32::from(hint.info.cell)).to_ne_bytes());
    let has = [hint.tbs_bits.is_some(), hint.queue_limit.is_some(), hint.handover].map(u8::from);
    put(44, &[hint.info.harq_processes.downlink, has[0], has[1], has[2]]);
    bytes
}
