//! The daemons of an emulation in place of its modelled proxies and PEPs (`--real-proxy`): `ranpace proxy`, the RNIS server that tells it
//! of the cells, and `ranpace pep`, on the hosts of the scenario, with configurations made from the scenario's keys.
//!
//! What a key says and a daemon cannot do is an error that names the key.

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ranpace_emulator::addresses::{v4, v6};
use ranpace_emulator::{Daemon, Outcome, Plan, Program, Ready, Topology, own_folder};
use ranpace_pep::rapid::{Profile, Settings};
use ranpace_scenario::{Content, Encoding, PepLie, PepSpec, ProxyKind, ProxySpec, Scenario, Transport};
use ranpace_tcp::Opener;
use ranpace_units::{Bytes, Span, Time};

use super::emulation_failure;
use crate::failure::Failure;

/// Where the RNIS server of a router listens.
pub(crate) const RNIS: ([u8; 4], u16) = ([127, 0, 0, 1], 8_012);
/// Where its datagrams come from.
const DATAGRAMS: ([u8; 4], u16) = ([127, 0, 0, 1], 8_013);
/// Where PEPs answer when they run.
const PEP: ([u8; 4], u16) = ([127, 0, 0, 1], 9_105);
/// `limits.flow_buffer` where the scenario says `"auto"`: the daemon's default; as published, the least that it keeps exactly.
const FLOW_BUFFER: Bytes = Bytes::new(4 << 20);
/// See [`FLOW_BUFFER`].
const THESIS_BUFFER: Bytes = Bytes::new(256 << 10);
/// UDP port of PEPs and agents (docs/lightweight-pep.md).
const REPORTS: u16 = 49_460;
/// What the edge's feed adds to a report's age in a scenario that says nothing.
const FEED_DELAY: Span = Span::from_millis(1);
/// Bytes of the secret that a PEP shares with a server, as hexadecimal digits. It protects nothing here: both are ours.
const SECRET: &str = "72616e7061636520656d756c61746564";

/// The daemons of a scenario.
#[derive(Debug)]
pub struct Daemons {
    files: Vec<(String, String)>,
    daemons: Vec<Daemon>,
    /// The file of the agent at the servers, if there are PEPs.
    agent: Option<PathBuf>,
    /// Name of the proxy.
    proxy: Option<String>,
    /// The socket at which an RNIS server reads the cells, if one does.
    cells: Option<PathBuf>,
}

impl Daemons {
    /// The daemons that this scenario asks for; `topology` is that with routers. The cells are published at the socket `cells`, or else
    /// at one of the emulation's own.
    pub fn of(scenario: &Scenario, topology: &Topology, cells: Option<&Path>) -> Result<Self, Failure> {
        if scenario.proxies.is_empty() && scenario.peps.is_empty() {
            return Err(Failure::asked(
                "--real-proxy runs proxies and PEPs, and the scenario has none: add a [[proxy]] or a [[pep]]",
            ));
        }
        if !scenario.proxies.is_empty() && cfg!(not(feature = "proxy")) {
            return Err(Failure::asked(
                "this ranpace was built without `ranpace proxy`; `make install` builds it whole",
            ));
        }
        #[cfg(not(feature = "kernel"))]
        if !scenario.peps.is_empty() {
            return Err(crate::kernel::not_built());
        }
        let mut all = Self { files: Vec::new(), daemons: Vec::new(), agent: None, proxy: None, cells: None };
        match &scenario.proxies[..] {
            [] => {}
            [spec] => {
                let own = own_folder().join("cells.sock");
                all.add_proxy(spec, scenario, topology, cells.unwrap_or(&own))?;
            }
            _ => return Err(unmapped("[[proxy]]", "several proxies", "one")),
        }
        match &scenario.peps[..] {
            [] => {}
            [spec] => all.add_pep(spec, scenario, topology)?,
            _ => return Err(unmapped("[[pep]]", "several PEPs", "one")),
        }
        Ok(all)
    }

