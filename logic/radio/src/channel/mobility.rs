//! The position of a user: static, on a path, or on a random walk.

use std::sync::Arc;

use ranpace_units::{Span, Time};

use super::recording::{Kind, Row, SECONDS, numbered};
use super::{Motion, Position, RandomWalk, RecordingError};

/// The movement of a user.
#[derive(Clone, Debug)]
pub enum Mobility {
    /// It stays here.
    Static(Position),
    /// It follows a path, which it may share with others.
    Path(Arc<Trajectory>),
    /// It walks at random.
    Walk(Box<RandomWalk>),
    /// It moves as it does until a time, and from then on follows a path.
    Then(Box<Mobility>, Moved),
}

/// A move of a user to another position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// When it begins.
    pub at: Time,
    /// The position.
    pub to: Position,
    /// Speed of the straight way to it, in m/s, above 0; `None` for at once.
    pub speed_m_s: Option<f64>,
}

/// Where moves lead.
#[derive(Clone, Debug)]
pub struct Moved {
    /// When the first of them begins.
    from: Time,
    path: Arc<Trajectory>,
    /// Metres travelled until then.
    travelled_m: f64,
}

impl Mobility {
    /// The user's motion now. A walk can be queried for the same instant again, or a little earlier, but not before its last
    /// turn but one.
    pub fn at(&mut self, now: Time) -> Motion {
        match self {
            Self::Static(position) => Motion { position: *position, speed_m_s: 0.0, travelled_m: 0.0 },
            Self::Path(path) => path.at(now),
            Self::Walk(walk) => walk.at(now),
            Self::Then(first, moved) if now < moved.from => first.at(now),
            Self::Then(_, moved) => {
                let motion = moved.path.at(now);
                Motion { travelled_m: moved.travelled_m + motion.travelled_m, ..motion }
            }
        }
    }

    /// The same until the first of these moves, which are in order of time. A move that begins before the one before it has
    /// arrived begins where the user is then.
    #[must_use]
    pub fn moved(self, moves: &[Move]) -> Self {
        let Some(first) = moves.first() else { return self };
        // A copy looks ahead: a walk cannot be queried backwards.
        let start = self.clone().at(first.at);
        let mut points = vec![(first.at, start.position)];
        for next in moves {
            let (arrival, target) = points[points.len() - 1]; // there is at least one
            let from = if next.at < arrival {
                // It turns on its way, which has a point before the target.
                points.pop();
                let (begin, origin) = points[points.len() - 1];
                origin.towards(target, next.at.since(begin).ratio(arrival.since(begin)))
            } else {
                target
            };
            let way = next.speed_m_s.map_or(0.0, |speed| from.distance_m(next.to) / speed);
            points.extend([(next.at, from), (next.at + Span::from_secs_f64(way), next.to)]);
        }
        match Trajectory::timed(points) {
            Ok(path) => {
                let moved = Moved { from: first.at, path: Arc::new(path), travelled_m: start.travelled_m };
                Self::Then(Box::new(self), moved)
            }
            // Positions that are not finite, which no scenario has.
            Err(_) => self,
        }
    }
}

/// A point of a trajectory, with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waypoint {
    time: Time,
    position: Position,
    /// Metres from the first point.
    travelled_m: f64,
}

/// A path in time: straight lines between points, each at constant speed. The user waits at the first point until its time,
/// and stays at the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// At least one, with non-decreasing times.
    points: Vec<Waypoint>,
}

/// Why a trajectory was refused. The caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrajectoryError {
    /// There is no point.
    #[error("expected one point or more, found none")]
    Empty,
    /// Time runs backwards.
    #[error("point {point}: time must not decrease")]
    Decreasing {
        /// Number of the point, from 1.
        point: usize,
    },
    /// A coordinate that is infinite or not a number.
    #[error("point {point}: expected finite metres, found {found:?}")]
    NotFinite {
        /// Number of the point, from 1.
        point: usize,
        /// The point found.
        found: Position,
    },
    /// The speed is not positive and finite.
    #[error("expected a speed above 0 m/s, found {found_m_s}")]
    Speed {
        /// The speed found, in m/s.
        found_m_s: f64,
    },
}

impl Trajectory {
    /// A path through points at given times.
    pub fn timed(points: impl IntoIterator<Item = (Time, Position)>) -> Result<Self, TrajectoryError> {
        let mut found: Vec<Waypoint> = Vec::new();
        for (time, position) in points {
            let point = found.len() + 1;
            if ![position.x, position.y, position.z].into_iter().all(f64::is_finite) {
                return Err(TrajectoryError::NotFinite { point, found: position });
            }
            let travelled_m = match found.last() {
                Some(last) if time < last.time => return Err(TrajectoryError::Decreasing { point }),
                Some(last) => last.travelled_m + last.position.distance_m(position),
                None => 0.0,
            };
            found.push(Waypoint { time, position, travelled_m });
        }
        if found.is_empty() { Err(TrajectoryError::Empty) } else { Ok(Self { points: found }) }
    }

