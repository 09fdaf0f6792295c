//! An algorithm by its text form, `NAME(+DECORATOR)*(:key=value)*`: parsed, checked and built.

use core::fmt;
use core::str::FromStr;

use crate::client_driven::guard::GUARD;
use crate::entry::{Control, ControlWrapper, Decorator, Entry, ReceiverWrapper, Transport};
use crate::interface::{CongestionControl, EcnUse, ReceiverHalf};
use crate::options::{OptionError, Options};
use crate::registry::{ALIASES, ALL, DECORATORS};

/// An algorithm with its decorators and options, checked.
#[derive(Clone)]
pub struct Algorithm {
    text: String,
    entry: &'static Entry,
    decorators: Vec<&'static Decorator>,
    options: Options,
    around: Option<ControlWrapper>,
    around_receiver: Option<ReceiverWrapper>,
}

/// Why the name of an algorithm was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// No such algorithm.
    #[error("unknown algorithm {name:?}; nearest: {nearest}; `ranpace list cc` shows all")]
    UnknownName {
        /// The text found.
        name: String,
        /// The nearest names.
        nearest: String,
    },
    /// No such decorator.
    #[error("unknown decorator {name:?} in {text:?}; there are: {all}")]
    UnknownDecorator {
        /// The whole text.
        text: String,
        /// The text found.
        name: String,
        /// All decorators.
        all: String,
    },
    /// The decorator cannot wrap this algorithm.
    #[error(
        "{text:?}: {decorator} wraps loss-based controls only, and {name} is not one; it can be combined with {possible}"
    )]
    CannotCombine {
        /// The whole text.
        text: String,
        /// The algorithm.
        name: String,
        /// The decorator.
        decorator: String,
        /// The controls that it can be combined with.
        possible: String,
    },
    /// No such option.
    #[error("{text:?}: no option {key:?}; there are: {all}")]
    UnknownOption {
        /// The whole text.
        text: String,
        /// The text found.
        key: String,
        /// The options of this combination.
        all: String,
    },
    /// A count beyond any reasonable use.
    #[error("{found} {what} in {text:?}...; at most {most} are understood")]
    TooMany {
        /// The beginning of the text.
        text: String,
        /// The unit of the count.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// An invalid value of an option.
    #[error("{text:?}: {error}")]
    BadOption {
        /// The whole text.
        text: String,
        /// The fault.
        error: OptionError,
    },
}

/// Most decorators around a control. Ours: only a few exist, and repeating one has no benefit.
const MOST_DECORATORS: usize = 16;
/// Longest name with its options, in bytes. Ours: all options of all decorators take a fifth of it.
const MOST_TEXT: usize = 4_096;

impl Algorithm {
    /// The text that was parsed, with `guard=on` added if that is the default.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The transport of its packets.
    pub fn transport(&self) -> Transport {
        self.entry.transport
    }

    /// The algorithm without its decorators.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Its decorators, from the inside out.
    pub fn decorators(&self) -> &[&'static Decorator] {
        &self.decorators
    }

    /// Its options, to be read by name: for carriers that do not build the control but write its settings elsewhere.
    pub fn options(&self) -> Options {
        self.options.clone()
    }

    /// Wraps every control that is built, for example in a recorder of its events.
    #[must_use]
    pub fn with_around(self, around: ControlWrapper) -> Self {
        Self { around: Some(around), ..self }
    }

    /// Wraps every receiver half that is built.
    #[must_use]
    pub fn with_around_receiver(self, around: ReceiverWrapper) -> Self {
        Self { around_receiver: Some(around), ..self }
    }

    /// Builds a control; `seed` feeds its random choices.
    pub fn build(&self, seed: u64) -> Box<dyn CongestionControl> {
        // Parsing built it once with the same options, so this cannot fail.
        let mut options = self.options.clone();
        let control =
            self.try_build(&mut options, seed).expect("options were checked when the name was parsed");
        match &self.around {
            Some(around) => around(control),
            None => control,
        }
    }