    fn add_proxy(
        &mut self,
        spec: &ProxySpec,
        scenario: &Scenario,
        topology: &Topology,
        cells: &Path,
    ) -> Result<(), Failure> {
        for split in &spec.splits {
            let Some(flow) = scenario.flows.get(split.flow) else { continue };
            let Transport::Tcp { config, .. } = &flow.transport else { continue };
            let is_user = |host: usize| scenario.users.iter().any(|user| user.host == host);
            let opener = if config.opener == Opener::Sender { flow.from } else { flow.to };
            if !is_user(opener) {
                let key = format!("opener of the flow {:?}", flow.name);
                return Err(unmapped(
                    &key,
                    "a server that opens connections to users",
                    "\"receiver\": users open them",
                ));
            }
        }
        let host = scenario.hosts[spec.host].clone();
        let text = proxy_file(spec, scenario, topology)?;
        self.proxy = Some(spec.name.clone());
        if let ProxyKind::Rapid(_) = spec.kind {
            self.cells = Some(cells.to_owned());
            let until = scenario.rnis.stop.map(|stop| (stop, scenario.rnis.resume));
            let file = self.add_file("rnis.toml", rnis_file(cells));
            let words = [word("rnis"), word("serve"), file.into()];
            self.add("the RNIS server", &host, &words, Ready::Port(RNIS.into()), (Time::ZERO, until))?;
        }
        let file = self.add_file("proxy.toml", text);
        let words = [word("proxy"), word("--config"), file.into()];
        self.add("the proxy", &host, &words, Ready::Socket(control_socket()), (Time::ZERO, None))
    }

    fn add_pep(&mut self, spec: &PepSpec, scenario: &Scenario, topology: &Topology) -> Result<(), Failure> {
        let of = |key: &str| format!("{key} of the PEP {:?}", spec.name);
        if !spec.delay.is_zero() {
            return Err(unmapped(&of("delay"), spec.delay, "\"0s\": reports take the path that there is"));
        }
        if spec.loss > 0.0 {
            return Err(unmapped(&of("loss"), spec.loss, "0: reports take the path that there is"));
        }
        if spec.lie != PepLie::None {
            return Err(unmapped(&of("lie"), format!("{:?}", spec.lie), "\"none\""));
        }
        let host = scenario.hosts[spec.host].clone();
        let place = place_of(topology, spec.host)?;
        let mut servers: Vec<usize> =
            spec.watches.iter().filter_map(|watch| Some(scenario.flows.get(watch.flow)?.from)).collect();
        servers.sort_unstable();
        servers.dedup();
        let [server] = servers[..] else {
            return Err(unmapped(
                &of("host"),
                "flows of several servers, or of none",
                "a host that the flows of one server cross",
            ));
        };
        let text = format!(
            "devices = [\"ran0\"]\nid = 1\nmetrics = \"{}\"\n[[server]]\naddress = \"{}\"\nkey = 1\nsecret = \"pep.secret\"\n",
            SocketAddr::from(PEP),
            v4(place_of(topology, server)?),
        );
        let agent = format!(
            "[[pep]]\naddress = \"{}\"\nid = 1\nkey = 1\nsecret = \"pep.secret\"\n",
            SocketAddr::from((v4(place), REPORTS))
        );
        self.add_file("pep.secret", SECRET.to_owned());
        self.agent = Some(self.add_file("agent.toml", agent));
        let file = self.add_file("pep.toml", text);
        let words = [word("pep"), word("--config"), file.into()];
        let until = spec.stop.map(|stop| (stop, None));
        self.add("the PEP", &host, &words, Ready::Port(PEP.into()), (spec.start, until))
    }

    fn add_file(&mut self, name: &str, text: String) -> PathBuf {
        self.files.push((name.to_owned(), text));
        own_folder().join(name)
    }

