//! The scenario's own workloads over the kernel's TCP and UDP: which of them can be run, and how hosts and sockets are configured
//! so that only congestion control and the network limit what is sent.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ranpace_scenario::{FlowSpec, Transport};
use ranpace_tcp::{Config, EcnFeedback, Opener};
use ranpace_units::{Bytes, Span};

use crate::devices::MTU;
use crate::topology::{MOST_FLOWS, Topology};

/// Runs the flows of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workloads {
    /// The kernel's congestion control for all TCP flows, in place of the scenario's.
    pub cc: Option<String>,
    /// Controls that were loaded for this emulation: what the scenario calls them, and what the kernel does. Both ends of their
    /// connections have them, as the control of a host would be.
    pub loaded: BTreeMap<String, String>,
    /// QUIC flows, by their place in the scenario, that programs play: each with the file that the sender's program writes its samples
    /// to ([`ranpace_quic::Sample`], a line of JSON each). The sender listens at [`Topology::port`].
    pub followed: BTreeMap<usize, PathBuf>,
}

/// Why a scenario's workloads cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The kernel has no such congestion control.
    #[error(
        "flow {flow:?}: this kernel has no congestion control {asked:?}; tcp_available_congestion_control has {known}. \
         `--cc NAME` chooses one for all flows, `--hosts-only` leaves the flows to programs, and a flow with transport = \"quic\" \
         plays any of ours"
    )]
    Control {
        /// Name of the flow.
        flow: String,
        /// The control that it would need.
        asked: String,
        /// Names that exist.
        known: String,
    },
    /// A feature that sockets lack.
    #[error(
        "flow {flow:?}: {what} cannot be played by the kernel; take it out, or leave the flows to programs (`--hosts-only`)"
    )]
    Socket {
        /// Name of the flow.
        flow: String,
        /// The feature.
        what: String,
    },
    /// More flows than ports.
    #[error("{found} flows; the workloads of at most {MOST_FLOWS} can be played")]
    Crowd {
        /// Number of flows.
        found: usize,
    },
}

/// File that lists the kernel's congestion controls.
const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Initial and largest send buffer of a socket, in payload: enough for the bandwidth-delay product of 1 Gbit/s and 30 ms from the
/// first packet on, and for what Linux raises it to. Ours.
const SEND_BUFFER: [u64; 2] = [4 << 20, 64 << 20];
/// Receive buffer memory per byte of payload, before a socket has seen packets (Linux, TCP_DEFAULT_SCALING_RATIO).
const MEMORY_PER_BYTE: u64 = 2;
/// Smallest segment, options included, that sockets accept (Linux, TCP_MIN_MSS).
const LEAST_SEGMENT: u64 = 88;
/// Headers of IPv4 with TCP, without options; with UDP.
const TCP_HEADERS: u64 = 40;
/// See [`TCP_HEADERS`].
pub(crate) const UDP_HEADERS: u64 = 28;

/// Socket options of a TCP flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The kernel's congestion control.
    pub cc: String,
    /// The receiver of the data has it too.
    pub at_both_ends: bool,
    /// Whether the sender of the data opens the connection.
    pub sender_opens: bool,
    /// Largest segment, options included (TCP_MAXSEG), if it differs from the device's.
    pub mss: Option<u32>,
    /// Fixed receive buffer (SO_RCVBUF), bytes of payload; `None` for autotuning.
    pub receive_buffer: Option<u64>,
    /// Fixed send buffer (SO_SNDBUF), bytes of payload; `None` for autotuning.
    pub send_buffer: Option<u64>,
}

impl Workloads {
    /// Checks whether the flows of the scenario can be run; returns deviations from the scenario.
    pub fn check(&self, topology: &Topology) -> Result<Vec<String>, WorkloadError> {
        self.settings(topology.flows())?;
        let mut notes = BTreeMap::new();
        for flow in topology.flows() {
            for what in unplayed(flow) {
                notes.entry(what).or_insert_with(Vec::new).push(flow.name.as_str());
            }
        }
        let mut notes: Vec<String> = (notes.into_iter())
            .map(|(what, flows)| {
                let more =
                    if flows.len() > 1 { format!(" and {} more", flows.len() - 1) } else { String::new() };
                format!("{}{more}: {what}", flows[0])
            })
            .collect();
        for place in 0..topology.hosts.len() {
            for what in host_settings(topology, place).1 {
                notes.push(format!("{}: {what}", topology.name(place)));
            }
        }
        Ok(notes)
    }

