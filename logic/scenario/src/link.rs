//! `[[link]]`: one link, or two with `duplex`.

mod keys;

use std::collections::HashMap;
use std::sync::Arc;

use ranpace_link::{
    Jitter, LightService, LightTrace, Limit, LinkConfig, Loss, QueueConfig, Reorder, Service, Trace,
    TraceService,
};
use ranpace_units::{Bytes, Span};

use self::keys::jitter::JitterKind;
use self::keys::loss::LossKind;
use self::keys::*;
pub(crate) use self::keys::{KEYS, jitter, loss, reorder};
use crate::key::{Group, Kind as _};
use crate::limits::MOST_DELAY;
use crate::listing::{QUEUES, queues};
use crate::reader::{Field, Section};

/// The keys of `[[link]]`.
pub(crate) const GROUPS: &[Group] = &[KEYS];

/// Default limit of a queue in packets: Linux's default queue length of a device.
const PACKETS: u32 = 1_000;
/// Default limit of FQ-CoDel in packets (RFC 8290 section 5.2.3).
const FQ_PACKETS: u32 = 10_240;
/// DualPI2's default limit in packets (RFC 9332 leaves it open; Linux `sch_dualpi2`).
const DUAL_PACKETS: u32 = 10_000;

/// Finds the traces, files and controls that a scenario names and that are not part of it.
pub trait TraceSource {
    /// The trace called `name`, as written in the scenario ("builtin:lte", "Verizon-LTE-short.down",
    /// "/abs/path"); or the reason why it is not available, in words for the user.
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String>;

    /// The content of another file that the scenario names: a recording of radio conditions, a trajectory, a fading trace;
    /// or the reason why it is not available, in words for the user.
    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        let _ = name;
        Err("no files are available here".to_owned())
    }

    /// Congestion controls of the caller's own, which flows may name like the listed ones.
    fn controls(&self) -> Vec<&'static ranpace_cc::Entry> {
        Vec::new()
    }
}

/// For scenarios without traces.
impl TraceSource for () {
    fn load(&mut self, _: &str) -> Result<Arc<Trace>, String> {
        Err("no traces are available here".to_owned())
    }
}

/// Loads each trace and file once.
pub(crate) struct Traces<'s> {
    source: &'s mut dyn TraceSource,
    loaded: HashMap<String, Result<Arc<Trace>, String>>,
    texts: HashMap<String, Result<Arc<str>, String>>,
}

impl<'s> Traces<'s> {
    pub fn new(source: &'s mut dyn TraceSource) -> Self {
        Self { source, loaded: HashMap::new(), texts: HashMap::new() }
    }

    /// The content of the file that a field names.
    pub fn text(&mut self, field: &Field<'_>) -> Option<Arc<str>> {
        let name = field.text("the name of a file in quotes")?;
        let text = match self.texts.get(name) {
            Some(text) => text,
            None => {
                let text = self.source.text(name);
                self.texts.entry(name.to_owned()).or_insert(text)
            }
        };
        match text {
            Ok(text) => Some(text.clone()),
            Err(error) => {
                field.error(format!("cannot load {name:?}: {error}"));
                None
            }
        }
    }

    fn load(&mut self, field: &Field<'_>) -> Option<Arc<Trace>> {
        let name = field.text("the name of a trace in quotes")?;
        let loaded = match self.loaded.get(name) {
            Some(loaded) => loaded,
            None => {
                let loaded = self.source.load(name);
                self.loaded.entry(name.to_owned()).or_insert(loaded)
            }
        };
        match loaded {
            Ok(trace) => Some(trace.clone()),
            Err(error) => {
                field.error(format!("cannot load {name:?}: {error}"));
                None
            }
        }
    }
}

/// An entry `[[link]]`, with its hosts still by name.
pub(crate) struct Entry<'t> {
    pub name: String,
    pub from: Option<Field<'t>>,
    pub to: Option<Field<'t>>,
    pub config: Configured,
    /// Name and configuration of the link in the other direction.
    pub back: Option<(String, Configured)>,
    /// Byte offset where a duplicate name is reported.
    pub at: usize,
}

/// Configuration of a link, and the overhead of each packet on it.
#[derive(Clone)]
pub(crate) struct Configured {
    pub link: LinkConfig,
    pub overhead: Bytes,
}

