//! Radio quantities: with a unit, in quotes, and, unlike times, rates and sizes, not integers.

/// A kind of quantity and its units.
pub(crate) struct Measure {
    /// Name on pages.
    pub name: &'static str,
    /// Description in messages.
    pub expected: &'static str,
    /// Names of units with their powers of ten and divisors; the last is the unit of values.
    units: &'static [(&'static str, i32, f64)],
}

/// In Hz.
pub(crate) const FREQUENCY: Measure = Measure {
    name: "frequency",
    expected: "a frequency such as \"2120MHz\"",
    units: &[("GHz", 9, 1.0), ("MHz", 6, 1.0), ("kHz", 3, 1.0), ("Hz", 0, 1.0)],
};
/// In metres.
pub(crate) const DISTANCE: Measure = Measure {
    name: "distance",
    expected: "a distance such as \"50m\"",
    units: &[("km", 3, 1.0), ("m", 0, 1.0)],
};
/// In metres per second.
pub(crate) const SPEED: Measure = Measure {
    name: "speed",
    expected: "a speed such as \"3km/h\"",
    units: &[("km/h", 0, 3.6), ("m/s", 0, 1.0)],
};
/// In dBm.
pub(crate) const POWER: Measure =
    Measure { name: "power", expected: "a power such as \"46dBm\"", units: &[("dBm", 0, 1.0)] };
/// In dB.
pub(crate) const GAIN: Measure =
    Measure { name: "ratio", expected: "a ratio such as \"10dB\"", units: &[("dB", 0, 1.0)] };

impl Measure {
    /// The unit of values.
    pub fn unit(&self) -> &'static str {
        self.units.last().map_or("", |(name, ..)| name)
    }

    /// The value of a text such as "46dBm" or "3 km/h"; otherwise text to append to an error message.
    pub fn parse(&self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
        let (digits, unit) = (&text[..end], text[end..].trim_start());
        if digits.is_empty() {
            return Err(String::new());
        }
        let Some((_, power, divisor)) = self.units.iter().find(|(name, ..)| *name == unit) else {
            let names: Vec<&str> = self.units.iter().map(|(name, ..)| *name).collect();
            let names = names.join(", ");
            return Err(match unit {
                "" => format!(", which has no unit (one of {names})"),
                unit => format!(": unknown unit {unit:?} (one of {names})"),
            });
        };
        // Parsed together with its power of ten, so that 2.66 GHz is exactly 2 660 000 000 Hz.
        match format!("{digits}e{power}").parse::<f64>() {
            // Turns -0.0, which would print strangely, into 0.0.
            Ok(value) if value.is_finite() => Ok(value / divisor + 0.0),
            _ => Err(String::new()),
        }
    }
}

/// Metres of a text such as "50m" or "1.2km", as scenarios write distances; otherwise an error message.
pub fn distance_m(text: &str) -> Result<f64, String> {
    let expected = DISTANCE.expected;
    DISTANCE.parse(text).map_err(|more| format!("expected {expected}, found {text:?}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_exact_and_what_is_not_one_is_refused() {
        for (measure, text, expected) in [
            (&FREQUENCY, "2.66GHz", Ok(2.66e9)),
            (&FREQUENCY, "1.4 MHz", Ok(1.4e6)),
            (&SPEED, "3km/h", Ok(3.0 / 3.6)),
            (&SPEED, "4m/s", Ok(4.0)),
            (&POWER, "-80dBm", Ok(-80.0)),
            (&DISTANCE, "0.4km", Ok(400.0)),
            (&DISTANCE, "400", Err(", which has no unit (one of km, m)")),
            (&GAIN, "3dBm", Err(": unknown unit \"dBm\" (one of dB)")),
            (&GAIN, "nan dB", Err("")),
            (&GAIN, "1.2.3dB", Err("")),
            (&GAIN, "", Err("")),
        ] {
            assert_eq!(measure.parse(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_finite_number_or_refused(text in "\\PC{0,12}", digits in "[0-9.+-]{0,400}") {
            for text in [text, format!("{digits}GHz")] {
                if let Ok(value) = FREQUENCY.parse(&text) {
                    prop_assert!(value.is_finite());
                }
            }
        }
    }
}
