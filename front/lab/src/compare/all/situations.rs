//! Where candidates are compared: links and cells, downloads and uploads, beside others, short transfers, a call.

use core::fmt::Write as _;

use ranpace_cc::{Algorithm, AlgorithmError};
use ranpace_link::Limit;
use ranpace_scenario::presets::{Access, DumbbellSpec, dumbbell};
use ranpace_units::{Bytes, Rate, Span};

use super::candidates::{Candidate, Place};
use crate::compare::seeds::link_of_seed;
use crate::{TraceLibrary, TraceLoadError};

/// The kinds of situations, which are summarised together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A download over a link of recorded or generated capacity.
    Link,
    /// A download in a cell.
    CellDown,
    /// An upload in a cell.
    CellUp,
    /// Beside CUBIC in the same queue.
    Beside,
    /// Files one after the other.
    Short,
    /// A call of the same user beside a download.
    Call,
}

/// One situation.
#[derive(Clone, Debug)]
pub struct Situation {
    /// Its name, as in results: "lte-10-down".
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its kind.
    pub kind: Kind,
    setting: Setting,
}

#[derive(Clone, Debug)]
enum Setting {
    Trace(String),
    Cell { preset: &'static str, users: u32 },
    Rate,
}

/// The recorded links: names of their files, as mahimahi has them. They are not part of Ranpace.
pub const RECORDINGS: [(&str, &str); 6] = [
    ("Verizon-LTE-short.down", "Verizon LTE, down"),
    ("Verizon-LTE-short.up", "Verizon LTE, up"),
    ("TMobile-LTE-short.down", "T-Mobile LTE, down"),
    ("TMobile-LTE-short.up", "T-Mobile LTE, up"),
    ("ATT-LTE-driving-2016.down", "AT&T LTE, driving, down"),
    ("ATT-LTE-driving-2016.up", "AT&T LTE, driving, up"),
];

/// All situations, without those of [`RECORDINGS`] that are not there; and the names of the missing ones.
///
/// # Errors
///
/// If a recording that is there cannot be read.
pub fn situations(traces: &mut TraceLibrary) -> Result<(Vec<Situation>, Vec<&'static str>), TraceLoadError> {
    let trace = |name: &str, title: &str| Situation {
        name: name.replace("builtin:", "builtin-"),
        title: title.to_owned(),
        kind: Kind::Link,
        setting: Setting::Trace(name.to_owned()),
    };
    let mut all = vec![trace("builtin:lte", "built-in LTE trace")];
    let mut missing = Vec::new();
    for (name, title) in RECORDINGS {
        match traces.get(name) {
            Ok(_) => all.push(trace(name, title)),
            Err(TraceLoadError::NotFound { .. }) => missing.push(name),
            Err(error) => return Err(error),
        }
    }
    for (kind, way, direction) in [(Kind::CellDown, "down", "downloads"), (Kind::CellUp, "up", "uploads")] {
        for (preset, radio) in [("lte", "LTE"), ("nr", "NR")] {
            for users in [1, 10] {
                let (who, flows) = match (users, kind) {
                    (1, _) => ("1 user".to_owned(), direction.trim_end_matches('s')),
                    (many, _) => (format!("{many} users"), direction),
                };
                all.push(Situation {
                    name: format!("{preset}-{users}-{way}"),
                    title: format!("{radio} cell, {flows}, {who}"),
                    kind,
                    setting: Setting::Cell { preset, users },
                });
            }
        }
    }
    all.push(Situation {
        name: "lossy-1-down".to_owned(),
        title: "LTE cell whose bearer loses blocks (meld-oai), download, 1 user".to_owned(),
        kind: Kind::CellDown,
        setting: Setting::Cell { preset: "meld-oai", users: 1 },
    });
    let cell = Setting::Cell { preset: "lte", users: 1 };
    let more = [
        ("beside-cubic", "beside CUBIC at 20 Mbit/s", Kind::Beside, Setting::Rate),
        ("files", "files of 1 MB in the LTE cell", Kind::Short, cell.clone()),
        ("call", "call beside a download in the LTE cell", Kind::Call, cell),
    ];
    all.extend(more.map(|(name, title, kind, setting)| Situation {
        name: name.to_owned(),
        title: title.to_owned(),
        kind,
        setting,
    }));
    Ok((all, missing))
}

/// Why a situation cannot be written down.
#[derive(Debug, thiserror::Error)]
pub enum SituationError {
    /// A recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceLoadError),
    /// A candidate has an invalid name.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
}

/// Round-trip time over links, and buffer at them: those of `ranpace compare`, but for [`Kind::Beside`].
const RTT: Span = Span::from_millis(20);
/// Start of the measured part.
const WARMUP: Span = Span::from_secs(5);

impl Situation {
    /// Whether a candidate can be used in it.
    pub fn suits(&self, candidate: &Candidate) -> bool {
        match (candidate.place, self.kind) {
            (_, Kind::Short) if !candidate.reliable => false,
            (Place::Anywhere, _) | (Place::Down, Kind::Link | Kind::Beside) => true,
            (Place::Down | Place::CellDown, Kind::CellDown | Kind::Short | Kind::Call) => true,
            (Place::CellUp, Kind::CellUp) => true,
            _ => false,
        }
    }

