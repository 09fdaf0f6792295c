//! The words of RAPID's settings, as they stand in scenarios and in the configuration of `ranpace proxy`.

use core::fmt;
use core::str::FromStr;

use ranpace_units::Span;

use super::settings::{
    Accounting, Estimator, LateCapacity, Profile, RanRttMin, RttMargin, Slack, WindowRule,
};

/// A word that no value has, or no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}")]
pub struct UnknownWord {
    /// All that is possible.
    pub expected: String,
    /// What was there.
    pub found: String,
}

macro_rules! words {
    ($($name:ident { $($word:literal: $value:ident),+ })+) => {$(
        impl $name {
            /// All values with their words.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                let known = Self::WORDS.iter().find(|(word, _)| *word == text);
                known.map(|(_, value)| *value).ok_or_else(|| UnknownWord {
                    expected: listed([$($word),+]),
                    found: text.to_owned(),
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$value => $word),+
                })
            }
        }
    )+};
}

words! {
    Profile { "thesis": Thesis, "field": Field }
    Estimator { "alloc_plus_unused": AllocPlusUnused, "fair_share": FairShare, "larger": Larger }
    Accounting { "rate": Rate, "share_bytes": ShareBytes, "literal": Literal }
    RanRttMin { "smoothed": Smoothed, "bounded": Bounded, "plain": Plain }
    WindowRule { "wired": Wired, "whole": Whole, "module": Module }
    LateCapacity { "least": Least, "mean": Mean }
}

fn listed<const N: usize>(words: [&str; N]) -> String {
    words.map(|word| format!("{word:?}")).join(", ")
}

impl Slack {
    /// The word of [`Self::HalfRtt`]; the others are times.
    pub const WORD: &'static str = "half_rtt";
}

impl RttMargin {
    /// The word of [`Self::Technology`]; the others are times.
    pub const WORD: &'static str = "technology";
}

/// What stands for a time, or for the word in its place.
fn time_or(text: &str, word: &str) -> Result<Option<Span>, UnknownWord> {
    if text == word {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| UnknownWord {
        expected: format!("a time, such as \"1.5ms\", or {word:?}"),
        found: text.to_owned(),
    })
}

impl FromStr for Slack {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Ok(time_or(text, Self::WORD)?.map_or(Self::HalfRtt, Self::Fixed))
    }
}

impl fmt::Display for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => time.fmt(f),
            Self::HalfRtt => f.pad(Self::WORD),
        }
    }
}

impl FromStr for RttMargin {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Ok(time_or(text, Self::WORD)?.map_or(Self::Technology, Self::Fixed))
    }
}

impl fmt::Display for RttMargin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => time.fmt(f),
            Self::Technology => f.pad(Self::WORD),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // allowed in tests

    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_other_words_are_refused_by_name() {
        for (word, value) in WindowRule::WORDS {
            assert_eq!((value.to_string(), word.parse()), ((*word).to_owned(), Ok(*value)));
        }
        for slack in [Slack::HalfRtt, Slack::Fixed(Span::from_micros(1_500))] {
            assert_eq!(slack.to_string().parse(), Ok(slack));
        }
        for margin in [RttMargin::Technology, RttMargin::Fixed(Span::ZERO)] {
            assert_eq!(margin.to_string().parse(), Ok(margin));
        }
        let error = "wide".parse::<WindowRule>().unwrap_err().to_string();
        assert_eq!(error, "expected \"wired\", \"whole\", \"module\", found \"wide\"");
        let error = "16".parse::<RttMargin>().unwrap_err().to_string();
        assert_eq!(error, "expected a time, such as \"1.5ms\", or \"technology\", found \"16\"");
    }
}
