//! Recordings that react to load: the base delay and the delivery opportunities under light load, in front of a trace recorded under
//! heavy load, as CellReplay plays them.
//!
//! Source: Sentosa, Chandrasekaran, Godfrey and Hassanieh, "CellReplay: Towards accurate record-and-replay for cellular networks",
//! NSDI 2025; the rules below are those of its public emulator.
//!
//! A phone sent short trains of packets through the network, and another one at the same time as much as it could. Each line of a
//! [`LightTrace`] is a train: when it was sent, the one-way delay of its first packet, and when each packet of it arrived, counted from the first,
//! all in milliseconds. The trace of the other phone is the link's own.
//!
//! [`LightStage`] gives each packet a time at which it leaves the light stage:
//!
//! * A **new train** begins with the first packet, and with one that would come out later than the last one did by the timer's length
//!   (`t + base delay > last + timer`), which means that the link was idle. The base delay is interpolated between the train of
//!   that time and the next one, in whole milliseconds. The packet leaves after it.
//! * A **following packet** takes the next opportunity of the train that is not before it and has room for it, and leaves then, the base
//!   delay later.
//! * When the train's opportunities are used up, packets leave after the base delay, or after the train's last opportunity if
//!   that is later, and go through the **heavy** trace's queue. So does a packet that would overtake another, and one that finds
//!   packets in that queue.
//!
//! Ours: a packet that is larger than an opportunity takes as many as it needs (CellReplay's packets never are).

use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

use ranpace_units::{Bytes, Span, Time};

/// Latest time of a train, and longest delay, in milliseconds: 24 h and a minute. More is not a recording.
const MOST: [u64; 2] = [86_400_000, 60_000];
/// Fewest trains: the last only marks the end, from which the recording begins anew.
const FEWEST: usize = 3;
/// Most opportunities of all trains together.
const MOST_OPPORTUNITIES: usize = 10_000_000;

/// Base delay and opportunities under light load, over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightTrace {
    trains: Vec<Train>,
}

/// A train of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// When it was sent.
    pub at: Span,
    /// One-way delay of its first packet.
    pub delay: Span,
    /// Arrivals of its packets, from that of the first, which is zero.
    pub opportunities: Vec<Span>,
}

/// Why a text is not a recording under light load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LightTraceError {
    /// A field is not a number in its range.
    #[error("line {line}: expected {expected}, found {found:?}")]
    NotANumber {
        /// Line, from 1.
        line: usize,
        /// What was expected.
        expected: &'static str,
        /// The beginning of what was found.
        found: String,
    },
    /// Fewer numbers than a train has.
    #[error(
        "line {line}: expected the time of a train, its delay and at least one arrival, all in milliseconds, found {found} numbers"
    )]
    TooShort {
        /// Line, from 1.
        line: usize,
        /// Numbers found.
        found: usize,
    },
    /// Times must not decrease.
    #[error(
        "line {line}: the train is sent at {at} ms, before the one above it; a recording is in the order of time"
    )]
    Backwards {
        /// Line, from 1.
        line: usize,
        /// Its time in milliseconds.
        at: u64,
    },
    /// Arrivals count from the first, and do not decrease.
    #[error(
        "line {line}: expected arrivals that count from the first, which is 0, and do not decrease, found {arrivals}"
    )]
    Disordered {
        /// Line, from 1.
        line: usize,
        /// The beginning of the arrivals.
        arrivals: String,
    },
    /// Too few trains.
    #[error("expected at least {FEWEST} trains at different times, found {found}")]
    TooFew {
        /// Trains found.
        found: usize,
    },
    /// Too many arrivals.
    #[error("more than {MOST_OPPORTUNITIES} arrivals; this is not a recording of short trains")]
    TooLong,
}

