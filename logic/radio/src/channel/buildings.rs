//! Buildings that block the line of sight.

use super::Position;

/// A box on the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Building {
    /// Lower and upper x in metres.
    pub x_m: [f64; 2],
    /// Lower and upper y in metres.
    pub y_m: [f64; 2],
    /// Height in metres.
    pub height_m: f64,
}

/// Buildings between two points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blockage {
    /// Number of buildings that the straight line meets.
    pub crossed: u32,
    /// Whether one of the two points is inside a building (its walls included).
    pub inside: bool,
}

impl Blockage {
    /// The buildings on the straight line from `a` to `b`.
    pub fn between(buildings: &[Building], a: Position, b: Position) -> Self {
        let mut found = Self::default();
        for building in buildings {
            found.crossed += u32::from(building.crosses(a, b));
            found.inside |= building.contains(a) || building.contains(b);
        }
        found
    }

    /// Returns whether the line meets no building.
    pub const fn is_clear(self) -> bool {
        self.crossed == 0
    }

    /// Loss in dB beyond that of a blocked path: 20 if the line crosses two buildings or more, or ends inside one (not 40 if
    /// both hold). The spec's choice.
    pub const fn extra_db(self) -> f64 {
        if self.crossed >= 2 || self.inside { 20.0 } else { 0.0 }
    }
}

impl Building {
    const fn sides(&self) -> [[f64; 2]; 3] {
        [self.x_m, self.y_m, [0.0, self.height_m]]
    }

    /// Returns whether the point is inside, or on a wall.
    pub fn contains(&self, at: Position) -> bool {
        let [x, y, z] = self.sides();
        let inside = |[low, high]: [f64; 2], value: f64| low <= value && value <= high;
        inside(x, at.x) && inside(y, at.y) && inside(z, at.z)
    }

    /// Returns whether the straight line between the points meets the building, or touches its wall.
    pub fn crosses(&self, a: Position, b: Position) -> bool {
        // Fractions of the line at which it enters and leaves the slab of each axis.
        let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
        let ends = [[a.x, b.x], [a.y, b.y], [a.z, b.z]];
        for ([low, high], [from, to]) in self.sides().into_iter().zip(ends) {
            let way = to - from;
            if way == 0.0 {
                if !(low <= from && from <= high) {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - from) / way, (high - from) / way);
            enters = enters.max(one.min(other));
            leaves = leaves.min(one.max(other));
        }
        enters <= leaves
    }
}

const fn building(x_m: [f64; 2], y_m: [f64; 2], height_m: f64) -> Building {
    Building { x_m, y_m, height_m }
}

/// The street of RAPID's experiments (Diarra 2022, Tables 5.2 and 5.3.2; Avenue Jean Medecin): eight buildings, B1 to B8.
pub const STREET: [Building; 8] = [
    building([20.0, 63.0], [3.0, 58.0], 28.0),
    building([20.0, 67.0], [68.0, 114.0], 26.0),
    building([20.0, 122.0], [124.0, 198.0], 31.0),
    building([20.0, 72.0], [215.0, 237.0], 31.0),
    building([78.0, 160.0], [3.0, 66.0], 30.0),
    building([82.0, 143.0], [75.0, 140.0], 24.0),
    building([137.0, 175.0], [149.0, 221.0], 28.0),
    building([87.0, 130.0], [232.0, 268.0], 27.0),
];

/// The base station of the street.
pub const STREET_BASE: Position = Position::new(0.0, 0.0, 10.0);
/// The user with line of sight in the experiments.
pub const STREET_IN_SIGHT: Position = Position::new(10.0, 0.0, 1.5);
/// Start of the user without line of sight in the experiments; it walks towards +y at 1 m/s. As published, and inside B5.
pub const STREET_OUT_OF_SIGHT: Position = Position::new(100.0, 3.0, 1.5);

