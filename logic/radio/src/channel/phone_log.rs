//! Logs of a phone that measured once per second: UCC's 5G logs.
//!
//! Source: Raca et al., "Beyond Throughput, The Next Generation: a 5G Dataset with Channel and Context Metrics", MMSys 2020,
//! which defines the columns: Timestamp, NetworkMode, RSRP, SNR, CQI, among others.
//!
//! Only rows of one network mode are used. Rows of the same second are averaged (SNR and RSRP, in dB), except that the last CQI
//! holds. Up to ten seconds without a row are interpolated, as [`Recording`] does between samples. Longer gaps and stretches in
//! another mode are cut out; the samples before and after then follow each other one second apart. All this is ours.

use ranpace_phy::Cqi;
use ranpace_units::{Span, Time};

use super::recording::{RSRP, Row, SINR, numbered};
use super::{Conditions, Recording, RecordingError};

/// The longest gap in seconds that is interpolated; longer ones are cut out.
const LONGEST_GAP_S: u64 = 10;

/// Sums over the rows of one second.
#[derive(Clone, Copy, Default)]
struct Second {
    snr_db: Mean,
    rsrp_dbm: Mean,
    cqi: Option<Cqi>,
}

#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }
    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Recording {
    /// Reads the 5G rows of a log.
    pub fn parse_5g_log(text: &str) -> Result<Self, RecordingError> {
        let mut lines = numbered(text);
        let (_, names) = lines.next().ok_or(RecordingError::Empty { of: "" })?;
        let column = |name: &'static str| {
            let found = names.split(',').position(|found| found.trim() == name);
            found.ok_or_else(|| RecordingError::NoColumn { expected: name, found: names.to_owned() })
        };
        let (timestamp, mode) = (column("Timestamp")?, column("NetworkMode")?);
        let (rsrp, snr, cqi) = (column("RSRP")?, column("SNR")?, column("CQI")?);
        let mut samples = Vec::new();
        let mut last_row = None;
        // The current second: its number in the log, its place in the recording, and its sums.
        let mut open: Option<(u64, u64, Second)> = None;
        let mut cut = false;
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let row = Row { number, line };
            let text = row.cell(timestamp, TIMESTAMP)?;
            let second = seconds(text).ok_or_else(|| row.refused(TIMESTAMP, text))?;
            if last_row.is_some_and(|last| second < last) {
                return Err(RecordingError::NotRising { line: number });
            }
            last_row = Some(second);
            if row.cell(mode, "a network mode")? != "5G" {
                cut = true;
                continue;
            }
            let (snr_db, rsrp_dbm) = (row.number(Some(snr), SINR)?, row.number(Some(rsrp), RSRP)?);
            let cqi = row.cqi(Some(cqi))?;
            // A row without SNR and CQI is of no use to a scheduler.
            if snr_db.is_none() && cqi.is_none() {
                continue;
            }
            let (_, _, seen) = match &mut open {
                Some(same) if same.0 == second => same,
                other => {
                    let place = match other.take() {
                        Some((before, place, seen)) => {
                            samples.push(sample(place, seen));
                            let gap = second - before;
                            place + if cut || gap > LONGEST_GAP_S { 1 } else { gap }
                        }
                        None => 0,
                    };
                    cut = false;
                    other.insert((second, place, Second::default()))
                }
            };
            seen.snr_db.add(snr_db);
            seen.rsrp_dbm.add(rsrp_dbm);
            seen.cqi = cqi.or(seen.cqi);
        }
        samples.extend(open.map(|(_, place, seen)| sample(place, seen)));
        Self::new(samples, " in network mode 5G")
    }
}

fn sample(place: u64, seen: Second) -> (Time, Conditions) {
    let found = Conditions {
        sinr_db: seen.snr_db.get(),
        cqi: seen.cqi,
        rsrp_dbm: seen.rsrp_dbm.get(),
        gain_db: None,
    };
    (Time::ZERO + Span::SECOND * place, found)
}

const TIMESTAMP: &str = "a time such as 2019.12.16_13.40.04";