    fn add(
        &mut self,
        name: &str,
        host: &str,
        arguments: &[OsString],
        ready: Ready,
        (from, until): (Time, Option<(Time, Option<Time>)>),
    ) -> Result<(), Failure> {
        let exe = std::env::current_exe().map_err(Failure::ours)?;
        let words = std::iter::once(exe.into_os_string()).chain(arguments.iter().cloned()).collect();
        let log = PathBuf::from(format!("{}.log", name.replace("the ", "").replace(' ', "-").to_lowercase()));
        let program = Program { host: host.to_owned(), words };
        self.daemons.push(Daemon { name: name.to_owned(), program, ready, from, until, log });
        Ok(())
    }

    /// The configurations, with their names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(name, _)| name.ends_with(".toml"))
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Emulates with these daemons, whose logs go to a folder. `emulate` is called once.
    pub fn emulate(
        self,
        scenario: &Scenario,
        topology: &Topology,
        plan: &mut Plan,
        logs: &Path,
        stop: &AtomicBool,
        ready: &mut dyn FnMut(&[String], &[String]),
    ) -> Result<Outcome, Failure> {
        plan.files.extend(self.files);
        plan.daemons
            .extend(self.daemons.into_iter().map(|daemon| Daemon { log: logs.join(&daemon.log), ..daemon }));
        if self.cells.is_some() {
            plan.views.rnis = self.cells;
        }
        let emulate = |plan: &Plan, also: &mut dyn FnMut(&[String])| {
            // Controls are there by now.
            let notes = plan.workloads.as_ref().map_or(Ok(Vec::new()), |workloads| workloads.check(topology));
            let notes = notes.map_err(Failure::asked)?;
            let outcome = ranpace_emulator::emulate(topology, plan, stop, |names| {
                ready(names, &notes);
                also(names);
            });
            outcome.map_err(emulation_failure)
        };
        #[cfg(feature = "kernel")]
        let outcome =
            crate::validate::controls::with(scenario, topology, plan, self.agent.as_deref(), emulate);
        #[cfg(not(feature = "kernel"))]
        let outcome = {
            let (mut emulate, _controls_of) = (emulate, scenario);
            emulate(plan, &mut |_| {})
        };
        let mut outcome = outcome?;
        let splits = outcome.result.flows.iter_mut().filter_map(|flow| flow.split.as_mut());
        splits.for_each(|split| split.proxy = self.proxy.clone().unwrap_or_default());
        Ok(outcome)
    }
}

fn unmapped(key: &str, found: impl Display, expected: &str) -> Failure {
    Failure::asked(format!(
        "{key}: the real daemon cannot play {found}; expected {expected}, or emulate without --real-proxy"
    ))
}

fn word(text: impl Display) -> OsString {
    text.to_string().into()
}

fn place_of(topology: &Topology, host: usize) -> Result<usize, Failure> {
    let place = topology.hosts.iter().position(|known| *known == host);
    place.ok_or_else(|| Failure::ours(format!("host {host} has no namespace")))
}

fn control_socket() -> PathBuf {
    own_folder().join("proxy.sock")
}

/// The configuration of `ranpace rnis serve`, which sends datagrams to a reader on the same host.
pub(crate) fn rnis_file(cells: &Path) -> String {
    format!(
        "listen = \"{}\"\n[[source]]\nlines = \"unix:{}\"\n[callbacks]\nallow = [\"127.0.0.0/8\"]\n[feed.datagrams]\nlisten = \"{}\"\n",
        SocketAddr::from(RNIS),
        cells.display(),
        SocketAddr::from(DATAGRAMS),
    )
}

