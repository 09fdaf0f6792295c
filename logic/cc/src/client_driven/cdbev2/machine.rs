//! CDBEv2's states, their gains and transitions.
//!
//! Source: Zhong 2020, section 7.2.3. The figure of the state machine is reconstructed from the text and from the trace
//! described with Fig. 7.16.

use ranpace_units::Span;

/// GROW ends after this many minimal RTTs. Ours: an application that sends little would otherwise stay in it.
const GROW_RTTS: u64 = 8;

/// The states; their numbers are in the module documentation of `cdbev2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Grows by a factor of 2.175 per round until a queue shows.
    Startup,
    /// Drains the queue of a probe.
    Drain,
    /// Sends at the filtered bandwidth.
    Steady,
    /// Probes for more bandwidth.
    Grow,
    /// Drains below the BDP, to reveal a smaller RTT.
    DeepFirst,
    /// Waits until the other flows have measured it.
    Pause,
    /// Drains below the BDP again.
    DeepSecond,
}

impl Mode {
    /// Pace over bandwidth (section 7.2.3).
    pub fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.175,
            Self::Drain | Self::DeepFirst | Self::DeepSecond => 0.75,
            Self::Steady | Self::Pause => 1.0,
            Self::Grow => 1.25,
        }
    }

    /// Window over BDP (section 7.2.3; after STARTUP section 6.4.1, chapter 7 gives none).
    pub fn cwnd_gain(self) -> f64 {
        match self {
            Self::Startup => 2.175,
            _ => 2.0,
        }
    }

    /// Returns whether the state drains below the BDP.
    pub fn is_deep(self) -> bool {
        matches!(self, Self::DeepFirst | Self::DeepSecond)
    }
}

/// Number of deep DRAINs in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainDepth {
    /// Two, with a pause between them: the first lets other flows find their minimal RTT, the second this flow.
    Dual,
    /// One.
    Single,
    /// None.
    Off,
}

/// Inputs of the transitions; amounts in bytes.
#[derive(Clone, Copy, Debug)]
pub struct TransitionInputs {
    /// Time in the state.
    pub since: Span,
    /// Smallest RTT.
    pub rtt_min: Span,
    /// Duration of this STEADY.
    pub steady_for: Span,
    /// Data in flight.
    pub in_flight: f64,
    /// DRAIN ends at this amount in flight.
    pub drain_limit: f64,
    /// GROW ends above this amount in flight.
    pub grow_limit: f64,
    /// Whether a queue has shown or the bandwidth no longer grows.
    pub startup_over: bool,
    /// Number of deep DRAINs when [`Self::deep_due`].
    pub deep: DrainDepth,
    /// Whether the minimal RTT has not been seen for long.
    pub deep_due: bool,
    /// Whether enough minimal RTTs have been seen to end a deep DRAIN.
    pub fair_quit: bool,
    /// Whether a minimal RTT was seen in the pause.
    pub paused_hit: bool,
}

