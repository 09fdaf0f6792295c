//! `ranpace emulate` as a user sees it. Where rights are missing these tests say so and end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use emulation::{
    CELL, Emulation, LINK, NOBODY, PATIENCE, command, content, folder_of_nobody, folder_with, hurry, output,
    output_of, program, rights, skip, transferred, v4, v6,
};

/// Sends datagrams from one host to another and back, until one was back within `goal` or patience is at an end; returns the
/// shortest time. One thread does both, so that it is not waited for: shortly before a datagram can be there, `asleep` after it
/// was sent, it begins to ask for it all the time.
fn shortest_echo(
    emulation: &Emulation,
    from: &str,
    to: (&str, IpAddr),
    asleep: Duration,
    goal: Duration,
) -> Duration {
    let any = if to.1.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // A socket stays in the namespace in which it was made.
    let server = emulation.behind(to.0, move || UdpSocket::bind(SocketAddr::new(to.1, 7_007)).unwrap());
    let client = emulation.behind(from, move || {
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(SocketAddr::new(to.1, 7_007)).unwrap();
        socket
    });
    let (server, client) = (server.join().unwrap(), client.join().unwrap());
    let measured = thread::spawn(move || {
        hurry();
        let (begun, mut shortest) = (Instant::now(), PATIENCE);
        for number in 0_u64.. {
            if begun.elapsed() >= PATIENCE / 2 || shortest <= goal {
                break;
            }
            let sent = Instant::now();
            client.send(&number.to_be_bytes()).unwrap();
            thread::sleep(asleep);
            // An answer that is not awaited is left over from an earlier round.
            let Some(back) = awaited(&server, number) else { continue };
            server.send_to(&number.to_be_bytes(), back).unwrap();
            thread::sleep(asleep);
            if awaited(&client, number).is_some() {
                shortest = shortest.min(sent.elapsed());
            }
            // A packet that a host sends within 100 us of a delivery counts from then; the next round is no answer to this one.
            thread::sleep(Duration::from_millis(1));
        }
        shortest
    });
    measured.join().unwrap()
}

