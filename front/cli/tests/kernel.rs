//! `ranpace kernel`: controls inside the running kernel, for programs that know nothing of them. Where rights are missing these tests
//! say so and end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

#[cfg(feature = "kernel")]
mod emulation;

use std::process::Command;

fn kernel(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ranpace")).arg("kernel").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A build without clang has the commands, and says what it lacks.
#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_them_says_what_was_missing() {
    let (code, _, error) = kernel(&["exec", "--cc", "c2tcp", "--", "true"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("clang") && error.contains("libelf"), "{error}");
}

#[cfg(feature = "kernel")]
mod built {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::emulation::{
        NOBODY, folder_of_nobody, folder_with, output, program, rights, side_by_side, until,
    };
    use super::kernel;

    /// 20 Mbit/s, 10 ms each way, 400 ms of buffer.
    const SCENARIO: &str = r#"
duration = "20s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "10ms"
queue = { kind = "droptail", limit = "1MB" }
back = { rate = "20Mbit/s" }

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

    /// The figures of a transfer.
    #[derive(Debug)]
    struct Figures {
        /// Mbit/s.
        goodput: f64,
        /// 95th percentile of the RTT, seconds.
        rtt: f64,
        /// The kernel's name of its control.
        control: String,
    }

    /// The direction of a transfer.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Way {
        Down,
        Up,
    }

    /// A transfer by iperf3 over an emulated network. Radio information goes to the named pipe `hints`.
    #[derive(Clone, Copy)]
    struct Transfer<'a> {
        scenario: &'a str,
        /// What is put before the program of each end.
        server: &'a str,
        phone: &'a str,
        /// Are run behind the server before it begins, and meanwhile.
        before: &'a str,
        also: &'a str,
        seconds: u32,
        way: Way,
    }

    /// Six seconds of download over [`SCENARIO`], without any control of ours.
    const DOWNLOAD: Transfer<'static> = Transfer {
        scenario: SCENARIO,
        server: "",
        phone: "",
        before: ":",
        also: ":",
        seconds: 6,
        way: Way::Down,
    };

    /// Behind the server: ends when iperf3 listens there.
    const LISTENS: &str = "until ss -Hltn 'sport = :5201' | grep -q .; do sleep 0.05; done; touch ready";
    /// Waits for the end of [`LISTENS`].
    const READY: &str = "while [ ! -e ready ]; do sleep 0.05; done";

    impl Transfer<'_> {
        fn play(self) -> Figures {
            let (reverse, sender, prefix) = match self.way {
                Way::Down => (" -R", "server:5201", self.server),
                Way::Up => ("", "phone:", self.phone),
            };
            let folder = folder_with(self.scenario);
            for pipe in ["hints", "relay"] {
                nix::unistd::mkfifo(&folder.path().join(pipe), nix::sys::stat::Mode::S_IRWXU).unwrap();
            }
            let with = |text: &str| text.replace("ranpace", env!("CARGO_BIN_EXE_ranpace"));
            let serve = format!("server={} iperf3 -s >/dev/null 2>&1", with(self.server));
            // What iperf3 asks for would win over the control of `exec`.
            let control = if prefix.is_empty() { " -C cubic" } else { "" };
            let script = format!(
                "{READY}; {} iperf3 -c server{reverse} -t {}{control} >/dev/null",
                with(self.phone),
                self.seconds
            );
            let before = format!("server={}; {LISTENS}", self.before);
            let also = format!("server={}", self.also);
            let options = ["scenario.toml", "--json", "--for", "60s", "--hints", "hints"];
            let programs = ["--also", &serve, "--also", &before, "--also", &also, "--", "sh", "-c", &script];
            let (code, out, error) = output(folder.path(), &[&options[..], &programs].concat());
            // An invalid emulation (the machine was too slow) still has its flows.
            let parsed: serde_json::Value =
                serde_json::from_str(&out).unwrap_or_else(|_| panic!("exit {code:?}: {error}"));
            let flows = parsed["summary"]["flows"].as_array().unwrap();
            let flow = flows
                .iter()
                .filter(|flow| flow["name"].as_str().unwrap().starts_with(sender))
                .max_by_key(|flow| flow["delivered_bytes"].as_u64())
                .unwrap_or_else(|| panic!("no connection: {error}"));
            Figures {
                goodput: flow["delivered_bytes"].as_f64().unwrap() * 8e-6 / f64::from(self.seconds),
                rtt: flow["rtt"]["p95_s"].as_f64().unwrap(),
                control: flow["cc"].as_str().unwrap().to_owned(),
            }
        }
    }

    /// Plays these side by side, two at a time: each is in namespaces of its own and takes a part of one processor. One that takes more,
    /// for its cell, is played alone.
    fn play<const N: usize>(transfers: [Transfer<'_>; N]) -> [Figures; N] {
        let width =
            if transfers.iter().any(|transfer| transfer.scenario.contains("[[cell]]")) { 1 } else { 2 };
        side_by_side(width, &transfers, |transfer| transfer.play()).try_into().unwrap()
    }

    /// The right to load programs and make emulations, and iperf3.
    fn ready() -> Option<std::sync::MutexGuard<'static, ()>> {
        let turn = rights()?;
        program(&["iperf3"])?;
        Some(turn)
    }

    #[test]
    fn wrong_words_are_refused_with_what_would_be_right() {
        for (arguments, expected) in [
            (&["exec", "--cc", "bbr1", "--", "true"][..], "the kernel has no such control; there are: c2tcp"),
            (&["exec", "--cc", "c2tcp:target=50", "--", "true"], "a time such as 50ms"),
            (&["exec", "--cc", "c2tcp:deaf=1s", "--", "true"], "option deaf is not in the kernel"),
            (&["exec", "--cc", "cdbe:report=v1", "--", "true"], "option report is not in the kernel"),
            (&["exec", "--cc", "c2tcp", "--to", "home", "--", "true"], "is not a prefix"),
            (&["load", "c2tcp", "--name", "a b"], "cannot be the name of a control"),
            (&["unload", "none_such"], "no control \"none_such\""),
            (&["exec", "--cc", "c2tcp"], "required"),
            (
                &["exec", "--cc", "c2tcp", "--feed", "/dev/null", "--user", "phone", "--", "true"],
                "takes no radio information",
            ),
            (&["exec", "--cc", "dcic", "--feed", "/nowhere", "--user", "phone", "--", "true"], "mkfifo"),
            (&["exec", "--cc", "dcic", "--feed", "/nowhere", "--", "true"], "--user NAME"),
            (&["feed", "none_such", "--from", "-", "--user", "phone"], "no control \"none_such\""),
            (&["feed", "../x", "--from", "-", "--user", "phone=home"], "expected NAME or NAME=ADDRESS"),
        ] {
            let (code, _, error) = kernel(arguments);
            assert_eq!(code, Some(2), "{arguments:?}: {error}");
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn exec_ends_as_its_program_does() {
        let Some(_turn) = ready() else { return };
        for (script, expected) in [("exit 3", Some(3)), ("kill -9 $$", Some(137)), ("true", Some(0))] {
            let (code, _, error) = kernel(&["exec", "--cc", "c2tcp", "--", "sh", "-c", script]);
            assert_eq!(code, expected, "{script}: {error}");
        }
        let (code, _, error) = kernel(&["exec", "--cc", "c2tcp", "--", "/nowhere/program"]);
        assert!(code == Some(127) && error.contains("cannot start"), "{code:?}: {error}");
    }

    #[test]
    fn servers_under_exec_have_low_delay() {
        let Some(_turn) = ready() else { return };
        let controls = ["c2tcp:target=50ms", "cdbev2", "cdbe"];
        let [first, second, third] = controls.map(|control| format!("ranpace kernel exec --cc {control} --"));
        let under = |exec| Transfer { server: exec, phone: exec, ..DOWNLOAD };
        let [plain, ours @ ..] = play([DOWNLOAD, under(&first), under(&second), under(&third)]);
        assert_eq!(plain.control, "kernel cubic");
        for (control, here) in controls.iter().zip(&ours) {
            let name = control.split(':').next().unwrap();
            assert!(here.control.starts_with(&format!("kernel {name}")), "{here:?}");
            assert!(here.rtt < plain.rtt / 3.0, "{here:?} beside {plain:?}");
            assert!(here.goodput > plain.goodput / 2.0, "{here:?} beside {plain:?}");
        }
    }

    /// The first page's example holds: over the built-in recording with a queue of 1 MB, a third of CUBIC's delay at half its goodput.
    #[test]
    fn a_server_under_exec_behind_a_recording_has_a_third_of_cubics_delay_at_half_its_goodput() {
        let Some(_turn) = ready() else { return };
        let recorded = SCENARIO
            .replace("rate = \"20Mbit/s\"\ndelay = \"10ms\"", "trace = \"builtin:lte\"\ndelay = \"15ms\"")
            .replace("20s", "60s");
        assert!(recorded.contains("builtin:lte") && recorded.contains("1MB"));
        let plain = Transfer { scenario: &recorded, seconds: 20, ..DOWNLOAD };
        let server = "ranpace kernel exec --cc c2tcp:target=50ms --";
        let [plain, here] = play([plain, Transfer { server, ..plain }]);
        assert!(here.control.starts_with("kernel c2tcp"), "{here:?}");
        assert!(here.rtt < plain.rtt / 3.0, "{here:?} beside {plain:?}");
        assert!(here.goodput > plain.goodput / 2.0, "{here:?} beside {plain:?}");
    }

    /// One user of an LTE cell, 10 ms from the server.
    const CELL: &str = r#"
duration = "40s"

[[link]]
name = "core"
from = "server"
to = "mast"
rate = "unlimited"
delay = "10ms"
duplex = true

[[cell]]
name = "cell"
host = "mast"
preset = "lte"

[[user]]
name = "phone"
position = [300, 0]

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

    #[test]
    fn a_control_that_is_fed_goes_by_the_modem_and_is_cubic_when_the_feed_ends() {
        let Some(_turn) = ready() else { return };
        let exec = "ranpace kernel exec --cc dcic --";
        let fed = "ranpace kernel exec --cc dcic --feed hints --";
        // The feed ends two seconds after the download began: what comes later has CUBIC's queue, and loses nothing.
        let cut = "{ cat hints > relay & killed=$!; (sleep 2; kill $killed) & }; ranpace kernel exec --cc dcic --feed relay --";
        let plain = Transfer { scenario: CELL, seconds: 12, ..DOWNLOAD };
        let with = |phone| Transfer { server: exec, phone, ..plain };
        // Without any feed it is CUBIC from the beginning.
        let [plain, driven, left, unfed] = play([plain, with(fed), with(cut), with(exec)]);
        assert_eq!(plain.control, "kernel cubic");
        assert!(driven.control.starts_with("kernel dcic"), "{driven:?}");
        // The simulator's has a seventh of CUBIC's 95th percentile, and nine tenths of its goodput.
        assert!(driven.rtt < plain.rtt / 2.0, "{driven:?} beside {plain:?}");
        assert!(driven.goodput > plain.goodput * 0.7, "{driven:?} beside {plain:?}");
        assert!(left.rtt > driven.rtt * 1.5, "{left:?} beside {driven:?}");
        assert!(left.goodput > plain.goodput * 0.7, "{left:?} beside {plain:?}");
        assert!(unfed.goodput > plain.goodput * 0.8, "{unfed:?} beside {plain:?}");
    }

    #[test]
    fn meld_on_a_server_goes_by_the_edges_reports_on_its_user() {
        let Some(_turn) = ready() else { return };
        // Wires that lose one packet in two hundred, and the cell of MELD's testbed.
        let wires = CELL.replace("delay = \"10ms\"", "delay = \"20ms\"\nloss = 0.005");
        let cell =
            wires.replace("preset = \"lte\"", "preset = \"meld-oai\"") + "\n[rnis]\nperiod = \"8ms\"\n";
        let deaf = "ranpace kernel exec --cc cubic+meld-me --";
        let fed = "ranpace kernel exec --cc cubic+meld-me --feed hints --user phone --";
        let with = |server| Transfer { scenario: &cell, server, seconds: 12, ..DOWNLOAD };
        let [told, untold] = play([with(fed), with(deaf)]);
        assert!(told.control.starts_with("kernel cubic_meld_me"), "{told:?}");
        // The simulator's has three times CUBIC's.
        assert!(told.goodput > untold.goodput * 1.5, "{told:?} beside {untold:?}");
    }

    /// A cell behind wires of 20 ms, and a PEP between.
    const PEP: &str = r#"
duration = "40s"

[[link]]
name = "core"
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "20ms"
duplex = true

[[link]]
name = "hop"
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "1ms"
duplex = true

[[cell]]
host = "mast"
preset = "lte"

[[user]]
name = "phone"
position = [300, 0]

[[flow]]
from = "server"
to = "phone"
cc = "cubic"

[[pep]]
host = "edge"
"#;

    #[test]
    fn multi_domain_control_on_a_server_hears_a_pep() {
        let Some(_turn) = ready() else { return };
        let folder = folder_with(PEP);
        nix::unistd::mkfifo(&folder.path().join("hints"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let ranpace = env!("CARGO_BIN_EXE_ranpace");
        let serve =
            format!("server={ranpace} kernel exec --cc mdcc --feed hints -- iperf3 -s -1 >/dev/null 2>said");
        let script = format!(
            "{READY}; iperf3 -c server -R -t 12 >/dev/null; while ! grep -q hints said; do sleep 0.1; done"
        );
        let (code, out, error) = output(
            folder.path(),
            &[
                "scenario.toml",
                "--json",
                "--for",
                "60s",
                "--hints",
                "hints",
                "--also",
                &serve,
                "--also",
                &format!("server={LISTENS}"),
                "--",
                "sh",
                "-c",
                &script,
            ],
        );
        assert!(matches!(code, Some(0 | 99)), "{code:?}: {error}");
        let said = fs::read_to_string(folder.path().join("said")).unwrap();
        let taken = said.split(" hints, taken ").nth(1).and_then(|rest| rest.split(' ').next());
        let taken: u64 = taken.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
        assert!(taken > 100, "{said}");
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap();
        let flows = parsed["summary"]["flows"].as_array().unwrap();
        let flow = flows.iter().filter(|flow| flow["name"].as_str().unwrap().starts_with("server:5201"));
        let flow = flow.max_by_key(|flow| flow["delivered_bytes"].as_u64()).unwrap();
        assert!(flow["cc"].as_str().unwrap().starts_with("kernel mdcc"), "{flow}");
        // The cell has some 48 Mbit/s for one user at this place.
        let goodput = flow["delivered_bytes"].as_f64().unwrap() * 8e-6 / 12.0;
        assert!(goodput > 20.0, "{goodput} Mbit/s: {flow}");
    }

    #[test]
    fn sigma_on_a_device_goes_by_its_modem() {
        let Some(_turn) = ready() else { return };
        let cell = CELL.to_owned() + "\n[modem]\n";
        let plain = Transfer { scenario: &cell, seconds: 12, way: Way::Up, ..DOWNLOAD };
        let phone = "ranpace kernel exec --cc sigma --feed hints --";
        let [plain, driven] = play([plain, Transfer { phone, ..plain }]);
        assert!(driven.control.starts_with("kernel sigma"), "{driven:?}");
        // The simulator's has a fifth of CUBIC's 95th percentile, and 0.62 of its goodput.
        assert!(driven.rtt < plain.rtt / 1.5, "{driven:?} beside {plain:?}");
        assert!(driven.goodput > plain.goodput * 0.4, "{driven:?} beside {plain:?}");
    }

    #[test]
    fn feed_tells_what_became_of_lines_also_of_hostile_ones() {
        let Some(_turn) = ready() else { return };
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let name = format!("f{}", std::process::id());
        assert_eq!(kernel(&["load", "dcic", "--name", &name]).0, Some(0));
        let mut child = Command::new(env!("CARGO_BIN_EXE_ranpace"))
            .args(["kernel", "feed", &name, "--user", "phone", "--from"])
            .arg(&pipe)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let error = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut error = std::io::BufRead::lines(error).map(Result::unwrap);
        {
            let line = |user: &str, source: &str, prbs: &str| {
                format!(
                    "{{\"at_s\":1.0,\"measured_at_s\":1.0,\"source\":\"{source}\",\"user\":\"{user}\",\"cqi\":9,\"layers\":1,\
                     \"tbs_bits\":800,\"granted_prbs\":{prbs},\"cell_prbs\":25}}\n"
                )
            };
            // Opening waits until the command reads.
            let mut to = std::fs::File::options().write(true).open(&pipe).unwrap();
            let good = [line("phone", "dci", "3"), line("phone", "modem", "3")].concat();
            let others = [line("tablet", "dci", "3"), line("phone", "rnis", "3")].concat();
            let bad = [line("phone", "dci", "NaN"), line("phone", "dci", "26"), "x".repeat(100_000) + "\n"]
                .concat();
            // The last one is not complete, and nobody completes it.
            let text = [&good, &others, &bad, &good, &good[..30]].concat();
            std::io::Write::write_all(&mut to, text.as_bytes()).unwrap();
        }
        let mut said = |what: &str| {
            let found = error.find(|line| line.contains(what));
            found.unwrap_or_else(|| panic!("it never says {what:?}"))
        };
        assert!(said("line 5").contains("expected a line as"));
        assert!(said("line 6").contains("granted_prbs from 0 to 25, found 26"));
        assert!(said("line 7").contains("at most 4096 bytes"));
        said("nobody writes radio information any more");
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        assert_eq!(
            said("hints"),
            "4 hints, taken 0 times by connections; 2 were of others, 3 could not be read or were refused"
        );
        assert!(child.wait().unwrap().success());
        assert_eq!(kernel(&["unload", &name]).0, Some(0));
        let (code, _, error) = kernel(&["feed", &name, "--from", pipe.to_str().unwrap(), "--user", "phone"]);
        assert!(code == Some(2) && error.contains("no control"), "{error}");
    }

    #[test]
    fn without_its_option_a_connection_is_plain_cubic() {
        let Some(_turn) = ready() else { return };
        if program(&["nft"]).is_none() {
            return;
        }
        let exec = "ranpace kernel exec --cc cdbev2 --";
        let strip = "nft add table inet t && nft 'add chain inet t c { type filter hook prerouting priority -300; }' && \
            nft add rule inet t c reset tcp option 254";
        let from_the_middle = format!("{READY}; sleep 3; {strip}");
        let under = Transfer { server: exec, phone: exec, ..DOWNLOAD };
        let cases = [
            ("one end alone", Transfer { phone: "", ..under }),
            ("from the beginning", Transfer { before: strip, ..under }),
            ("from the middle of the download on", Transfer { also: &from_the_middle, ..under }),
        ];
        for ((case, _), here) in cases.iter().zip(play(cases.map(|(_, transfer)| transfer))) {
            assert!(here.goodput > 15.0, "{case}: {here:?}");
        }
    }

    /// The controls that the kernel has.
    fn available() -> String {
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
    }

    #[test]
    fn list_and_show_have_the_controls_of_exec_too() {
        let Some(_turn) = rights() else { return };
        let json = |arguments: &[&str]| -> serde_json::Value {
            let (code, out, error) = kernel(&[arguments, &["--json"]].concat());
            assert_eq!(code, Some(0), "{error}");
            serde_json::from_str(&out).unwrap()
        };
        // Options that no other test has: connections of an emulation that has ended may keep a removed control for minutes.
        let controls = ["c2tcp:target=51ms", "cdbev2:dd=off", "mdcc:silence=201ms"];
        for control in controls {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read word <&3");
            let mut exec = Command::new(env!("CARGO_BIN_EXE_ranpace"))
                .args(["kernel", "exec", "--cc", control, "--", "bash", "-c", &script])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            listener.set_nonblocking(true).unwrap();
            let mut accepted = None;
            until("it connects", || {
                accepted = listener.accept().ok();
                accepted.is_some()
            });
            let (stream, peer) = accepted.unwrap();
            let shown = json(&["show"]);
            let is_it = |socket: &&serde_json::Value| socket["local"] == peer.to_string();
            let socket = shown.as_array().unwrap().iter().find(is_it);
            let socket = socket.unwrap_or_else(|| panic!("{control}, {peer}: {shown}"));
            assert!(socket["figures"]["cwnd"].as_f64().unwrap() >= 1.0, "{socket}");
            let name = socket["control"].as_str().unwrap().to_owned();
            assert_eq!(json(&["show", &name]), serde_json::json!([socket]), "by its name, and no other");
            // A removed control of another test may have had the same name, and a connection that is about to end.
            let all = json(&["list"]);
            let is_it = |listed: &&serde_json::Value| listed["name"] == name && listed["control"] == control;
            let listed = all.as_array().unwrap().iter().find(is_it);
            let listed = listed.unwrap_or_else(|| panic!("{control}, {name}: {all}"));
            assert_eq!(listed["by"], "exec");
            assert_eq!(listed["cgroups"][0]["programs"], serde_json::json!(["bash"]), "{listed}");
            let group = fs::canonicalize(listed["cgroups"][0]["path"].as_str().unwrap()).unwrap();
            assert!(groups_of(exec.id()).contains(&group), "{listed}");
            if control.starts_with("mdcc") {
                // Removed, while a connection uses it still: it is shown, and said to be removed.
                exec.kill().unwrap();
                until("it is removed", || {
                    let listed = json(&["list"]);
                    let found = listed.as_array().unwrap().iter().find(|listed| listed["control"] == control);
                    found.is_some_and(|listed| listed["by"] == "removed")
                });
            }
            drop(stream);
            exec.wait().unwrap();
        }
        until("nothing is left of them", || {
            let listed = json(&["list"]);
            !listed
                .as_array()
                .unwrap()
                .iter()
                .any(|listed| controls.iter().any(|own| listed["control"] == *own))
        });
    }

    #[test]
    fn flows_go_on_when_exec_is_killed_and_nothing_stays_behind() {
        let Some(_turn) = rights() else { return };
        if program(&["iperf3"]).is_none() {
            return;
        }
        for control in ["c2tcp:target=50ms", "cdbev2"] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            // A program that sends until it is told to end; its connection has the control.
            let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read word <&3; exec cat /dev/zero >&3");
            let before = available();
            let mut exec = Command::new(env!("CARGO_BIN_EXE_ranpace"))
                .args(["kernel", "exec", "--cc", control, "--", "bash", "-c", &script])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let name = available().split_whitespace().find(|name| !before.contains(name)).unwrap().to_owned();
            let groups = groups_of(exec.id());
            stream.write_all(b"begin\n").unwrap();
            let mut buffer = vec![0; 1 << 20];
            stream.read_exact(&mut buffer).unwrap();
            exec.kill().unwrap();
            exec.wait().unwrap();
            until("the kernel has the control no more", || {
                !available().split_whitespace().any(|word| word == name)
            });
            for _ in 0..50 {
                stream.read_exact(&mut buffer).unwrap();
            }
            // The program gets SIGPIPE, and with it the last connection ends.
            drop(stream);
            until("the program has ended", || groups.iter().all(|group| is_empty(group)));
            assert!(groups.iter().all(|group| group.exists()), "{groups:?}");
            let (code, _, error) = kernel(&["exec", "--cc", "c2tcp", "--", "true"]);
            assert_eq!(code, Some(0), "{error}");
            assert!(!groups.iter().any(|group| group.exists()), "{groups:?} are left behind");
        }
    }

    /// The control groups of a process's children.
    fn groups_of(process: u32) -> Vec<std::path::PathBuf> {
        let mount = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mount.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
        let mount = Path::new(mount.split(' ').nth(4).unwrap()).to_owned();
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
        let group = |child: &str| {
            let text = fs::read_to_string(format!("/proc/{child}/cgroup")).unwrap();
            let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
            mount.join(path)
        };
        children.split_whitespace().map(group).collect()
    }

    fn is_empty(group: &Path) -> bool {
        fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| processes.trim().is_empty())
    }

    #[test]
    fn a_load_that_is_killed_leaves_nothing_that_the_next_one_minds() {
        let Some(_turn) = rights() else { return };
        let name = format!("k{}", std::process::id());
        let folder = Path::new("/sys/fs/bpf/ranpace").join(&name);
        let mut left = 0;
        for step in 0..20 {
            let mut load = Command::new(env!("CARGO_BIN_EXE_ranpace"))
                .args(["kernel", "load", "cdbe", "--name", &name])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // From the beginning, or from where it writes its files.
            if step % 2 == 0 {
                thread::sleep(Duration::from_millis(step * 4));
            } else {
                while !folder.exists() && load.try_wait().unwrap().is_none() {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_micros(step * 10));
            }
            // It may have ended.
            let _ = kill(Pid::from_raw(load.id().cast_signed()), Signal::SIGKILL);
            load.wait().unwrap();
            let (code, _, error) = kernel(&["list"]);
            assert_eq!(code, Some(0), "{error}");
            let is_loaded = available().split_whitespace().any(|word| word == name);
            if folder.exists() && !is_loaded {
                left += 1;
            }
            if is_loaded || step % 4 == 3 && folder.exists() {
                let (code, _, error) = kernel(&["unload", &name]);
                assert_eq!(code, Some(0), "{error}");
            }
            let (code, _, error) = kernel(&["load", "c2tcp", "--name", &name]);
            assert_eq!(code, Some(0), "step {step}: {error}");
            let (code, _, error) = kernel(&["unload", &name]);
            assert_eq!(code, Some(0), "{error}");
            assert!(!folder.exists());
        }
        println!("{left} of 20 left files");
    }

    #[test]
    fn without_rights_a_sentence_says_which_are_missing() {
        let Some(_turn) = rights() else { return };
        let folder = folder_of_nobody("");
        let name = format!("n{}", std::process::id());
        let (code, _, error) = kernel(&["load", "c2tcp", "--name", &name]);
        assert_eq!(code, Some(0), "{error}");
        for arguments in [
            &["exec", "--cc", "c2tcp", "--", "true"][..],
            &["exec", "--cc", "cdbev2", "--cgroup", "/"],
            &["load", "c2tcp"],
            &["list"],
            &["show", &name],
            &["set", &name, "target=1s"],
            &["unload", &name],
        ] {
            let output = Command::new(folder.path().join("ranpace"))
                .arg("kernel")
                .args(arguments)
                .uid(NOBODY)
                .gid(NOBODY)
                .current_dir("/")
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{arguments:?}");
            // One sentence, which names them.
            assert!(error.contains("needs CAP_BPF, CAP_PERFMON"), "{arguments:?}: {error}");
            assert_eq!(error.trim().lines().count(), 1, "{arguments:?}: {error}");
        }
        let (code, _, error) = kernel(&["unload", &name]);
        assert_eq!(code, Some(0), "{error}");
        // `check` says it for each thing.
        let output = Command::new(folder.path().join("ranpace"))
            .args(["kernel", "check"])
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && text.contains("CAP_BPF"), "{text}");
    }
}