    /// Segments after which the receiver should acknowledge at once, if the control requires it; see
    /// [`CongestionControl::ecn`].
    pub fn ecn(&self) -> EcnUse {
        self.build(0).ecn()
    }

    /// [`CongestionControl::ack_every`].
    pub fn ack_every(&self) -> Option<u32> {
        self.build(0).ack_every()
    }

    /// Builds a receiver half, if the algorithm has one.
    pub fn receiver(&self) -> Option<Box<dyn ReceiverHalf>> {
        let mut options = self.options.clone();
        // As above: parsing built it once.
        let build = self.entry.receiver?;
        let receiver = build(&mut options).expect("options were checked when the name was parsed")?;
        Some(match &self.around_receiver {
            Some(around) => around(receiver),
            None => receiver,
        })
    }

    fn try_build(&self, options: &mut Options, seed: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
        match (self.entry.build)(options, seed)? {
            Control::LossBased(mut control) => {
                for decorator in &self.decorators {
                    control = (decorator.wrap)(control, options)?;
                }
                Ok(control)
            }
            Control::Other(control) => Ok(control),
        }
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;

    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        Self::parse(text, &[])
    }
}

impl Algorithm {
    /// Parses a name, which may also be that of a control of the caller's own. An `own` control with the name of a listed one is
    /// not found.
    ///
    /// # Errors
    ///
    /// If there is no such algorithm, decorator or option, or if a value is refused.
    pub fn parse(text: &str, own: &[&'static Entry]) -> Result<Self, AlgorithmError> {
        let text = text.trim();
        let refused = |what, found, most| {
            let text = text.chars().take(40).collect();
            Err(AlgorithmError::TooMany { text, what, found, most })
        };
        // The suffix added below does not count.
        let length = text.strip_suffix(":guard=on").unwrap_or(text).len();
        if length > MOST_TEXT {
            return refused("bytes", length, MOST_TEXT);
        }
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let wraps = name.matches('+').count();
        if wraps > MOST_DECORATORS {
            return refused("decorators", wraps, MOST_DECORATORS);
        }
        let (head, tail) = name.split_once('+').map_or((name, None), |(head, tail)| (head, Some(tail)));
        let head = ALIASES.iter().find(|(alias, _)| *alias == head).map_or(head, |(_, full)| *full);
        let full = tail.map_or_else(|| head.to_owned(), |tail| format!("{head}+{tail}"));
        let mut names = full.split('+');
        let base = names.next().unwrap_or_default();
        let entry = ALL.iter().chain(own).copied().find(|entry| entry.name == base).ok_or_else(|| {
            AlgorithmError::UnknownName { name: base.to_owned(), nearest: nearest(base, own) }
        })?;
        let mut decorators = Vec::new();
        for name in names {
            let decorator =
                DECORATORS.iter().copied().find(|decorator| decorator.name == name).ok_or_else(|| {
                    AlgorithmError::UnknownDecorator {
                        text: text.to_owned(),
                        name: name.to_owned(),
                        all: join(DECORATORS.iter().map(|decorator| decorator.name)),
                    }
                })?;
            if !entry.loss_based {
                return Err(AlgorithmError::CannotCombine {
                    text: text.to_owned(),
                    name: entry.name.to_owned(),
                    decorator: name.to_owned(),
                    possible: join(ALL.iter().filter(|entry| entry.loss_based).map(|entry| entry.name)),
                });
            }
            decorators.push(decorator);
        }
        let given = parts.map(|part| match part.split_once('=') {
            Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
            None => (part.trim().to_owned(), None),
        });
        let mut algorithm = Self {
            text: text.to_owned(),
            entry,
            decorators,
            options: Options::new(given),
            around: None,
            around_receiver: None,
        };
        let mut options = algorithm.options.clone();
        let bad = |error| AlgorithmError::BadOption { text: text.to_owned(), error };
        algorithm.try_build(&mut options, 0).map_err(bad)?;
        if let Some(receiver) = entry.receiver {
            receiver(&mut options).map_err(bad)?;
        }
        if let Some(key) = options.unread() {
            let all = entry.options.iter().chain(algorithm.decorators.iter().flat_map(|d| d.options));
            return Err(AlgorithmError::UnknownOption {
                text: text.to_owned(),
                key: key.to_owned(),
                all: join(all.map(|option| option.key)),
            });
        }
        // The guard is ours and not part of the publication, so the name always shows it, even if it is on by default.
        let mut known = entry.options.iter().chain(algorithm.decorators.iter().flat_map(|d| d.options));
        if known.any(|option| option.key == GUARD.key) && !algorithm.options.has(GUARD.key) {
            algorithm.text += &format!(":{}=on", GUARD.key);
        }
        Ok(algorithm)
    }
}

/// The three nearest names, nearest first.
fn nearest(name: &str, own: &[&'static Entry]) -> String {
    let listed = ALL.iter().chain(own).map(|entry| entry.name);
    let mut names: Vec<&str> = listed.chain(ALIASES.iter().map(|(alias, _)| *alias)).collect();
    names.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    join(names.into_iter().take(3))
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let joined = names.collect::<Vec<_>>().join(", ");
    if joined.is_empty() { "none".to_owned() } else { joined }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Algorithm({})", self.text)
    }
}
impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for Algorithm {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Algorithm, AlgorithmError> {
        text.parse()
    }

    #[test]
    fn names_decorators_and_options_are_understood() {
        for (text, entry, decorators) in [
            ("cubic", "cubic", 0),
            (" newreno ", "newreno", 0),
            ("reno", "newreno", 0),
            ("cubic+c2tcp:target=50ms", "cubic", 1),
            ("cubic+c2tcp:target=50ms:deaf=1s", "cubic", 1),
            ("c2tcp:tuner=off:alpha=2", "cubic", 1),
            ("c2tcp+c2tcp", "cubic", 2),
            ("reno+c2tcp: boost = integer", "newreno", 1),
            ("cubic:rfc9438:hystart=off", "cubic", 0),
        ] {
            let algorithm = parse(text).unwrap();
            assert_eq!(algorithm.entry().name, entry, "{text}");
            assert_eq!(algorithm.decorators.len(), decorators, "{text}");
            assert_eq!(algorithm.to_string(), text.trim());
            drop(algorithm.build(1));
        }
    }

    #[test]
    fn canonical_name_shows_guard_on() {
        assert_eq!(parse("cdbev2").unwrap().as_str(), "cdbev2:guard=on");
        assert_eq!(parse("cdbe:fence=literal").unwrap().as_str(), "cdbe:fence=literal:guard=on");
        for text in ["cdbev2:guard=off", "cdbev2:guard=on", "cdbev2:guard", "cubic"] {
            assert_eq!(parse(text).unwrap().as_str(), text);
        }
        assert_eq!(parse("cdbev2").unwrap(), parse("cdbev2:guard=on").unwrap());
    }

    #[test]
    fn refusals_list_the_valid_names() {
        for (text, expected) in [
            ("cubik", "unknown algorithm \"cubik\"; nearest: cubic"),
            ("c2tpc", "nearest: c2tcp"),
            ("", "unknown algorithm \"\""),
            ("vages", "nearest: vegas"),
            (
                "cubic+codel",
                "unknown decorator \"codel\" in \"cubic+codel\"; there are: c2tcp, lda, meld-de, meld-me",
            ),
            (
                "bbr1+c2tcp",
                "wraps loss-based controls only, and bbr1 is not one; it can be combined with newreno, cubic",
            ),
            ("cubic:target=50ms", "no option \"target\"; there are: rfc9438, hystart"),
            ("newreno:target=50ms", "no option \"target\"; there are: none"),
            (
                "cubic+c2tcp:goal=50ms",
                "no option \"goal\"; there are: rfc9438, hystart, c, beta, fast_convergence, friendliness, target",
            ),
            ("cubic+c2tcp:target=50", "option target: expected a time such as 50ms, found \"50\""),
            ("cubic+c2tcp:target", "found \"\""),
            ("cubic+c2tcp:alpha=0.5", "option alpha: expected a number from 1 to 100, found \"0.5\""),
            ("cubic+c2tcp:alpha=NaN", "found \"NaN\""),
            ("cubic+c2tcp:tuner=alg4", "expected one of alg3, eq16, memoryless, off, found \"alg4\""),
            (
                "cubic+c2tcp:min_alpha=5:max_alpha=2",
                "option max_alpha: expected at least min_alpha (5), found \"2\"",
            ),
            (&format!("cubic{}", "+c2tcp".repeat(20_000)), "120005 bytes in \"cubic+c2tcp"),
            (&format!("cubic{}", "+c2tcp".repeat(17)), "17 decorators in \"cubic+c2tcp"),
            ("cubic:rfc9438=maybe", "expected on or off, found \"maybe\""),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn control_that_owns_the_window_cannot_be_decorated() {
        for entry in ALL {
            for decorator in DECORATORS {
                let text = format!("{}+{}", entry.name, decorator.name);
                let refused = matches!(parse(&text), Err(AlgorithmError::CannotCombine { .. }));
                assert_eq!(refused, !entry.loss_based, "{text}");
            }
        }
    }

    #[test]
    fn listing_matches_the_built_controls() {
        let mut names: Vec<&str> =
            ALL.iter().map(|entry| entry.name).chain(ALIASES.iter().map(|a| a.0)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len() + ALIASES.len(), "a name is used twice");
        let listed = ALL.iter().map(|entry| (entry.name.to_owned(), entry.options)).chain(
            DECORATORS.iter().map(|decorator| (format!("newreno+{}", decorator.name), decorator.options)),
        );
        for (name, options) in listed {
            parse(&name).unwrap();
            for option in options {
                // The option is read, so it is refused for its value and not for its key.
                let refused = parse(&format!("{name}:{}=@", option.key)).unwrap_err();
                assert!(matches!(refused, AlgorithmError::BadOption { .. }), "{name}: {refused}");
            }
        }
    }

    #[test]
    fn controls_of_the_caller_are_found_beside_the_listed_ones() {
        static OWN: Entry = Entry { name: "mine", ..crate::classic::newreno::ENTRY };
        assert_eq!(Algorithm::parse("mine+c2tcp", &[&OWN]).unwrap().entry().name, "mine");
        let unknown = Algorithm::parse("mimne", &[&OWN]).unwrap_err().to_string();
        assert!(unknown.contains("nearest: mine"), "{unknown}");
        assert!(matches!(parse("mine"), Err(AlgorithmError::UnknownName { .. })));
    }

    #[test]
    fn wrapper_is_applied_to_every_built_control() {
        use crate::interface::{Ack, Congestion, Context, LossResponse, Window};

        #[derive(Debug)]
        struct Shell(Box<dyn CongestionControl>);
        impl CongestionControl for Shell {
            fn inner(&self) -> Option<&dyn CongestionControl> {
                Some(self.0.as_ref())
            }
            fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
                self.0.on_congestion(cx, w, event)
            }
            fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
                self.0.on_ack(cx, w, ack);
            }
        }

        let plain = parse("vivace").unwrap();
        let around = plain.clone().with_around(std::sync::Arc::new(|control| Box::new(Shell(control))));
        assert!(plain.build(1).inner().is_none() && around.build(1).inner().is_some());
        assert_eq!((around.ack_every(), &around), (Some(1), &plain), "it is the same algorithm");
    }

    #[test]
    fn loss_based_is_what_build_says() {
        for entry in ALL {
            let control = (entry.build)(&mut Options::default(), 1).unwrap();
            assert_eq!(matches!(control, Control::LossBased(_)), entry.loss_based, "{}", entry.name);
        }
    }
}
