//! An axis: a range of values, the positions of its labels, and their unit.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::figures::{Quantity, Unit};

/// An axis of a plot. Values are in base units (seconds, bits per second, bytes, shares of one).
#[derive(Clone, Debug)]
pub struct Axis {
    name: String,
    unit: Unit,
    low: f64,
    high: f64,
    log: bool,
    reversed: bool,
    hidden: bool,
    /// Names of groups, each centred in its unit of length.
    names: Vec<String>,
}

impl Axis {
    /// From `low` to `high`. A range that is empty or not finite is replaced by one that can be drawn.
    pub fn linear(name: &str, quantity: Quantity, (low, high): (f64, f64)) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + quantity_one(quantity) };
        let unit = quantity.unit([low, high]);
        let names = Vec::new();
        Self { name: name.to_owned(), unit, low, high, log: false, reversed: false, hidden: false, names }
    }

    /// From zero to slightly above the largest of `values`.
    pub fn from_zero(name: &str, quantity: Quantity, values: impl IntoIterator<Item = f64>) -> Self {
        let largest = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self::linear(name, quantity, (0.0, largest * 1.05))
    }

    /// Around all of `values`, logarithmic; values of zero or less are ignored.
    pub fn log(name: &str, quantity: Quantity, values: impl IntoIterator<Item = f64>) -> Self {
        let known = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            known.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) =
            if high > 0.0 { (low, high) } else { (quantity_one(quantity), quantity_one(quantity)) };
        let unit = quantity.unit([high]);
        let room = if high / low < 2.0 { 1.5 } else { 1.15 };
        Self { log: true, ..Self::linear(name, quantity, (low / room, high * room)) }.with_unit(unit)
    }

    /// From `low` to `high`, logarithmic; both must be above zero.
    pub fn log_from(name: &str, quantity: Quantity, [low, high]: [f64; 2]) -> Self {
        if low > 0.0 && high > low {
            Self { log: true, ..Self::linear(name, quantity, (low, high)) }
        } else {
            Self::log(name, quantity, [low, high])
        }
    }

    /// Groups side by side, each of length one; the first is drawn from 0 to 1.
    pub fn of_groups(name: &str, names: Vec<String>) -> Self {
        let end = names.len().max(1) as f64;
        Self { names, ..Self::linear(name, Quantity::Plain, (0.0, end)) }
    }

    /// Large values to the left (or below).
    pub fn reversed(self) -> Self {
        Self { reversed: true, ..self }
    }

    /// Without labels, grid and title.
    pub fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    /// Written in this unit, whatever the values.
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Both ends, low first.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The names of its groups; empty for an axis of values.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// "delay (ms)".
    pub(super) fn title(&self) -> String {
        if self.hidden { String::new() } else { self.unit.head(&self.name) }
    }

    /// A value at the axis, with as many decimals as the distance of the labels needs.
    pub(super) fn label(&self, value: f64) -> String {
        let shown = value / self.unit.size;
        // No axis has more than twelve labels; trailing zeros are dropped.
        let step = if self.log { shown } else { self.step(12) / self.unit.size };
        let mut places = 0;
        let mut scaled = step.abs();
        while places < 6 && scaled > 0.0 && (scaled - libm::round(scaled)).abs() > 1e-6 {
            scaled *= 10.0;
            places += 1;
        }
        let text = format!("{shown:.places$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }

    /// The smallest of 1, 2 and 5 times a power of ten that gives at most `count` steps.
    fn step(&self, count: usize) -> f64 {
        let raw = (self.high - self.low) / count.max(1) as f64;
        let power = libm::pow(10.0, libm::floor(libm::log10(raw)));
        [1.0, 2.0, 5.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= raw * 0.999_999)
            .unwrap_or(power * 10.0)
    }

    fn ticks(&self, count: usize) -> Vec<f64> {
        if self.log {
            return self.log_ticks(count);
        }
        // In the unit of the axis, so that its labels are round numbers.
        let step = self.step(count);
        let first = libm::ceil(self.low / step - 1e-9);
        let last = libm::floor(self.high / step + 1e-9);
        (0..=(last - first).max(0.0) as usize).map(|index| (first + index as f64) * step).collect()
    }

    /// All of 1, 2 and 5 times powers of ten if there is room, else every power, every second one, ...
    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let from = libm::floor(libm::log10(self.low)) as i32;
        let to = libm::ceil(libm::log10(self.high)) as i32;
        let inside = |value: &f64| *value >= self.low * 0.999_999 && *value <= self.high * 1.000_001;
        let powers = |step: usize| (from..=to).step_by(step).map(|power| libm::pow(10.0, f64::from(power)));
        let dense: Vec<f64> =
            powers(1).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * power)).filter(inside).collect();
        if dense.len() < 3 {
            // Below about a factor of two, round steps are clearer than powers.
            let linear = Self { log: false, ..self.clone() };
            return linear.ticks(count.min(6));
        }
        if dense.len() <= count {
            return dense;
        }
        let fitting = (1..=8).map(|step| powers(step).filter(inside).collect::<Vec<f64>>());
        let mut fitting = fitting.filter(|ticks| ticks.len() <= count.max(2));
        fitting.next().filter(|ticks| ticks.len() >= 2).unwrap_or(dense)
    }
}