/// The configuration of `ranpace proxy` for a proxy of the scenario.
fn proxy_file(spec: &ProxySpec, scenario: &Scenario, topology: &Topology) -> Result<String, Failure> {
    let of = |key: &str| format!("{key} of the proxy {:?}", spec.name);
    let mut text = String::new();
    let mut line = |line: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    };
    line(format!("[control]\nsocket = \"{}\"", control_socket().display()));
    let (is_rapid, expected) = match spec.kind {
        ProxyKind::Rapid(_) => (true, "rapid"),
        ProxyKind::Split => (false, "cubic"),
    };
    if spec.ran_cc.as_str() != expected {
        return Err(unmapped(&of("ran_cc"), format!("{:?}", spec.ran_cc.as_str()), &format!("{expected:?}")));
    }
    // A plain one has the kernel's own control.
    line(format!("\n[sender]\ncontrol = \"{}\"", if is_rapid { "auto" } else { "pacing" }));
    let (user, total) = (spec.buffers.user, spec.buffers.total);
    // The daemon's default is for links of any rate; as published it is twice the bandwidth-delay product, at least 64 KiB.
    let auto = match &spec.kind {
        ProxyKind::Rapid(settings) if settings.profile == Profile::Thesis => THESIS_BUFFER,
        _ => FLOW_BUFFER,
    };
    let flow = spec.buffers.flow.unwrap_or(auto).min(user);
    line("\n[limits]".to_owned());
    for (key, value) in [("flow_buffer", flow), ("user_buffer", user), ("total_buffer", total.max(user))] {
        line(format!("{key} = \"{}\"", in_binary(value)));
    }
    if let ProxyKind::Rapid(settings) = &spec.kind {
        feed(scenario)?.into_iter().chain(rapid(settings)).for_each(&mut line);
    }
    line("\n[[clients]]\ninterface = \"ran0\"".to_owned());
    let mut networks = Vec::new();
    for user in &scenario.users {
        let place = place_of(topology, user.host)?;
        networks.extend([format!("\"{}/32\"", v4(place)), format!("\"{}/128\"", v6(place))]);
    }
    line(format!("networks = [{}]", networks.join(", ")));
    Ok(text)
}

/// A size in a binary unit, where it is a multiple of one.
fn in_binary(size: Bytes) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| !size.is_zero() && size.get().is_multiple_of(*unit));
    unit.map_or_else(|| size.to_string(), |(unit, name)| format!("{}{name}", size.get() / unit))
}

/// The interval of the reports of an RNIS server on the same host as their reader.
pub(crate) fn feed_period(scenario: &Scenario) -> Result<Span, Failure> {
    let spec = &scenario.rnis;
    if spec.delay != FEED_DELAY {
        return Err(unmapped(
            "rnis.delay",
            format!("a delay of {}", spec.delay),
            "none: the feed takes the time that it takes",
        ));
    }
    if spec.error > 0.0 {
        return Err(unmapped("rnis.error", spec.error, "0"));
    }
    if spec.every != 1 {
        return Err(unmapped("rnis.every", spec.every, "1"));
    }
    if spec.content != Content::Measured {
        return Err(unmapped("rnis.content", format!("{:?}", spec.content), "\"measured\""));
    }
    if spec.encoding != Encoding::Compact {
        return Err(unmapped("rnis.encoding", format!("{:?}", spec.encoding), "\"compact\""));
    }
    // A period of one TTI.
    Ok(if spec.period.is_zero() { Span::from_millis(1) } else { spec.period })
}

/// The lines of the feed: the RNIS server on the same host.
fn feed(scenario: &Scenario) -> Result<Vec<String>, Failure> {
    let period = feed_period(scenario)?;
    Ok(vec![
        format!("\n[feed]\norigin = \"rnis:http://{}\"", SocketAddr::from(RNIS)),
        format!("period = \"{period}\""),
    ])
}

