//! What is played: fixed links, recorded ones, cells; loss, reordering, timeouts, applications that pause. `CONTROL` stands for
//! the algorithm.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use ranpace_link::Trace;
use ranpace_scenario::TraceSource;

/// A scenario to be played.
#[derive(Clone, Debug)]
pub struct Played {
    pub name: String,
    pub text: String,
}

/// The folder of recorded links, where there is one.
fn folder() -> Option<PathBuf> {
    std::env::var_os("RANPACE_TRACES").map(PathBuf::from)
}

/// Recorded links by name, and `outages`: 60 Mbit/s with pauses of 0.4 and 2.5 s, which is timeouts.
pub struct Files;

impl TraceSource for Files {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        let millis: Vec<u64> = if name == "outages" {
            let open = |ms: &u64| !(3_000..3_400).contains(ms) && !(6_000..8_500).contains(ms);
            (1..=10_000).filter(open).flat_map(|ms| [ms; 5]).collect()
        } else {
            let path = folder().ok_or("no folder of traces")?.join(name);
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let mut text = String::new();
            if name.ends_with(".gz") {
                MultiGzDecoder::new(bytes.as_slice())
                    .read_to_string(&mut text)
                    .map_err(|error| error.to_string())?;
            } else {
                text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
            }
            text.split_whitespace()
                .map(|word| word.parse().map_err(|_| format!("{name}: {word}")))
                .collect::<Result<_, _>>()?
        };
        Trace::from_millis(millis).map(Arc::new).map_err(|error| error.to_string())
    }
}

/// A link down and one up; further keys of the first, and of the flow.
fn link(
    name: &str,
    seconds: u32,
    capacity: &str,
    rtt_ms: u32,
    buffer: &str,
    down: &str,
    flow: &str,
) -> Played {
    let half = f64::from(rtt_ms) / 2.0;
    let text = format!(
        r#"
duration = "{seconds}s"
[[link]]
name = "down"
from = "a"
to = "b"
{capacity}
delay = "{half}ms"
queue = {{ kind = "droptail", limit = "{buffer}" }}
{down}
[[link]]
name = "up"
from = "b"
to = "a"
rate = "unlimited"
delay = "{half}ms"
[[flow]]
from = "a"
to = "b"
cc = "CONTROL"
receive_buffer_max = "64MB"
{flow}
"#
    );
    Played { name: name.to_owned(), text }
}

fn cell(name: &str, preset: &str, seconds: u32, core: &str, more: &str) -> Played {
    let text = format!(
        r#"
duration = "{seconds}s"
[[link]]
name = "core"
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "11ms"
{core}
[[link]]
from = "mast"
to = "server"
rate = "10Gbit/s"
delay = "11ms"
[[cell]]
host = "mast"
preset = "{preset}"
[[user]]
name = "phone"
[[flow]]
from = "server"
to = "phone"
cc = "CONTROL"
{more}
"#
    );
    Played { name: name.to_owned(), text }
}

/// Recorded links; none without `RANPACE_TRACES`.
fn traces() -> Vec<Played> {
    let Some(folder) = folder() else { return Vec::new() };
    [
        "mahimahi/ATT-LTE-driving-2016.down",
        "mahimahi/TMobile-LTE-driving.down.gz",
        "mahimahi/Verizon-LTE-short.down.gz",
    ]
    .into_iter()
    .filter(|name| folder.join(name).exists())
    .map(|name| link(name, 60, &format!("trace = \"{name}\""), 40, "2MB", "", ""))
    .collect()
}

