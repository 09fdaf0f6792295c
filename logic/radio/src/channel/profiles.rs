//! Delay profiles of multipath channels.

/// A tap: its delay in ns after the first, and its relative power in dB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tap {
    /// Excess delay in ns.
    pub delay_ns: f64,
    /// Relative power in dB.
    pub power_db: f64,
}

/// The profiles of TS 36.104 Annex B.2, and a flat one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelayProfile {
    /// All taps arrive together, so that the whole band fades together: a single Rayleigh process.
    Flat,
    /// Extended pedestrian A; Table B.2-1.
    Epa,
    /// Extended vehicular A; Table B.2-2.
    Eva,
    /// Extended typical urban; Table B.2-3.
    Etu,
}

const fn tap(delay_ns: f64, power_db: f64) -> Tap {
    Tap { delay_ns, power_db }
}

/// Nine simultaneous taps make one Rayleigh process whose power does not repeat (see [`Rings`](super::Rings)).
const FLAT: [Tap; 9] = [tap(0.0, 0.0); 9];
const EPA: [Tap; 7] = [
    tap(0.0, 0.0),
    tap(30.0, -1.0),
    tap(70.0, -2.0),
    tap(90.0, -3.0),
    tap(110.0, -8.0),
    tap(190.0, -17.2),
    tap(410.0, -20.8),
];
const EVA: [Tap; 9] = [
    tap(0.0, 0.0),
    tap(30.0, -1.5),
    tap(150.0, -1.4),
    tap(310.0, -3.6),
    tap(370.0, -0.6),
    tap(710.0, -9.1),
    tap(1090.0, -7.0),
    tap(1730.0, -12.0),
    tap(2510.0, -16.9),
];
const ETU: [Tap; 9] = [
    tap(0.0, -1.0),
    tap(50.0, -1.0),
    tap(120.0, -1.0),
    tap(200.0, 0.0),
    tap(230.0, 0.0),
    tap(500.0, 0.0),
    tap(1600.0, -3.0),
    tap(2300.0, -5.0),
    tap(5000.0, -7.0),
];

impl DelayProfile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Flat, Self::Epa, Self::Eva, Self::Etu];

    /// Its taps, by increasing delay.
    pub const fn taps(self) -> &'static [Tap] {
        match self {
            Self::Flat => &FLAT,
            Self::Epa => &EPA,
            Self::Eva => &EVA,
            Self::Etu => &ETU,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_those_of_the_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/3gpp/fading_profiles.csv");
        let Ok(text) = std::fs::read_to_string(path) else {
            // Written directly to stderr, since the test runner hides the output of passing tests.
            let word = "skipped: needs shared/data/3gpp beside the checkout; CONTRIBUTING.md says more\n";
            std::io::Write::write_all(&mut std::io::stderr(), word.as_bytes()).unwrap();
            return;
        };
        for (name, profile) in
            [("EPA", DelayProfile::Epa), ("EVA", DelayProfile::Eva), ("ETU", DelayProfile::Etu)]
        {
            let rows = text.lines().filter(|line| line.starts_with(name));
            let read = rows.map(|row| {
                let cells: Vec<&str> = row.split(',').collect();
                tap(cells[2].parse().unwrap(), cells[3].parse().unwrap())
            });
            assert_eq!(read.collect::<Vec<_>>(), profile.taps(), "{name}");
        }
    }

    #[test]
    fn no_profile_has_more_taps_than_room() {
        for profile in DelayProfile::ALL {
            assert!(profile.taps().len() <= crate::channel::rings::RINGS);
            assert!(profile.taps().is_sorted_by(|a, b| a.delay_ns <= b.delay_ns));
        }
    }
}