/// Reads entry number `number`, from 1.
pub(crate) fn read<'t>(section: Section<'t>, number: usize, traces: &mut Traces<'_>) -> Entry<'t> {
    let mut section = section.of(GROUPS);
    let name_field = section.find(&NAME);
    let name =
        name_field.as_ref().and_then(Field::name).map_or_else(|| format!("link{number}"), str::to_owned);
    let at = name_field.map_or(section.at, |field| field.at);
    let (from, to) = (section.find(&FROM), section.find(&TO));
    let config = read_config(&mut section, None, traces);
    let duplex = section.find(&DUPLEX);
    let back = section.find(&BACK);
    let is_duplex = duplex.as_ref().and_then(Field::flag);
    if let (Some(duplex), Some(_), Some(false)) = (duplex, &back, is_duplex) {
        duplex.error("is false, but `back` describes a link in the other direction");
    }
    let has_back = back.is_some() || is_duplex == Some(true);
    let back_section = back.and_then(|back| back.section("in back of [[link]]")).map(|back| back.of(GROUPS));
    let back = has_back.then(|| match back_section {
        None => (format!("{name}.back"), config.clone()),
        Some(mut back) => {
            let back_name = back.get(&NAME).unwrap_or_else(|| format!("{name}.back"));
            let config = read_config(&mut back, Some(&config), traces);
            back.finish();
            (back_name, config)
        }
    });
    section.finish();
    Entry { name, from, to, config, back, at }
}

/// Reads the configuration of a link; missing values come from `base`.
fn read_config(section: &mut Section<'_>, base: Option<&Configured>, traces: &mut Traces<'_>) -> Configured {
    let light = section.find(&LIGHT);
    let light_timer = section.find(&LIGHT_TIMER);
    let is_light = light.is_some() || base.is_some_and(|base| base.link.light.is_some());
    let (service, overhead) = read_service(section, base, traces, is_light);
    let mut config = match base {
        Some(base) => LinkConfig { service, ..base.link.clone() },
        None => LinkConfig::new(service, QueueConfig::drop_tail(Limit::Packets(PACKETS)), DELAY.default.0),
    };
    read_light((light, light_timer), &mut config, traces);
    section.set(&mut config.delay, &DELAY);
    if let Some(jitter) = section.find(&JITTER).and_then(|field| read_jitter(&field)) {
        config.jitter = jitter;
    }
    if let Some(queue) = section.find(&QUEUE).and_then(|field| read_queue(&field)) {
        config.queue = queue;
    }
    if let Some(loss) = section.find(&LOSS).and_then(|field| read_loss(&field)) {
        config.loss = loss;
    }
    if let Some(table) = section.find(&REORDER).and_then(|f| f.section("in reorder of [[link]]")) {
        let mut table = table.of(&[reorder::KEYS]);
        let (probability, extra) = (table.get(&reorder::PROBABILITY), table.get(&reorder::DELAY));
        config.reorder = probability.zip(extra).map(|(probability, extra)| Reorder { probability, extra });
        table.finish();
    }
    Configured { link: config, overhead }
}

/// Reads `light` and `light_timer`; the sizes of opportunity and overhead are those of the link's trace.
fn read_light(
    (light, timer): (Option<Field<'_>>, Option<Field<'_>>),
    config: &mut LinkConfig,
    traces: &mut Traces<'_>,
) {
    let Service::Trace(heavy) = &config.service else {
        for field in [&light, &timer].into_iter().flatten() {
            field.error("applies only to a trace, which is then the recording under heavy load, but this link has none");
        }
        config.light = None;
        return;
    };
    if let Some(field) = &light {
        let text = traces.text(field);
        let trace = text
            .and_then(|text| LightTrace::parse(&text).map_err(|error| field.error(error.to_string())).ok());
        config.light = trace.map(|trace| LightService {
            trace: Arc::new(trace),
            timer: Span::ZERO,
            opportunity: heavy.opportunity,
            overhead: heavy.overhead,
        });
    }
    match (&mut config.light, timer) {
        (Some(light), timer) => {
            (light.opportunity, light.overhead) = (heavy.opportunity, heavy.overhead);
            if let Some(timer) = timer.and_then(|field| LIGHT_TIMER.kind.read(&field)) {
                light.timer = timer;
            }
        }
        (None, Some(timer)) if light.is_none() => timer.error("applies only to a link with `light`"),
        (None, _) => {}
    }
}

/// Opportunity of CellReplay's recordings, whose packets have at most 1400 B with the header of its TUN device.
const LIGHT_OPPORTUNITY: Bytes = Bytes::new(1_400);

