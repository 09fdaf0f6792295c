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
    use super::kernel;

    use super::emulation::{folder_with, output, program, rights};

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

    /// What a download had.
    #[derive(Debug)]
    struct Download {
        /// Mbit/s.
        goodput: f64,
        /// 95th percentile of the RTT, seconds.
        rtt: f64,
        /// The kernel's name of its control.
        control: String,
    }

    /// Six seconds of iperf3 from the server to the phone; `server` and `phone` are put before the program of each, `also` is run
    /// behind the server meanwhile.
    fn download(server: &str, phone: &str, also: &str) -> Download {
        let folder = folder_with(SCENARIO);
        let ranpace = env!("CARGO_BIN_EXE_ranpace");
        let with = |text: &str| text.replace("ranpace", ranpace);
        let serve = format!("server={} iperf3 -s >/dev/null 2>&1", with(server));
        let script = format!("sleep 3; {} iperf3 -c server -R -t 6 -C cubic >/dev/null", with(phone))
            .replace(
                // iperf3 asks the sender for its control by -C, which would win.
                if server.is_empty() { "\0" } else { " -C cubic" },
                "",
            );
        let also = format!("server={also}");
        let (code, out, error) = output(
            folder.path(),
            &[
                "scenario.toml",
                "--json",
                "--for",
                "30s",
                "--also",
                &serve,
                "--also",
                &also,
                "--",
                "sh",
                "-c",
                &script,
            ],
        );
        // An invalid emulation (the machine was too slow) still has its flows.
        let parsed: serde_json::Value =
            serde_json::from_str(&out).unwrap_or_else(|_| panic!("exit {code:?}: {error}"));
        let flows = parsed["summary"]["flows"].as_array().unwrap();
        let flow = flows
            .iter()
            .filter(|flow| flow["name"].as_str().unwrap().starts_with("server:5201"))
            .max_by_key(|flow| flow["delivered_bytes"].as_u64())
            .unwrap_or_else(|| panic!("no connection: {error}"));
        Download {
            goodput: flow["delivered_bytes"].as_f64().unwrap() * 8e-6 / 6.0,
            rtt: flow["rtt"]["p95_s"].as_f64().unwrap(),
            control: flow["cc"].as_str().unwrap().to_owned(),
        }
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
        let plain = download("", "", ":");
        assert_eq!(plain.control, "kernel cubic");
        for control in ["c2tcp:target=50ms", "cdbev2", "cdbe"] {
            let exec = format!("ranpace kernel exec --cc {control} --");
            let here = download(&exec, &exec, ":");
            let name = control.split(':').next().unwrap();
            assert!(here.control.starts_with(&format!("kernel {name}")), "{here:?}");
            assert!(here.rtt < plain.rtt / 3.0, "{here:?} beside {plain:?}");
            assert!(here.goodput > plain.goodput / 2.0, "{here:?} beside {plain:?}");
        }
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
        // One end alone; from the beginning; and from the middle of the download on.
        for (phone, also) in [("", ":"), (exec, strip), (exec, &format!("sleep 6; {strip}")[..])] {
            let here = download(exec, phone, also);
            assert!(here.goodput > 15.0, "{phone:?}, {also:?}: {here:?}");
        }
    }
}
