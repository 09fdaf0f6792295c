//! Places: `${rtt}` in a scenario, filled with the values of a run.
//!
//! A string that is a single place, `"${queue}"`, becomes the place's value, whatever its type. A string with a place among digits,
//! `"20${drop}"`, becomes a number. Every other string stays a string.

use std::collections::BTreeMap;

use super::toml::{Table, Toml};

/// Values by the name of their place.
pub type Set = BTreeMap<String, Toml>;

/// Values may nest this deep: more indicates a cycle.
const DEPTH: usize = 4;

/// Fills all places of a table. An error names the key.
pub fn fill_table(table: &Table, places: &Set) -> Result<Table, String> {
    fill_entries(table, places, DEPTH)
}

fn fill_entries(table: &Table, places: &Set, depth: usize) -> Result<Table, String> {
    let mut filled = Table::default();
    for (key, value) in table.iter() {
        let at = |what| format!("{key}{what}");
        filled.insert(key, fill(value, places, depth).map_err(at)?);
    }
    Ok(filled)
}

/// The names of all places in a table.
pub fn places_of(table: &Table) -> Vec<String> {
    fn of(value: &Toml) -> Vec<String> {
        match value {
            Toml::Text(text) => {
                let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
                names.map(|(name, _)| name.to_owned()).collect()
            }
            Toml::Array(elements) => elements.iter().flat_map(of).collect(),
            Toml::Table(table) => places_of(table),
            Toml::Boolean(_) | Toml::Integer(_) | Toml::Float(_) => Vec::new(),
        }
    }
    table.iter().flat_map(|(_, value)| of(value)).collect()
}

/// Fills all places of a text.
pub fn fill_text(text: &str, places: &Set) -> Result<String, String> {
    fill(&text.into(), places, DEPTH)
        .map(|value| value.plain())
        .map_err(|what| what.trim_start_matches(": ").to_owned())
}

/// The places of a run as texts, each with its own places filled.
pub fn as_text(places: &Set) -> Result<BTreeMap<String, String>, String> {
    places.iter().map(|(name, value)| Ok((name.clone(), fill(value, places, DEPTH)?.plain()))).collect()
}

/// Errors begin with the rest of the path to the key.
fn fill(value: &Toml, places: &Set, depth: usize) -> Result<Toml, String> {
    match value {
        Toml::Text(text) => fill_string(text, places, depth).map_err(|what| format!(": {what}")),
        Toml::Array(elements) => {
            let filled = elements.iter().enumerate().map(|(index, element)| {
                let name = match element {
                    Toml::Table(element) => element.name().map(|name| format!(".{name}")),
                    _ => None,
                };
                let at = |what| format!("{}{what}", name.unwrap_or_else(|| format!("[{index}]")));
                fill(element, places, depth).map_err(at)
            });
            filled.collect::<Result<_, _>>().map(Toml::Array)
        }
        Toml::Table(table) => {
            fill_entries(table, places, depth).map(Toml::Table).map_err(|what| format!(".{what}"))
        }
        Toml::Boolean(_) | Toml::Integer(_) | Toml::Float(_) => Ok(value.clone()),
    }
}

fn fill_string(text: &str, places: &Set, depth: usize) -> Result<Toml, String> {
    if !text.contains("${") {
        return Ok(text.into());
    }
    let depth = depth.checked_sub(1).ok_or("a value that contains itself")?;
    let (mut filled, mut around, mut rest) = (String::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("a \"${\" without its \"}\"")?;
        let value = places.get(name).ok_or_else(|| format!("nothing goes into ${{{name}}}"))?;
        let value = fill(value, places, depth).map_err(|what| what.trim_start_matches(": ").to_owned())?;
        if before.is_empty() && after.is_empty() && filled.is_empty() {
            return Ok(value);
        }
        filled.push_str(before);
        filled.push_str(&value.plain());
        around.push_str(before);
        rest = after;
    }
    filled.push_str(rest);
    around.push_str(rest);
    let is_number = !around.is_empty() && around.bytes().all(|byte| byte.is_ascii_digit());
    match filled.parse() {
        Ok(number) if is_number => Ok(Toml::Integer(number)),
        _ => Ok(Toml::Text(filled)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml_edit::de::from_str(text).unwrap()
    }

    fn places() -> Set {
        let places = r#"
            cc = "c2tcp:target=${target}"
            target = "50ms"
            drop = 3
            error = 0.1
            queue = { kind = "codel", target = "${target}" }
            digits = "12"
            a = "${b}"
            b = "${a}"
        "#;
        table(places).iter().map(|(key, value)| (key.to_owned(), value.clone())).collect()
    }

    #[test]
    fn places_are_filled_with_the_type_of_their_value() {
        for (case, template, expected) in [
            ("nothing to fill", "x = \"y\"", "x = \"y\""),
            ("a value with a place", "x = \"${cc}\"", "x = \"c2tcp:target=50ms\""),
            ("a number", "x = \"${drop}\"", "x = 3"),
            ("a table", "x = \"${queue}\"", "x = { kind = \"codel\", target = \"50ms\" }"),
            ("a string of digits stays one", "x = \"${digits}\"", "x = \"12\""),
            ("a number in a text", "x = \"at ${error} of ${drop}\"", "x = \"at 0.1 of 3\""),
            ("a place among digits", "x = \"20${drop}\"", "x = 203"),
            ("within a list", "x = [\"1${drop}\", 0]", "x = [13, 0]"),
            ("within a table", "x = { y = \"${error}\" }", "x = { y = 0.1 }"),
        ] {
            let expected = Ok(table(expected));
            assert_eq!(fill_table(&table(template), &places()), expected, "{case}");
        }
    }

    #[test]
    fn a_place_without_a_value_is_refused_with_its_key() {
        for (template, expected) in [
            ("x = \"${none}\"", "x: nothing goes into ${none}"),
            ("flow = [{ name = \"a\", cc = \"${none}\" }]", "flow.a.cc: nothing goes into ${none}"),
            ("x = [\"${none}\"]", "x[0]: nothing goes into ${none}"),
            ("x = \"${none\"", "x: a \"${\" without its \"}\""),
            ("x = \"${a}\"", "x: a value that contains itself"),
        ] {
            assert_eq!(fill_table(&table(template), &places()), Err(expected.to_owned()), "{template}");
        }
    }
}