impl LightTrace {
    /// Reads a recording: a train in each line, numbers separated by spaces.
    ///
    /// # Errors
    ///
    /// If a line is not a train, or there are too few.
    pub fn parse(text: &str) -> Result<Self, LightTraceError> {
        let mut trains: Vec<Train> = Vec::new();
        let mut count = 0;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let number = |field: &str, expected, most: u64| {
                field.parse::<u64>().ok().filter(|number| *number <= most).ok_or_else(|| {
                    let found = field.chars().take(40).collect();
                    LightTraceError::NotANumber { line, expected, found }
                })
            };
            let [latest, longest] = MOST;
            let mut fields = text.split_ascii_whitespace();
            let (Some(at), Some(delay)) = (fields.next(), fields.next()) else {
                return Err(LightTraceError::TooShort { line, found: text.split_ascii_whitespace().count() });
            };
            let at = number(at, "the time of a train, at most 24 h in milliseconds", latest)?;
            let delay = number(delay, "a delay of at most 60 s in milliseconds", longest)?;
            let opportunities = fields
                .map(|field| {
                    number(field, "an arrival within 60 s in milliseconds", longest).map(Span::from_millis)
                })
                .collect::<Result<Vec<Span>, _>>()?;
            if opportunities.is_empty() {
                return Err(LightTraceError::TooShort { line, found: 2 });
            }
            if !opportunities[0].is_zero() || opportunities.windows(2).any(|pair| pair[1] < pair[0]) {
                let arrivals = text.split_ascii_whitespace().skip(2).take(8).collect::<Vec<_>>().join(" ");
                return Err(LightTraceError::Disordered {
                    line,
                    arrivals: arrivals.chars().take(60).collect(),
                });
            }
            count += opportunities.len();
            if count > MOST_OPPORTUNITIES {
                return Err(LightTraceError::TooLong);
            }
            if trains.last().is_some_and(|last| Span::from_millis(at) < last.at) {
                return Err(LightTraceError::Backwards { line, at });
            }
            trains.push(Train { at: Span::from_millis(at), delay: Span::from_millis(delay), opportunities });
        }
        // Begins at zero, and lasts for some time.
        let start = trains.first().map_or(Span::ZERO, |train| train.at);
        for train in &mut trains {
            train.at -= start;
        }
        if trains.len() < FEWEST || trains.last().is_none_or(|last| last.at.is_zero()) {
            return Err(LightTraceError::TooFew { found: trains.len() });
        }
        Ok(Self { trains })
    }

    /// The trains, in the order of time.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// Length of the recording, after which it begins anew.
    pub fn duration(&self) -> Span {
        self.trains.last().map_or(Span::ZERO, |last| last.at)
    }

    /// The number of the train of a time, and the base delay then, in whole milliseconds.
    fn base_delay_at(&self, now: Time) -> (usize, Span) {
        let at = Span::from_nanos(now.since(Time::ZERO).as_nanos() % self.duration().as_nanos().max(1));
        // The last train only marks the end.
        let index = self.trains.partition_point(|train| train.at <= at).clamp(1, self.trains.len() - 1) - 1;
        let (this, next) = (&self.trains[index], &self.trains[index + 1]);
        let length = next.at - this.at;
        let share = if length.is_zero() { 0.0 } else { (at - this.at).ratio(length) };
        let (from, to) = (this.delay.as_nanos() as f64, next.delay.as_nanos() as f64);
        let delay = Span::from_nanos((from + (to - from) * share) as u64);
        (index, Span::from_millis(delay.as_millis()))
    }
}

/// How a recording under light load is played in front of a link's trace.
#[derive(Clone, Debug, PartialEq)]
pub struct LightService {
    /// The recording.
    pub trace: Arc<LightTrace>,
    /// How long the light stage has to be empty until a new train begins.
    pub timer: Span,
    /// Bytes that an opportunity carries.
    pub opportunity: Bytes,
    /// Overhead of each packet.
    pub overhead: Bytes,
}

/// The train that is being played.
struct Playing {
    began: Time,
    delay: Span,
    /// Its number in the recording.
    train: usize,
    /// The current opportunity, and its bytes that are left.
    index: usize,
    left: u64,
}

/// Holds packets until they leave the light stage.
pub(crate) struct LightStage<P> {
    service: LightService,
    playing: Option<Playing>,
    /// When the last packet leaves by the trains alone; and when it does.
    last: Time,
    latest: Time,
    /// Packets, when each leaves, and whether it may pass by the heavy trace's queue.
    held: VecDeque<(Time, bool, P)>,
}

impl<P> LightStage<P> {
    pub(crate) fn new(service: &LightService) -> Self {
        let service = service.clone();
        Self { service, playing: None, last: Time::ZERO, latest: Time::ZERO, held: VecDeque::new() }
    }

