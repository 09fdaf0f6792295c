//! Formatting of figures for people: one unit for a whole column, and only significant digits.

/// Measured quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Size,
    /// A share of one, shown in per cent.
    Share,
    /// A number without a unit.
    Plain,
}

/// The unit of a column or an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// "Mbit/s", "ms", "%"; empty for plain numbers.
    pub name: &'static str,
    /// Number of base units that make one of it.
    pub size: f64,
}

impl Quantity {
    /// A value with the unit that fits it.
    pub fn show(self, value: f64) -> String {
        let unit = self.unit([value]);
        if unit.name.is_empty() { unit.show(value) } else { format!("{} {}", unit.show(value), unit.name) }
    }

    /// The unit in which the largest of `values` has one to four digits before its point.
    pub fn unit(self, values: impl IntoIterator<Item = f64>) -> Unit {
        let largest =
            values.into_iter().filter(|value| value.is_finite()).fold(0.0_f64, |most, v| most.max(v.abs()));
        let units: &[(&str, f64)] = match self {
            Self::Rate => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
            Self::Time => &[("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)],
            Self::Size => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
            Self::Share => &[("%", 1e-2)],
            Self::Plain => &[("", 1.0)],
        };
        // Gbit/s, GB and s are used only from three of them on: 1200 Mbit/s reads better than 1.2 in a column with 300.
        let fits =
            |size: f64| if size == 1e9 || size == 1.0 { largest >= 3.0 * size } else { largest >= size };
        let usual = match self {
            Self::Rate | Self::Size if largest == 0.0 => Some(&units[1]),
            Self::Time if largest == 0.0 => Some(&units[1]),
            _ => units.iter().find(|(_, size)| fits(*size)),
        };
        let (name, size) = usual.or(units.last()).copied().unwrap_or(("", 1.0));
        Unit { name, size }
    }
}

impl Unit {
    /// Every unit of a column or an axis, with the quantity it measures.
    const KNOWN: [(Quantity, Self); 13] = {
        const fn unit(quantity: Quantity, name: &'static str, size: f64) -> (Quantity, Unit) {
            (quantity, Unit { name, size })
        }
        [
            unit(Quantity::Rate, "Gbit/s", 1e9),
            unit(Quantity::Rate, "Mbit/s", 1e6),
            unit(Quantity::Rate, "kbit/s", 1e3),
            unit(Quantity::Rate, "bit/s", 1.0),
            unit(Quantity::Time, "s", 1.0),
            unit(Quantity::Time, "ms", 1e-3),
            unit(Quantity::Time, "µs", 1e-6),
            unit(Quantity::Size, "GB", 1e9),
            unit(Quantity::Size, "MB", 1e6),
            unit(Quantity::Size, "kB", 1e3),
            unit(Quantity::Size, "B", 1.0),
            unit(Quantity::Share, "%", 1e-2),
            unit(Quantity::Plain, "", 1.0),
        ]
    };

    /// The unit with this name, and the quantity it measures; `None` for an unknown one.
    pub fn named(name: &str) -> Option<(Quantity, Self)> {
        Self::KNOWN.into_iter().find(|(_, unit)| unit.name == name)
    }

    /// The names of all units except that of plain numbers.
    pub fn names() -> String {
        Self::KNOWN.map(|(_, unit)| unit.name).join(", ").trim_end_matches(", ").to_owned()
    }

    /// A value in this unit, or "–" if there is none.
    pub fn show(&self, value: f64) -> String {
        number(value / self.size)
    }

    /// A value with its interval, "10.53 ± 0.21": the interval has two digits, the value as many decimals. Without an interval if
    /// nothing varies.
    pub fn show_with(&self, value: f64, ci95: Option<f64>) -> String {
        match ci95 {
            Some(half) if half.is_finite() && half > 0.0 && value.is_finite() => {
                let half = half / self.size;
                let value = value / self.size;
                let places = places(value).min(places_of_interval(half)).max(0) as usize;
                format!("{value:.places$} ± {half:.places$}")
            }
            _ => self.show(value),
        }
    }

    /// "goodput (Mbit/s)", or the title alone for plain numbers.
    pub fn head(&self, title: &str) -> String {
        if self.name.is_empty() { title.to_owned() } else { format!("{title} ({})", self.name) }
    }
}

/// A number with four significant digits, at most four decimals; "–" if there is none.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let places = places(value) as usize;
    let text = format!("{value:.places$}");
    // A tiny negative would show as "-0.00".
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

/// Decimals needed for four significant digits, from zero to four.
fn places(value: f64) -> i32 {
    match value.abs() {
        v if v >= 999.95 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.99995 => 3,
        0.0 => 0,
        _ => 4,
    }
}

/// Decimals needed for two significant digits.
fn places_of_interval(half: f64) -> i32 {
    let mut places = 0;
    let mut scaled = half;
    while scaled < 9.5 && places < 4 {
        scaled *= 10.0;
        places += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_fits_the_largest_of_a_column() {
        for (case, quantity, values, expected) in [
            ("usual rates", Quantity::Rate, vec![12e6, 0.4e6], "Mbit/s"),
            ("just over a gigabit", Quantity::Rate, vec![1.2e9, 300e6], "Mbit/s"),
            ("fast", Quantity::Rate, vec![12e9], "Gbit/s"),
            ("all idle", Quantity::Rate, vec![0.0], "Mbit/s"),
            ("delays", Quantity::Time, vec![0.02, f64::NAN], "ms"),
            ("completions", Quantity::Time, vec![12.0], "s"),
            ("short", Quantity::Time, vec![20e-6], "µs"),
            ("shares", Quantity::Share, vec![0.001], "%"),
        ] {
            assert_eq!(quantity.unit(values).name, expected, "{case}");
        }
    }

    #[test]
    fn units_are_known_by_their_names() {
        let unit = |name| Unit::named(name).map(|(quantity, unit)| (quantity, unit.size));
        assert_eq!(unit("Mbit/s"), Some((Quantity::Rate, 1e6)));
        assert_eq!(unit(""), Some((Quantity::Plain, 1.0)));
        assert_eq!(unit("furlong"), None);
        assert!(Unit::names().ends_with("%"));
    }

    #[test]
    fn digits_stop_at_the_first_digit_of_the_interval() {
        let ms = Unit { name: "ms", size: 1e-3 };
        for (value, ci95, expected) in [
            (0.010_534, None, "10.53"),
            (0.010_534, Some(0.002_1), "10.5 ± 2.1"),
            (0.010_534, Some(0.000_21), "10.53 ± 0.21"),
            (0.010_534, Some(0.000_000_01), "10.53 ± 0.00"),
            (0.010_534, Some(0.0), "10.53"),
            (1.234, Some(0.1), "1234 ± 100"),
            (0.0, None, "0"),
            (f64::NAN, None, "–"),
            (f64::NAN, Some(1.0), "–"),
        ] {
            assert_eq!(ms.show_with(value, ci95), expected);
        }
        assert_eq!(number(-0.000_000_1), "0.0000");
        assert_eq!(ms.head("delay"), "delay (ms)");
    }
}
