//! A network namespace whose loopback loses packets.

use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};

/// Runs a program, which has to succeed.
pub fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// Does something in a network namespace of its own, whose loopback has packets of Ethernet's size and loses one in a hundred.
pub fn with_losses(what: impl FnOnce() + Send + 'static) {
    let missing = |program: &str| {
        let tried = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_err()
    };
    if !nix::unistd::geteuid().is_root() || ["ip", "nft"].into_iter().any(missing) {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root, ip and nft");
        eprintln!("skipped: needs root, ip and nft");
        return;
    }
    let done = thread::spawn(|| {
        // Of this thread and of what it starts.
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        run("ip", &["link", "set", "lo", "mtu", "1500", "gso_max_segs", "1", "up"]);
        run("nft", &["add table inet t; add chain inet t c { type filter hook input priority 0; }"]);
        run("nft", &["add rule inet t c tcp sport 7000 accept"]);
        run("nft", &["add rule inet t c tcp flags syn accept"]);
        run("nft", &["add rule inet t c numgen random mod 100 == 0 drop"]);
        what();
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}