/// The lines of the allocation.
fn rapid(settings: &Settings) -> Vec<String> {
    let Settings {
        profile,
        estimator,
        accounting,
        efficiency,
        theta,
        alpha,
        window,
        headroom,
        spare,
        floor,
        account_udp,
        slack,
        hold,
        guard,
        ran_rttmin,
        sr_allowance,
        ran_floor,
        ..
    } = settings;
    let words: [(&str, &dyn Display); 8] = [
        ("profile", profile),
        ("estimator", estimator),
        ("accounting", accounting),
        ("window", window),
        ("ran_rttmin", ran_rttmin),
        ("hold", hold),
        ("slack", slack),
        ("sr_allowance", sr_allowance),
    ];
    let numbers: [(&str, &dyn Display); 9] = [
        ("efficiency", efficiency),
        ("theta", theta),
        ("alpha", alpha),
        ("headroom", headroom),
        ("spare", spare),
        ("floor", floor),
        ("ran_floor", ran_floor),
        ("guard", guard),
        ("account_udp", account_udp),
    ];
    let words = words.into_iter().map(|(key, value)| format!("{key} = \"{value}\""));
    let numbers = numbers.into_iter().map(|(key, value)| format!("{key} = {value}"));
    std::iter::once("\n[rapid]".to_owned()).chain(words).chain(numbers).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    const SCENARIO: &str = r#"
duration = "10s"
[[link]]
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10ms"
duplex = true
[[link]]
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
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver"
"#;

    fn daemons(more: &str) -> Result<Daemons, String> {
        let scenario = ranpace_scenario::parse(&format!("{SCENARIO}{more}"), "test.toml", &mut ()).unwrap();
        let topology = Topology::with_routers(&scenario).unwrap();
        Daemons::of(&scenario, &topology, None).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    #[cfg(feature = "proxy")]
    fn proxy_has_the_keys_of_the_scenario_and_its_users() {
        use ranpace_pep::rapid::{RttMargin, Slack, WindowRule};

        let tables = "[rnis]\nperiod = \"2ms\"\nstop = \"4s\"\nresume = \"5s\"\n[[proxy]]\nname = \"p\"\nhost = \"edge\"\nkind = \"rapid\"\nprofile = \"thesis\"\nwindow = \"module\"\nslack = \"half_rtt\"\nsr_allowance = \"16ms\"\nalpha = 0.40625\nuser_buffer = \"2MiB\"\n";
        let all = daemons(tables).unwrap();
        let (_, text) = all.files().find(|(name, _)| *name == "proxy.toml").unwrap();
        let config = ranpace_proxy::Config::parse("proxy.toml", text)
            .unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        let of = config.settings();
        assert_eq!((of.window, of.slack, of.alpha), (WindowRule::Module, Slack::HalfRtt, 0.40625));
        assert_eq!(
            (of.sr_allowance, of.period),
            (RttMargin::Fixed(Span::from_millis(16)), Span::from_millis(2))
        );
        assert_eq!(of.caps.user, Bytes::new(2 << 20));
        assert_eq!(config.clients[0].networks[0].to_string(), "10.77.0.3/32");
        let names: Vec<&str> = all.daemons.iter().map(|daemon| daemon.name.as_str()).collect();
        assert_eq!(names, ["the RNIS server", "the proxy"], "the proxy's feed is there first");
        assert_eq!(all.daemons[0].until, Some((Time::from_secs(4), Some(Time::from_secs(5)))));
    }

    #[test]
    #[cfg(all(feature = "proxy", feature = "kernel"))]
    fn what_a_daemon_cannot_do_is_an_error_that_names_the_key() {
        let proxy = "[[proxy]]\nname = \"p\"\nhost = \"edge\"\n";
        for (tables, key) in [
            (String::new(), "[[proxy]]"),
            (format!("{proxy}kind = \"split\"\nran_cc = \"bbr1\"\n"), "ran_cc of the proxy"),
            (format!("[rnis]\ndelay = \"20ms\"\n{proxy}kind = \"rapid\"\n"), "rnis.delay"),
            (format!("[rnis]\ncontent = \"full\"\n{proxy}kind = \"rapid\"\n"), "rnis.content"),
            ("[[pep]]\nhost = \"edge\"\nlie = \"all\"\n".to_owned(), "lie of the PEP"),
            (
                format!(
                    "[[flow]]\nname = \"push\"\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n{proxy}kind = \"split\"\n"
                ),
                "opener of the flow",
            ),
        ] {
            let error = daemons(&tables).unwrap_err();
            assert!(error.contains(key), "{tables}: {error}");
        }
    }
}
