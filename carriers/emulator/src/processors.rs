//! Which processors do what: one moves the packets, the others do the receiving of the hosts' kernels.
//!
//! A packet that is written to a TUN device goes through the receiver's TCP there and then. That wakes the program that reads, which
//! takes the socket's lock on another processor while the next packet is being received on this one: on a virtual machine, where a
//! processor that waits for a lock is halted, the loop was seen to wait 30 us for each of the first packets of a slot. So the loop keeps to one
//! processor, and receive packet steering (Linux, Documentation/networking/scaling.rst) takes the receiving to the
//! others, where the programs are.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::Pid;

/// The processors that this process may use, of which one is the loop's.
#[derive(Clone, Debug)]
pub struct Processors {
    of_loop: usize,
    others: Vec<usize>,
    /// Whose name says that the processor is taken, as long as somebody uses this.
    _claim: Arc<UnixDatagram>,
}

impl Processors {
    /// Of those that the calling thread may use; `None` if there is but one, or nobody knows. The loops of emulations that run side by
    /// side have different ones: each claims the name of a socket, which all users see who are in the same network namespace, and which goes with the
    /// process. If there are more emulations than processors, `None`: a loop that kept to the processor of another would wait for it,
    /// and those that go where there is room seldom do.
    pub fn share(name: &str) -> Option<Self> {
        let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let usable = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
        Self::of(usable, |cpu| {
            let address = SocketAddr::from_abstract_name(format!("{name}-processor-{cpu}")).ok()?;
            UnixDatagram::bind_addr(&address).ok()
        })
    }

    fn of(mut usable: Vec<usize>, claim: impl Fn(usize) -> Option<UnixDatagram>) -> Option<Self> {
        if usable.len() < 2 {
            return None;
        }
        // The last ones first: what has a processor of its own has mostly the first.
        let (place, claim) =
            (0..usable.len()).rev().find_map(|place| Some((place, claim(usable[place])?)))?;
        let of_loop = usable.remove(place);
        Some(Self { of_loop, others: usable, _claim: Arc::new(claim) })
    }

    /// The calling thread keeps to the loop's processor.
    pub fn keep(&self) -> nix::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.of_loop)?;
        sched_setaffinity(Pid::from_raw(0), &set)
    }

    /// Takes the receiving of a device to the others. In the namespace of the device, and in a thread that ends after it: it has another
    /// /sys from here on.
    pub fn steer(&self, device: &str) -> std::io::Result<()> {
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)?;
        fs::write(Path::new("/sys/class/net").join(device).join("queues/rx-0/rps_cpus"), self.mask())
    }

    /// The others, as sysfs wants them: words of 32 in hexadecimal, the last ones first.
    fn mask(&self) -> String {
        let words = self.others.iter().max().map_or(1, |last| last / 32 + 1);
        let word = |word: usize| {
            let own = self.others.iter().filter(|cpu| **cpu / 32 == word);
            format!("{:08x}", own.fold(0_u32, |mask, cpu| mask | 1 << (cpu % 32)))
        };
        (0..words).rev().map(word).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_loop_and_the_mask_names_the_others() {
        let free = || Some(UnixDatagram::unbound().unwrap());
        assert!(Processors::of(vec![3], |_| free()).is_none());
        for (usable, taken, of_loop, mask) in [
            (vec![0, 1], 9, 1, "00000001"),
            (vec![0, 1], 1, 0, "00000002"),
            (vec![0, 1, 2, 3], 3, 2, "0000000b"),
            (vec![0, 33, 40], 9, 40, "00000002,00000001"),
        ] {
            let claim = |cpu| if cpu == taken { None } else { free() };
            let processors = Processors::of(usable, claim).unwrap();
            assert_eq!((processors.of_loop, processors.mask().as_str()), (of_loop, mask));
        }
        assert!(Processors::of(vec![0, 1], |_| None).is_none(), "no processor is free");
    }

    #[test]
    fn loops_side_by_side_have_different_ones() {
        let name = format!("ranpace-test-{}", std::process::id());
        let Some(first) = Processors::share(&name) else { return };
        let second = Processors::share(&name).unwrap();
        assert_ne!(first.of_loop, second.of_loop);
        let of_first = first.of_loop;
        drop(first);
        assert_eq!(Processors::share(&name).unwrap().of_loop, of_first, "it is free again");
    }
}
