//! Which processors do what: one moves the packets, the others do the receiving of the hosts' kernels.
//!
//! A packet that is written to a TUN device goes through the receiver's TCP there and then. That wakes the program that reads, which
//! takes the socket's lock on another processor while the next packet is being received on this one: on a virtual machine, where a
//! processor that waits for a lock is halted, the loop was seen to wait 30 us for each of the first packets of a slot. So the loop keeps to one
//! processor, and receive packet steering (Linux, Documentation/networking/scaling.rst) takes the receiving to the
//! others, where the programs are.

use std::fs::{self, File};
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
    /// Held as long as somebody uses this.
    _lock: Arc<File>,
}

impl Processors {
    /// Of those that the calling thread may use; `None` if there is but one, or nobody knows. The loops of emulations that run side by
    /// side have different ones: that whose file in `folder` can be locked. If there are more emulations than processors, `None`: a
    /// loop that kept to the processor of another would wait for it, and those that go where there is room seldom do.
    pub fn share(folder: &Path) -> Option<Self> {
        let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let usable = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
        Self::of(usable, |cpu| {
            let lock = File::create(folder.join(format!("processor-{cpu}"))).ok()?;
            lock.try_lock().ok().map(|()| lock)
        })
    }

    fn of(mut usable: Vec<usize>, lock: impl Fn(usize) -> Option<File>) -> Option<Self> {
        if usable.len() < 2 {
            return None;
        }
        // The last ones first: what has a processor of its own has mostly the first.
        let (place, lock) = (0..usable.len()).rev().find_map(|place| Some((place, lock(usable[place])?)))?;
        let of_loop = usable.remove(place);
        Some(Self { of_loop, others: usable, _lock: Arc::new(lock) })
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
        let file = || Some(tempfile::tempfile().unwrap());
        assert!(Processors::of(vec![3], |_| file()).is_none());
        for (usable, taken, of_loop, mask) in [
            (vec![0, 1], 9, 1, "00000001"),
            (vec![0, 1], 1, 0, "00000002"),
            (vec![0, 1, 2, 3], 3, 2, "0000000b"),
            (vec![0, 33, 40], 9, 40, "00000002,00000001"),
        ] {
            let lock = |cpu| if cpu == taken { None } else { file() };
            let processors = Processors::of(usable, lock).unwrap();
            assert_eq!((processors.of_loop, processors.mask().as_str()), (of_loop, mask));
        }
        assert!(Processors::of(vec![0, 1], |_| None).is_none(), "no processor is free");
    }

    #[test]
    fn loops_side_by_side_have_different_ones() {
        let folder = tempfile::tempdir().unwrap();
        let Some(first) = Processors::share(folder.path()) else { return };
        let second = Processors::share(folder.path()).unwrap();
        assert_ne!(first.of_loop, second.of_loop);
        let of_first = first.of_loop;
        drop(first);
        assert_eq!(Processors::share(folder.path()).unwrap().of_loop, of_first, "it is free again");
    }
}
