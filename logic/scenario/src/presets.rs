//! Common scenarios as texts, so that every run of them is also a file that can be saved and played again.

mod cell;

pub use cell::{CellRunSpec, cell};

use core::fmt::{self, Write as _};
use core::str::FromStr;

use ranpace_cc::Algorithm;
use ranpace_link::Limit;
use ranpace_units::{Bytes, Rate, Span};

/// A server, a phone, and one bottleneck between them.
#[derive(Clone, Debug, PartialEq)]
pub struct DumbbellSpec<'a> {
    /// Name of the scenario.
    pub name: String,
    /// The bottleneck.
    pub access: Access,
    /// Files of what was recorded under light load, in front of the traces down and up, if there are any.
    pub light: [Option<String>; 2],
    /// Round-trip time without queues; half of it in each direction.
    pub rtt: Span,
    /// Limit of the bottleneck's queue.
    pub buffer: Limit,
    /// Kind of the bottleneck's queue.
    pub queue: QueueKind,
    /// Probability of random loss before the bottleneck, towards the phone.
    pub loss: f64,
    /// Rate from the phone to the server; `None` means the rate of the access, or for a trace its `up` or, without `up`,
    /// 48 Mbit/s.
    pub reverse: Option<Rate>,
    /// Number of flows from the server to the phone.
    pub flows: u32,
    /// Time between the starts of consecutive flows.
    pub stagger: Span,
    /// The flows' congestion control.
    pub cc: &'a Algorithm,
    /// Duration of the run.
    pub duration: Span,
    /// Start of measurement.
    pub warmup: Span,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The bottleneck of a [`DumbbellSpec`].
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// A fixed rate.
    Rate(Rate),
    /// A recorded link.
    Trace {
        /// Name of the trace from the server to the phone.
        down: String,
        /// Name of the trace from the phone to the server, if there is one.
        up: Option<String>,
        /// Whether the traces repeat.
        repeat: bool,
        /// Factor on their capacity (dimensionless).
        scale: f64,
    },
}

/// The kinds of queue, with their default settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QueueKind {
    /// First in, first out.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    CoDel,
    /// FQ-CoDel (RFC 8290).
    FqCoDel,
    /// PIE (RFC 8033).
    Pie,
    /// DualPI2 (RFC 9332).
    DualPi2,
    /// L4Span's marks.
    L4Span,
    /// ABC's router.
    Abc,
}

impl QueueKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::DropTail, Self::CoDel, Self::FqCoDel, Self::Pie, Self::DualPi2, Self::L4Span, Self::Abc];

    /// As written in a scenario.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::CoDel => "codel",
            Self::FqCoDel => "fq_codel",
            Self::Pie => "pie",
            Self::DualPi2 => "dualpi2",
            Self::L4Span => "l4span",
            Self::Abc => "abc",
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// There is no such kind of queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of droptail, codel, fq_codel, pie, dualpi2, l4span, abc, found {found:?}")]
pub struct QueueKindError {
    /// The text found.
    pub found: String,
}

impl FromStr for QueueKind {
    type Err = QueueKindError;
    fn from_str(text: &str) -> Result<Self, QueueKindError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text.trim());
        found.ok_or_else(|| QueueKindError { found: text.to_owned() })
    }
}

/// Rate from the phone to the server if there is a trace in the other direction only. Ours: many times what the
/// acknowledgements need.
const REVERSE: Rate = Rate::from_mbit_per_s(48);

impl<'a> DumbbellSpec<'a> {
    /// One flow for 30 s over a drop-tail queue of 150 KB, without loss, with seed 1.
    pub fn new(access: Access, rtt: Span, cc: &'a Algorithm) -> Self {
        Self {
            name: "dumbbell".to_owned(),
            access,
            light: [None, None],
            rtt,
            buffer: Limit::Bytes(Bytes::new(150_000)),
            queue: QueueKind::DropTail,
            loss: 0.0,
            reverse: None,
            flows: 1,
            stagger: Span::ZERO,
            cc,
            duration: Span::from_secs(30),
            warmup: Span::ZERO,
            seed: 1,
        }
    }
}

/// The text of a scenario with the hosts "server" and "phone", the links "down" (the bottleneck) and "up", and
/// flows from the server to the phone: "flow", or "flow.1" and so on if there are several. Values that are invalid in a
/// scenario, such as zero flows, are written unchanged, and [`crate::parse()`] refuses them.
pub fn dumbbell(spec: &DumbbellSpec<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_dumbbell(&mut text, spec);
    text
}

