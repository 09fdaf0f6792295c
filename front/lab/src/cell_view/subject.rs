//! The subject of a view: a cell named by a preset or taken from a scenario, and its users.

use ranpace_radio::cell::{CellConfig, Place, UserConfig};
use ranpace_radio::channel::Position;
use ranpace_scenario::{Scenario, cells};

use super::ViewError;

/// A user that can be examined.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// Its number, which with the seed determines its place, shadowing and fading.
    pub id: u32,
    /// Its position, and its bearers.
    pub config: UserConfig,
}

/// A cell and its users.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Its name: that of a preset, or of a cell of a scenario.
    pub name: String,
    /// Its description, in one line; may be empty.
    pub about: String,
    /// Its number in the scenario.
    pub number: u16,
    /// The cell.
    pub config: CellConfig,
    /// Its users, the examined one first.
    pub users: Vec<Watched>,
    /// Whether more users can be created like the first one.
    pub can_add: bool,
    /// Seed of every random choice, unless another one is given.
    pub seed: u64,
}

impl Subject {
    /// The cell of a preset, with the preset's user.
    pub fn preset(name: &str) -> Result<Self, ViewError> {
        let Some(preset) = cells::by_name(name) else {
            let names = cells::PRESETS.iter().map(|preset| preset.name);
            let nearest = nearest(name, names).join(", ");
            return Err(ViewError::NoPreset { name: name.to_owned(), nearest });
        };
        Ok(Self {
            name: name.to_owned(),
            about: preset.about.to_owned(),
            number: 0,
            config: preset.config(),
            users: vec![Watched { name: "user".to_owned(), id: 0, config: preset.user() }],
            can_add: true,
            seed: 1,
        })
    }

    /// A cell of a scenario with its initial users. Without a user's name the first of the cell is examined; with neither name
    /// there must be only one cell.
    pub fn of_scenario(
        scenario: &Scenario,
        cell: Option<&str>,
        user: Option<&str>,
    ) -> Result<Self, ViewError> {
        let names: Vec<&str> = scenario.cells.iter().map(|cell| cell.name.as_str()).collect();
        let users = || scenario.users.iter().map(|user| user.name.as_str());
        let named = |what: &str, name: &str, found: Option<usize>, names: Vec<&str>| {
            let nearest = nearest(name, names.into_iter()).join(", ");
            found.ok_or_else(|| {
                ViewError::Choice(match nearest.as_str() {
                    "" => format!("no {what} is called {name:?}: the scenario {:?} has none", scenario.name),
                    _ => format!("no {what} is called {name:?}; the nearest are {nearest}"),
                })
            })
        };
        let user =
            user.map(|name| named("user", name, users().position(|other| other == name), users().collect()));
        let user = user.transpose()?;
        let cell = cell
            .map(|name| named("cell", name, names.iter().position(|other| *other == name), names.clone()))
            .transpose()?;
        let index = match (cell, user) {
            (Some(cell), Some(user)) if scenario.users[user].cell != cell => {
                let (user, begins) = (&scenario.users[user], names[scenario.users[user].cell]);
                return Err(ViewError::Choice(format!(
                    "user {:?} begins in the cell {begins:?}, not in {:?}",
                    user.name, names[cell]
                )));
            }
            (Some(cell), _) => cell,
            (None, Some(user)) => scenario.users[user].cell,
            (None, None) => match names.len() {
                0 => {
                    let name = &scenario.name;
                    return Err(ViewError::Choice(format!("the scenario {name:?} has no [[cell]]")));
                }
                1 => 0,
                _ => {
                    let names = names.join(", ");
                    return Err(ViewError::Choice(format!("which of the cells? There are: {names}")));
                }
            },
        };
        let inside = |(_, other): &(usize, &ranpace_scenario::UserSpec)| other.cell == index;
        let mut inside: Vec<_> = scenario.users.iter().enumerate().filter(inside).collect();
        // The named user comes first; the others keep their order.
        inside.sort_by_key(|(number, _)| Some(*number) != user);
        let watched = inside.into_iter().map(|(number, user)| Watched {
            name: user.name.clone(),
            id: u32::try_from(number).unwrap_or(u32::MAX), // at most 100 000
            config: user.config.clone(),
        });
        let spec = &scenario.cells[index];
        Ok(Self {
            name: spec.name.clone(),
            about: format!("a cell of the scenario {:?}", scenario.name),
            number: u16::try_from(index).unwrap_or(u16::MAX), // at most 1000
            config: spec.config.clone(),
            users: watched.collect(),
            can_add: false,
            seed: scenario.seed,
        })
    }

    /// The examined user.
    pub fn user(&self) -> Result<&Watched, ViewError> {
        let none = || ViewError::Choice(format!("no user begins in the cell {:?}", self.name));
        self.users.first().ok_or_else(none)
    }

    /// The same with the user at a point.
    pub(super) fn standing(mut self, position: Position) -> Self {
        if let Some(user) = self.users.first_mut() {
            (user.config.place, user.config.recording) = (Place::Static(position), None);
        }
        self
    }
}

/// The three existing names most similar to an unknown one, nearest first.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    names.truncate(3);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        duration = "1s"
        seed = 7
        [[link]]
        from = "server"
        to = "mast"
        rate = "1Gbit/s"
        delay = "1ms"
        duplex = true
        [[cell]]
        name = "west"
        host = "mast"
        [[cell]]
        name = "east"
        host = "mast"
        preset = "zhong-lte-ch6"
        [[user]]
        name = "ann"
        cell = "west"
        [[user]]
        name = "bob"
        cell = "east"
        position = [300, 40, 2]
        [[user]]
        name = "eve"
        cell = "east"
        [[flow]]
        from = "server"
        to = "bob"
        cc = "cubic"
    "#;

    #[test]
    fn users_and_cells_of_a_scenario_are_found_by_name() {
        let scenario = ranpace_scenario::parse(TWO, "two.toml", &mut ()).unwrap();
        let of = |cell, user| Subject::of_scenario(&scenario, cell, user);
        let names =
            |subject: Subject| subject.users.into_iter().map(|user| (user.name, user.id)).collect::<Vec<_>>();
        let east = of(None, Some("eve")).unwrap();
        assert_eq!((east.name.as_str(), east.number, east.seed), ("east", 1, 7));
        assert_eq!(names(east), [("eve".to_owned(), 2), ("bob".to_owned(), 1)]);
        let east = of(Some("east"), None).unwrap();
        assert_eq!(east.height_m(), Ok(2.0));
        assert_eq!(east.at_distance(100.0), Ok(Position::new(100.0, 0.0, 2.0)));
        for (cell, user, expected) in [
            (None, None, "which of the cells? There are: west, east"),
            (Some("wets"), None, "no cell is called \"wets\"; the nearest are west, east"),
            (None, Some("evi"), "no user is called \"evi\"; the nearest are eve,"),
            (Some("west"), Some("bob"), "user \"bob\" begins in the cell \"east\", not in \"west\""),
        ] {
            let error = of(cell, user).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn an_unknown_preset_is_answered_with_the_nearest() {
        let error = Subject::preset("zhong-lte-ch7").unwrap_err().to_string();
        assert!(error.contains("zhong-lte-ch6") && error.contains("zhong-lte-ch5"), "{error}");
    }
}