/// Seconds since 1 March of year 0 at a time such as 2019.12.16_13.40.04, on a clock without leap seconds and
/// daylight saving time.
fn seconds(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('_')?;
    let three = |text: &str| -> Option<[u64; 3]> {
        let mut parts = text.split('.').map(|part| part.parse::<u16>().ok().map(u64::from));
        let found = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(found)
    };
    let ([year, month, day], [hour, minute, second]) = (three(date)?, three(clock)?);
    let fits = year > 0 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years start in March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{
        Average, Carrier, CqiScale, Fast, Mobility, Position, RadioPath, Receiver, Site, Transmitter,
    };
    use proptest::prelude::*;
    use ranpace_phy::CqiThresholds;

    const NAMES: &str = "Timestamp,Speed,NetworkMode,RSRP,SNR,CQI\n";

    fn log(rows: &[&str]) -> Result<Recording, RecordingError> {
        Recording::parse_5g_log(&format!("{NAMES}{}", rows.join("\n")))
    }

    #[test]
    fn only_5g_counts_and_seconds_are_put_together() {
        let recording = log(&[
            "2019.12.31_23.59.57,0,LTE,-90,30.0,15",
            "2019.12.31_23.59.58,0,5G,-100,6.0,12",
            "2019.12.31_23.59.58,0,5G,-98,4.0,11",
            "2020.01.01_00.00.01,0,5G,-98,8.0,-",
            "2020.01.01_00.00.02,0,HSPA+,-70,-,-",
            "2020.01.01_00.00.07,0,5G,-80,20.0,9",
            "2020.01.01_00.00.08,0,5G,-80,-,-",
            "2020.01.01_00.00.30,0,5G,-70,10.0,8",
        ])
        .unwrap();
        let found: Vec<_> = recording
            .samples()
            .iter()
            .map(|(time, at)| {
                (time.as_millis(), at.sinr_db.unwrap(), at.cqi.unwrap().get(), at.rsrp_dbm.unwrap())
            })
            .collect();
        assert_eq!(
            found,
            [(0, 5.0, 11, -99.0), (3000, 8.0, 11, -98.0), (4000, 20.0, 9, -80.0), (5000, 10.0, 8, -70.0)]
        );
        // Interpolated two thirds of the way across the missing seconds.
        assert_eq!(recording.at(Span::from_secs(2)).sinr_db, Some(7.0));
    }

    #[test]
    fn errors_name_their_line() {
        for (rows, error) in [
            (
                vec!["2019.12.31_23.59.57,0,LTE,-90,30.0,15"],
                "expected one row or more in network mode 5G, found none",
            ),
            (
                vec!["yesterday,0,5G,-90,1,1"],
                "line 2: expected a time such as 2019.12.16_13.40.04, found \"yesterday\"",
            ),
            (vec!["2019.12.31_23.59.57,0,5G,-90,30.0,x"], "line 2: expected a CQI from 0 to 15, found \"x\""),
            (
                vec!["2019.12.31_23.59.57,0,5G,-90,1,1", "2019.12.31_23.59.56,0,5G,-90,1,1"],
                "line 3: time must rise (are two recordings joined?)",
            ),
        ] {
            assert_eq!(log(&rows).unwrap_err().to_string(), error);
        }
        assert!(matches!(Recording::parse_5g_log("a,b"), Err(RecordingError::NoColumn { .. })));
    }

    #[test]
    fn days_follow_each_other() {
        let of = |text| seconds(text).unwrap();
        for (before, after) in [
            ("2020.02.28_23.59.59", "2020.02.29_00.00.00"),
            ("2020.02.29_23.59.59", "2020.03.01_00.00.00"),
            ("2019.02.28_23.59.59", "2019.03.01_00.00.00"),
            ("2019.12.31_23.59.59", "2020.01.01_00.00.00"),
        ] {
            assert_eq!(of(before) + 1, of(after), "{after}");
        }
        for wrong in ["", "2019.13.01_00.00.00", "2019.01.01_24.00.00", "2019.01.01", "2019.01.01_1.2.3.4"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_log_of_a_standing_phone() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../shared/data/traces/ucc-5g-2020/static-B_2019.12.16_13.40.04.csv"
        );
        let Ok(text) = std::fs::read_to_string(path) else {
            // Written directly to stderr, since the test runner hides the output of passing tests.
            let word = "skipped: needs shared/data/traces beside the checkout; CONTRIBUTING.md says more\n";
            std::io::Write::write_all(&mut std::io::stderr(), word.as_bytes()).unwrap();
            return;
        };
        let recording = Recording::parse_5g_log(&text).unwrap();
        // 2143 rows in 2282 s, all of them 5G, from 1983 distinct seconds.
        assert_eq!(recording.count(), 1983);
        assert!(
            (2200..=2290).contains(&recording.length().as_millis().div_euclid(1000)),
            "{}",
            recording.length()
        );
        assert!(recording.samples().iter().all(|(_, at)| (-7.0..=15.0).contains(&at.sinr_db.unwrap())));
        // A cell uses the CQI logged in each second: 10.7 on average, where the logged SNR would give a CQI of 3.
        let scale = CqiScale::new(CqiThresholds::Awgn);
        let logged: Vec<(Time, u8)> =
            recording.samples().iter().filter_map(|(time, at)| Some((*time, at.cqi?.get()))).collect();
        let site = Site {
            position: Position::default(),
            carrier: Carrier::MHZ_2120,
            transmitter: Transmitter { power_dbm: 46.0, gain_db: 0.0, prbs: 100 },
            receiver: Receiver::quiet(9.0),
            prb_hz: 180e3,
            average: Average::Recording(recording.into(), Box::new(scale)),
            fast: Fast::Steady,
        };
        let mut path = RadioPath::new(1, 1, 0);
        let mut seen = 0.0;
        for (time, cqi) in &logged {
            let look = path.look(&site, &mut Mobility::Static(Position::default()), *time, &mut []);
            assert_eq!(scale.cqi(look.average_sinr).get(), *cqi, "{time:?}");
            seen += f64::from(*cqi) / logged.len() as f64;
        }
        assert!((10.5..10.8).contains(&seen), "{seen}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rows in prop::collection::vec(
            "(2019.12.31_23.59.5[0-9]|[.0-9_]{0,9}),0,(5G|LTE),(-[0-9]{2})?,(-|[0-9.]{0,4}),(-|[0-9]{1,2})", 0..6
        )) {
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            if let Ok(recording) = log(&rows) {
                prop_assert!(recording.count() > 0 && !recording.length().is_zero());
            }
        }
    }
}
