//! Points: what differs from run to run of a scheme.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::places::Set;
use super::toml::{Table, Toml};

/// Schemes at points: one run for each pair.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Their labels; all if there are none.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The label of a point, with places for its values.
    pub point: String,
    /// Repeats each point this many times, with the place `drop` from 1 on; all points of a drop are consecutive.
    pub drops: Option<u32>,
    /// The points.
    #[serde(default)]
    pub each: Vec<Point>,
    /// Every combination of these values, for each of `each`; in order of names, the last one changing fastest.
    #[serde(default)]
    pub grid: BTreeMap<String, Vec<Toml>>,
}

/// The changes of a point to its scenarios. Every key but `use` and `patch` is a place.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Point {
    /// Patches by name.
    #[serde(default, rename = "use")]
    pub uses: Vec<String>,
    /// A patch of its own.
    #[serde(default)]
    pub patch: Table,
    /// Values of places.
    #[serde(flatten)]
    pub set: Set,
}

impl Runs {
    /// In each drop, every one of `each` with every combination of `grid`.
    pub fn points(&self) -> Vec<Point> {
        let mut begun = if self.each.is_empty() { vec![Point::default()] } else { self.each.clone() };
        if let Some(drops) = self.drops {
            let with = |drop: u32| {
                let number = move |mut point: Point| {
                    point.set.insert("drop".to_owned(), Toml::Integer(drop.into()));
                    point
                };
                begun.clone().into_iter().map(number)
            };
            begun = (1..=drops).flat_map(with).collect();
        }
        combinations(begun, &self.grid, |point| &mut point.set)
    }
}

/// Each of these with every combination of the values of a grid; in order of names, the last one changing fastest.
pub fn combinations<T: Clone>(
    begun: Vec<T>,
    grid: &BTreeMap<String, Vec<Toml>>,
    set: impl Fn(&mut T) -> &mut Set,
) -> Vec<T> {
    grid.iter().fold(begun, |begun, (key, values)| {
        let with = |begun: &T, value: &Toml| {
            let mut with = begun.clone();
            set(&mut with).insert(key.clone(), value.clone());
            with
        };
        begun
            .iter()
            .flat_map(|begun| values.iter().map(|value| with(begun, value)).collect::<Vec<_>>())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(pairs: &[(&str, &str)]) -> Point {
        let set = pairs.iter().map(|(key, value)| ((*key).to_owned(), Toml::from(*value))).collect();
        Point { set, ..Point::default() }
    }

    /// The values of a point's places, joined.
    fn joined(point: &Point, places: &[&str]) -> String {
        places.iter().map(|place| point.set[*place].plain()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn points_are_all_combinations_in_order() {
        let runs = Runs {
            schemes: Vec::new(),
            point: String::new(),
            drops: None,
            each: vec![point(&[("t", "1")]), point(&[("t", "2")])],
            grid: [("b", vec!["x", "y"]), ("a", vec!["z"])]
                .map(|(key, list)| (key.to_owned(), list.into_iter().map(Toml::from).collect()))
                .into(),
        };
        let points: Vec<String> = runs.points().iter().map(|point| joined(point, &["t", "a", "b"])).collect();
        assert_eq!(points, ["1 z x", "1 z y", "2 z x", "2 z y"]);
    }

    #[test]
    fn drops_are_numbered_and_stand_together() {
        let runs = Runs {
            schemes: Vec::new(),
            point: String::new(),
            drops: Some(2),
            each: Vec::new(),
            grid: [("size".to_owned(), vec!["1MB".into(), "10MB".into()])].into(),
        };
        let found: Vec<String> = runs.points().iter().map(|point| joined(point, &["drop", "size"])).collect();
        assert_eq!(found, ["1 1MB", "1 10MB", "2 1MB", "2 10MB"]);
    }
}
