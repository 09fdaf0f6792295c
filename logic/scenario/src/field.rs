//! A written value: typed access that reports problems at its position.

use core::ops::RangeInclusive;
use core::str::FromStr;

use ranpace_radio::channel::Position;
use ranpace_units::{Bytes, ParseError, Rate, Span};
use toml_edit::{Item, Value};

use crate::error::{Diagnostics, did_you_mean};
use crate::measure::Measure;

/// The value of a key.
#[derive(Clone)]
pub(crate) struct Field<'t> {
    pub(crate) key: &'static str,
    pub(crate) item: Found<'t>,
    /// Byte offset of the value.
    pub at: usize,
    pub report: &'t Diagnostics<'t>,
}

#[derive(Clone, Copy)]
pub(crate) enum Found<'t> {
    Item(&'t Item),
    Value(&'t Value),
}

impl<'t> Field<'t> {
    /// Reports a problem at the value.
    pub fn error(&self, message: impl AsRef<str>) {
        self.report.add(self.at, format!("{}: {}", self.key, message.as_ref()));
    }

    /// Reports a problem in the file that this value names.
    pub fn error_in_file(&self, error: &dyn core::fmt::Display) {
        self.error(format!("in {}: {error}", self.described()));
    }

    pub(crate) fn wrong(&self, expected: &str) {
        self.error(format!("expected {expected}, found {}", self.described()));
    }

    fn value(&self) -> Option<&'t Value> {
        match self.item {
            Found::Item(item) => item.as_value(),
            Found::Value(value) => Some(value),
        }
    }

    /// The value as shown in error messages.
    fn described(&self) -> String {
        match self.value() {
            Some(Value::String(text)) => format!("{:?}", text.value()),
            Some(Value::Integer(number)) => number.value().to_string(),
            Some(Value::Float(number)) => number.value().to_string(),
            Some(Value::Boolean(flag)) => flag.value().to_string(),
            Some(Value::Datetime(_)) => "a date".to_owned(),
            Some(Value::Array(_)) => "a list".to_owned(),
            Some(Value::InlineTable(_)) | None => "a table".to_owned(),
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(self.value(), Some(Value::String(_)))
    }

    pub fn is_empty_list(&self) -> bool {
        matches!(self.value(), Some(Value::Array(list)) if list.is_empty())
    }

    pub fn is_table(&self) -> bool {
        matches!(self.value(), Some(Value::InlineTable(_)) | None)
    }

    /// A string.
    pub fn text(&self, expected: &str) -> Option<&'t str> {
        match self.value() {
            Some(Value::String(text)) => Some(text.value()),
            _ => {
                self.wrong(expected);
                None
            }
        }
    }

    /// A name: not empty, without control characters, at most 200 bytes.
    pub fn name(&self) -> Option<&'t str> {
        let name = self.text("a name in quotes")?;
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            self.error(format!(
                "expected a name of 1 to 200 bytes without control characters, found {name:?}"
            ));
            return None;
        }
        Some(name)
    }

    /// One of a few words.
    pub fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        let expected = format!("one of {}", words.join(", "));
        let text = self.text(&expected)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let near = did_you_mean(text, words.iter().copied());
            self.error(format!("expected {expected}, found {text:?}{near}"));
        }
        found
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        match self.value() {
            Some(Value::Boolean(flag)) => Some(*flag.value()),
            _ => {
                self.wrong("true or false");
                None
            }
        }
    }

    /// A finite number in a range.
    pub fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.value() {
            Some(Value::Float(number)) => *number.value(),
            Some(Value::Integer(number)) => *number.value() as f64,
            _ => f64::NAN,
        };
        // NaN is outside every range.
        if !range.contains(&number) {
            self.wrong(&format!("a number from {} to {}", range.start(), range.end()));
            return None;
        }
        // Turns -0.0, which would print strangely, into 0.0.
        Some(number + 0.0)
    }

    /// A number above zero, at most `most`.
    pub fn positive(&self, most: f64) -> Option<f64> {
        let number = self.number(0.0..=most)?;
        if number == 0.0 {
            self.error("must be above zero");
            return None;
        }
        Some(number)
    }

    /// A whole number in a range. Numbers above 2^63, which TOML does not support, may be written in quotes.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let number = match self.value() {
            Some(Value::Integer(number)) => u64::try_from(*number.value()).ok(),
            Some(Value::String(text)) if text.value().bytes().all(|b| b.is_ascii_digit()) => {
                text.value().parse().ok()
            }
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(&format!("a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A value of a type with a unit, in a range.
    pub fn quantity<T: Quantity>(&self, range: RangeInclusive<T>) -> Option<T> {
        let bare;
        let text = match self.value() {
            Some(Value::String(text)) => text.value(),
            // A number without a unit: the parser of the type names the known units.
            Some(Value::Integer(_) | Value::Float(_)) => {
                bare = self.described();
                &bare
            }
            _ => {
                self.wrong(T::EXPECTED);
                return None;
            }
        };
        let value: T = match text.parse() {
            Ok(value) => value,
            Err(_) if text.trim_start().starts_with('-') => {
                self.error(format!("expected {}, found {text:?}; it cannot be negative", T::EXPECTED));
                return None;
            }
            Err(error) => {
                let error: ParseError = error;
                self.error(error.to_string());
                return None;
            }
        };
        if range.contains(&value) {
            return Some(value);
        }
        if value == T::default() {
            self.error(format!("must be above zero, found {text:?}"));
        } else {
            self.error(format!("expected {} to {}, found {text:?}", range.start(), range.end()));
        }
        None
    }

    /// A value with a unit that may be negative or fractional, in a range in the measure's own unit.
    pub fn measure(&self, measure: &Measure, range: RangeInclusive<f64>) -> Option<f64> {
        let text = match self.value() {
            Some(Value::String(text)) => text.value().clone(),
            _ => self.described(),
        };
        let value = match measure.parse(&text) {
            Ok(value) => value,
            Err(problem) => {
                self.error(format!("expected {}, found {text:?}{problem}", measure.expected));
                return None;
            }
        };
        if !range.contains(&value) {
            let (least, most, unit) = (range.start(), range.end(), measure.unit());
            self.error(format!("expected {least}{unit} to {most}{unit}, found {text:?}"));
            return None;
        }
        Some(value)
    }

    /// Like [`Self::measure`], but without reporting problems.
    pub fn measure_quietly(&self, measure: &Measure) -> Option<f64> {
        match self.value() {
            Some(Value::String(text)) => measure.parse(text.value()).ok(),
            _ => None,
        }
    }

    /// Two or three coordinates in metres; `z` is the default height.
    pub fn position(&self, z: f64) -> Option<Position> {
        let numbers = self.list("a position in metres such as [50, 0] or [50, 0, 1.5]")?;
        let metres: Option<Vec<f64>> = numbers.iter().map(|field| field.number(-1e6..=1e6)).collect();
        match metres?[..] {
            [x, y] => Some(Position::new(x, y, z)),
            [x, y, z] => Some(Position::new(x, y, z)),
            _ => {
                self.error(format!("expected two or three coordinates in metres, found {}", numbers.len()));
                None
            }
        }
    }

    /// The elements of a list.
    pub fn list(&self, expected: &str) -> Option<Vec<Field<'t>>> {
        let Some(Value::Array(list)) = self.value() else {
            self.wrong(expected);
            return None;
        };
        let element = |value: &'t Value| Field {
            key: self.key,
            item: Found::Value(value),
            at: value.span().map_or(self.at, |span| span.start),
            report: self.report,
        };
        Some(list.iter().map(element).collect())
    }
}

/// A type with a unit.
pub(crate) trait Quantity:
    FromStr<Err = ParseError> + PartialOrd + core::fmt::Display + Default + Copy
{
    /// Description of valid values.
    const EXPECTED: &'static str;
}
impl Quantity for Span {
    const EXPECTED: &'static str = "a time such as \"20ms\"";
}
impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate such as \"12Mbit/s\"";
}
impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size such as \"150KB\"";
}
