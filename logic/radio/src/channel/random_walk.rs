//! A random walk in a disc: straight legs, each with its own direction and speed, reflected at the edge.
//!
//! Source: ns-3's RandomWalk2d in its time mode, with a disc in place of a rectangle (ours). Only legs cost computation:
//! within them a position is a single multiplication.

use ranpace_units::{Span, Time};

use super::random::{self, Purpose, Random};
use super::{Disc, Motion, Position};

/// Parameters of a walk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkRule {
    /// The area that walkers do not leave.
    pub area: Disc,
    /// Minimum and maximum speed in m/s, drawn uniformly for each leg; equal for a constant speed.
    pub speed_m_s: [f64; 2],
    /// Duration of a leg, at least 1 ms; a leg that meets the edge is reflected and continues.
    pub leg: Span,
}

impl WalkRule {
    /// 004's walkers in this area: 1 to 5 m/s. The leg of 10 s is ours, since the source gives none.
    pub const fn pedestrian(area: Disc) -> Self {
        Self { area, speed_m_s: [1.0, 5.0], leg: Span::from_secs(10) }
    }
}

/// A straight piece of the walk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: Time,
    end: Time,
    from: Position,
    /// Velocity in m/s along x and y.
    velocity: [f64; 2],
    speed_m_s: f64,
    travelled_m: f64,
}

impl Piece {
    fn at(&self, now: Time) -> Motion {
        let seconds = now.min(self.end).since(self.start).as_secs_f64();
        let position = Position {
            x: self.from.x + self.velocity[0] * seconds,
            y: self.from.y + self.velocity[1] * seconds,
            z: self.from.z,
        };
        let travelled_m = self.travelled_m + self.speed_m_s * seconds;
        Motion { position, speed_m_s: self.speed_m_s, travelled_m }
    }
}

/// One user's walk.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    rule: WalkRule,
    random: Random,
    leg_end: Time,
    before: Piece,
    piece: Piece,
}

/// Shortest piece, so that the number of turns, and thus the cost of following any walk, is bounded.
const SHORTEST: Span = Span::from_millis(1);
/// Pieces followed per query. A walker queried after a longer gap stays at the end of the last one.
const MOST_PIECES: u32 = 100_000;
/// Highest speed in m/s: that of light.
const MOST_M_S: f64 = 3e8;

impl RandomWalk {
    /// The walk of user number `user` under this seed, starting at `from`, or at the nearest point of the area.
    pub fn new(rule: WalkRule, from: Position, seed: u64, user: u64) -> Self {
        let from = inside(rule.area, from);
        let start = Piece {
            start: Time::ZERO,
            end: Time::ZERO,
            from,
            velocity: [0.0; 2],
            speed_m_s: 0.0,
            travelled_m: 0.0,
        };
        let random = random::at(seed, Purpose::Walk, user);
        let mut walk = Self { rule, random, leg_end: Time::ZERO, before: start, piece: start };
        walk.advance();
        walk
    }

    /// The walker's motion. An instant before the last piece but one counts as the beginning of that piece.
    pub fn at(&mut self, now: Time) -> Motion {
        for _ in 0..MOST_PIECES {
            if now < self.piece.end {
                break;
            }
            self.advance();
        }
        if now < self.piece.start { self.before.at(now) } else { self.piece.at(now) }
    }

    /// Starts the next piece: of a new leg, or of the same leg after reflection.
    fn advance(&mut self) {
        let last = self.piece;
        let end = last.at(last.end);
        let from = inside(self.rule.area, end.position);
        let (speed_m_s, velocity) = if last.end >= self.leg_end {
            self.leg_end = last.end + self.rule.leg.max(SHORTEST);
            let [low, high] = self.rule.speed_m_s;
            let speed = random::between(&mut self.random, low, high);
            // NaN counts as 0.
            let speed = if speed > 0.0 { speed.min(MOST_M_S) } else { 0.0 };
            let (sin, cos) = libm::sincos(core::f64::consts::TAU * random::unit(&mut self.random));
            (speed, [speed * cos, speed * sin])
        } else {
            (last.speed_m_s, mirrored(self.rule.area.centre, from, last.velocity))
        };
        let to_edge = Span::from_secs_f64(seconds_to_edge(self.rule.area, from, velocity)).max(SHORTEST);
        self.before = last;
        self.piece = Piece {
            start: last.end,
            end: self.leg_end.min(last.end + to_edge),
            from,
            velocity,
            speed_m_s,
            travelled_m: end.travelled_m,
        };
    }
}

/// The point itself, or the nearest one in the area; the centre for a point that is not finite.
fn inside(area: Disc, at: Position) -> Position {
    let radius = area.radius_m.max(0.0);
    let distance = area.centre.ground_distance_m(at);
    if distance <= radius && [at.x, at.y, at.z].iter().all(|part| part.is_finite()) {
        return at;
    }
    let share = radius / distance;
    let (x, y) = ((at.x - area.centre.x) * share, (at.y - area.centre.y) * share);
    let z = if at.z.is_finite() { at.z } else { area.centre.z };
    if x.is_finite() && y.is_finite() {
        Position::new(area.centre.x + x, area.centre.y + y, z)
    } else {
        area.centre
    }
}