/// Waits for the datagram of this number; returns where it comes from, or nothing after a second.
fn awaited(socket: &UdpSocket, number: u64) -> Option<SocketAddr> {
    let (begun, mut buffer) = (Instant::now(), [0; 100]);
    socket.set_nonblocking(true).unwrap();
    while begun.elapsed() < Duration::from_secs(1) {
        match socket.recv_from(&mut buffer) {
            Ok((8, from)) if buffer[..8] == number.to_be_bytes() => return Some(from),
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
        // Not to take a processor for long from everybody else.
        if begun.elapsed() > Duration::from_millis(3) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    None
}

#[test]
fn the_base_rtt_of_a_fixed_link_is_the_configured_one_within_a_fifth_of_a_millisecond() {
    let Some(_turn) = rights() else { return };
    let mut emulation = Emulation::start(LINK);
    let hurried = thread::spawn(hurry).join().unwrap();
    for address in [v4(0), v6(0)] {
        let (least, most) = (Duration::from_millis(40), Duration::from_micros(40_200));
        let asleep = Duration::from_millis(19);
        let shortest = shortest_echo(&emulation, "phone", ("server", address), asleep, most);
        assert!(shortest >= least, "{address}: {shortest:?}");
        if hurried {
            assert!(shortest <= most, "{address}: {shortest:?}");
        } else {
            skip("real-time priority, so that no time of the machine's other work is measured");
        }
    }
    let (status, summary, machine) = emulation.end();
    assert!(matches!(status, Some(0 | 99)), "{status:?}");
    assert_eq!(machine["valid"], status == Some(0));
    let may_ask = fs::File::options().write(true).open("/dev/cpu_dma_latency").is_ok();
    assert_eq!(machine["processors_awake"], may_ask);
    assert!(machine["packets"].as_u64().unwrap() > 0 && machine["timers"].as_u64().unwrap() > 0);
    let flows = summary["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2, "both topology: {flows:?}");
    assert_eq!((&flows[0]["name"], &flows[0]["cc"]), (&"server to phone".into(), &"kernel".into()));
}

/// A trace that repeats every second: half of it at 24 Mbit/s, half at 6.
fn trace() -> String {
    let fast = (1..=500).flat_map(|ms| [ms, ms]);
    let slow = (501..=1000).filter(|ms| ms % 2 == 0);
    fast.chain(slow).map(|ms| format!("{ms}\n")).collect()
}

#[test]
fn trace_in_real_time_delivers_its_rate() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(&LINK.replace("rate = \"100Mbit/s\"", "trace = \"./half.trace\""));
    fs::write(folder.path().join("half.trace"), trace()).unwrap();
    let mut emulation = Emulation::start_with(folder, ":", &[]);
    let seconds = 4;
    // More than any period takes, and as much as the queue holds at once.
    let sender = emulation.behind("server", move || {
        hurry();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let (begun, packet) = (Instant::now(), [0; 1472]);
        let mut sent = 0;
        while begun.elapsed() < Duration::from_secs(seconds + 1) {
            while sent < 600 + begun.elapsed().as_millis() * 2 {
                let _ = socket.send_to(&packet, (v4(1), 7_009));
                sent += 1;
            }
            thread::sleep(Duration::from_millis(5));
        }
    });
    let receiver = emulation.behind("phone", move || {
        hurry();
        let socket = UdpSocket::bind((v4(1), 7_009)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let (mut buffer, mut times) = ([0; 2000], Vec::new());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds + 1) {
            if socket.recv(&mut buffer).is_ok() {
                times.push(begun.elapsed());
            }
        }
        times
    });
    sender.join().unwrap();
    let times = receiver.join().unwrap();
    let (_, summary, _) = emulation.end();
    // An opportunity carries one of these packets, and any whole number of periods the same number of opportunities.
    let from = times[0] + Duration::from_millis(200);
    let within = |from: Duration, length: Duration| {
        times.iter().filter(|time| **time >= from && **time < from + length).count() as f64
    };
    let periods = within(from, Duration::from_secs(seconds - 1));
    let expected = 1250.0 * (seconds - 1) as f64;
    assert!((periods / expected - 1.0).abs() < 0.01, "{periods} packets instead of {expected}; {summary:?}");
    let windows =
        (0..20).map(|step| within(from + Duration::from_millis(50) * step, Duration::from_millis(500)));
    let (least, most) =
        windows.fold((f64::MAX, 0.0_f64), |(least, most), count| (least.min(count), most.max(count)));
    assert!((least / 250.0 - 1.0).abs() < 0.15, "{least} packets in the slow half, not 250");
    assert!((most / 1000.0 - 1.0).abs() < 0.06, "{most} packets in the fast half, not 1000");
}

#[test]
fn a_single_packet_has_the_delay_that_was_recorded_under_light_load() {
    let Some(_turn) = rights() else { return };
    let recorded = "trace = \"./heavy\"\nlight = \"./light\"\nlight_timer = \"20ms\"\ndelay = \"1ms\"";
    let scenario = LINK.replace("rate = \"100Mbit/s\"\ndelay = \"20ms\"", recorded);
    assert_ne!(scenario, LINK);
    let folder = folder_with(&scenario);
    // Under heavy load an opportunity comes in each millisecond, so that without the other recording an echo takes 4 ms at most.
    let heavy: String = (1..=100).map(|ms| format!("{ms}\n")).collect();
    fs::write(folder.path().join("heavy"), heavy).unwrap();
    fs::write(folder.path().join("light"), "0 30 0 1\n50 30 0 1\n100 30 0 1\n").unwrap();
    let mut emulation = Emulation::start_with(folder, ":", &[]);
    let (least, most) = (Duration::from_millis(62), Duration::from_millis(63));
    let shortest = shortest_echo(&emulation, "phone", ("server", v4(0)), Duration::from_millis(29), most);
    assert!(shortest >= least && shortest < most + Duration::from_millis(2), "{shortest:?}");
    let (status, ..) = emulation.end();
    assert!(matches!(status, Some(0 | 99)), "{status:?}");
}

#[test]
fn a_fast_fixed_link_does_not_wake_the_loop_for_each_packet() {
    let Some(_turn) = rights() else { return };
    let fast = LINK.replace("rate = \"100Mbit/s\"", "rate = \"500Mbit/s\"");
    assert_ne!(fast, LINK);
    let mut emulation = Emulation::start_with(folder_with(&fast), ":", &[]);
    let sent = content(100_000_000);
    assert!(transferred(&emulation, "server", ("phone", v4(1)), sent.clone()) == sent);
    let (_, _, machine) = emulation.end();
    let figure = |name: &str| machine[name].as_f64().unwrap();
    // 24 us apart, and acknowledgements between them.
    assert!(figure("packets") > 69_000.0, "{machine}");
    assert!(figure("wakeups") < 0.3 * figure("packets"), "{machine}");
    assert!(figure("polls") > 0.0, "{machine}");
    assert_eq!(figure("slack_s"), 312.5e-6);
}

#[test]
fn a_transfer_over_a_lossy_link_arrives_intact_both_ways_and_over_ipv6() {
    let Some(_turn) = rights() else { return };
    let lossy =
        LINK.replace("duplex = true", "duplex = true\nloss = { kind = \"random\", probability = 0.005 }");
    let mut emulation = Emulation::start_with(folder_with(&lossy), ":", &["--save-power"]);
    let sent = content(3_000_000);
    assert!(transferred(&emulation, "server", ("phone", v4(1)), sent.clone()) == sent, "down");
    assert!(transferred(&emulation, "phone", ("server", v4(0)), sent.clone()) == sent, "up");
    assert!(transferred(&emulation, "server", ("phone", v6(1)), sent.clone()) == sent, "over IPv6");
    let (_, summary, machine) = emulation.end();
    assert_eq!(machine["processors_awake"], false, "as it was asked for");
    for (link, least) in [(0, 6_000_000), (1, 3_000_000)] {
        let link = &summary["links"][link];
        assert!(link["departed_bytes"].as_u64().unwrap() > least, "{link:?}");
        assert!(link["lost_packets"].as_u64().unwrap() > 0, "{link:?}");
    }
}

#[test]
fn packets_to_cell_users_cross_the_radio() {
    let Some(_turn) = rights() else { return };
    let mut emulation = Emulation::start(CELL);
    for (user, address) in [("ue1", v4(0)), ("ue2", v6(0))] {
        let (asleep, goal) = (Duration::from_millis(10), Duration::from_millis(45));
        let shortest = shortest_echo(&emulation, user, ("server", address), asleep, goal);
        // 20 ms of wire, and 4 ms down (TS 36.213 clause 7 and 10.2: a block is decoded after 3 subframes) at the least.
        assert!(shortest > Duration::from_millis(24) && shortest < PATIENCE, "{user}: {shortest:?}");
    }
    let sent = content(500_000);
    assert!(transferred(&emulation, "server", ("ue1", v4(1)), sent.clone()) == sent);
    let (_, summary, machine) = emulation.end();
    assert!(machine["slots"].as_u64().unwrap() > 0);
    let users = summary["users"].as_array().unwrap();
    assert_eq!(users.len(), 2);
    assert!(users[0]["downlink"]["blocks"].as_u64().unwrap() > 10, "{users:?}");
}

#[test]
fn a_program_sees_the_names_and_the_device_of_its_host_and_its_exit_status_is_passed_on() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let say = "cat /etc/hosts /proc/net/dev; echo behind $RANPACE_HOST, number $PPID; exit 7";
    for (place, host) in [(1, None), (0, Some("server"))] {
        let mut arguments = vec!["scenario.toml"];
        arguments.extend(host.iter().flat_map(|host| ["--in", host]));
        arguments.extend(["--", "sh", "-c", say]);
        let (status, out, error) = output(folder.path(), &arguments);
        assert_eq!(status, Some(7), "{error}");
        assert!(out.contains("10.77.0.1\tserver") && out.contains("fd72:616e:7061:6365::2\tphone"), "{out}");
        assert!(out.contains("ran0:"), "{out}");
        let host = ["server", "phone"][place];
        assert!(out.contains(&format!("behind {host}, number 1\n")), "{out}");
        assert!(error.contains("results: "), "{error}");
    }
    // 99 where the machine is too busy to count.
    for (arguments, allowed) in [(&["--", "/nowhere/program"][..], [127, 127]), (&["--for", "1s"], [0, 99])] {
        let (code, _, error) = output(folder.path(), &[&["scenario.toml"], arguments].concat());
        assert!(code.is_some_and(|code| allowed.contains(&code)), "{arguments:?}: {code:?}, {error}");
    }
}

#[test]
fn unsupported_scenarios_are_refused_with_a_message() {
    let folder = folder_with(LINK);
    let here = folder.path();
    fs::write(here.join("small.toml"), format!("{LINK}mtu = \"127B\"\n")).unwrap();
    for (arguments, said) in [
        (&["small.toml"][..], "TCP in packets of 127B (mtu; at least 128 B)"),
        (&["nowhere.toml", "--", "true"], "cannot read the scenario"),
        (&["--", "true"], "SCENARIO"),
        (&["scenario.toml", "--also", "server", "--", "true"], "HOST=COMMAND"),
    ] {
        let (status, _, error) = output(here, arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    if let Some(_turn) = rights() {
        let (status, _, error) = output(here, &["scenario.toml", "--in", "moon", "--", "true"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("no host \"moon\"") && error.contains("server, phone"), "{error}");
    }
}

#[test]
fn repeated_and_parallel_emulations_each_keep_their_results() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let arguments = ["scenario.toml", "--hosts-only", "--for", "300ms"];
    let start =
        || command(folder.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let side_by_side = [start(), start(), start()];
    for mut child in side_by_side {
        assert!(matches!(child.wait().unwrap().code(), Some(0 | 99)));
    }
    let (status, _, error) = output(folder.path(), &arguments);
    assert!(matches!(status, Some(0 | 99)), "{error}");
    assert!(error.contains("results: results/scenario.emulated/4\n"), "{error}");
    for number in 1..=4 {
        let run = folder.path().join(format!("results/scenario.emulated/{number}"));
        for name in ["summary.json", "emulation.json", "report.html", "flows.parquet"] {
            assert!(run.join(name).exists(), "{number}: {name}");
        }
    }
    // One that never began leaves no folder.
    assert_eq!(output(folder.path(), &["scenario.toml", "--in", "moon", "--", "true"]).0, Some(2));
    assert!(!folder.path().join("results/scenario.emulated/5").exists());
}

#[test]
fn shell_reads_the_terminal_or_the_pipe() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let arguments = ["scenario.toml", "--shell", "phone"];
    let typed = |mut command: Command, text: &str| {
        command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait().unwrap().code()
    };
    let text = "echo $RANPACE_HOST > host; if tty > terminal; then exit 5; fi; exit 4\n";
    let said = || {
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        (read("host"), read("terminal"))
    };
    assert!(matches!(typed(command(folder.path(), &arguments), text), Some(4 | 99)));
    assert_eq!(said(), ("phone\n".to_owned(), "not a tty\n".to_owned()));
    // `script` runs a command with a terminal of its own.
    let Some(script) = program(&["script"]) else { return };
    let line = format!("{} emulate {}", env!("CARGO_BIN_EXE_ranpace"), arguments.join(" "));
    let mut with_terminal = Command::new(script);
    with_terminal.current_dir(folder.path()).args(["-qec", &line, "/dev/null"]);
    assert!(matches!(typed(with_terminal, text), Some(5 | 99)));
    let (host, terminal) = said();
    assert!(host == "phone\n" && terminal.starts_with("/dev/"), "{terminal}");
}

#[test]
fn unprivileged_user_gets_a_user_namespace_if_the_kernel_allows_it() {
    let Some(_turn) = rights() else { return };
    let is_for_all = |mode: u32| mode & 0o006 == 0o006;
    if !fs::metadata("/dev/net/tun").is_ok_and(|tun| is_for_all(tun.permissions().mode())) {
        return skip(
            "a /dev/net/tun that ordinary users may open, as udev makes it (chmod 0666 /dev/net/tun)",
        );
    }
    let folder = folder_of_nobody(LINK);
    let mut command = Command::new(folder.path().join("ranpace"));
    let say = "cat /etc/hosts; ls /run/netns /sys/class/net; exit 6";
    command.current_dir(folder.path()).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
    let (status, out, error) = output_of(command.args(["emulate", "scenario.toml", "--", "sh", "-c", say]));
    if error.contains("cannot make a user namespace") {
        assert_eq!(status, Some(1), "{error}");
        return skip("a kernel that allows unprivileged user namespaces");
    }
    assert!(matches!(status, Some(6 | 99)), "{status:?}: {error}");
    for word in ["10.77.0.1\tserver", "-phone\n", "ran0\n"] {
        assert!(out.contains(word), "{out}");
    }
    // Outside nobody sees it.
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let inside = out.lines().find(|line| line.ends_with("-phone")).unwrap();
    assert!(names.all(|name| name != inside), "{inside}");
}

#[test]
fn unprivileged_user_without_namespaces_gets_the_missing_right_named() {
    let Some(_turn) = rights() else { return };
    let folder = folder_of_nobody(LINK);
    // Nobody can make a user namespace who has another root than its mount namespace.
    let jail = "mkdir jail && mount --rbind / jail && exec chroot --userspec=65534:65534 jail \"$@\"";
    let mut command = Command::new("unshare");
    command.current_dir(folder.path()).args(["--mount", "sh", "-c", jail, "sh"]);
    command.arg(folder.path().join("ranpace")).arg("emulate").arg(folder.path().join("scenario.toml"));
    let (status, _, error) = output_of(command.args(["--", "true"]));
    assert_eq!(status, Some(1), "{error}");
    for word in ["cannot make a user namespace", "it needs root", "unprivileged user namespaces"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn missing_facilities_of_programs_are_reported_once() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    // Without a file there, nothing can be mounted over it.
    let bare = "mount -t tmpfs none /etc && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.current_dir(folder.path()).args(["--mount", "sh", "-c", bare, "sh"]);
    command.args([env!("CARGO_BIN_EXE_ranpace"), "emulate", "scenario.toml"]);
    command.args(["--also", "server=sleep 5", "--also", "phone=touch beside; sleep 5"]);
    let both = "while [ ! -e beside ]; do sleep 0.05; done; exit 3";
    let (status, _, error) = output_of(command.args(["--", "sh", "-c", both]));
    assert!(matches!(status, Some(3 | 99)), "{error}");
    let said = error.matches("note: programs do not know the hosts by their names").count();
    assert_eq!(said, 1, "{error}");
    assert!(error.contains("mounting /etc/hosts: ENOENT"), "{error}");
}
