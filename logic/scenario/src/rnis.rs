//! `[rnis]` and `[modem]`: how the edge receives radio information, and how a device receives it from its own modem.

use ranpace_units::{Span, Time};

use crate::key::{ANY_TIME, Duration, Group, Is, Key, Kind as _, Number, Open, Whole, Within, Words};
use crate::limits::LEAST_SPAN;
use crate::reader::Section;

/// Names of the tables.
pub(crate) const TABLES: [&str; 2] = ["rnis", "modem"];
/// Longest period, and longest delay of a report. Ours.
const MOST: Span = Span::from_secs(60);
/// Largest relative error of a report; with more, an amount could be reported as nothing. Ours.
const MOST_ERROR: f64 = 0.9;

const PERIOD: Key<Duration> = Key {
    name: "period",
    kind: Within(LEAST_SPAN..=MOST),
    default: Open("`\"8ms\"`; one TTI for a modem"),
    about: "reporting interval, over which reports are averaged",
};
const DELAY: Key<Duration> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST),
    default: Open("`\"1ms\"`; `\"0s\"` for a modem"),
    about: "time from the end of a measurement until its report can be read",
};
const ERROR: Key<Number, Is<f64>> = Key {
    name: "error",
    kind: Number(0.0..=MOST_ERROR),
    default: Is(0.0),
    about: "largest relative error of block, PRBs and queue in each report, in either direction",
};
const EVERY: Key<Whole<u32>, Is<u32>> = Key {
    name: "every",
    kind: Whole::new(1..=1_000_000),
    default: Is(1),
    about: "one in this many reports arrives",
};
const STOP: Key<Duration> = Key {
    name: "stop",
    kind: ANY_TIME,
    default: Open("never"),
    about: "measurements from this time on are not reported, until `resume`",
};
const RESUME: Key<Duration> = Key {
    name: "resume",
    kind: ANY_TIME,
    default: Open("never"),
    about: "time at which reports resume, after `stop`",
};
const CONTENT: Key<Words<Content>, Is<Content>> = Key {
    name: "content",
    kind: Words(&[
        ("measured", Content::Measured),
        ("full", Content::Full),
        ("empty", Content::Empty),
        ("random", Content::Random),
    ]),
    default: Is(Content::Measured),
    about: "what reports contain: the measurement, or regardless of the cell `\"full\"` (one PRB for this user, none free, \
            100 users, the queue at its limit), `\"empty\"` (all PRBs free, no queue, blocks of the whole cell) or \
            `\"random\"` values",
};
const ENCODING: Key<Words<Encoding>, Is<Encoding>> = Key {
    name: "encoding",
    kind: Words(&[("compact", Encoding::Compact), ("text", Encoding::Text)]),
    default: Is(Encoding::Compact),
    about: "wire format of the edge's reports: our datagrams, or `\"text\"`, 170 bytes per user",
};

/// The keys of both tables.
pub(crate) const KEYS: Group = &[&PERIOD, &DELAY, &ERROR, &EVERY, &STOP, &RESUME, &CONTENT, &ENCODING];

/// The feed that brings reports on users to their readers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedSpec {
    /// Reporting period, over which reports are averaged; zero is one TTI of the cell.
    pub period: Span,
    /// Time from the end of the measurement until the report can be read.
    pub delay: Span,
    /// Largest relative error of block, PRBs and queue in each report, in either direction; 0 to 0.9.
    pub error: f64,
    /// One in this many reports arrives; at least 1.
    pub every: u32,
    /// Reports stop at this time.
    pub stop: Option<Time>,
    /// Reports resume at this time; after `stop`.
    pub resume: Option<Time>,
    /// Whether reports contain the measurement.
    pub content: Content,
    /// Encoding of reports on the wire.
    pub encoding: Encoding,
}

/// The content of reports on a user: the measurement, or something else throughout, to study the effect of a false feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The measurement.
    Measured,
    /// A full cell: one PRB for this user, none free, a hundred users, its queue at its limit.
    Full,
    /// An empty cell: nothing granted to anybody, all PRBs free, no queue, blocks of the whole cell.
    Empty,
    /// Random values: grants, free PRBs, queue, users and MCS are drawn anew for each report.
    Random,
}

/// Encoding of reports on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Ranpace's frames: 24 bytes per cell, 20 per changed user, 28 of UDP and IP.
    Compact,
    /// A line of text per user and report, 170 bytes with its headers (Diarra 2022, 5.3.4).
    Text,
}

impl FeedSpec {
    /// The edge's feed: one CSI period of LTE (Diarra 2022, 4.2.4), read 1 ms later.
    pub const EDGE: Self = Self {
        period: Span::from_millis(8),
        delay: Span::from_millis(1),
        error: 0.0,
        every: 1,
        stop: None,
        resume: None,
        content: Content::Measured,
        encoding: Encoding::Compact,
    };
    /// The feed of a device's own modem: each TTI, without delay.
    pub const MODEM: Self = Self { period: Span::ZERO, delay: Span::ZERO, ..Self::EDGE };