    /// Takes a packet of this size, without overhead.
    pub(crate) fn accept(&mut self, now: Time, size: Bytes, packet: P) {
        let size = (size + self.service.overhead).get();
        let (at, passes) = self.schedule(now, size);
        self.last = at;
        let passes = passes && at >= self.latest;
        self.latest = self.latest.max(at);
        self.held.push_back((self.latest, passes, packet));
    }

    /// When a packet leaves, and whether it is within the opportunities under light load.
    fn schedule(&mut self, now: Time, size: u64) -> (Time, bool) {
        let whole = self.service.opportunity.get().max(1);
        let Some(playing) =
            self.playing.as_mut().filter(|playing| now + playing.delay <= self.last + self.service.timer)
        else {
            let (train, delay) = self.service.trace.base_delay_at(now);
            let extra = size.saturating_sub(1) / whole;
            self.playing = Some(Playing {
                began: now,
                delay,
                train,
                index: extra as usize,
                left: (extra + 1) * whole - size,
            });
            return (now + delay, true);
        };
        let after = now.since(playing.began);
        let opportunities = &self.service.trace.trains[playing.train].opportunities;
        while opportunities.get(playing.index).is_some_and(|opportunity| after > *opportunity) {
            playing.index += 1;
            playing.left = whole;
        }
        if playing.left < size {
            playing.index += 1;
            playing.left = whole;
        }
        while playing.left < size {
            playing.index += 1;
            playing.left += whole;
        }
        playing.left -= size;
        match opportunities.get(playing.index) {
            Some(opportunity) => (now + playing.delay + (*opportunity - after), true),
            None => {
                let end = opportunities.last().copied().unwrap_or(Span::ZERO);
                (now + playing.delay.max(end), false)
            }
        }
    }

    /// When the next packet leaves; [`Time::MAX`] if there is none.
    pub(crate) fn next(&self) -> Time {
        self.held.front().map_or(Time::MAX, |(at, ..)| *at)
    }

    /// The next packet if it leaves by `now`: when it does, and whether it may pass by the queue.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, bool, P)> {
        if self.next() > now { None } else { self.held.pop_front() }
    }

    /// Packets that have not left.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Takes out any packet.
    pub(crate) fn take(&mut self) -> Option<P> {
        self.held.pop_front().map(|(.., packet)| packet)
    }
}

