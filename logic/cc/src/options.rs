//! The options of an algorithm, `key=value` after colons: read by name; an option that nothing reads is an error.

use core::str::FromStr;

use ranpace_units::{Bytes, Rate, Span};

/// Description of an option, for `ranpace list cc` and for error messages.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Its key.
    pub key: &'static str,
    /// Its values and default, in words; [`Self::form`] reads them.
    pub values: &'static str,
    /// Its effect.
    pub about: &'static str,
}

/// Why an option was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {key}: expected {expected}, found {found:?}")]
pub struct OptionError {
    /// Its key.
    pub key: &'static str,
    /// The values that are accepted.
    pub expected: String,
    /// The text found.
    pub found: String,
}

/// The options given; each is read once.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Key, value (`None` for a bare flag), and whether it has been read.
    given: Vec<(String, Option<String>, bool)>,
}

impl Options {
    pub(crate) fn new(given: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self { given: given.into_iter().map(|(key, value)| (key, value, false)).collect() }
    }

    fn take(&mut self, key: &'static str) -> Option<Option<String>> {
        let mut found = None;
        for (given, value, read) in &mut self.given {
            if given == key {
                *read = true;
                found = Some(value.clone());
            }
        }
        found
    }

    /// Returns whether the key was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.given.iter().any(|(given, _, _)| given == key)
    }

    /// The first key that has not been read.
    pub(crate) fn unread(&self) -> Option<&str> {
        self.given.iter().find(|(_, _, read)| !read).map(|(key, _, _)| key.as_str())
    }

    /// A value of any type with a text form, or `default`.
    pub fn value<T: FromStr>(
        &mut self,
        key: &'static str,
        expected: &str,
        default: T,
    ) -> Result<T, OptionError> {
        match self.take(key) {
            None => Ok(default),
            Some(text) => {
                let found = text.unwrap_or_default();
                found.parse().map_err(|_| OptionError { key, expected: expected.to_owned(), found })
            }
        }
    }

    /// A time, such as `target=50ms`.
    pub fn span(&mut self, key: &'static str, default: Span) -> Result<Span, OptionError> {
        self.value(key, "a time such as 50ms", default)
    }

    /// A rate, such as `rate=10Mbit/s`.
    pub fn rate(&mut self, key: &'static str, default: Rate) -> Result<Rate, OptionError> {
        self.value(key, "a rate such as 10Mbit/s", default)
    }

    /// A size, such as `quantum=1500B`.
    pub fn bytes(&mut self, key: &'static str, default: Bytes) -> Result<Bytes, OptionError> {
        self.value(key, "a size such as 1500B", default)
    }

    /// A finite number in `[low, high]`.
    pub fn number(
        &mut self,
        key: &'static str,
        low: f64,
        high: f64,
        default: f64,
    ) -> Result<f64, OptionError> {
        let expected = format!("a number from {low} to {high}");
        let number: f64 = self.value(key, &expected, default)?;
        if number >= low && number <= high {
            Ok(number)
        } else {
            Err(OptionError { key, expected, found: number.to_string() })
        }
    }

    /// A switch: `key`, `key=on` or `key=off`.
    pub fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, OptionError> {
        match self.take(key) {
            None => Ok(default),
            Some(None) => Ok(true),
            Some(Some(text)) => match text.as_str() {
                "on" | "true" | "1" => Ok(true),
                "off" | "false" | "0" => Ok(false),
                _ => Err(OptionError { key, expected: "on or off".to_owned(), found: text }),
            },
        }
    }

    /// One of several words with its meaning; the first is the default.
    pub fn choice<T: Clone>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<T, OptionError> {
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let given = self.take(key);
        let Some(text) = given else { return Ok(choices[0].1.clone()) };
        let text = text.unwrap_or_default();
        choices
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| value.clone())
            .ok_or_else(|| OptionError { key, expected: format!("one of {}", words()), found: text })
    }
}
