//! The kinds of values that keys have.

use core::ops::RangeInclusive;

use ranpace_units::{Bytes, Rate, Span};

use super::{Describe, Kind, Print};
use crate::field::{Field, Quantity};
use crate::measure::Measure;

/// A quantity with a unit, in a range.
pub(crate) struct Within<T>(pub RangeInclusive<T>);
pub(crate) type Duration = Within<Span>;
pub(crate) type Size = Within<Bytes>;
pub(crate) type Rates = Within<Rate>;

/// Any time.
pub(crate) const ANY_TIME: Duration = Within(Span::ZERO..=Span::MAX);

impl<T: Quantity + Bounds> Describe for Within<T> {
    fn shown(&self) -> String {
        let (least, most) = (self.0.start(), self.0.end());
        match (*least > T::LEAST, *most < T::MOST) {
            (false, false) => T::WORD.to_owned(),
            (false, true) => format!("{}, at most {}", T::WORD, most.page()),
            (true, false) => format!("{}, at least {}", T::WORD, least.page()),
            (true, true) => format!("{}, {} to {}", T::WORD, least.page(), most.page()),
        }
    }
}
impl<T: Quantity + Bounds> Kind for Within<T> {
    type Value = T;
    fn read(&self, field: &Field<'_>) -> Option<T> {
        field.quantity(self.0.clone())
    }
}
impl<T: Quantity + Bounds> Print for Within<T> {
    fn print(&self, value: &T) -> String {
        format!("\"{}\"", value.page())
    }
}

/// Bounds that pages omit, and their word for the quantity.
pub(crate) trait Bounds: Sized {
    const WORD: &'static str;
    const LEAST: Self;
    const MOST: Self;
    /// The value in its most readable unit.
    fn page(&self) -> String;
}
impl Bounds for Span {
    const WORD: &'static str = "time";
    const LEAST: Self = Self::from_nanos(1);
    const MOST: Self = Self::MAX;
    fn page(&self) -> String {
        const HOUR: u64 = 3_600_000_000_000;
        match self.as_nanos() {
            0 => self.to_string(),
            nanos if nanos % HOUR == 0 => format!("{}h", nanos / HOUR),
            _ => self.to_string(),
        }
    }
}
impl Bounds for Bytes {
    const WORD: &'static str = "size";
    const LEAST: Self = Self::new(1);
    const MOST: Self = Self::new(1 << 40);
    fn page(&self) -> String {
        const MIB: u64 = 1 << 20;
        match self.get() {
            bytes @ 0..100_000 => format!("{bytes}B"),
            bytes if bytes % MIB == 0 => format!("{}MiB", bytes / MIB),
            _ => self.to_string(),
        }
    }
}
impl Bounds for Rate {
    const WORD: &'static str = "rate";
    const LEAST: Self = Self::from_bits_per_s(1);
    const MOST: Self = Self::MAX;
    fn page(&self) -> String {
        self.to_string()
    }
}

/// A whole number in a range within `T`.
pub(crate) struct Whole<T>(pub RangeInclusive<u64>, core::marker::PhantomData<T>);

impl<T> Whole<T> {
    pub const fn new(range: RangeInclusive<u64>) -> Self {
        Self(range, core::marker::PhantomData)
    }
}
impl<T> Describe for Whole<T> {
    fn shown(&self) -> String {
        match (*self.0.start(), *self.0.end()) {
            (0, u64::MAX) => "whole number".to_owned(),
            (least, u64::MAX) => format!("{least} or more"),
            (least, most) => format!("{least} to {most}"),
        }
    }
}
impl<T: TryFrom<u64>> Kind for Whole<T> {
    type Value = T;
    fn read(&self, field: &Field<'_>) -> Option<T> {
        field.whole(self.0.clone()).and_then(|number| T::try_from(number).ok())
    }
}
impl<T: TryFrom<u64> + core::fmt::Display> Print for Whole<T> {
    fn print(&self, value: &T) -> String {
        value.to_string()
    }
}

/// A finite number in a range.
pub(crate) struct Number(pub RangeInclusive<f64>);

impl Describe for Number {
    fn shown(&self) -> String {
        format!("{} to {}", self.0.start(), self.0.end())
    }
}
impl Kind for Number {
    type Value = f64;
    fn read(&self, field: &Field<'_>) -> Option<f64> {
        field.number(self.0.clone())
    }
}
impl Print for Number {
    fn print(&self, value: &f64) -> String {
        value.to_string()
    }
}

/// A number above zero, up to this maximum.
pub(crate) struct Positive(pub f64);