/// The state table: at most one transition per acknowledgement.
pub fn next(mode: Mode, facts: &TransitionInputs) -> Mode {
    let drained = facts.in_flight <= facts.drain_limit;
    match mode {
        Mode::Startup if facts.startup_over => Mode::Drain,
        Mode::Drain if drained => Mode::Steady,
        Mode::Steady if facts.since >= facts.steady_for => Mode::Grow,
        Mode::Grow if facts.in_flight > facts.grow_limit || facts.since >= facts.rtt_min * GROW_RTTS => {
            if facts.deep_due && facts.deep != DrainDepth::Off {
                Mode::DeepFirst
            } else {
                Mode::Drain
            }
        }
        Mode::DeepFirst if drained || facts.fair_quit => match facts.deep {
            DrainDepth::Dual => Mode::Pause,
            DrainDepth::Single | DrainDepth::Off => Mode::Steady,
        },
        Mode::Pause if facts.paused_hit => Mode::Steady,
        Mode::Pause if facts.since >= facts.rtt_min => Mode::DeepSecond,
        Mode::DeepSecond if drained || facts.fair_quit => Mode::Steady,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_the_published_ones() {
        for (mode, number, pacing, cwnd) in [
            (Mode::Startup, 0, 2.175, 2.175),
            (Mode::Drain, 1, 0.75, 2.0),
            (Mode::Steady, 2, 1.0, 2.0),
            (Mode::Grow, 3, 1.25, 2.0),
            (Mode::DeepFirst, 4, 0.75, 2.0),
            (Mode::Pause, 5, 1.0, 2.0),
            (Mode::DeepSecond, 6, 0.75, 2.0),
        ] {
            assert_eq!(
                (mode as u8, mode.pacing_gain(), mode.cwnd_gain()),
                (number, pacing, cwnd),
                "{mode:?}"
            );
        }
    }

    #[test]
    fn the_state_table_is_the_published_one() {
        use Mode::{DeepFirst, DeepSecond, Drain, Grow, Pause, Startup, Steady};
        let ms = Span::from_millis;
        let idle = TransitionInputs {
            since: ms(0),
            rtt_min: ms(60),
            steady_for: ms(200),
            in_flight: 170_000.0,
            drain_limit: 152_800.0,
            grow_limit: 187_500.0,
            startup_over: false,
            deep: DrainDepth::Dual,
            deep_due: false,
            fair_quit: false,
            paused_hit: false,
        };
        let drained = TransitionInputs { in_flight: 152_800.0, ..idle };
        let full = TransitionInputs { in_flight: 187_501.0, ..idle };
        let (single, off) = (DrainDepth::Single, DrainDepth::Off);
        for (case, mode, facts, expected) in [
            ("no queue yet", Startup, TransitionInputs { since: ms(9000), in_flight: 1e9, ..idle }, Startup),
            ("a queue", Startup, TransitionInputs { startup_over: true, ..idle }, Drain),
            (
                "no deep DRAIN after STARTUP",
                Startup,
                TransitionInputs { startup_over: true, deep_due: true, ..idle },
                Drain,
            ),
            (
                "a byte above the limit",
                Drain,
                TransitionInputs { in_flight: 152_801.0, since: ms(9000), ..idle },
                Drain,
            ),
            ("drained", Drain, drained, Steady),
            ("only deep DRAINs quit", Drain, TransitionInputs { fair_quit: true, ..idle }, Drain),
            ("within STEADY", Steady, TransitionInputs { since: ms(199), ..idle }, Steady),
            ("STEADY ends", Steady, TransitionInputs { since: ms(200), ..idle }, Grow),
            ("at the limit of GROW", Grow, TransitionInputs { in_flight: 187_500.0, ..idle }, Grow),
            ("above it", Grow, full, Drain),
            ("just under 8 RTTs of GROW", Grow, TransitionInputs { since: ms(479), ..idle }, Grow),
            ("8 RTTs of GROW", Grow, TransitionInputs { since: ms(480), ..idle }, Drain),
            ("a deep DRAIN is due, GROW goes on", Grow, TransitionInputs { deep_due: true, ..idle }, Grow),
            ("a deep DRAIN is due", Grow, TransitionInputs { deep_due: true, ..full }, DeepFirst),
            ("one is due", Grow, TransitionInputs { deep_due: true, deep: single, ..full }, DeepFirst),
            ("none is done", Grow, TransitionInputs { deep_due: true, deep: off, ..full }, Drain),
            ("still deep", DeepFirst, idle, DeepFirst),
            ("first is drained", DeepFirst, drained, Pause),
            ("first quits", DeepFirst, TransitionInputs { fair_quit: true, ..idle }, Pause),
            ("the only one is drained", DeepFirst, TransitionInputs { deep: single, ..drained }, Steady),
            ("within the pause", Pause, TransitionInputs { since: ms(59), ..drained }, Pause),
            ("the pause ends", Pause, TransitionInputs { since: ms(60), ..idle }, DeepSecond),
            ("a minimal RTT in the pause", Pause, TransitionInputs { paused_hit: true, ..idle }, Steady),
            (
                "the same at its end",
                Pause,
                TransitionInputs { paused_hit: true, since: ms(60), ..idle },
                Steady,
            ),
            ("still deep, second", DeepSecond, TransitionInputs { since: ms(9000), ..idle }, DeepSecond),
            ("second is drained", DeepSecond, drained, Steady),
            ("second quits", DeepSecond, TransitionInputs { fair_quit: true, ..idle }, Steady),
        ] {
            assert_eq!(next(mode, &facts), expected, "{case}");
        }
    }
}