    /// A path from point to point at this speed in m/s, starting at `start`.
    pub fn waypoints(start: Time, speed_m_s: f64, points: &[Position]) -> Result<Self, TrajectoryError> {
        if !(speed_m_s > 0.0 && speed_m_s.is_finite()) {
            return Err(TrajectoryError::Speed { found_m_s: speed_m_s });
        }
        let (mut metres, mut last) = (0.0, points.first().copied().unwrap_or_default());
        Self::timed(points.iter().map(|&point| {
            metres += last.distance_m(point);
            last = point;
            (start + Span::from_secs_f64(metres / speed_m_s), point)
        }))
    }

    /// Reads comma-separated values under a header line: `time_s` (seconds, non-decreasing), `x_m`, `y_m`, and optionally
    /// `z_m`; without it, users carry their phones at 1.5 m (TR 38.901 Table 7.2-1).
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        const HAND_M: f64 = 1.5;
        // The same range as positions in scenarios.
        const METRES: Kind = ("metres from -1000000 to 1000000", -1e6..=1e6);
        let mut lines = numbered(text).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
        let (_, names) = lines.next().ok_or(RecordingError::Empty { of: "" })?;
        let column = |name: &str| names.split(',').position(|found| found.trim() == name);
        let needed = |name: &'static str| {
            column(name).ok_or_else(|| RecordingError::NoColumn { expected: name, found: names.to_owned() })
        };
        let (time, x, y, z) = (needed("time_s")?, needed("x_m")?, needed("y_m")?, column("z_m"));
        let mut points: Vec<(Time, Position)> = Vec::new();
        for (number, line) in lines {
            let row = Row { number, line };
            let at = Time::ZERO + Span::from_secs_f64(row.required(time, SECONDS)?);
            if points.last().is_some_and(|(last, _)| at < *last) {
                return Err(RecordingError::NotRising { line: number });
            }
            let (x, y) = (row.required(x, METRES)?, row.required(y, METRES)?);
            points.push((at, Position::new(x, y, row.number(z, METRES)?.unwrap_or(HAND_M))));
        }
        // `timed` has no other reason to refuse finite, ordered points.
        Self::timed(points).map_err(|_| RecordingError::Empty { of: "" })
    }

    /// Time of the last point.
    pub fn end(&self) -> Time {
        self.points[self.points.len() - 1].time // there is at least one
    }

    /// Motion on the path now.
    pub fn at(&self, now: Time) -> Motion {
        let passed = self.points.partition_point(|point| point.time <= now);
        let standing = |point: &Waypoint| Motion {
            position: point.position,
            speed_m_s: 0.0,
            travelled_m: point.travelled_m,
        };
        if passed == 0 || passed == self.points.len() {
            // There is at least one point.
            return standing(&self.points[passed.saturating_sub(1)]);
        }
        // `from` is reached and `to` is not, so their times differ.
        let (from, to) = (&self.points[passed - 1], &self.points[passed]);
        let (all, metres) = (to.time.since(from.time), to.travelled_m - from.travelled_m);
        let share = now.since(from.time).ratio(all);
        Motion {
            position: from.position.towards(to.position, share),
            speed_m_s: metres / all.as_secs_f64(),
            travelled_m: from.travelled_m + metres * share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::STREET_WALK;
    use proptest::prelude::*;

    #[test]
    fn a_walker_on_waypoints_keeps_its_speed_and_stays_at_the_end() {
        // 004: from 50 m to 350 m and back at 3 m/s, starting after 10 s.
        let at = |y: f64| Position::new(0.0, -y, 1.5);
        let path = Trajectory::waypoints(Time::from_secs(10), 3.0, &[at(50.0), at(350.0), at(50.0)]).unwrap();
        for (s, y, speed, travelled) in [
            (0, 50.0, 0.0, 0.0),
            (10, 50.0, 3.0, 0.0),
            (60, 200.0, 3.0, 150.0),
            (110, 350.0, 3.0, 300.0),
            (160, 200.0, 3.0, 450.0),
            (210, 50.0, 0.0, 600.0),
            (10_000, 50.0, 0.0, 600.0),
        ] {
            let motion = path.at(Time::from_secs(s));
            assert!(motion.position.distance_m(at(y)) < 1e-6, "{s} s: {motion:?}");
            assert!((motion.speed_m_s - speed).abs() < 1e-6 && (motion.travelled_m - travelled).abs() < 1e-6);
        }
        assert_eq!(path.end(), Time::from_secs(210));
        let street = Trajectory::waypoints(Time::ZERO, 1.0, &STREET_WALK).unwrap();
        assert_eq!(street.end(), Time::from_secs(326));
    }

    #[test]
    fn paths_that_cannot_be_followed_are_refused() {
        let origin = Position::default();
        let timed = |points: &[(u64, Position)]| {
            Trajectory::timed(points.iter().map(|(s, at)| (Time::from_secs(*s), *at))).map(|_| ())
        };
        assert_eq!(timed(&[]), Err(TrajectoryError::Empty));
        assert_eq!(timed(&[(2, origin), (1, origin)]), Err(TrajectoryError::Decreasing { point: 2 }));
        assert!(timed(&[(0, Position::new(f64::INFINITY, 0.0, 0.0))]).is_err());
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Trajectory::waypoints(Time::ZERO, speed, &[origin]).is_err());
        }
        // Two points at one time are a jump.
        assert!(timed(&[(0, origin), (1, origin), (1, Position::new(9.0, 0.0, 0.0))]).is_ok());
    }

    #[test]
    fn a_user_that_is_moved_goes_on_from_where_it_was() {
        let at = |x: f64| Position::new(x, 0.0, 1.5);
        let walk = Trajectory::waypoints(Time::ZERO, 2.0, &[at(0.0), at(100.0)]).unwrap();
        let mut user = Mobility::Path(walk.into()).moved(&[
            Move { at: Time::from_secs(10), to: at(50.0), speed_m_s: Some(10.0) }, // from 20 m: there after 3 s
            Move { at: Time::from_secs(12), to: at(0.0), speed_m_s: Some(10.0) },  // on its way, at 40 m
            Move { at: Time::from_secs(20), to: at(300.0), speed_m_s: None },
        ]);
        for (second, x, speed, travelled) in [
            (0, 0.0, 2.0, 0.0),
            (9, 18.0, 2.0, 18.0),
            (10, 20.0, 10.0, 20.0),
            (11, 30.0, 10.0, 30.0),
            (12, 40.0, 10.0, 40.0),
            (14, 20.0, 10.0, 60.0),
            (16, 0.0, 0.0, 80.0),
            (19, 0.0, 0.0, 80.0),
            (20, 300.0, 0.0, 380.0),
            (99, 300.0, 0.0, 380.0),
        ] {
            let motion = user.at(Time::from_secs(second));
            let found = [motion.position.x, motion.speed_m_s, motion.travelled_m];
            for (found, expected) in found.into_iter().zip([x, speed, travelled]) {
                assert!((found - expected).abs() < 1e-6, "{second} s: {motion:?}");
            }
        }
    }

    #[test]
    fn a_trajectory_from_a_file() {
        let path = Trajectory::parse("time_s,y_m,x_m\n0,0,0\n# turns\n10,0,20\n20,10,20\n").unwrap();
        let motion = path.at(Time::from_secs(15));
        assert_eq!(motion.position, Position::new(20.0, 5.0, 1.5));
        assert_eq!((motion.speed_m_s, motion.travelled_m), (1.0, 25.0));
        for (text, error) in [
            ("time_s,x_m\n", "line 1: expected a column y_m, found \"time_s,x_m\""),
            ("time_s,x_m,y_m\n", "expected one row or more, found none"),
            ("time_s,x_m,y_m\n0,1,-\n", "line 2: expected metres from -1000000 to 1000000, found \"0,1,-\""),
            (
                "time_s,x_m,y_m\n0,1,1e300\n",
                "line 2: expected metres from -1000000 to 1000000, found \"1e300\"",
            ),
            (
                "time_s,x_m,y_m\n-5,1,1\n",
                "line 2: expected a time in seconds from 0 to 86400000, found \"-5\"",
            ),
            ("time_s,x_m,y_m\n1,1,1\n0,1,1", "line 3: time must rise (are two recordings joined?)"),
        ] {
            assert_eq!(Trajectory::parse(text).unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn a_follower_is_always_somewhere(
            points in prop::collection::vec((any::<u64>(), any::<f64>(), any::<f64>()), 1..20), now in any::<u64>()
        ) {
            let mut points: Vec<_> = points
                .into_iter()
                .map(|(ns, x, y)| (Time::from_nanos(ns), Position::new(x, y, 0.0)))
                .collect();
            points.sort_by_key(|point| point.0);
            if let Ok(path) = Trajectory::timed(points) {
                let motion = path.at(Time::from_nanos(now));
                prop_assert!(motion.travelled_m.is_finite() && motion.travelled_m >= 0.0);
                prop_assert!(motion.speed_m_s.is_finite() && !motion.position.x.is_nan());
            }
        }
    }
}