impl Describe for Positive {
    fn shown(&self) -> String {
        format!("above 0, at most {}", self.0)
    }
}
impl Kind for Positive {
    type Value = f64;
    fn read(&self, field: &Field<'_>) -> Option<f64> {
        field.positive(self.0)
    }
}

impl Print for Positive {
    fn print(&self, value: &f64) -> String {
        value.to_string()
    }
}

/// A radio quantity, in a range in its own unit.
pub(crate) struct In(pub &'static Measure, pub RangeInclusive<f64>);

impl Describe for In {
    fn shown(&self) -> String {
        self.0.name.to_owned()
    }
}
impl Kind for In {
    type Value = f64;
    fn read(&self, field: &Field<'_>) -> Option<f64> {
        field.measure(self.0, self.1.clone())
    }
}

impl Print for In {
    fn print(&self, value: &f64) -> String {
        format!("\"{value}{}\"", self.0.unit())
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Describe for Flag {
    fn shown(&self) -> String {
        "`true`, `false`".to_owned()
    }
}
impl Kind for Flag {
    type Value = bool;
    fn read(&self, field: &Field<'_>) -> Option<bool> {
        field.flag()
    }
}
impl Print for Flag {
    fn print(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// A non-empty name; the string is what pages show.
pub(crate) struct Name(pub &'static str);

impl Describe for Name {
    fn shown(&self) -> String {
        self.0.to_owned()
    }
    fn is_text(&self) -> bool {
        true
    }
}
impl Kind for Name {
    type Value = String;
    fn read(&self, field: &Field<'_>) -> Option<String> {
        field.name().map(str::to_owned)
    }
}

/// One of several words, with their values.
pub(crate) struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T> Words<T> {
    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}
impl<T> Describe for Words<T> {
    fn shown(&self) -> String {
        self.words().iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
    }
    fn is_text(&self) -> bool {
        true
    }
}
impl<T: Copy> Kind for Words<T> {
    type Value = T;
    fn read(&self, field: &Field<'_>) -> Option<T> {
        let word = field.word(&self.words())?;
        self.0.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }
}
impl<T: Copy + PartialEq> Words<T> {
    /// The word for a value.
    pub fn word(&self, value: T) -> &'static str {
        self.0.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
    }
}
impl<T: Copy + PartialEq> Print for Words<T> {
    fn print(&self, value: &T) -> String {
        format!("\"{}\"", self.word(*value))
    }
}

/// A word, read as `None`, or a value of a kind.
pub(crate) struct WordOr<K>(pub &'static str, pub K);

impl<K: Describe> Describe for WordOr<K> {
    fn shown(&self) -> String {
        format!("{}, or `\"{}\"`", self.1.shown(), self.0)
    }
}
impl<K: Kind> Kind for WordOr<K> {
    type Value = Option<K::Value>;
    fn read(&self, field: &Field<'_>) -> Option<Option<K::Value>> {
        if field.is_text() && field.text("") == Some(self.0) {
            Some(None)
        } else {
            self.1.read(field).map(Some)
        }
    }
}
impl<K: Print> Print for WordOr<K> {
    fn print(&self, value: &Option<K::Value>) -> String {
        value.as_ref().map_or_else(|| format!("\"{}\"", self.0), |value| self.1.print(value))
    }
}

/// A string that the table's reader interprets, such as the name of an algorithm; the string is what pages show.
pub(crate) struct Text(pub &'static str);

impl Describe for Text {
    fn shown(&self) -> String {
        self.0.to_owned()
    }
    fn is_text(&self) -> bool {
        true
    }
}

/// A value that the table's reader interprets; the string is what pages show.
pub(crate) struct Own(pub &'static str);

impl Describe for Own {
    fn shown(&self) -> String {
        self.0.to_owned()
    }
}

/// A value that a function reads; the string is what pages show.
pub(crate) struct By<T>(pub &'static str, pub fn(&Field<'_>) -> Option<T>);

impl<T> Describe for By<T> {
    fn shown(&self) -> String {
        self.0.to_owned()
    }
}
impl<T> Kind for By<T> {
    type Value = T;
    fn read(&self, field: &Field<'_>) -> Option<T> {
        (self.1)(field)
    }
}

/// A table, or a shorter form in its place, with its own reader; the string is what pages show.
pub(crate) struct Table(pub &'static str);

impl Describe for Table {
    fn shown(&self) -> String {
        self.0.to_owned()
    }
    fn is_table(&self) -> bool {
        true
    }
}