    /// The socket settings of each flow of the scenario; `None` for UDP.
    pub(crate) fn settings(&self, flows: &[FlowSpec]) -> Result<Vec<Option<Settings>>, WorkloadError> {
        if flows.len() > MOST_FLOWS {
            return Err(WorkloadError::Crowd { found: flows.len() });
        }
        let known = fs::read_to_string(CONTROLS).unwrap_or_default();
        let settings =
            flows.iter().enumerate().map(|(place, flow)| match self.followed.contains_key(&place) {
                true => Ok(None),
                false => self.settings_of(flow, &known),
            });
        settings.collect()
    }

    fn settings_of(&self, flow: &FlowSpec, known: &str) -> Result<Option<Settings>, WorkloadError> {
        let cannot = |what: String| Err(WorkloadError::Socket { flow: flow.name.clone(), what });
        let (algorithm, config) = match &flow.transport {
            Transport::Tcp { algorithm, config, .. } => (algorithm, config),
            Transport::Udp { packet, .. } if packet.get() > MTU.into() => {
                return cannot(format!("UDP in packets of {packet} (at most {MTU} B)"));
            }
            Transport::Udp { .. } => return Ok(None),
            Transport::Quic { config, .. } if config.mtu.get() > MTU.into() => {
                return cannot(format!("QUIC in packets of {} (at most {MTU} B)", config.mtu));
            }
            Transport::Quic { config, .. } if config.ecn => return cannot("ECN over QUIC".to_owned()),
            Transport::Quic { algorithm, .. } if algorithm.build(0).wants_radio() => {
                return cannot(format!("QUIC with {algorithm}, which reads radio information,"));
            }
            Transport::Quic { .. } => return Ok(None),
            Transport::Datagram { algorithm, .. } => return cannot(algorithm.to_string()),
        };
        if config.ecn == EcnFeedback::Accurate {
            return cannot("TCP with ecn = \"accurate\"".to_owned());
        }
        if config.mtu.get() > MTU.into() {
            return cannot(format!("TCP in packets of {} (at most {MTU} B)", config.mtu));
        }
        if config.mtu.get() < LEAST_SEGMENT + TCP_HEADERS {
            let least = LEAST_SEGMENT + TCP_HEADERS;
            return cannot(format!("TCP in packets of {} (mtu; at least {least} B)", config.mtu));
        }
        let loaded = self.loaded.get(algorithm.as_str());
        let cc = self.cc.as_ref().or(loaded).cloned().unwrap_or_else(|| kernel_name(algorithm.as_str()));
        if !known.split_whitespace().any(|name| name == cc) {
            let known = known.split_whitespace().collect::<Vec<_>>().join(", ");
            return Err(WorkloadError::Control { flow: flow.name.clone(), asked: cc, known });
        }
        Ok(Some(Settings {
            cc,
            at_both_ends: self.cc.is_none() && loaded.is_some(),
            sender_opens: config.opener == Opener::Sender,
            mss: (config.mtu.get() < MTU.into()).then(|| (config.mtu.get() - TCP_HEADERS) as u32),
            receive_buffer: (config.receive_buffer == config.receive_buffer_max)
                .then(|| config.receive_buffer.get()),
            send_buffer: (config.send_buffer < Bytes::MAX).then(|| config.send_buffer.get()),
        }))
    }
}

/// The kernel's name for a control of the simulator, if it differs.
fn kernel_name(algorithm: &str) -> String {
    match algorithm.split(':').next().unwrap_or_default() {
        "newreno" => "reno",
        "bbr1" => "bbr",
        name => name,
    }
    .to_owned()
}

/// Deviations of the kernel from a flow's settings.
fn unplayed(flow: &FlowSpec) -> Vec<String> {
    let mut notes = Vec::new();
    let (algorithm, config) = match &flow.transport {
        Transport::Tcp { algorithm, config, .. } => (algorithm, config),
        Transport::Udp { estimator: Some(estimator), .. } => {
            return vec![format!("its estimator, {estimator}, does not listen")];
        }
        _ => return notes,
    };
    if let Some((_, options)) = algorithm.as_str().split_once(':') {
        notes.push(format!("options of its control ({options}) are left out"));
    }
    let plain = Config::default();
    for (key, is_own) in [
        ("ack_every", config.ack_every != plain.ack_every),
        ("ack_delay", config.ack_delay != plain.ack_delay),
        ("quick_acks", config.quick_acks != plain.quick_acks),
        ("initial_rto", config.initial_rto != plain.initial_rto),
        ("max_rto", config.max_rto != plain.max_rto),
        ("pacing", config.pacing),
        ("inflate_own", config.inflate_own),
        ("rtt_sample", config.rtt_sample != plain.rtt_sample),
        ("rto", config.rto != plain.rto),
        ("timestamp_granularity", config.timestamp_granularity != plain.timestamp_granularity),
        ("control_rtt", config.control_rtt != plain.control_rtt),
        ("growth", config.growth != plain.growth),
    ] {
        if is_own {
            notes.push(format!("tcp.{key} is the kernel's own"));
        }
    }
    notes
}

