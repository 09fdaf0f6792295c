//! Common scenarios as texts, so that every run of them is also a file that can be saved and played again.

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
    /// Round trip time without queues: half of it on each way.
    pub rtt: Span,
    /// What the bottleneck's queue holds.
    pub buffer: Limit,
    /// The bottleneck's queue.
    pub queue: QueueKind,
    /// Random loss on the way down, before the bottleneck; a probability.
    pub loss: f64,
    /// Rate from the phone to the server; `None` is the access's rate, for a trace its `up`, without `up`
    /// 48 Mbit/s.
    pub reverse: Option<Rate>,
    /// Number of flows from the server to the phone.
    pub flows: u32,
    /// Time between the starts of two flows.
    pub stagger: Span,
    /// The flows' congestion control.
    pub cc: &'a Algorithm,
    /// How long it is played.
    pub duration: Span,
    /// Figures are counted from here.
    pub warmup: Span,
    /// Feeds every random choice.
    pub seed: u64,
}

/// What the bottleneck of a [`DumbbellSpec`] is.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// A fixed rate.
    Rate(Rate),
    /// A recorded link.
    Trace {
        /// Name of the trace from the server to the phone.
        down: String,
        /// Name of the trace from the phone to the server, if that is one too.
        up: Option<String>,
        /// Whether they start again at their end.
        repeat: bool,
        /// Factor of their capacity (dimensionless).
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
}

impl QueueKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::DropTail, Self::CoDel, Self::FqCoDel, Self::Pie];

    /// As a scenario writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::CoDel => "codel",
            Self::FqCoDel => "fq_codel",
            Self::Pie => "pie",
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
#[error("expected one of droptail, codel, fq_codel, pie, found {found:?}")]
pub struct QueueKindError {
    /// What was there.
    pub found: String,
}

impl FromStr for QueueKind {
    type Err = QueueKindError;
    fn from_str(text: &str) -> Result<Self, QueueKindError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text.trim());
        found.ok_or_else(|| QueueKindError { found: text.to_owned() })
    }
}

/// Rate up where a trace is played down. Ours: what a trace's acknowledgements need, many times over.
const REVERSE: Rate = Rate::from_mbit_per_s(48);

impl<'a> DumbbellSpec<'a> {
    /// One flow for 30 s over a drop-tail queue of 150 KB, without loss, with seed 1.
    pub fn new(access: Access, rtt: Span, cc: &'a Algorithm) -> Self {
        Self {
            name: "dumbbell".to_owned(),
            access,
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
/// flows from the server to the phone: "flow", or "flow.1" and so on if there are several. Values that a
/// scenario cannot have, such as no flows, are written as they are, and refused by [`crate::parse`].
pub fn dumbbell(spec: &DumbbellSpec<'_>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_dumbbell(&mut text, spec);
    text
}

fn write_dumbbell(text: &mut String, spec: &DumbbellSpec<'_>) -> fmt::Result {
    let down_delay = spec.rtt / 2;
    let up_delay = spec.rtt - down_delay;
    writeln!(text, "# A server, a phone, and one bottleneck between them.")?;
    writeln!(text, "name = {}", quoted(&spec.name))?;
    writeln!(text, "duration = \"{}\"", spec.duration)?;
    if !spec.warmup.is_zero() {
        writeln!(text, "warmup = \"{}\"", spec.warmup)?;
    }
    // TOML has no numbers above 2^63; in quotes they are read all the same.
    match i64::try_from(spec.seed) {
        Ok(seed) => writeln!(text, "seed = {seed}")?,
        Err(_) => writeln!(text, "seed = \"{}\"", spec.seed)?,
    }
    writeln!(text, "\n[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"")?;
    write_service(text, spec, true)?;
    writeln!(text, "delay = \"{down_delay}\"")?;
    writeln!(text, "queue = {{ kind = \"{}\", limit = \"{}\" }}", spec.queue, Written(spec.buffer))?;
    if spec.loss != 0.0 {
        writeln!(text, "loss = {}", number(spec.loss))?;
    }
    writeln!(text, "\n[[link]]\nname = \"up\"\nfrom = \"phone\"\nto = \"server\"")?;
    write_service(text, spec, false)?;
    writeln!(text, "delay = \"{up_delay}\"")?;
    writeln!(text, "queue = {{ kind = \"droptail\", limit = \"1000 packets\" }}")?;
    writeln!(text, "\n[[flow]]\nname = \"flow\"\nfrom = \"server\"\nto = \"phone\"")?;
    if spec.flows != 1 {
        writeln!(text, "count = {}", spec.flows)?;
        if !spec.stagger.is_zero() {
            writeln!(text, "stagger = \"{}\"", spec.stagger)?;
        }
    }
    writeln!(text, "cc = {}\nworkload = \"bulk\"", quoted(spec.cc.as_str()))
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
    Ok(())
}

/// A limit as a scenario writes it.
struct Written(Limit);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Limit::Unlimited => f.write_str("unlimited"),
            Limit::Bytes(bytes) => write!(f, "{bytes}"),
            Limit::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn number(number: f64) -> String {
    toml_edit::Value::from(number).to_string()
}
