//! What stands on the path and does not know the option: connections are what they were without it. Needs root; whoever is not is told
//! that this is skipped. (One that takes the option away: front/cli/tests/kernel.rs.)
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod injection;
mod rig;

use std::io::Write as _;
use std::time::Duration;

use injection::{Attack, compare_with_cubic};
use rig::{Hosts, InUse, KernelLog, RECEIVER, SENDER};

#[test]
fn segments_of_the_handshake_that_are_dropped_for_the_option_are_sent_without_it() {
    const BYTES: usize = 1_000_000;
    let Some(_turn) = rig::ready(&["ip", "nsenter", "nft"]) else { return };
    for (host, flags, agreed) in [(RECEIVER, "syn", 0.0), (SENDER, "syn | ack", 0.0), (SENDER, "rst", 1.0)] {
        let hosts = Hosts::new();
        hosts.filter(
            host,
            &format!("tcp flags & (syn | ack | rst) == {flags} tcp option 254 exists counter drop"),
        );
        let in_use = InUse::new("cdbe");
        for to in [rig::address(RECEIVER), rig::address6(RECEIVER)] {
            let (mut stream, reader) = rig::connect(&hosts, to, |_| {});
            assert_eq!(rig::control_of(&stream), in_use.loaded.name(), "{flags}");
            stream.write_all(&vec![7; BYTES]).unwrap();
            let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            for (end, address) in [(SENDER, local), (RECEIVER, peer)] {
                let found = rig::figure(&hosts, &in_use, end, address, "agreed");
                assert_eq!(found, agreed, "dropped: {flags}, host {end}, to {to}");
            }
            drop(stream);
            assert_eq!(reader.join().unwrap(), BYTES, "{flags}");
        }
    }
}

#[test]
fn segments_that_come_again_change_nothing() {
    let Some(_turn) = rig::ready(&["ip", "nsenter", "tc"]) else { return };
    let mut log = KernelLog::new();
    for control in ["cdbe", "cdbev2"] {
        for attack in [Attack::AcksAgain, Attack::DataAgain] {
            compare_with_cubic(control, attack, Duration::from_secs(6));
        }
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}