    /// Duration of a run.
    pub fn duration(&self) -> Span {
        Span::from_secs(match self.kind {
            Kind::Link => 30,
            Kind::Beside => 60,
            _ => 20,
        })
    }

    /// The text of the scenario of a candidate and a seed.
    ///
    /// # Errors
    ///
    /// If a recording cannot be read.
    pub fn text(
        &self,
        candidate: &Candidate,
        (seed, seeds): (u32, u32),
        traces: &mut TraceLibrary,
    ) -> Result<String, SituationError> {
        match &self.setting {
            Setting::Trace(name) => {
                let access = Access::Trace { down: name.clone(), up: None, repeat: true, scale: 1.0 };
                self.link(candidate, link_of_seed(&access, seed, seeds, traces)?, seed)
            }
            Setting::Rate => {
                let mut text = self.link(candidate, Access::Rate(Rate::from_mbit_per_s(20)), seed)?;
                // The first of two flows in a queue of fixed rate often keeps an advantage: the seed decides who is first.
                let late = seed * 137 % 1000;
                let (own, other) = if seed % 2 == 0 { (late, 0) } else { (0, late) };
                text.push_str(&format!(
                    "start = \"{own}ms\"\n\n[[flow]]\nname = \"cubic\"\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n\
                     start = \"{other}ms\"\n"
                ));
                Ok(text)
            }
            Setting::Cell { preset, users } => Ok(self.cell(candidate, preset, *users, seed)),
        }
    }

    fn link(&self, candidate: &Candidate, access: Access, seed: u32) -> Result<String, SituationError> {
        let cc: Algorithm = candidate.cc.parse()?;
        let mut spec = DumbbellSpec::new(access, RTT, &cc);
        spec.name = format!("{}-{}", self.name, candidate.name);
        (spec.duration, spec.warmup, spec.seed) = (self.duration(), WARMUP, u64::from(seed));
        if self.kind == Kind::Beside {
            // Two bandwidth-delay products.
            (spec.rtt, spec.buffer) = (Span::from_millis(40), Limit::Bytes(Bytes::new(200_000)));
        }
        let text = dumbbell(&spec);
        let queue = candidate.queue[usize::from(self.kind == Kind::Beside)];
        if queue.is_empty() {
            return Ok(text);
        }
        let plain = format!("queue = {{ kind = \"droptail\", limit = \"{}\" }}", spec.buffer);
        Ok(text.replace(&plain, &format!("queue = {{ {}, limit = \"{}\" }}", queue, spec.buffer)))
    }

    fn cell(&self, candidate: &Candidate, preset: &str, users: u32, seed: u32) -> String {
        let mut text = format!(
            "name = \"{}-{}\"\nduration = \"{}\"\nwarmup = \"{WARMUP}\"\nseed = {seed}\n",
            self.name,
            candidate.name,
            self.duration()
        );
        // Writing to a string cannot fail.
        let _ = self.write_cell(&mut text, candidate, (preset, users));
        text
    }

    fn write_cell(
        &self,
        text: &mut String,
        candidate: &Candidate,
        (preset, users): (&str, u32),
    ) -> core::fmt::Result {
        for (from, to, rate, delay) in
            [("server", "edge", "10Gbit/s", "10ms"), ("edge", "mast", "10Gbit/s", "1ms")]
        {
            writeln!(
                text,
                "\n[[link]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
                 duplex = true\nqueue = {{ kind = \"droptail\", limit = \"unlimited\" }}"
            )?;
        }
        writeln!(text, "\n[[cell]]\nname = \"cell\"\nhost = \"mast\"\npreset = \"{preset}\"")?;
        if !candidate.bearer.is_empty() {
            writeln!(text, "{}", candidate.bearer)?;
        }
        writeln!(text, "\n[[user]]\nname = \"user\"\ncell = \"cell\"")?;
        if users > 1 {
            // As far as the preset's own user, and nearer.
            let radius = if preset == "nr" { 150 } else { 300 };
            writeln!(text, "count = {users}\ndrop = {{ radius = \"{radius}m\" }}")?;
        }
        let (from, to) = if self.kind == Kind::CellUp { ("user", "server") } else { ("server", "user") };
        for user in 1..=users {
            let name = |host: &str| match host {
                "user" if users > 1 => format!("user.{user}"),
                other => other.to_owned(),
            };
            writeln!(
                text,
                "\n[[flow]]\nname = \"flow.{user}\"\nfrom = \"{}\"\nto = \"{}\"\ncc = \"{}\"\nreceive_buffer = \"64MiB\"",
                name(from),
                name(to),
                candidate.cc
            )?;
            if self.kind == Kind::Short {
                writeln!(text, "workload = {{ kind = \"repeat\", size = \"1MB\", pause = \"500ms\" }}")?;
            }
        }
        if self.kind == Kind::Call {
            writeln!(
                text,
                "\n[[flow]]\nname = \"call\"\nfrom = \"server\"\nto = \"user\"\ntransport = \"udp\"\npacket = \"1200B\"\n\
                 workload = {{ kind = \"cbr\", rate = \"1.5Mbit/s\" }}"
            )?;
        }
        text.push_str(candidate.around);
        Ok(())
    }
}
