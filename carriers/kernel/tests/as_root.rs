//! The programs inside the running kernel. They need root and BTF; whoever has neither is told that they are skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use ranpace_kernel::{Cgroup, Control, Loaded};
use socket2::SockRef;

/// Whether programs can be loaded; if not, the test is skipped, or fails where skipping is not allowed.
fn can_load() -> bool {
    let can = nix::unistd::geteuid().is_root() && std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    if !can {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root and BTF");
        eprintln!("skipped: needs root and a kernel with BTF");
    }
    can
}

/// Sends so many bytes to itself, and tells how many came; `before` and `during` see the sending socket.
fn send(bytes: usize, before: impl Fn(&TcpStream), during: impl Fn(&TcpStream)) -> usize {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = 0;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return received,
                n => received += n,
            }
        }
    });
    let mut stream = TcpStream::connect(address).unwrap();
    before(&stream);
    stream.write_all(&vec![7; bytes / 2]).unwrap();
    during(&stream);
    stream.write_all(&vec![7; bytes - bytes / 2]).unwrap();
    drop(stream);
    receiver.join().unwrap()
}

fn control_of(stream: &TcpStream) -> String {
    let name = SockRef::from(stream).tcp_congestion().unwrap();
    String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned()
}

#[test]
fn every_control_loads_carries_bytes_and_shows_its_sockets() {
    if !can_load() {
        return;
    }
    for kind in ranpace_kernel::KINDS {
        let name = format!("t{}", std::process::id());
        let loaded = Loaded::new(&Control::parse(kind.name).unwrap(), &name).unwrap();
        let received = send(
            2_000_000,
            |stream| SockRef::from(stream).set_tcp_congestion(name.as_bytes()).unwrap(),
            |stream| {
                assert_eq!(control_of(stream), name);
                let local = stream.local_addr().unwrap().to_string();
                let sockets = loaded.sockets().unwrap();
                let socket = sockets.iter().find(|socket| socket.local == local);
                let socket = socket.unwrap_or_else(|| panic!("{local} is not in {sockets:?}"));
                assert!(socket.figure("cwnd").is_some_and(|cwnd| cwnd >= 1.0), "{socket:?}");
            },
        );
        assert_eq!(received, 2_000_000, "{}", kind.name);
        drop(loaded);
        let refused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let refused = SockRef::from(&refused).set_tcp_congestion(name.as_bytes());
        assert!(refused.is_err(), "{} is still there after it was dropped", kind.name);
    }
}

#[test]
fn a_pinned_control_outlives_its_loader_takes_settings_and_goes() {
    if !can_load() {
        return;
    }
    let name = format!("p{}", std::process::id());
    let mut loaded = Loaded::new(&Control::parse("c2tcp:target=50ms").unwrap(), &name).unwrap();
    loaded.pin().unwrap();
    let again = Loaded::new(&Control::parse("c2tcp").unwrap(), &name).err().expect("the name is taken");
    assert!(again.to_string().contains("is loaded already"), "{again}");
    drop(loaded);
    let text =
        || ranpace_kernel::list().unwrap().into_iter().find(|pinned| pinned.name == name).unwrap().text;
    assert_eq!(text().as_deref(), Some("c2tcp:target=50ms"));
    assert_eq!(ranpace_kernel::set(&name, "target=80ms:tuner=off").unwrap(), "c2tcp:target=80ms:tuner=off");
    assert_eq!(text().as_deref(), Some("c2tcp:target=80ms:tuner=off"));
    let wrong = ranpace_kernel::set(&name, "target=80").unwrap_err().to_string();
    assert!(wrong.contains("a time such as 50ms"), "{wrong}");
    let received = send(
        200_000,
        |stream| SockRef::from(stream).set_tcp_congestion(name.as_bytes()).unwrap(),
        |stream| {
            let local = stream.local_addr().unwrap().to_string();
            assert!(ranpace_kernel::sockets(&name).unwrap().iter().any(|socket| socket.local == local));
            // Its connections keep it.
            ranpace_kernel::unload(&name).unwrap();
            assert_eq!(control_of(stream), name);
        },
    );
    assert_eq!(received, 200_000);
    let gone = ranpace_kernel::unload(&name).unwrap_err().to_string();
    assert!(gone.contains("no control"), "{gone}");
}

#[test]
fn sockets_of_a_control_group_take_it_without_knowing() {
    if !can_load() {
        return;
    }
    let name = format!("g{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("c2tcp").unwrap(), &name).unwrap();
    let cgroup = Cgroup::new().unwrap();
    let path = cgroup.path().to_owned();
    for (to, taken) in
        [(None, true), (Some("127.0.0.0/8"), true), (Some("192.0.2.0/24"), false), (Some("::/0"), false)]
    {
        let link = loaded.attach(cgroup.path(), to.map(|to: &str| to.parse().unwrap())).unwrap();
        cgroup.enter().unwrap();
        let received =
            send(100_000, |_| {}, |stream| assert_eq!(control_of(stream) == name, taken, "{to:?}"));
        cgroup.leave().unwrap();
        assert_eq!(received, 100_000);
        drop(link);
    }
    drop(cgroup);
    assert!(!path.exists(), "the control group is still there");
}