/// `street-walk`: along the open side of the street, with a detour into each of the three side streets, so that the user is
/// in and out of sight by turns. Ours, since the published walk never comes into sight. At 1 m/s it takes 326 s.
pub const STREET_WALK: [Position; 10] = [
    Position::new(15.0, 0.0, 1.5),
    Position::new(15.0, 63.0, 1.5),
    Position::new(35.0, 63.0, 1.5),
    Position::new(15.0, 63.0, 1.5),
    Position::new(15.0, 119.0, 1.5),
    Position::new(35.0, 119.0, 1.5),
    Position::new(15.0, 119.0, 1.5),
    Position::new(15.0, 206.0, 1.5),
    Position::new(35.0, 206.0, 1.5),
    Position::new(15.0, 206.0, 1.5),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(user: Position) -> Blockage {
        Blockage::between(&STREET, STREET_BASE, user)
    }

    #[test]
    fn the_street_of_the_experiments_blocks_as_computed() {
        assert_eq!(seen(STREET_IN_SIGHT), Blockage::default());
        let walked =
            |seconds: f64| seen(Position { y: STREET_OUT_OF_SIGHT.y + seconds, ..STREET_OUT_OF_SIGHT });
        for (case, seconds, crossed, inside) in [
            ("at the start inside B5", 0.0, 1, true),
            ("just before B1", 1.7, 1, true),
            ("behind B1 too", 1.8, 2, true),
            ("half a minute later", 30.0, 2, true),
        ] {
            assert_eq!(walked(seconds), Blockage { crossed, inside }, "{case}");
            assert_eq!(walked(seconds).extra_db(), 20.0, "{case}");
        }
        assert!((0..600).all(|tenths| !walked(f64::from(tenths) / 10.0).is_clear()));
    }

    #[test]
    fn the_walk_on_the_open_side_comes_in_and_out_of_sight() {
        let steps = STREET_WALK
            .windows(2)
            .flat_map(|leg| (0..100).map(move |percent| leg[0].towards(leg[1], f64::from(percent) / 100.0)));
        let clear: Vec<bool> = steps.map(|at| seen(at).is_clear()).collect();
        let turns = clear.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(turns, 6, "three times out of sight");
        assert!(STREET_WALK.iter().all(|&at| !seen(at).inside));
        let length: f64 = STREET_WALK.windows(2).map(|leg| leg[0].ground_distance_m(leg[1])).sum();
        assert_eq!(length, 326.0);
    }

    #[test]
    fn a_line_above_the_roof_or_beside_a_wall_is_clear() {
        let house = building([10.0, 20.0], [0.0, 10.0], 8.0);
        let line =
            |x: f64, y: f64, z: f64, to: f64| house.crosses(Position::new(x, y, z), Position::new(to, y, z));
        for (case, crosses, expected) in [
            ("through", line(0.0, 5.0, 5.0, 30.0), true),
            ("above", line(0.0, 5.0, 8.1, 30.0), false),
            ("beside", line(0.0, -0.1, 5.0, 30.0), false),
            ("short of it", line(0.0, 5.0, 5.0, 9.9), false),
            ("to a point", line(15.0, 5.0, 5.0, 15.0), true),
        ] {
            assert_eq!(crosses, expected, "{case}");
        }
        let one = Blockage::between(&[house], Position::new(0.0, 5.0, 5.0), Position::new(30.0, 5.0, 5.0));
        assert_eq!((one.is_clear(), one.extra_db()), (false, 0.0));
    }

    proptest! {
        #[test]
        fn a_line_is_the_same_both_ways(ends in prop::array::uniform6(-50.0..300.0f64)) {
            let [a, b, c, d, e, f] = ends;
            let (from, to) = (Position::new(a, b, c), Position::new(d, e, f));
            prop_assert_eq!(Blockage::between(&STREET, from, to), Blockage::between(&STREET, to, from));
        }

        #[test]
        fn absurd_points_do_not_panic(x in any::<f64>(), y in any::<f64>(), z in any::<f64>()) {
            seen(Position::new(x, y, z));
        }
    }
}
