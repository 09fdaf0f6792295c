//! `[rnis]` and `[modem]`: how radio information comes to the edge, and to a device from its own modem.

use ranpace_units::{Span, Time};

use crate::key::{ANY_TIME, Duration, Group, Is, Key, Kind as _, Number, Open, Whole, Within, Words};
use crate::limits::LEAST_SPAN;
use crate::reader::Section;

/// The tables.
pub(crate) const TABLES: [&str; 2] = ["rnis", "modem"];
/// Longest period, and longest way of a report. Ours.
const MOST: Span = Span::from_secs(60);
/// Largest share by which a report may be wrong: with more, what there is could be reported as nothing. Ours.
const MOST_ERROR: f64 = 0.9;

const PERIOD: Key<Duration> = Key {
    name: "period",
    kind: Within(LEAST_SPAN..=MOST),
    default: Open("`\"8ms\"`; of a modem one TTI"),
    about: "between two reports, and over what they are means",
};
const DELAY: Key<Duration> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST),
    default: Open("`\"1ms\"`; of a modem `\"0s\"`"),
    about: "from what was measured until it can be read",
};
const ERROR: Key<Number, Is<f64>> = Key {
    name: "error",
    kind: Number(0.0..=MOST_ERROR),
    default: Is(0.0),
    about: "block, PRBs and queue of each report are wrong by up to this share, either way",
};
const EVERY: Key<Whole<u32>, Is<u32>> = Key {
    name: "every",
    kind: Whole::new(1..=1_000_000),
    default: Is(1),
    about: "only one report in so many comes",
};
const STOP: Key<Duration> = Key {
    name: "stop",
    kind: ANY_TIME,
    default: Open("never"),
    about: "from then on nothing that is measured comes, until `resume`",
};
const RESUME: Key<Duration> =
    Key { name: "resume", kind: ANY_TIME, default: Open("never"), about: "comes after `stop`" };
const CONTENT: Key<Words<Content>, Is<Content>> = Key {
    name: "content",
    kind: Words(&[
        ("measured", Content::Measured),
        ("full", Content::Full),
        ("empty", Content::Empty),
        ("random", Content::Random),
    ]),
    default: Is(Content::Measured),
    about: "what reports say: `\"full\"` (one PRB for this user, none free, 100 users, the queue at its limit), `\"empty\"` \
            (all PRBs free, no queue, blocks of the whole cell) or `\"random\"`, whatever the cell does",
};
const ENCODING: Key<Words<Encoding>, Is<Encoding>> = Key {
    name: "encoding",
    kind: Words(&[("compact", Encoding::Compact), ("text", Encoding::Text)]),
    default: Is(Encoding::Compact),
    about: "what a report of the edge takes on the wire: our datagrams, or `\"text\"`, 170 bytes a user",
};

/// The keys of both tables.
pub(crate) const KEYS: Group = &[&PERIOD, &DELAY, &ERROR, &EVERY, &STOP, &RESUME, &CONTENT, &ENCODING];

/// How reports of users come to those who read them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedSpec {
    /// Between two reports, and over what they are means; zero is one TTI of the cell.
    pub period: Span,
    /// From the end of what was measured until it can be read.
    pub delay: Span,
    /// By which share block, PRBs and queue of each report may be wrong, either way; 0 to 0.9.
    pub error: f64,
    /// Of so many reports one comes; at least 1.
    pub every: u32,
    /// From here on nothing comes.
    pub stop: Option<Time>,
    /// From here on something comes again; after `stop`.
    pub resume: Option<Time>,
    /// Whether reports say what was measured.
    pub content: Content,
    /// What a report takes on the wire.
    pub encoding: Encoding,
}

/// What reports say of a user: what was measured, or something else all the time, for studies of what a false feed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The measurement.
    Measured,
    /// That the cell is full: one PRB for this user, none free, a hundred users, its queue at its limit.
    Full,
    /// That the cell is empty: nothing granted to anybody, all PRBs free, no queue, blocks of the whole cell.
    Empty,
    /// Anything: grants, free PRBs, queue, users and MCS are drawn anew for each report.
    Random,
}

/// What reports take on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Ranpace's frames: 24 bytes a cell, 20 a user that has changed, 28 of UDP and IP.
    Compact,
    /// A line of text for each user and report, 170 bytes with its headers (Diarra 2022, 5.3.4).
    Text,
}

impl FeedSpec {
    /// Of the edge: one CSI period of LTE (Diarra 2022, 4.2.4), read 1 ms later.
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
    /// Of a device's own modem: each TTI, at once.
    pub const MODEM: Self = Self { period: Span::ZERO, delay: Span::ZERO, ..Self::EDGE };

    /// Whether something comes of what was measured at this time.
    pub fn is_on(&self, time: Time) -> bool {
        self.stop.is_none_or(|stop| time < stop) || self.resume.is_some_and(|resume| time >= resume)
    }
}

/// Reads both tables; and which of them are written.
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
        field.error("comes after `stop`");
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

    /// Both tables, or what is wrong with them.
    fn read(tables: &str) -> Result<(FeedSpec, FeedSpec), String> {
        let scenario = crate::parse(&format!("{CELL}\n{tables}"), "f.toml", &mut ());
        scenario.map(|scenario| (scenario.rnis, scenario.modem)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
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
    fn what_cannot_be_is_refused() {
        for (tables, message) in [
            ("[rnis]\nperiod = \"0s\"", "period: must be above zero"),
            ("[rnis]\nerror = 0.95", "error: expected a number from 0 to 0.9, found 0.95"),
            ("[modem]\nevery = 0", "every: expected a whole number from 1 to 1000000, found 0"),
            ("[modem]\nresume = \"1s\"", "resume: comes after `stop`"),
            ("[modem]\nstop = \"2s\"\nresume = \"1s\"", "resume: comes after `stop`"),
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
