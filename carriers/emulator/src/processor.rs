//! Pins the loop to a processor: a loop that migrates is late, and so is one that shares its processor with another loop.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A processor reserved for a loop.
#[derive(Debug)]
pub struct Processor {
    number: usize,
    /// A socket whose name marks the processor as taken while this exists.
    _claim: UnixDatagram,
}

impl Processor {
    /// Claims one of the processors that the calling thread may use; `None` if there is only one, or their number is unknown. Loops
    /// of concurrent emulations get different ones: each claims a socket name, which is visible to all users in the same network
    /// namespace and vanishes with the process. With more emulations than processors it returns `None`: a loop pinned to another's
    /// processor would wait for it, whereas unpinned ones seldom do.
    pub fn claim(name: &str) -> Option<Self> {
        let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let usable = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
        Self::of(usable, |cpu| {
            let address = SocketAddr::from_abstract_name(format!("{name}-processor-{cpu}")).ok()?;
            UnixDatagram::bind_addr(&address).ok()
        })
    }

    fn of(usable: Vec<usize>, claim: impl Fn(usize) -> Option<UnixDatagram>) -> Option<Self> {
        if usable.len() < 2 {
            return None;
        }
        // The last ones first: other pinned programs usually take the first.
        let claimed = |number| Some(Self { number, _claim: claim(number)? });
        usable.into_iter().rev().find_map(claimed)
    }

    /// Pins the calling thread to it.
    pub fn keep(&self) -> nix::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.number)?;
        sched_setaffinity(Pid::from_raw(0), &set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_has_the_last_one_that_is_free() {
        let free = || Some(UnixDatagram::unbound().unwrap());
        assert!(Processor::of(vec![3], |_| free()).is_none(), "there is but one");
        for (usable, taken, expected) in [(vec![0, 1], 9, 1), (vec![0, 1], 1, 0), (vec![0, 1, 2, 3], 3, 2)] {
            let claim = |cpu| if cpu == taken { None } else { free() };
            assert_eq!(Processor::of(usable, claim).unwrap().number, expected);
        }
        assert!(Processor::of(vec![0, 1], |_| None).is_none(), "no processor is free");
    }

    #[test]
    fn loops_side_by_side_have_different_ones() {
        let name = format!("ranpace-test-{}", std::process::id());
        let Some(first) = Processor::claim(&name) else { return };
        let second = Processor::claim(&name).unwrap();
        assert_ne!(first.number, second.number);
        let of_first = first.number;
        drop(first);
        assert_eq!(Processor::claim(&name).unwrap().number, of_first, "it is free again");
    }
}