/// Reads `rate`, or `trace` with its keys; and the overhead of a link with a rate.
fn read_service(
    section: &mut Section<'_>,
    base: Option<&Configured>,
    traces: &mut Traces<'_>,
    is_light: bool,
) -> (Service, Bytes) {
    let (base_overhead, base) =
        (base.map_or(Bytes::ZERO, |base| base.overhead), base.map(|b| &b.link.service));
    let (rate, trace) = (section.find(&RATE), section.find(&TRACE));
    let played = if rate.is_some() || trace.is_some() || base.is_none() {
        let trace = trace.as_ref().filter(|_| rate.is_none());
        let played = trace.and_then(|trace| traces.load(trace)).map(TraceService::new);
        match played {
            Some(played) if is_light => Some(TraceService { opportunity: LIGHT_OPPORTUNITY, ..played }),
            other => other,
        }
    } else if let Some(Service::Trace(played)) = base {
        Some(played.clone())
    } else {
        None
    };
    // They are read even without a trace, so that their errors are reported.
    let is_trace = trace.is_some() || played.is_some();
    let (repeat, scale) = (section.find(&REPEAT), section.find(&SCALE));
    let (opportunity, overhead) = (section.find(&OPPORTUNITY), section.find(&OVERHEAD));
    if !is_trace {
        for detail in [&repeat, &scale, &opportunity].into_iter().flatten() {
            detail.error("applies only to a trace, but this link has none");
        }
        let unlimited = match &rate {
            Some(rate) => rate.is_text() && rate.text("") == Some("unlimited"),
            None => base == Some(&Service::Unlimited),
        };
        if let (Some(overhead), true) = (&overhead, unlimited) {
            overhead.error("applies only to a trace or a rate, but this link has neither");
        }
    }
    let repeat = repeat.and_then(|f| REPEAT.kind.read(&f));
    let scale = scale.and_then(|f| SCALE.kind.read(&f));
    let opportunity = opportunity.and_then(|f| OPPORTUNITY.kind.read(&f));
    let overhead = overhead.and_then(|f| OVERHEAD.kind.read(&f));
    match (&rate, &trace) {
        (Some(_), Some(trace)) => trace.error("a link has a rate or a trace, not both"),
        (None, None) if base.is_none() => {
            section.error(
                "missing key \"rate\" or \"trace\" in [[link]]; use `rate = \"unlimited\"` for neither",
            );
        }
        _ => {}
    }
    if let Some(played) = played {
        let service = Service::Trace(TraceService {
            repeat: repeat.unwrap_or(played.repeat),
            scale: scale.unwrap_or(played.scale),
            opportunity: opportunity.unwrap_or(played.opportunity),
            overhead: overhead.unwrap_or(played.overhead),
            ..played
        });
        return (service, Bytes::ZERO);
    }
    let service = match (rate, base) {
        // If the rate was refused, the result does not matter.
        (Some(rate), _) => RATE.kind.read(&rate).flatten().map_or(Service::Unlimited, Service::Fixed),
        (None, Some(base)) => base.clone(),
        (None, None) => Service::Unlimited,
    };
    let overhead =
        if service == Service::Unlimited { Bytes::ZERO } else { overhead.unwrap_or(base_overhead) };
    (service, overhead)
}

/// Reads `jitter = "5ms"` or a table.
fn read_jitter(field: &Field<'_>) -> Option<Jitter> {
    if !field.is_table() {
        let largest = field.quantity(Span::ZERO..=MOST_DELAY)?;
        return Some(if largest.is_zero() { Jitter::None } else { Jitter::Uniform(largest) });
    }
    let mut section = field.section("in jitter of [[link]]")?.of(&[jitter::KEYS]);
    let jitter = match section.get(&jitter::KIND)? {
        JitterKind::None => Some(Jitter::None),
        JitterKind::Uniform => section.get(&jitter::MAX).map(Jitter::Uniform),
        JitterKind::Normal => {
            let (mean, deviation) = (section.get(&jitter::MEAN), section.get(&jitter::DEVIATION));
            mean.zip(deviation).map(|(mean, deviation)| Jitter::Normal { mean, deviation })
        }
    };
    section.finish();
    jitter
}

/// Reads `loss = 0.01` or a table.
fn read_loss(field: &Field<'_>) -> Option<Loss> {
    let random = |probability| if probability == 0.0 { Loss::None } else { Loss::Random { probability } };
    if !field.is_table() {
        return field.number(0.0..=1.0).map(random);
    }
    let mut section = field.section("in loss of [[link]]")?.of(&[loss::KEYS]);
    let loss = match section.get(&loss::KIND)? {
        LossKind::None => Some(Loss::None),
        LossKind::Random => section.get(&loss::PROBABILITY).map(random),
        LossKind::GilbertElliott => {
            let (p, r) = (section.get(&loss::P), section.get(&loss::R));
            let (good, bad) = (section.get(&loss::GOOD), section.get(&loss::BAD));
            p.zip(r).map(|(p, r)| Loss::GilbertElliott { p, r, good, bad })
        }
        LossKind::List => {
            let (numbers, smallest) = (section.get(&loss::PACKETS), section.get(&loss::SMALLEST));
            numbers.map(|numbers| Loss::List { numbers: numbers.into(), smallest })
        }
    };
    section.finish();
    loss
}