    /// Returns whether measurements taken at this time are reported.
    pub fn is_on(&self, time: Time) -> bool {
        self.stop.is_none_or(|stop| time < stop) || self.resume.is_some_and(|resume| time >= resume)
    }
}

/// Reads both tables, and returns which of them are written.
pub(crate) fn read(root: &mut Section<'_>) -> (FeedSpec, FeedSpec, Vec<&'static str>) {
    let [mut rnis, mut modem] = [FeedSpec::EDGE, FeedSpec::MODEM];
    let mut written = Vec::new();
    for (key, spec) in TABLES.into_iter().zip([&mut rnis, &mut modem]) {
        let section = root.field(key).and_then(|field| field.section(format!("in [{key}]")));
        if let Some(section) = section {
            written.push(key);
            read_table(section.of(&[KEYS]), spec);
        }
    }
    (rnis, modem, written)
}

fn read_table(mut section: Section<'_>, spec: &mut FeedSpec) {
    section.set(&mut spec.period, &PERIOD);
    section.set(&mut spec.delay, &DELAY);
    spec.error = section.get(&ERROR);
    spec.every = section.get(&EVERY);
    let stop = section.get(&STOP);
    let resume_field = section.find(&RESUME);
    let resume = resume_field.as_ref().and_then(|field| RESUME.kind.read(field));
    if let (Some(field), Some(at)) = (resume_field, resume)
        && stop.is_none_or(|stop| stop >= at)
    {
        field.error("must be after `stop`");
    }
    (spec.stop, spec.resume) = (stop.map(|at| Time::ZERO + at), resume.map(|at| Time::ZERO + at));
    spec.content = section.get(&CONTENT);
    spec.encoding = section.get(&ENCODING);
    section.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = r#"
        duration = "1s"
        [[cell]]
        [[user]]
        name = "phone"
        [[flow]]
        from = "phone"
        to = "cell1"
        cc = "newreno"
    "#;

    /// Reads both tables, or returns the error.
    fn read(tables: &str) -> Result<(FeedSpec, FeedSpec), String> {
        let scenario = crate::parse(&format!("{CELL}\n{tables}"), "f.toml", &mut ());
        scenario.map(|scenario| (scenario.rnis, scenario.modem)).map_err(|error| error.to_string())
    }

    #[test]
    fn missing_keys_have_their_defaults() {
        assert_eq!(read("").unwrap(), (FeedSpec::EDGE, FeedSpec::MODEM));
        let (rnis, modem) =
            read("[rnis]\ndelay = \"100ms\"\n[modem]\nevery = 3\nencoding = \"text\"").unwrap();
        assert_eq!(rnis, FeedSpec { delay: Span::from_millis(100), ..FeedSpec::EDGE });
        assert_eq!(modem, FeedSpec { every: 3, encoding: Encoding::Text, ..FeedSpec::MODEM });
        for (word, content) in [
            ("measured", Content::Measured),
            ("full", Content::Full),
            ("empty", Content::Empty),
            ("random", Content::Random),
        ] {
            let (rnis, modem) = read(&format!("[rnis]\ncontent = \"{word}\"")).unwrap();
            assert_eq!((rnis.content, modem.content), (content, Content::Measured), "{word}");
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        for (tables, message) in [
            ("[rnis]\nperiod = \"0s\"", "period: must be above zero"),
            ("[rnis]\nerror = 0.95", "error: expected a number from 0 to 0.9, found 0.95"),
            ("[modem]\nevery = 0", "every: expected a whole number from 1 to 1000000, found 0"),
            ("[modem]\nresume = \"1s\"", "resume: must be after `stop`"),
            ("[modem]\nstop = \"2s\"\nresume = \"1s\"", "resume: must be after `stop`"),
            ("[rnis]\nencoding = \"json\"", "encoding: expected one of compact, text, found \"json\""),
            (
                "[rnis]\ncontent = \"lies\"",
                "content: expected one of measured, full, empty, random, found \"lies\"",
            ),
            ("[rnis]\ndealy = \"1ms\"", "unknown key \"dealy\" in [rnis]"),
            ("[[rnis]]\nperiod = \"1ms\"", "expected a table"),
        ] {
            let error = read(tables).expect_err(tables);
            assert!(error.contains(message), "{tables}: {error}");
        }
    }

    #[test]
    fn a_feed_is_off_from_stop_to_resume() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let spec = |stop, resume| FeedSpec { stop, resume, ..FeedSpec::EDGE };
        let on = |spec: FeedSpec| [0, 9, 10, 19, 20, 99].map(|ms| spec.is_on(at(ms)));
        assert_eq!(on(spec(None, None)), [true; 6]);
        assert_eq!(on(spec(Some(at(10)), None)), [true, true, false, false, false, false]);
        assert_eq!(on(spec(Some(at(10)), Some(at(20)))), [true, true, false, false, true, true]);
    }
}