/// Everything: above a million acknowledgements for a control that fills its links.
pub fn all() -> Vec<Played> {
    let rate = |rate: &str| format!("rate = \"{rate}\"");
    let another = "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"CONTROL\"\nstart = \"3s\"\n\
                   [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"cubic\"\nstart = \"6s\"\nstop = \"12s\"";
    let web = "workload = { kind = \"web\", page = \"3MB\", interval = \"700ms\" }";
    let paced = "workload = { kind = \"paced\", rate = \"30Mbit/s\", interval = \"17ms\" }";
    // Keeps the user scheduled while the way to the other flow's sender is interrupted.
    let neighbour = "[[link]]\nfrom = \"other\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"5ms\"\nduplex = true\n\
                     [[flow]]\nfrom = \"other\"\nto = \"phone\"\ncc = \"cubic\"\nworkload = { kind = \"paced\", rate = \"8Mbit/s\", interval = \"5ms\" }";
    let reordering = "reorder = { probability = 0.01, delay = \"3ms\" }\njitter = \"1ms\"";
    let bursts = "loss = { kind = \"gilbert_elliott\", p = 0.0005, r = 0.1 }";
    let mut runs = vec![
        // The rates are high, so that a million acknowledgements come soon.
        link("fast", 8, &rate("1Gbit/s"), 20, "5MB", "", "ack_every = 1"),
        link("fast, lossy", 6, &rate("1Gbit/s"), 10, "5MB", "loss = 0.0002", "ack_every = 1"),
        link("long", 8, &rate("200Mbit/s"), 120, "6MB", "", ""),
        link("bloated", 10, &rate("60Mbit/s"), 40, "4MB", "", "ack_every = 1"),
        link("shallow", 10, &rate("100Mbit/s"), 30, "60KB", "", ""),
        link("slow", 20, &rate("3Mbit/s"), 60, "300KB", "", ""),
        link("random loss", 15, &rate("100Mbit/s"), 20, "1MB", "loss = 0.01", "ack_every = 1"),
        link("bursts of loss", 10, &rate("100Mbit/s"), 20, "1MB", bursts, "ack_every = 1"),
        link("reordering", 6, &rate("100Mbit/s"), 30, "1MB", reordering, "ack_every = 1"),
        link("outages", 20, "trace = \"outages\"", 40, "1MB", "", "ack_every = 1"),
        link("pages", 8, &rate("200Mbit/s"), 40, "2MB", "", web),
        link("video", 8, &rate("50Mbit/s"), 40, "2MB", "", paced),
        link("several", 14, &rate("200Mbit/s"), 25, "2MB", "", another),
        link("marks", 8, &rate("100Mbit/s"), 25, "2MB", "", "ecn = true").with(
            "{ kind = \"droptail\", limit = \"2MB\" }",
            "{ kind = \"codel\", limit = \"2000 packets\", ecn = true }",
        ),
        cell("cell lte", "lte", 30, "", "ack_every = 1"),
        cell("cell nr", "nr", 10, "", "ack_every = 1"),
        cell("cell lte, lossy", "lte", 20, "loss = 0.003", "ack_every = 1"),
        cell("cell nr, lossy", "nr", 10, bursts, "ack_every = 1"),
        cell("cell oai", "meld-oai", 20, "loss = 0.001", ""),
        cell("cell lte, timeouts", "lte", 40, "", &format!("ack_every = 1\n{neighbour}"))
            .with("rate = \"10Gbit/s\"\ndelay = \"11ms\"", "trace = \"outages\"\ndelay = \"11ms\""),
    ];
    runs.extend(traces());
    runs
}

/// Users behind a proxy that allocates windows to `CONTROL`: with loss on the radio, without reports for a while, and several
/// flows of a user that come and go.
pub fn proxies() -> Vec<Played> {
    let behind = |name: &str, preset: &str, seconds: u32, more: &str| {
        let proxy = format!(
            "ack_every = 1\n{more}\n[[proxy]]\nhost = \"mast\"\nkind = \"rapid\"\nran_cc = \"CONTROL\""
        );
        cell(name, preset, seconds, "", &proxy).with("cc = \"CONTROL\"", "cc = \"cubic\"")
    };
    let silence = "[rnis]\nstop = \"4s\"\nresume = \"8s\"";
    let others = "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\nworkload = { kind = \"web\", page = \"1MB\", interval = \"900ms\" }\n\
                  [[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\nstart = \"3s\"\nstop = \"8s\"";
    vec![
        behind("proxy, mmwave", "diarra-mmwave-los", 8, others),
        behind("proxy, nr", "nr", 10, others),
        behind("proxy, lte", "lte", 20, others),
        behind("proxy, lossy", "meld-oai", 30, ""),
        behind("proxy, silence", "nr", 14, silence),
        behind("proxy, lossy silence", "meld-oai", 30, silence),
    ]
}

/// A phone that uploads by the grants that its modem hears, beside another that uploads now and then.
fn upload(name: &str, preset: &str, seconds: u32, core: &str, more: &str) -> Played {
    let text = format!(
        r#"
duration = "{seconds}s"
[[link]]
name = "core"
from = "mast"
to = "server"
rate = "10Gbit/s"
delay = "11.037ms"
{core}
[[link]]
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "11.037ms"
[[cell]]
host = "mast"
preset = "{preset}"
[[user]]
name = "phone"
[[user]]
name = "other"
[[flow]]
from = "other"
to = "server"
cc = "cubic"
start = "3s"
stop = "5s"
[[flow]]
from = "phone"
to = "server"
cc = "CONTROL"
receive_buffer = "10MiB"
{more}
"#
    );
    Played { name: name.to_owned(), text }
}