/// Reads `queue = "codel"` or a table.
fn read_queue(field: &Field<'_>) -> Option<QueueConfig> {
    read_queue_of(field, "in queue of [[link]]", None)
}

/// Reads a queue, as a word or a table; if `limit` is given, no limit is read here.
pub(crate) fn read_queue_of(field: &Field<'_>, what: &str, limit: Option<Limit>) -> Option<QueueConfig> {
    let kinds = QUEUES.map(|kind| kind.name);
    if field.is_text() {
        return Some(queue_of(field.word(&kinds)?, limit));
    }
    let mut section = field.section(what)?;
    let kind = section.required("kind")?.word(&kinds)?;
    let limit = match limit {
        Some(limit) => Some(limit),
        None => section.find(&queues::LIMIT).and_then(|field| read_limit(&field)),
    };
    let mut queue = queue_of(kind, limit);
    match &mut queue {
        QueueConfig::DropTail { ecn, .. } => {
            *ecn = section.find(&queues::THRESHOLD).and_then(|field| read_threshold(&field));
        }
        QueueConfig::CoDel { target, interval, ecn, ce_threshold, .. } => {
            *target = section.get(&queues::CODEL_TARGET);
            *interval = section.get(&queues::INTERVAL);
            *ecn = section.get(&queues::ECN);
            *ce_threshold = section.get(&queues::CE_THRESHOLD).flatten();
        }
        QueueConfig::FqCoDel { target, interval, quantum, flows, ecn, ce_threshold, .. } => {
            *target = section.get(&queues::CODEL_TARGET);
            *interval = section.get(&queues::INTERVAL);
            *quantum = section.get(&queues::QUANTUM);
            *flows = section.get(&queues::FLOWS);
            *ecn = section.get(&queues::ECN);
            *ce_threshold = section.get(&queues::CE_THRESHOLD).flatten();
        }
        QueueConfig::Pie { target, update, max_burst, ecn, .. } => {
            *target = section.get(&queues::PIE_TARGET);
            *update = section.get(&queues::UPDATE);
            *max_burst = section.get(&queues::MAX_BURST);
            *ecn = section.get(&queues::ECN);
        }
        QueueConfig::DualPi2 { target, update, step, .. } => {
            *target = section.get(&queues::PIE_TARGET);
            *update = section.get(&queues::DUAL_UPDATE);
            *step = section.get(&queues::STEP);
        }
        QueueConfig::L4Span { target, .. } => *target = section.get(&queues::L4SPAN_TARGET),
        QueueConfig::Abc { delay, form, .. } => {
            *delay = section.get(&queues::ABC_DELAY);
            *form = section.get(&queues::ABC_FORM);
        }
    }
    section.finish();
    Some(queue)
}

/// A queue with its defaults; `kind` is one of those listed.
fn queue_of(kind: &str, limit: Option<Limit>) -> QueueConfig {
    let packets = limit.unwrap_or(Limit::Packets(PACKETS));
    match kind {
        "codel" => QueueConfig::codel(packets),
        "fq_codel" => QueueConfig::fq_codel(limit.unwrap_or(Limit::Packets(FQ_PACKETS))),
        "pie" => QueueConfig::pie(packets),
        "dualpi2" => QueueConfig::dual_pi2(limit.unwrap_or(Limit::Packets(DUAL_PACKETS))),
        "l4span" => QueueConfig::l4span(packets),
        "abc" => QueueConfig::abc(packets),
        _ => QueueConfig::drop_tail(packets),
    }
}

/// Reads the size above which drop-tail marks, or `false` for never.
fn read_threshold(field: &Field<'_>) -> Option<Bytes> {
    if field.is_text() {
        return field.quantity(Bytes::ZERO..=Bytes::MAX);
    }
    match field.flag()? {
        false => None,
        true => {
            field.error("for droptail, expected the size above which packets are marked, such as \"30KB\"");
            None
        }
    }
}

/// Reads "150KB", "100 packets" or "unlimited".
pub(crate) fn read_limit(field: &Field<'_>) -> Option<Limit> {
    let limit = field.text("\"150KB\", \"100 packets\" or \"unlimited\"")?.parse::<Limit>();
    limit.map_err(|error| field.error(error.to_string())).ok()
}