/// The hosts to which flows from this host begin with a window other than the kernel's, and that window, in segments.
pub(crate) fn initial_windows(topology: &Topology, place: usize) -> BTreeMap<usize, u32> {
    let mut windows = BTreeMap::new();
    let kernels = Config::default().initial_window;
    for flow in topology.flows().iter().filter(|flow| Some(&flow.from) == topology.hosts.get(place)) {
        let to = topology.hosts.iter().position(|host| *host == flow.to);
        if let (Transport::Tcp { config, .. }, Some(to)) = (&flow.transport, to) {
            let window = windows.entry(to).or_insert(config.initial_window);
            *window = config.initial_window.max(*window);
        }
    }
    windows.retain(|_, window| *window != kernels);
    windows
}

/// Settings of a host's network namespace, below /proc/sys/net/ipv4, and deviations of its flows from the scenario.
pub(crate) fn host_settings(topology: &Topology, place: usize) -> (Vec<(&'static str, String)>, Vec<String>) {
    let host = topology.hosts.get(place).copied();
    let here = topology.flows().iter().filter_map(|flow| match &flow.transport {
        Transport::Tcp { config, .. } => Some((Some(flow.from) == host, Some(flow.to) == host, config)),
        _ => None,
    });
    let (mut send, mut receive, mut all): (Vec<&Config>, Vec<&Config>, Vec<&Config>) = Default::default();
    for (sends, receives, config) in here {
        sends.then(|| send.push(config));
        receives.then(|| receive.push(config));
        (sends || receives).then(|| all.push(config));
    }
    let mut settings = vec![
        // A connection must not use what others learned.
        ("tcp_no_metrics_save", "1".to_owned()),
        ("tcp_wmem", format!("4096 {} {}", SEND_BUFFER[0], SEND_BUFFER[1])),
    ];
    let mut notes = Vec::new();
    let mut differ =
        |key: &str| notes.push(format!("tcp.{key} differs between its flows; one setting holds for all"));
    let tuned: Vec<&Config> =
        receive.into_iter().filter(|config| config.receive_buffer < config.receive_buffer_max).collect();
    if let (Some(first), Some(most)) = (
        tuned.iter().map(|config| config.receive_buffer.get()).max(),
        tuned.iter().map(|config| config.receive_buffer_max.get()).max(),
    ) {
        if tuned
            .iter()
            .any(|config| (config.receive_buffer.get(), config.receive_buffer_max.get()) != (first, most))
        {
            differ("receive_buffer");
        }
        let (first, most) = (first.saturating_mul(MEMORY_PER_BYTE), most.saturating_mul(MEMORY_PER_BYTE));
        settings
            .push(("tcp_rmem", format!("4096 {} {}", first.min(i32::MAX as u64), most.min(i32::MAX as u64))));
    }
    let mut switch = |key: &str,
                      file: &'static str,
                      configs: &[&Config],
                      plain: bool,
                      of: fn(&Config) -> bool,
                      value: &str| {
        let others = configs.iter().filter(|config| of(config) != plain).count();
        if others > 0 {
            settings.push((file, value.to_owned()));
            if others < configs.len() {
                differ(key);
            }
        }
    };
    switch(
        "slow_start_after_idle",
        "tcp_slow_start_after_idle",
        &send,
        true,
        |config| config.slow_start_after_idle,
        "0",
    );
    switch("timestamps", "tcp_timestamps", &all, true, |config| config.timestamps, "0");
    switch("sack", "tcp_sack", &all, true, |config| config.sack, "0");
    switch("ecn", "tcp_ecn", &all, false, |config| config.ecn == EcnFeedback::Classic, "1");
    if let Some(rto) =
        send.iter().map(|config| config.min_rto).max().filter(|rto| *rto != Span::from_millis(200))
    {
        settings.push(("tcp_rto_min_us", (rto.as_nanos() / 1_000).to_string()));
        if send.iter().any(|config| config.min_rto != rto) {
            notes.push("tcp.min_rto differs between its flows; the largest holds for all".to_owned());
        }
    }
    if send.iter().any(|config| send.iter().any(|other| other.initial_window != config.initial_window)) {
        notes.push(
            "tcp.initial_window differs between its flows; the largest to a host holds for all to it"
                .to_owned(),
        );
    }
    (settings, notes)
}