impl<P> fmt::Debug for LightStage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LightStage({} held)", self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::TestPacket;
    use crate::{Limit, Link, LinkConfig, QueueConfig, Service, TraceParser, TraceService};

    const MS: Span = Span::from_millis(1);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Two trains of three packets, 100 ms apart, with delays of 20 and 40 ms; and the end of the recording.
    const TRAINS: &str = "0 20 0 2 4\n100 40 0 5 10\n200 20 0\n";

    /// A link with these trains in front of one heavy opportunity of 1400 B each millisecond; the base delay is all its delay.
    fn link_with(text: &str, timer: Span) -> Link<TestPacket> {
        let mut parser = TraceParser::new();
        let heavy: String = (1..=1_000).map(|ms| format!("{ms}\n")).collect();
        parser.push(heavy.as_bytes()).unwrap();
        let opportunity = Bytes::new(1_400);
        let heavy = TraceService {
            opportunity,
            overhead: Bytes::ZERO,
            ..TraceService::new(Arc::new(parser.finish().unwrap()))
        };
        let trace = Arc::new(LightTrace::parse(text).unwrap());
        let light = LightService { trace, timer, opportunity, overhead: Bytes::ZERO };
        let config = LinkConfig {
            light: Some(light),
            ..LinkConfig::new(
                Service::Trace(heavy),
                QueueConfig::drop_tail(Limit::Packets(1_000)),
                Span::ZERO,
            )
        };
        Link::new(&config, 1)
    }

    fn link(text: &str) -> Link<TestPacket> {
        link_with(text, Span::ZERO)
    }

    /// Arrivals in milliseconds of packets that were sent at these times.
    fn play(link: &mut Link<TestPacket>, sent: &[(u64, u64)]) -> Vec<u64> {
        let mut arrivals = Vec::new();
        for (at, size) in sent {
            link.send(ms(*at), TestPacket::new(0, *size), &mut ());
        }
        while link.next_event() != Time::MAX {
            let now = link.next_event();
            while link.poll(now, &mut ()).is_some() {
                arrivals.push(now.since(Time::ZERO).as_millis());
            }
        }
        arrivals
    }

    #[test]
    fn a_train_has_the_recorded_delay_and_opportunities_and_then_the_heavy_ones() {
        // The first leaves after the base delay; the second shares no opportunity with it; the fourth finds none left.
        let sent = [(0, 1_400), (0, 1_400), (0, 1_400), (0, 1_400), (0, 1_400)];
        assert_eq!(play(&mut link(TRAINS), &sent), [20, 22, 24, 25, 26]);
        // Small packets share one.
        assert_eq!(play(&mut link(TRAINS), &[(0, 700), (0, 700), (0, 700)]), [20, 20, 22]);
        // A packet that comes later begins a new train, or takes the opportunity of its time if the timer lets the train go on.
        assert_eq!(play(&mut link(TRAINS), &[(0, 1_400), (3, 1_400)]), [20, 23]);
        assert_eq!(play(&mut link_with(TRAINS, MS * 5), &[(0, 1_400), (3, 1_400)]), [20, 24]);
    }

    #[test]
    fn an_idle_link_begins_a_new_train_with_an_interpolated_delay() {
        // At 50 ms, half way from 20 to 40 ms; and at 250 ms the recording has begun anew.
        assert_eq!(play(&mut link(TRAINS), &[(50, 1_400)]), [80]);
        assert_eq!(play(&mut link(TRAINS), &[(0, 1_400), (50, 1_400), (250, 1_400)]), [20, 80, 280]);
    }

    #[test]
    fn a_packet_larger_than_an_opportunity_takes_two() {
        assert_eq!(play(&mut link(TRAINS), &[(0, 1_500), (0, 1_400), (0, 1_400)]), [20, 24, 25]);
    }

    #[test]
    fn what_is_not_a_recording_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "at least 3 trains"),
            ("0 20 0\n100 20 0\n", "at least 3 trains"),
            ("0 20 0\n0 20 0\n0 20 0\n", "at least 3 trains"),
            ("0 20 0\n\n100 20 0\n", "line 2: expected the time of a train"),
            ("0 20\n", "line 1: expected the time of a train"),
            ("0 20 0\n100 x 0\n200 20 0\n", "line 2: expected a delay of at most 60 s"),
            ("0 20 0\n100 70000 0\n200 20 0\n", "line 2: expected a delay"),
            ("0 20 -1\n100 20 0\n200 20 0\n", "line 1: expected an arrival"),
            ("0 20 5 6\n100 20 0\n200 20 0\n", "line 1: expected arrivals that count from the first"),
            ("0 20 0\n100 20 0 5 3\n200 20 0\n", "do not decrease, found 0 5 3"),
            ("100 20 0\n50 20 0\n200 20 0\n", "line 2: the train is sent at 50 ms"),
        ] {
            let error = LightTrace::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_packet_arrives_once_in_order_and_not_before_the_base_delay(
            trains in prop::collection::vec((0u64..200, 1u64..60, prop::collection::vec(0u64..30, 1..8)), 3..12),
            gaps in prop::collection::vec((0u64..40, 40u64..3_000), 1..60),
            timer in 0u64..50,
        ) {
            let (mut at, mut text) = (0, String::new());
            for (gap, delay, opportunities) in &trains {
                let mut opportunities = opportunities.clone();
                opportunities.push(0);
                opportunities.sort_unstable();
                let opportunities: Vec<String> = opportunities.iter().map(u64::to_string).collect();
                text.push_str(&format!("{at} {delay} {}\n", opportunities.join(" ")));
                at += gap + 1;
            }
            let mut link = link_with(&text, MS * timer);
            let (mut now, mut sent) = (0, Vec::new());
            for (gap, size) in gaps {
                now += gap;
                sent.push((now, size));
            }
            let arrivals = play(&mut link, &sent);
            prop_assert_eq!(arrivals.len(), sent.len());
            prop_assert!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]));
            let least = trains.iter().map(|(_, delay, _)| *delay).min().unwrap();
            prop_assert!(arrivals.iter().zip(&sent).all(|(arrival, (at, _))| *arrival >= at + least));
        }
    }
}
