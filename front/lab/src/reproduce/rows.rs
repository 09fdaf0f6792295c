//! Sections that expand to several: `[[criterion]]`, `[[table]]`, `[[picture]]` and `[[reading]]` with rows.
//!
//! ```toml
//! [[criterion]]
//! id = "faster-${than}"
//! text = "time of SIGMA over that of ${than}: at most 1.02"
//! measure = { figure = "upload_time", of = "sigma", over = { of = "${than}" } }
//! at_most = 1.02
//! each = [{ than = "newreno" }, { than = "cubic", at_most = 1.1 }]
//! ```
//!
//! `each` has a row for each of them. A key of a row that is a place of the section (`places.rs`) fills it; any other key replaces
//! the section's key. `grid` adds every combination of some values to each row, as in `[[runs]]`. `parts` are separate sections for
//! each row, which start from the keys of the whole.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, value};

use super::places::{Set, fill_table, places_of};
use super::runs::combinations;
use super::toml::{Table, Toml};

/// Parses sections, expanding those with rows.
pub fn sections<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let mut found = Vec::new();
    for table in Vec::<Table>::deserialize(deserializer)? {
        for section in expanded(table).map_err(D::Error::custom)? {
            let name = ["id", "name", "title", "caption"].into_iter().find_map(|key| section.get(key));
            let name = name.map_or_else(String::new, |name| format!("{name}: "));
            let read = T::deserialize(Toml::Table(section));
            found.push(read.map_err(|what: value::Error| D::Error::custom(format!("{name}{what}")))?);
        }
    }
    Ok(found)
}

/// The sections that one expands to; itself if it has no rows.
fn expanded(mut section: Table) -> Result<Vec<Table>, String> {
    let [each, grid, parts] = ["each", "grid", "parts"].map(|key| section.remove(key));
    if [&each, &grid, &parts].iter().all(|rows| rows.is_none()) {
        return Ok(vec![section]);
    }
    let sections: Vec<Table> = match &parts {
        None => vec![section],
        Some(parts) => tables("parts", parts)?.into_iter().map(|part| section.with(part)).collect(),
    };
    let rows = match &each {
        None => vec![Set::new()],
        Some(each) => tables("each", each)?.into_iter().map(Table::to_set).collect(),
    };
    let lists = match grid {
        None => Set::new(),
        Some(Toml::Table(grid)) => grid.to_set(),
        Some(_) => return Err("grid: expected a table of lists".to_owned()),
    };
    let lists = lists.into_iter().map(|(key, list)| match list {
        Toml::Array(list) => Ok((key, list)),
        _ => Err(format!("grid.{key}: expected a list")),
    });
    let grid = lists.collect::<Result<BTreeMap<_, _>, String>>()?;
    let mut found = Vec::new();
    let places: Vec<String> = sections.iter().flat_map(places_of).collect();
    for row in combinations(rows, &grid, |row| row) {
        for section in &sections {
            found.push(of_row(section, &row, &places)?);
        }
    }
    Ok(found)
}

fn tables<'a>(key: &str, list: &'a Toml) -> Result<Vec<&'a Table>, String> {
    list.tables().ok_or_else(|| format!("{key}: expected a list of tables"))
}

/// A section with the values of a row, which fill these places, places in other values, or keys.
fn of_row(section: &Table, row: &Set, places: &[String]) -> Result<Table, String> {
    let mut section = section.clone();
    let values: Table = row.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let within = places_of(&values);
    for (key, value) in row.iter().filter(|(key, _)| !places.contains(key) && !within.contains(key)) {
        section.insert(key, value.clone());
    }
    fill_table(&section, row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Section {
        id: String,
        most: Option<f64>,
        #[serde(default)]
        list: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Document {
        #[serde(deserialize_with = "sections")]
        section: Vec<Section>,
    }

    fn read(text: &str) -> Result<Vec<Section>, String> {
        let read = toml_edit::de::from_str::<Document>(&format!("[[section]]\n{text}"));
        read.map(|document| document.section).map_err(|error| error.to_string())
    }

    #[test]
    fn repeated_section_becomes_an_array() {
        let shown =
            |section: &Section| format!("{} {:?} {}", section.id, section.most, section.list.concat());
        for (case, text, expected) in [
            ("no rows", "id = \"${x}\"", vec!["${x} None "]),
            (
                "a place, and a key in place of the section's",
                "id = \"a ${x}\"\nmost = 1\neach = [{ x = \"b\" }, { x = \"c\", most = 2 }]",
                vec!["a b Some(1.0) ", "a c Some(2.0) "],
            ),
            (
                "all combinations for each row",
                "list = [\"${x}\", \"${y}\"]\ngrid = { y = [\"1\", \"2\"] }\neach = [{ id = \"p\", x = \"a\" }, { id = \"q\", x = \"b\" }]",
                vec!["p None a1", "p None a2", "q None b1", "q None b2"],
            ),
            (
                "parts of each row, and a value with a place",
                "most = 3\nparts = [{ id = \"a ${x}\" }, { id = \"b ${y}\", most = 4 }]\neach = [{ x = \"1${y}\", y = \"2\" }]",
                vec!["a 12 Some(3.0) ", "b 2 Some(4.0) "],
            ),
        ] {
            let found: Vec<String> = read(text).unwrap().iter().map(shown).collect();
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn errors_name_the_place_and_the_cause() {
        for (text, expected) in [
            ("id = \"a\"\nmast = 1", "\"a\": unknown field `mast`"),
            ("id = \"a\"\neach = [{ mast = 1 }]", "\"a\": unknown field `mast`"),
            ("id = \"${x}\"\neach = [{ y = 1 }]", "id: nothing goes into ${x}"),
            ("id = \"a\"\neach = 1", "each: expected a list of tables"),
            ("id = \"a\"\ngrid = { x = 1 }", "grid.x: expected a list"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