/// Uploads: radio information that is true, late, rare, wrong, false, or stops; loss, marks, timeouts, pauses, several flows.
pub fn uploads() -> Vec<Played> {
    let each = "ack_every = 1";
    let bursts = "loss = { kind = \"gilbert_elliott\", p = 0.0005, r = 0.1 }";
    let modem = |content: &str| format!("{each}\n[modem]\n{content}");
    let several = format!(
        "{each}\n[[flow]]\nfrom = \"phone\"\nto = \"server\"\ncc = \"CONTROL\"\nstart = \"2s\"\n\
         [[flow]]\nfrom = \"phone\"\nto = \"server\"\ncc = \"CONTROL\"\nstart = \"4s\"\nstop = \"7s\""
    );
    let web = format!("{each}\nworkload = {{ kind = \"web\", page = \"700KB\", interval = \"900ms\" }}");
    let paced = format!("{each}\nworkload = {{ kind = \"paced\", rate = \"5Mbit/s\", interval = \"17ms\" }}");
    let policed = "queue = { kind = \"droptail\", limit = \"30KB\" }";
    vec![
        upload("upload, mmwave", "diarra-mmwave-ul", 8, "", each),
        upload("upload, mmwave, lossy", "diarra-mmwave-ul", 8, bursts, each),
        upload("upload, mmwave, several", "diarra-mmwave-ul", 10, "", &several),
        upload("upload, nr", "nr", 15, "", each),
        upload("upload, nr, false", "nr", 15, "", &modem("content = \"full\"")),
        upload("upload, lte", "lte", 20, "", each),
        upload("upload, lte, several", "lte", 20, "", &several),
        upload("upload, lte, lossy", "lte", 20, "loss = 0.003", each),
        upload(
            "upload, lte, reordering",
            "lte",
            15,
            "reorder = { probability = 0.01, delay = \"3ms\" }\njitter = \"1ms\"",
            each,
        ),
        upload("upload, lte, policed", "lte", 20, policed, each).with("10Gbit/s", "6Mbit/s"),
        upload(
            "upload, lte, marks",
            "lte",
            15,
            "queue = { kind = \"codel\", limit = \"2000 packets\", ecn = true }",
            &format!("{each}\necn = true"),
        )
        .with("10Gbit/s", "8Mbit/s"),
        upload("upload, lte, timeouts", "lte", 30, "", each)
            .with("rate = \"10Gbit/s\"", "trace = \"outages\""),
        upload("upload, lte, pages", "lte", 15, "", &web),
        upload("upload, lte, video", "lte", 15, "", &paced),
        upload(
            "upload, lte, late",
            "lte",
            20,
            "",
            &modem("delay = \"50ms\"\nperiod = \"10ms\"\nerror = 0.3"),
        ),
        upload("upload, lte, rare", "lte", 20, "", &modem("period = \"100ms\"")),
        upload("upload, lte, silence", "lte", 20, "", &modem("stop = \"6s\"\nresume = \"12s\"")),
        upload("upload, lte, full", "lte", 30, "", &modem("content = \"full\"")),
        upload("upload, lte, random", "lte", 30, "", &modem("content = \"random\"")),
    ]
}

/// A download past a PEP where the radio begins; further keys of the wires before it, of the PEP and of the flow.
fn watched(name: &str, preset: &str, seconds: u32, wires: &str, pep: &str, more: &str) -> Played {
    let text = format!(
        r#"
duration = "{seconds}s"
[[link]]
name = "core"
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10.037ms"
{wires}
[[link]]
name = "hop"
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "1ms"
[[link]]
from = "mast"
to = "edge"
rate = "1Gbit/s"
delay = "1ms"
[[link]]
from = "edge"
to = "server"
rate = "1Gbit/s"
delay = "10.037ms"
[[cell]]
host = "mast"
preset = "{preset}"
[[user]]
name = "phone"
[[pep]]
host = "edge"
{pep}
[[flow]]
from = "server"
to = "phone"
cc = "CONTROL"
ack_every = 1
{more}
"#
    );
    Played { name: name.to_owned(), text }
}