fn write_dumbbell(text: &mut String, spec: &DumbbellSpec<'_>) -> fmt::Result {
    let down_delay = spec.rtt / 2;
    let up_delay = spec.rtt - down_delay;
    writeln!(text, "# A server, a phone, and one bottleneck between them.")?;
    write_head(text, &spec.name, [spec.duration, spec.warmup], spec.seed)?;
    writeln!(text, "\n[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"")?;
    write_service(text, spec, true)?;
    writeln!(text, "delay = \"{down_delay}\"")?;
    writeln!(text, "queue = {{ kind = \"{}\", limit = \"{}\" }}", spec.queue, spec.buffer)?;
    if spec.loss != 0.0 {
        writeln!(text, "loss = {}", number(spec.loss))?;
    }
    writeln!(text, "\n[[link]]\nname = \"up\"\nfrom = \"phone\"\nto = \"server\"")?;
    write_service(text, spec, false)?;
    writeln!(text, "delay = \"{up_delay}\"")?;
    writeln!(text, "queue = {{ kind = \"droptail\", limit = \"1000 packets\" }}")?;
    write_flows(text, ("server", "phone"), spec.flows.into(), spec.stagger, spec.cc)
}

fn write_service(text: &mut String, spec: &DumbbellSpec<'_>, is_down: bool) -> fmt::Result {
    let trace = match &spec.access {
        Access::Rate(rate) if is_down => return writeln!(text, "rate = \"{rate}\""),
        Access::Rate(rate) => return writeln!(text, "rate = \"{}\"", spec.reverse.unwrap_or(*rate)),
        Access::Trace { down, .. } if is_down => down,
        Access::Trace { up: Some(up), .. } if spec.reverse.is_none() => up,
        Access::Trace { .. } => return writeln!(text, "rate = \"{}\"", spec.reverse.unwrap_or(REVERSE)),
    };
    writeln!(text, "trace = {}", quoted(trace))?;
    if let Access::Trace { repeat, scale, .. } = &spec.access {
        writeln!(text, "repeat = {repeat}\nscale = {}", number(*scale))?;
    }
    if let Some(light) = &spec.light[usize::from(!is_down)] {
        writeln!(text, "light = {}", quoted(light))?;
    }
    Ok(())
}

/// Writes the name, the times and the seed of a scenario.
fn write_head(text: &mut String, name: &str, [duration, warmup]: [Span; 2], seed: u64) -> fmt::Result {
    writeln!(text, "name = {}", quoted(name))?;
    writeln!(text, "duration = \"{duration}\"")?;
    if !warmup.is_zero() {
        writeln!(text, "warmup = \"{warmup}\"")?;
    }
    // TOML has no numbers above 2^63; they are accepted in quotes.
    match i64::try_from(seed) {
        Ok(seed) => writeln!(text, "seed = {seed}"),
        Err(_) => writeln!(text, "seed = \"{seed}\""),
    }
}

/// Writes `[[flow]]`: bulk transfers of this control between two hosts.
fn write_flows(
    text: &mut String,
    (from, to): (&str, &str),
    count: u64,
    stagger: Span,
    cc: &Algorithm,
) -> fmt::Result {
    writeln!(text, "\n[[flow]]\nname = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"")?;
    if count != 1 {
        writeln!(text, "count = {count}")?;
        if !stagger.is_zero() {
            writeln!(text, "stagger = \"{stagger}\"")?;
        }
    }
    writeln!(text, "cc = {}\nworkload = \"bulk\"", quoted(cc.as_str()))
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn number(number: f64) -> String {
    toml_edit::Value::from(number).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use ranpace_link::{Loss, QueueConfig, Service, Trace};
    use ranpace_units::Time;

    use super::*;
    use crate::{Hop, Scenario, ScenarioError, TraceSource, Transport, Workload, parse};

    /// Has the traces "down" and "up \"2\"".
    struct Two;

    impl TraceSource for Two {
        fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
            let last = match name {
                "down" => 100,
                "up \"2\"" => 200,
                _ => return Err("not here".to_owned()),
            };
            Trace::from_millis(1..=last).map(Arc::new).map_err(|error| error.to_string())
        }
    }

    fn played(spec: &DumbbellSpec<'_>) -> Result<Scenario, ScenarioError> {
        parse(&dumbbell(spec), "preset.toml", &mut Two)
    }

    fn limit_of(queue: &QueueConfig) -> (QueueKind, Limit) {
        match queue {
            QueueConfig::DropTail { limit, .. } => (QueueKind::DropTail, *limit),
            QueueConfig::CoDel { limit, .. } => (QueueKind::CoDel, *limit),
            QueueConfig::FqCoDel { limit, .. } => (QueueKind::FqCoDel, *limit),
            QueueConfig::Pie { limit, .. } => (QueueKind::Pie, *limit),
            QueueConfig::DualPi2 { limit, .. } => (QueueKind::DualPi2, *limit),
            QueueConfig::L4Span { limit, .. } => (QueueKind::L4Span, *limit),
            QueueConfig::Abc { limit, .. } => (QueueKind::Abc, *limit),
        }
    }

    #[test]
    fn a_traced_dumbbell_has_a_trace_or_48_mbit_on_the_way_up() {
        let cc: Algorithm = "newreno".parse().unwrap();
        let mut access = Access::Trace { down: "down".to_owned(), up: None, repeat: false, scale: 3.0 };
        for (up, reverse, expected) in [
            (None, None, Some(REVERSE)),
            (None, Some(Rate::from_mbit_per_s(5)), Some(Rate::from_mbit_per_s(5))),
            (Some("up \"2\""), None, None),
            (Some("up \"2\""), Some(Rate::from_mbit_per_s(5)), Some(Rate::from_mbit_per_s(5))),
        ] {
            if let Access::Trace { up: place, .. } = &mut access {
                *place = up.map(str::to_owned);
            }
            let mut spec = DumbbellSpec::new(access.clone(), Span::from_millis(20), &cc);
            spec.reverse = reverse;
            let scenario = played(&spec).unwrap();
            let Service::Trace(down) = &scenario.links[0].config.service else { panic!("{scenario:?}") };
            assert_eq!((down.repeat, down.scale, down.trace.opportunities()), (false, 3.0, 100));
            match (&scenario.links[1].config.service, expected) {
                (Service::Fixed(rate), Some(expected)) => assert_eq!(*rate, expected),
                (Service::Trace(up), None) => assert_eq!(up.trace.opportunities(), 200),
                (other, _) => panic!("{up:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn unplayable_presets_are_refused_when_read() {
        let cc: Algorithm = "newreno".parse().unwrap();
        let fixed = Access::Rate(Rate::from_mbit_per_s(1));
        let good = DumbbellSpec::new(fixed, Span::ZERO, &cc);
        assert!(played(&good).is_ok());
        for bad in [
            DumbbellSpec { flows: 0, ..good.clone() },
            DumbbellSpec { loss: f64::NAN, ..good.clone() },
            DumbbellSpec { access: Access::Rate(Rate::ZERO), ..good.clone() },
            DumbbellSpec { name: "\n".to_owned(), ..good.clone() },
        ] {
            assert!(played(&bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn generated_scenarios_are_read_as_asked(
            name in "[^\\p{Cc}]{1,20}",
            rate in 1..10_000_000_000_000u64,
            rtt in 0..1_000_000_000u64,
            (bytes, packets, pick) in (1_500..u64::MAX, 1..u32::MAX, 0..3u8),
            kind in prop::sample::select(&QueueKind::ALL[..]),
            (flows, stagger) in (1..50u32, 0..1_000_000u64),
            (duration, warmup) in (1_000_000_000..10_000_000_000_000u64, 0..1_000_000_000u64),
            seed in any::<u64>(),
            loss in prop_oneof![Just(0.0), 0.0..1.0f64],
        ) {
            let cc: Algorithm = "newreno".parse().unwrap();
            let rate = Rate::from_bits_per_s(rate);
            let buffer =
                [Limit::Unlimited, Limit::Bytes(Bytes::new(bytes)), Limit::Packets(packets)][usize::from(pick)];
            let (rtt, stagger) = (Span::from_nanos(rtt), Span::from_nanos(stagger));
            let (duration, warmup) = (Span::from_nanos(duration), Span::from_nanos(warmup));
            let spec = DumbbellSpec {
                light: [None, None],
                name: name.clone(), access: Access::Rate(rate), rtt, buffer, queue: kind, loss, reverse: None, flows,
                stagger, cc: &cc, duration, warmup, seed,
            };
            let scenario = played(&spec).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!((&scenario.name, scenario.seed), (&name, seed));
            prop_assert_eq!((scenario.duration, scenario.warmup), (duration, warmup));
            prop_assert_eq!(&scenario.hosts, &["server", "phone"]);
            let [down, up] = scenario.links.as_slice() else { return Err(TestCaseError::fail("links")) };
            prop_assert_eq!((down.name.as_str(), up.name.as_str()), ("down", "up"));
            prop_assert_eq!(&down.config.service, &Service::Fixed(rate));
            prop_assert_eq!(&up.config.service, &Service::Fixed(rate));
            prop_assert_eq!(down.config.delay + up.config.delay, rtt);
            prop_assert_eq!(limit_of(&down.config.queue), (kind, buffer));
            let expected = if loss == 0.0 { Loss::None } else { Loss::Random { probability: loss } };
            prop_assert_eq!(&down.config.loss, &expected);
            prop_assert_eq!(scenario.flows.len(), flows as usize);
            for (flow, n) in scenario.flows.iter().zip(0u64..) {
                prop_assert_eq!((flow.path.as_slice(), flow.back.as_slice()), (&[Hop::Link(0)][..], &[Hop::Link(1)][..]));
                prop_assert_eq!(flow.start, Time::ZERO + stagger * n);
                let is_asked_for =
                    matches!(&flow.transport, Transport::Tcp { algorithm, .. } if *algorithm == cc);
                prop_assert!(is_asked_for);
                prop_assert_eq!(&flow.workload, &Workload::Bulk);
            }
        }
    }
}
