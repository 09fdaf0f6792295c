//! Positions, and areas from which they are drawn.

use super::random::{self, Purpose};

/// A point in metres: x and y on the ground, z above it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres towards the east.
    pub x: f64,
    /// Metres towards the north.
    pub y: f64,
    /// Metres above the ground.
    pub z: f64,
}

/// Position and movement of a user at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Its position.
    pub position: Position,
    /// Its speed in m/s.
    pub speed_m_s: f64,
    /// Metres travelled since the start of the run.
    pub travelled_m: f64,
}

/// Twice around the Earth. Longer distances and NaN count as this, so that every distance is finite.
const FARTHEST_M: f64 = 8e7;

impl Position {
    /// The point (x, y, z), in metres.
    pub const fn new(x: f64, y: f64, z: f64) -> Self {
        Self { x, y, z }
    }
    /// Distance on the ground in metres (TR 38.901's d_2D): 0 to 80 000 km, whatever the coordinates.
    pub fn ground_distance_m(self, other: Self) -> f64 {
        length(self.x - other.x, self.y - other.y, 0.0)
    }
    /// Distance through the air in metres (TR 38.901's d_3D): 0 to 80 000 km, whatever the coordinates.
    pub fn distance_m(self, other: Self) -> f64 {
        length(self.x - other.x, self.y - other.y, self.z - other.z)
    }
    /// The point at the fraction `share` (0 to 1) of the way to `other`.
    pub(crate) fn towards(self, other: Self, share: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * share;
        Self::new(between(self.x, other.x), between(self.y, other.y), between(self.z, other.z))
    }
}

fn length(x: f64, y: f64, z: f64) -> f64 {
    let length = (x * x + y * y + z * z).sqrt();
    if length < FARTHEST_M { length } else { FARTHEST_M }
}

/// A disc on the ground, in which users are dropped or walk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disc {
    /// Its centre; its height is that of all users in it.
    pub centre: Position,
    /// Its radius in metres.
    pub radius_m: f64,
    /// Distribution of positions in it.
    pub spread: Spread,
}

/// Distribution of positions in a disc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Uniform over the area.
    #[default]
    Area,
    /// Uniform in the distance from the centre, and thus denser near it: ns-3's `RandomDiscPositionAllocator` with its
    /// usual variable.
    Radius,
}

impl Disc {
    /// A point drawn from the distribution [`Spread`], for user number `user` under this seed.
    pub fn draw(self, seed: u64, user: u64) -> Position {
        let random = &mut random::at(seed, Purpose::Place, user);
        let unit = random::unit(random);
        let share = match self.spread {
            Spread::Area => unit.sqrt(),
            Spread::Radius => unit,
        };
        let distance = self.radius_m.max(0.0) * share;
        let (sin, cos) = libm::sincos(core::f64::consts::TAU * random::unit(random));
        Position::new(self.centre.x + distance * cos, self.centre.y + distance * sin, self.centre.z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_cover_a_disc_evenly() {
        let disc = Disc { centre: Position::new(5.0, -7.0, 1.5), radius_m: 400.0, spread: Spread::Area };
        let drops: Vec<Position> = (0..20_000).map(|user| disc.draw(3, user)).collect();
        let share = |inside: &dyn Fn(&Position) -> bool| {
            drops.iter().filter(|drop| inside(drop)).count() as f64 / drops.len() as f64
        };
        assert_eq!(share(&|p| p.ground_distance_m(disc.centre) <= 400.0 && p.z == 1.5), 1.0);
        // Five standard errors of a share of one quarter are 0.015.
        assert!((share(&|p| p.ground_distance_m(disc.centre) <= 200.0) - 0.25).abs() < 0.015);
        assert!((share(&|p| p.x > 5.0 && p.y > -7.0) - 0.25).abs() < 0.015);
    }

    #[test]
    fn distances_from_the_middle_may_be_drawn_evenly() {
        let disc = Disc { centre: Position::new(5.0, -7.0, 1.5), radius_m: 400.0, spread: Spread::Radius };
        let near =
            (0..20_000).filter(|user| disc.draw(3, *user).ground_distance_m(disc.centre) <= 200.0).count();
        // Five standard errors of a share of one half are 0.018.
        assert!((near as f64 / 20_000.0 - 0.5).abs() < 0.018);
    }

    #[test]
    fn distances_are_finite() {
        let odd = [0.0, -1.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for x in odd {
            for y in odd {
                let distance = Position::new(x, y, 0.0).distance_m(Position::default());
                assert!((0.0..=FARTHEST_M).contains(&distance), "{x}, {y}: {distance}");
            }
        }
    }
}