/// Downloads past a PEP: honest ones and those that lie, stop or are late; loss before it and beyond, a narrow wire, timeouts, pauses.
pub fn peps() -> Vec<Played> {
    let narrow = "queue = { kind = \"droptail\", limit = \"200KB\" }";
    let bursts = "loss = { kind = \"gilbert_elliott\", p = 0.0005, r = 0.1 }";
    let reordering = "reorder = { probability = 0.01, delay = \"3ms\" }\njitter = \"1ms\"";
    let web = "workload = { kind = \"web\", page = \"2MB\", interval = \"900ms\" }";
    let another = "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"CONTROL\"\nstart = \"3s\"";
    let lie = |lie: &str| format!("lie = \"{lie}\"\nfaults_from = \"2s\"");
    vec![
        watched("pep, nr", "nr", 20, "", "", ""),
        watched("pep, nr, lossy", "nr", 15, bursts, "", ""),
        watched("pep, nr, several", "nr", 15, "", "", another),
        watched("pep, lte", "lte", 30, "", "", ""),
        watched("pep, lte, lossy", "lte", 20, "loss = 0.002", "", ""),
        watched("pep, lte, reordering", "lte", 20, reordering, "", ""),
        watched("pep, lte, narrow", "lte", 20, narrow, "", "").with("1Gbit/s", "20Mbit/s"),
        watched(
            "pep, lte, marks",
            "lte",
            15,
            "queue = { kind = \"codel\", limit = \"2000 packets\", ecn = true }",
            "",
            "ecn = true",
        )
        .with("1Gbit/s", "20Mbit/s"),
        watched("pep, oai", "meld-oai", 20, "", "", ""),
        watched("pep, lte, timeouts", "lte", 30, "", "", "")
            .with("rate = \"1Gbit/s\"", "trace = \"outages\""),
        watched("pep, lte, pages", "lte", 20, "", "", web),
        watched("pep, lte, late", "lte", 15, "", "delay = \"30ms\"\nloss = 0.1", ""),
        watched("pep, lte, silence", "lte", 20, "", "start = \"2s\"\nstop = \"9s\"", ""),
        watched("pep, lte, all", "lte", 20, narrow, &lie("all"), "").with("1Gbit/s", "20Mbit/s"),
        watched("pep, lte, gaps", "lte", 20, "", &lie("gaps"), ""),
        watched("pep, lte, ahead", "lte", 15, "loss = 0.001", &lie("ahead"), ""),
        watched("pep, lte, replay", "lte", 15, "loss = 0.001", &lie("replay"), ""),
    ]
}

/// A few past a PEP.
pub fn few_peps() -> Vec<Played> {
    let names = [
        "pep, lte",
        "pep, lte, lossy",
        "pep, lte, narrow",
        "pep, oai",
        "pep, lte, timeouts",
        "pep, lte, pages",
        "pep, lte, gaps",
    ];
    named(peps(), &names)
}

/// A few uploads.
pub fn few_uploads() -> Vec<Played> {
    let names = [
        "upload, lte",
        "upload, lte, lossy",
        "upload, lte, timeouts",
        "upload, lte, silence",
        "upload, lte, full",
        "upload, nr",
    ];
    named(uploads(), &names)
}

/// Those with these names.
fn named(runs: Vec<Played>, names: &[&str]) -> Vec<Played> {
    runs.into_iter().filter(|run| names.contains(&run.name.as_str())).collect()
}

/// Some of each kind.
pub fn some() -> Vec<Played> {
    let names = [
        "long",
        "shallow",
        "random loss",
        "reordering",
        "outages",
        "several",
        "cell lte",
        "cell lte, lossy",
        "cell oai",
        "cell lte, timeouts",
        "mahimahi/ATT-LTE-driving-2016.down",
    ];
    named(all(), &names)
}

/// A few, for options of an algorithm and for where an event takes long.
pub fn few() -> Vec<Played> {
    let names = ["shallow", "random loss", "reordering", "outages", "cell lte, lossy", "cell lte, timeouts"];
    named(all(), &names)
}

/// A few behind a proxy.
pub fn few_proxies() -> Vec<Played> {
    named(proxies(), &["proxy, lte", "proxy, lossy", "proxy, lossy silence"])
}

/// The runs with delays that are no multiple of a packet's time. Where what is in flight is exactly at the limit of a state, floats
/// decide by their last bit and integers by equality, which links of round numbers make common and others never.
pub fn uneven(runs: Vec<Played>) -> Vec<Played> {
    let uneven = |mut run: Played| {
        for (even, uneven) in [("0ms", "0.057ms"), ("15ms", "15.057ms"), ("12.5ms", "12.557ms")] {
            run.text = run.text.replace(&format!("{even}\"\nqueue"), &format!("{uneven}\"\nqueue"));
        }
        run.text = run.text.replace("delay = \"11ms\"", "delay = \"11.037ms\"");
        run
    };
    runs.into_iter().map(uneven).collect()
}

impl Played {
    /// With the first `from` replaced.
    fn with(self, from: &str, to: &str) -> Self {
        assert!(self.text.contains(from), "{from}");
        Self { text: self.text.replacen(from, to, 1), ..self }
    }
}
