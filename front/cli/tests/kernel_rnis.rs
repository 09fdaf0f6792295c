//! Controls in the kernel, behind an emulated LTE cell, fed by an RNIS server that the cell reports to. Where rights are missing these
//! tests say so and end.
#![cfg(all(target_os = "linux", feature = "kernel", feature = "rnis"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use emulation::{folder_with, output, program, rights};

/// The cell of MELD's experiments: 0.8 % of blocks are lost for good.
const SCENARIO: &str = r#"
duration = "12s"

[[link]]
name = "wire"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "20ms"
duplex = true

[[cell]]
name = "cell"
host = "mast"
preset = "meld-oai"

[[user]]
name = "phone"

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

fn ranpace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.args(arguments);
    command
}

fn succeed(arguments: &[&str]) {
    let output = ranpace(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A program that ends with this, by Ctrl-C.
struct Running(Child);

impl Running {
    /// Ends it; what it said on standard error.
    fn end(mut self) -> String {
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGINT).unwrap();
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.0.wait().unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A loaded control, removed with this.
struct Unload(&'static str);

impl Drop for Unload {
    fn drop(&mut self) {
        let _ = ranpace(&["kernel", "unload", self.0]).output();
    }
}

/// A server in this network namespace that reads the cell, and its address.
fn serve(folder: &Path) -> (Running, String) {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[[source]]\nlines = \"unix:{0}/cell.sock\"\n[callbacks]\nallow = [\"127.0.0.0/8\"]\n\
         [feed.datagrams]\nlisten = \"127.0.0.1:0\"\n[feed.table]\npath = \"{0}/table\"\n",
        folder.display()
    );
    let file = folder.join("rnis.toml");
    fs::write(&file, config).unwrap();
    let mut command = ranpace(&["rnis", "serve"]);
    let mut child = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening at http://") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let address = line.split_once("listening at ").unwrap().1.split("/rni").next().unwrap().to_owned();
    // It must not wait for somebody who reads what it says.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (Running(child), address)
}

/// Goodput of the flow under the control, Mbit/s; the cell reports to the server of this folder.
fn goodput(folder: &Path, control: &str) -> f64 {
    let source = format!("unix:{}/cell.sock", folder.display());
    let (code, out, error) = output(folder, &["scenario.toml", "--json", "--cc", control, "--rnis", &source]);
    // An emulation that is invalid, because the machine was too slow, has its flow all the same.
    let parsed: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("exit {code:?}: {error}"));
    parsed["summary"]["flows"][0]["goodput_bit_s"].as_f64().unwrap() * 1e-6
}

/// Hints, and how often connections took one, of what `kernel feed` says at its end.
fn told(said: &str) -> (u64, u64) {
    let line = said.lines().find(|line| line.contains(" hints, taken ")).unwrap_or_else(|| panic!("{said}"));
    let numbers = line.split(|letter: char| !letter.is_ascii_digit()).filter(|text| !text.is_empty());
    let numbers: Vec<u64> = numbers.map(|text| text.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

/// The most that an unfed CUBIC can have in that cell, Mbit/s. RFC 9438, section 4.3: where its window is small, CUBIC has Reno's mean,
/// sqrt(3 / 2p) segments. One block in 125 is lost, and with it a segment of 1448 bytes at least; the RTT is at least 45 ms, of the wire's
/// 40, and 4 from the grant of an acknowledgement to its transmission (TS 36.213, 8.0), and a TTI.
fn most_unfed() -> f64 {
    (1.5_f64 / 0.008).sqrt() * 1_448.0 * 8.0 / 0.045 * 1e-6
}

#[test]
fn a_flow_of_meld_is_fed_by_a_server_and_by_its_table() {
    const NAME: &str = "cubic_meld_me";
    let Some(_turn) = rights() else { return };
    let folder = folder_with(SCENARIO);
    let folder = folder.path();
    // On a busy machine a report may come late.
    succeed(&["kernel", "load", "cubic+meld-me:max_age=1s"]);
    let _unload = Unload(NAME);
    let plain = goodput(folder, NAME);
    let (server, address) = serve(folder);
    for from in [format!("rnis:{address}"), format!("table:{}/table", folder.display())] {
        let mut feed = ranpace(&["kernel", "feed", NAME, "--from", &from]);
        let feed = Running(feed.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let fed = goodput(folder, NAME);
        let said = feed.end();
        let (hints, taken) = told(&said);
        assert!(hints > 100 && taken == hints, "{from}: {said}");
        // Losses of the radio are hidden from CUBIC.
        assert!(plain < most_unfed() && fed > most_unfed(), "{from}: {fed} beside {plain} Mbit/s: {said}");
    }
    drop(server);
}

/// The controls that go by what a device knows: here its server of radio information runs on the device, too.
#[test]
fn controls_of_a_device_are_fed_by_a_server_and_by_its_table() {
    let Some(_turn) = rights() else { return };
    if program(&["iperf3"]).is_none() {
        return;
    }
    let ranpace = env!("CARGO_BIN_EXE_ranpace");
    for (control, from, is_upload) in [
        ("dcic", "rnis:http://127.0.0.1:8012", false),
        ("cqic-s", "table:table", false),
        ("sigma", "rnis:http://127.0.0.1:8012", true),
        ("sigma", "table:table", true),
    ] {
        let folder = folder_with(SCENARIO);
        let config = "[[source]]\nlines = \"unix:cell.sock\"\n[callbacks]\nallow = [\"127.0.0.0/8\"]\n\
                      [feed.datagrams]\nlisten = \"127.0.0.1:0\"\n[feed.table]\npath = \"table\"\n";
        fs::write(folder.path().join("rnis.toml"), config).unwrap();
        let serve = format!("phone={ranpace} rnis serve rnis.toml 2>served");
        let exec = format!("{ranpace} kernel exec --cc {control}");
        let (server, reverse) = if is_upload { ("", "") } else { (&*format!("{exec} --"), " -R") };
        let server = format!("server={server} iperf3 -s >/dev/null 2>&1");
        let script = format!(
            "while ! [ -e table ]; do sleep 0.1; done; sleep 2; {exec} --feed {from} -- iperf3 -c server{reverse} -t 6 >/dev/null 2>said; \
             cat served >&2"
        );
        let arguments = ["scenario.toml", "--json", "--for", "60s", "--rnis", "unix:cell.sock"];
        let programs = ["--also", &serve, "--also", &server, "--", "sh", "-c", &script];
        let (code, out, error) = output(folder.path(), &[&arguments[..], &programs].concat());
        let said = fs::read_to_string(folder.path().join("said"));
        let said =
            said.unwrap_or_else(|missing| panic!("{control}, {from}: exit {code:?}, {missing}: {error}"));
        let (hints, taken) = told(&said);
        assert!(hints > 1_000 && taken > 1_000, "{control}, {from}: {said}{error}");
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{error}"));
        let flows = parsed["summary"]["flows"].as_array().unwrap();
        let flow = flows.iter().max_by_key(|flow| flow["delivered_bytes"].as_u64()).unwrap();
        let name = flow["cc"].as_str().unwrap();
        assert!(name.starts_with(&format!("kernel {}", control.replace('-', "_"))), "{control}: {flow}");
    }
}
