//! What is fuzzed: each function takes any bytes, and panics if the code under test does what it must not.
//!
//! The same functions are called by the fuzzer (`fuzz_targets/`) and, on stable Rust and for a bounded time, by
//! `front/lab/tests/fuzz_corpus.rs`.

use std::sync::Arc;

use ranpace_cc::Algorithm;
use ranpace_lab::trace_tools::{Clock, LogFormat, RateUnit, TimeUnit, read_log_text};
use ranpace_link::{Trace, TraceError, TraceParser, TraceStats};
use ranpace_scenario::{Scenario, TraceSource, parse};
use ranpace_units::{Bytes, Rate, Span, Time};

/// Takes any bytes, and panics if something is wrong.
pub type Target = fn(&[u8]);

/// All of them, by the name of their corpus.
pub const TARGETS: [(&str, Target); 6] = [
    ("trace", trace),
    ("log", log),
    ("scenario", scenario),
    ("vary", vary),
    ("algorithm", algorithm),
    ("units", units),
];

/// A trace in pieces is a trace in one piece; what was read can be written and read again; an error has a line.
///
/// The first byte is the length of the pieces.
pub fn trace(data: &[u8]) {
    let Some((&length, text)) = data.split_first() else { return };
    let whole = pieces(text, text.len());
    assert_eq!(pieces(text, usize::from(length)), whole, "pieces of {length}");
    match whole {
        Ok(trace) => {
            let stats = TraceStats::of(&trace);
            assert_eq!(stats.opportunities, trace.iter().map(|(_, count)| u64::from(count)).sum::<u64>());
            assert!(stats.opportunities > 0 && !stats.duration.is_zero());
            assert!(stats.min_second <= stats.max_second && stats.longest_gap <= stats.duration);
            assert_eq!(
                trace.opportunities_between(Time::ZERO, Time::ZERO + stats.duration, false)
                    + trace
                        .iter()
                        .take_while(|(ms, _)| *ms == 0)
                        .map(|(_, count)| u64::from(count))
                        .sum::<u64>(),
                stats.opportunities
            );
            let mut written = Vec::new();
            ranpace_lab::trace_tools::write_mahimahi(&trace, &mut written).expect("memory takes everything");
            assert_eq!(pieces(&written, written.len()), Ok(trace));
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.to_string().len() < 400, "{error}"),
    }
}

fn pieces(text: &[u8], length: usize) -> Result<Trace, TraceError> {
    let mut parser = TraceParser::new();
    for piece in text.chunks(length.max(1)) {
        parser.push(piece)?;
    }
    parser.finish()
}

/// A log of rates gives rates that are not negative, or an error with a line.
///
/// The first byte chooses the format.
pub fn log(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    let unit = RateUnit::KBIT;
    let csv = |clock, rate: &str, interval| LogFormat::Csv { clock, rate: rate.to_owned(), unit, interval };
    let format = match first % 5 {
        0 => LogFormat::ucc_5g(false),
        1 => csv(Clock::Rows, "r", Span::SECOND),
        2 => csv(Clock::Column("t".to_owned(), TimeUnit::Seconds), "r", Span::from_millis(100)),
        3 => csv(Clock::Column("t".to_owned(), TimeUnit::Nanos), "r", Span::from_secs(60)),
        _ => LogFormat::Pairs { time: TimeUnit::Millis, rate: unit, interval: Span::SECOND },
    };
    match read_log_text(text, &format) {
        Ok(series) => {
            assert!(!series.rates.is_empty());
            assert!(series.rates.iter().all(|rate| (0.0..=1e14).contains(rate)));
            // Long gaps and fast links would take the fuzzer's time and memory.
            if series.rates.len() < 100 && series.rates.iter().sum::<f64>() < 1e9 {
                let interval = series.interval.as_secs_f64();
                let bits: f64 = series.rates.iter().map(|rate| rate * interval).sum();
                if let Ok(trace) = series.trace() {
                    assert!(trace.opportunities() as f64 * 12_000.0 <= bits + 1.0);
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("line "), "{error}"),
    }
}

/// Has the traces of the corpus.
struct Two;

impl TraceSource for Two {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        if !name.starts_with("builtin:") {
            return Err("not here".to_owned());
        }
        Trace::from_millis(1..=100).map(Arc::new).map_err(|error| error.to_string())
    }
}

/// A scenario is sound, or every error has a place in the text.
pub fn scenario(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    // Flows are kept one by one; a few hundred thousand of them would only take the fuzzer's memory.
    if text.contains("count") && text.len() > 4_096 {
        return;
    }
    match parse(text, "fuzz.toml", &mut Two) {
        Ok(scenario) => sound(&scenario),
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            let lines = text.matches('\n').count() + 1;
            for diagnostic in &error.diagnostics {
                let place = diagnostic.position.expect("errors of parsing have a place");
                assert!(place.line >= 1 && place.line <= lines && place.column >= 1, "{error}");
            }
        }
    }
}

fn sound(scenario: &Scenario) {
    assert!(scenario.warmup < scenario.duration && !scenario.sample.is_zero());
    assert!(!scenario.links.is_empty() && !scenario.flows.is_empty());
    for flow in &scenario.flows {
        for (path, from, to) in [(&flow.path, flow.from, flow.to), (&flow.back, flow.to, flow.from)] {
            // Some flows have no way back.
            if path.is_empty() {
                continue;
            }
            let end = path.iter().fold(from, |here, &link| {
                assert_eq!(scenario.links[link].from, here, "a path does not hang together");
                scenario.links[link].to
            });
            assert_eq!(end, to, "a path ends elsewhere");
        }
    }
}

/// A varied scenario is still TOML, and parsing it is survived.
///
/// Two lines, key and value, and then the scenario.
pub fn vary(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let (Some(key), Some(value), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return };
    if let Ok(varied) = ranpace_scenario::vary(rest, key, value) {
        assert!(varied.parse::<toml_edit::DocumentMut>().is_ok(), "no TOML any more: {varied}");
        scenario(varied.as_bytes());
    }
}

/// An algorithm that is understood can be built, and is understood again as it prints itself.
pub fn algorithm(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match text.parse::<Algorithm>() {
        Ok(algorithm) => {
            drop((algorithm.build(1), algorithm.receiver()));
            assert_eq!(algorithm.to_string().parse::<Algorithm>().as_ref(), Ok(&algorithm));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A quantity that is understood is understood again as it prints itself.
pub fn units(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        assert_eq!(bytes.to_string().parse(), Ok(bytes));
    }
}