/// Length of an axis without values.
fn quantity_one(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Rate => 1e6,
        Quantity::Time => 1e-3,
        Quantity::Size => 1e3,
        Quantity::Share | Quantity::Plain => 1.0,
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// Values outside the range are drawn at its edge.
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            libm::log(value / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if self.reversed { 1.0 - share } else { share };
        from + libm::round(share * f64::from(to - from)) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if self.hidden || !self.names.is_empty() { Vec::new() } else { self.ticks(hint.max_num_points()) }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, count: usize) -> Vec<String> {
        axis.ticks(count).into_iter().map(|tick| axis.label(tick)).collect()
    }

    #[test]
    fn labels_are_round_numbers_in_a_fitting_unit() {
        for (axis, count, title, expected) in [
            (Axis::linear("rate", Quantity::Rate, (0.0, 26e6)), 6, "rate (Mbit/s)", "0 5 10 15 20 25"),
            (Axis::linear("delay", Quantity::Time, (0.0, 0.13)), 7, "delay (ms)", "0 20 40 60 80 100 120"),
            (Axis::linear("time", Quantity::Time, (0.0, 60.0)), 7, "time (s)", "0 10 20 30 40 50 60"),
            (Axis::linear("share", Quantity::Plain, (0.0, 1.0)), 5, "share", "0 0.2 0.4 0.6 0.8 1"),
            (Axis::log("delay", Quantity::Time, [0.002, 0.13]), 9, "delay (ms)", "2 5 10 20 50 100"),
            (Axis::log("delay", Quantity::Time, [0.000_2, 1.0]), 5, "delay (ms)", "1 10 100 1000"),
        ] {
            assert_eq!(axis.title(), title);
            assert_eq!(labels(&axis, count).join(" "), expected, "{title} {count}");
        }
    }

    #[test]
    fn empty_range_still_has_an_axis() {
        for axis in [
            Axis::from_zero("rate", Quantity::Rate, []),
            Axis::from_zero("rate", Quantity::Rate, [f64::NAN]),
            Axis::log("delay", Quantity::Time, [0.0]),
            Axis::linear("x", Quantity::Plain, (f64::NAN, f64::INFINITY)),
        ] {
            let (low, high) = axis.ends();
            assert!(low < high && axis.ticks(5).len() >= 2, "{axis:?}");
        }
    }

    #[test]
    fn values_outside_stay_at_the_edge_and_reversed_runs_backwards() {
        let axis = Axis::linear("x", Quantity::Plain, (0.0, 10.0));
        assert_eq!([-5.0, 0.0, 5.0, 99.0].map(|value| axis.map(&value, (100, 200))), [100, 100, 150, 200]);
        assert_eq!(axis.reversed().map(&2.0, (100, 200)), 180);
        let log = Axis::log("x", Quantity::Plain, [1.15, 100.0 / 1.15]);
        assert_eq!(log.map(&10.0, (0, 100)), 50);
    }
}
