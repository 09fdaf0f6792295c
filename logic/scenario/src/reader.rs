//! Typed access to the tables of a TOML text: whatever is wrong is reported at its place, and reading goes on.
//!
//! A [`Section`] remembers which keys it was asked for. Those are the keys that exist there: [`Section::finish`] reports
//! every other one. So there is no list of keys that could differ from what is read.

use core::ops::RangeInclusive;
use core::str::FromStr;

use ranpace_radio::channel::Position;
use ranpace_units::{Bytes, ParseError, Rate, Span};
use toml_edit::{Item, TableLike, Value};

use crate::error::{Report, did_you_mean};
use crate::measure::Measure;

/// A table and what has been read of it.
pub(crate) struct Section<'t> {
    table: &'t dyn TableLike,
    /// As error messages call it: `in [[link]]`.
    what: String,
    /// Byte offset of its beginning.
    pub at: usize,
    asked: Vec<&'static str>,
    pub report: &'t Report<'t>,
}

/// The value of a key.
#[derive(Clone)]
pub(crate) struct Field<'t> {
    key: &'static str,
    item: Found<'t>,
    /// Byte offset of the value.
    pub at: usize,
    pub report: &'t Report<'t>,
}

#[derive(Clone, Copy)]
enum Found<'t> {
    Item(&'t Item),
    Value(&'t Value),
}

impl<'t> Section<'t> {
    pub fn new(table: &'t dyn TableLike, what: impl Into<String>, at: usize, report: &'t Report<'t>) -> Self {
        Self { table, what: what.into(), at, asked: Vec::new(), report }
    }

    /// The value of `key`, if there is one.
    pub fn field(&mut self, key: &'static str) -> Option<Field<'t>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let item = self.table.get(key).filter(|item| !item.is_none())?;
        let key_at = || self.table.key(key).and_then(toml_edit::Key::span);
        let at = item.span().or_else(key_at).map_or(self.at, |span| span.start);
        Some(Field { key, item: Found::Item(item), at, report: self.report })
    }

    /// As [`Self::field`]; its absence is reported.
    pub fn required(&mut self, key: &'static str) -> Option<Field<'t>> {
        let field = self.field(key);
        if field.is_none() {
            self.error(format!("missing key {key:?} {}", self.what));
        }
        field
    }

    /// Whether the key is there, without reading it.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reports at the section's beginning.
    pub fn error(&self, message: impl Into<String>) {
        self.report.add(self.at, message);
    }

    /// A value of a type with a unit, in a range.
    pub fn quantity<T: Quantity>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<T> {
        self.field(key)?.quantity(range)
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.field(key)?.flag()
    }

    /// A whole number in a range.
    pub fn whole<T: TryFrom<u64>>(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<T> {
        // The range lies within T, or the caller is in error and sees the key as missing.
        self.field(key)?.whole(range).and_then(|number| T::try_from(number).ok())
    }

    /// A finite number in a range.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        self.field(key)?.number(range)
    }

    /// A value with a unit that may be negative or a fraction, in a range.
    pub fn measure(
        &mut self,
        key: &'static str,
        measure: &Measure,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        self.field(key)?.measure(measure, range)
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        let Self { table, what, at, asked, report } = self;
        for (key, _) in table.iter().filter(|(key, _)| !asked.contains(key)) {
            let at = table.key(key).and_then(toml_edit::Key::span).map_or(at, |span| span.start);
            let near = did_you_mean(key, asked.iter().copied());
            report.add(at, format!("unknown key {key:?} {what}; expected one of {}{near}", asked.join(", ")));
        }
    }
}

impl<'t> Field<'t> {
    /// Reports at the value.
    pub fn error(&self, message: impl AsRef<str>) {
        self.report.add(self.at, format!("{}: {}", self.key, message.as_ref()));
    }

    /// Reports what is wrong in the file that this names.
    pub fn error_in_file(&self, error: &dyn core::fmt::Display) {
        self.error(format!("in {}: {error}", self.described()));
    }

    fn wrong(&self, expected: &str) {
        self.error(format!("expected {expected}, found {}", self.described()));
    }

    fn value(&self) -> Option<&'t Value> {
        match self.item {
            Found::Item(item) => item.as_value(),
            Found::Value(value) => Some(value),
        }
    }

    /// What is there, as an error message says it.
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

    /// A name of something: not empty, without control characters, at most 200 bytes.
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

    /// One of a few words; the index of it.
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
        // NaN is in no range.
        if !range.contains(&number) {
            self.wrong(&format!("a number from {} to {}", range.start(), range.end()));
            return None;
        }
        // -0.0 is in a range from zero, and would print strangely.
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

    /// A whole number in a range. Numbers above 2^63, that TOML does not have, may be written in quotes.
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
            // A number without unit: the parser of the type says which units there are.
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

    /// A value with a unit that may be negative or a fraction, in a range, both in the measure's own unit.
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

    /// As [`Self::measure`], for somebody who only looks: nothing is reported.
    pub fn measure_quietly(&self, measure: &Measure) -> Option<f64> {
        match self.value() {
            Some(Value::String(text)) => measure.parse(text.value()).ok(),
            _ => None,
        }
    }

    /// Two or three coordinates in metres; the height is `z` if it is not given.
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

    /// A table, or `None` and a report. `what` is how messages call it: `in queue of [[link]]`.
    pub fn section(&self, what: impl Into<String>) -> Option<Section<'t>> {
        let table = match self.item {
            Found::Item(item) => item.as_table_like(),
            Found::Value(value) => value.as_inline_table().map(|table| table as &dyn TableLike),
        };
        match table {
            Some(table) => Some(Section::new(table, what, self.at, self.report)),
            None => {
                self.wrong("a table such as { key = value }");
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

    /// The tables of `[[key]]`, which may also be written as a list of inline tables.
    pub fn tables(&self) -> Vec<Section<'t>> {
        let what = format!("in [[{}]]", self.key);
        if let Found::Item(Item::ArrayOfTables(tables)) = self.item {
            let at = |table: &toml_edit::Table| table.span().map_or(self.at, |span| span.start);
            let section =
                |table: &'t toml_edit::Table| Section::new(table, what.clone(), at(table), self.report);
            return tables.iter().map(section).collect();
        }
        if self.is_table() {
            self.error(format!("expected [[{0}]] with two brackets, found [{0}]", self.key));
            return Vec::new();
        }
        let elements = self.list(&format!("tables, each headed [[{}]]", self.key)).unwrap_or_default();
        elements.iter().filter_map(|element| element.section(what.clone())).collect()
    }
}

/// A type with a unit.
pub(crate) trait Quantity:
    FromStr<Err = ParseError> + PartialOrd + core::fmt::Display + Default + Copy
{
    /// What is understood.
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