/// The velocity after reflection at the edge: its radial component changes sign.
fn mirrored(centre: Position, at: Position, [vx, vy]: [f64; 2]) -> [f64; 2] {
    let (x, y) = (at.x - centre.x, at.y - centre.y);
    let square = x * x + y * y;
    if !square.is_normal() && (x != 0.0 || y != 0.0) {
        // The distance from the centre is too large or too small to square; only its direction matters.
        let largest = x.abs().max(y.abs());
        let at = Position::new(x / largest, y / largest, 0.0);
        return mirrored(Position::new(0.0, 0.0, 0.0), at, [vx, vy]);
    }
    let outward = vx * x + vy * y;
    if square > 0.0 && outward > 0.0 {
        let twice = 2.0 * outward / square;
        [vx - twice * x, vy - twice * y]
    } else {
        [vx, vy]
    }
}

/// Seconds until a straight line from inside meets the edge; very many at speed 0.
fn seconds_to_edge(area: Disc, from: Position, [vx, vy]: [f64; 2]) -> f64 {
    // |p + v t| = r: t^2 v.v + 2 t p.v + p.p - r^2 = 0, where p.p <= r^2, so one root is not negative.
    let (x, y) = (from.x - area.centre.x, from.y - area.centre.y);
    let (a, b, c) = (vx * vx + vy * vy, x * vx + y * vy, x * x + y * y - area.radius_m * area.radius_m);
    if a > 0.0 { ((b * b - a * c).max(0.0).sqrt() - b) / a } else { 1e9 }
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;
    use proptest::prelude::*;

    const AREA: Disc = Disc { centre: Position::new(0.0, 0.0, 1.5), radius_m: 400.0, spread: Spread::Area };

    #[test]
    fn a_walker_stays_in_its_area_and_never_jumps() {
        for user in 0..20 {
            let mut walk = RandomWalk::new(WalkRule::pedestrian(AREA), AREA.draw(1, user), 1, user);
            let mut last = walk.at(Time::ZERO);
            for tenth in 1..20_000 {
                let next = walk.at(Time::from_millis(100 * tenth));
                assert!(AREA.centre.ground_distance_m(next.position) < 400.01);
                assert!(last.position.ground_distance_m(next.position) <= 0.5 + 1e-6);
                let way = next.travelled_m - last.travelled_m;
                assert!((0.1 - 1e-6..=0.5 + 1e-6).contains(&way), "{way}");
                last = next;
            }
            // 3 m/s on average, over 200 legs: five standard errors are 0.41.
            assert!((last.travelled_m / 2000.0 - 3.0).abs() < 0.41, "{}", last.travelled_m);
        }
    }

    #[test]
    fn walkers_cover_their_area() {
        // With reflection at the edge the stationary distribution is uniform: a quarter is within half the radius.
        let inner: usize = (0..200)
            .map(|user| {
                let mut walk = RandomWalk::new(WalkRule::pedestrian(AREA), AREA.draw(2, user), 2, user);
                let seen = (0..50).map(|i| walk.at(Time::from_secs(100 * i)).position);
                seen.filter(|at| AREA.centre.ground_distance_m(*at) < 200.0).count()
            })
            .sum();
        assert!((inner as f64 / 10_000.0 - 0.25).abs() < 0.04, "{inner}");
    }

    #[test]
    fn a_look_does_not_change_the_walk() {
        let new = || RandomWalk::new(WalkRule::pedestrian(AREA), AREA.draw(3, 1), 3, 1);
        let (mut often, mut seldom) = (new(), new());
        for ms in 0..30_000 {
            often.at(Time::from_millis(ms));
        }
        assert_eq!(often.at(Time::from_millis(29_990)), seldom.at(Time::from_millis(29_990)));
    }

    #[test]
    fn walks_at_the_end_of_all_numbers_are_somewhere() {
        // Their squares overflow or underflow.
        for far in [f64::MAX, 1e308, 1e200, 1e-160, 1e-170, f64::MIN_POSITIVE, 5e-324, f64::INFINITY] {
            for (x, y) in [(far, 0.0), (far, far), (-far, far / 2.0)] {
                let area = Disc { centre: Position::default(), radius_m: far, spread: Spread::Area };
                let rule = WalkRule { area, speed_m_s: [3.0, MOST_M_S], leg: Span::from_secs(1) };
                let mut walk = RandomWalk::new(rule, Position::new(x, y, 0.0), 1, 1);
                for ms in 0..3_000 {
                    let motion = walk.at(Time::from_millis(ms));
                    let Position { x, y, .. } = motion.position;
                    assert!(
                        x.is_finite() && y.is_finite() && motion.travelled_m.is_finite(),
                        "{far}: {motion:?}"
                    );
                    let velocity = walk.piece.velocity;
                    let speed = velocity[0].hypot(velocity[1]);
                    assert!((speed / walk.piece.speed_m_s - 1.0).abs() < 1e-6, "{far}: {velocity:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn absurd_walks_end_and_are_somewhere(
            radius_m in any::<f64>(), low in any::<f64>(), high in any::<f64>(), leg in any::<u64>(),
            x in any::<f64>(), times in prop::collection::vec(any::<u64>(), 1..3)
        ) {
            let area = Disc { centre: Position::default(), radius_m, spread: Spread::Area };
            let rule = WalkRule { area, speed_m_s: [low, high], leg: Span::from_nanos(leg) };
            let mut walk = RandomWalk::new(rule, Position::new(x, x, x), 1, 1);
            for ns in times {
                let motion = walk.at(Time::from_nanos(ns));
                prop_assert!(!motion.position.x.is_nan() && !motion.travelled_m.is_nan(), "{motion:?}");
            }
        }
    }
}
