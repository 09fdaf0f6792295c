//! Pins the loop to a processor: a loop that migrates is late, and so is one that shares its processor with another loop.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A processor that is a loop's.
#[derive(Debug)]
pub struct Processor {
    number: usize,
    /// Whose name says that the processor is taken, as long as somebody uses this.
    _claim: UnixDatagram,
}

impl Processor {
    /// Of those that the calling thread may use; `None` if there is but one, or nobody knows. The loops of emulations that run side by
    /// side have different ones: each claims the name of a socket, which all users see who are in the same network namespace, and which goes with the
    /// process. If there are more emulations than processors, `None`: a loop that kept to the processor of another would wait for it,
    /// and those that go where there is room seldom do.
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
        // The last ones first: what has a processor of its own has mostly the first.
        let claimed = |number| Some(Self { number, _claim: claim(number)? });
        usable.into_iter().rev().find_map(claimed)
    }

    /// The calling thread keeps to it.
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
