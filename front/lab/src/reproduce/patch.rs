//! Patches: changes of a scenario.
//!
//! A patch is a table like a scenario. `docs/reproductions.md` shows each of its forms:
//!
//! | a patch contains | it |
//! |---|---|
//! | `duration = "30s"` | sets a key |
//! | `[rnis]` | sets keys of a section, which is added if missing |
//! | `[flow.short]` | sets keys of the element with this name, which must exist |
//! | `[flow."*"]` | sets keys of all elements |
//! | `[[flow]]` | adds an element, whose name must be new |
//! | `remove = ["rnis.stop", "flow.short", "pep"]` | removes keys, elements or sections first; they must exist |
//!
//! The value of a key is replaced as a whole, even if it is a table (`queue`) or a list.

use super::toml::{Table, Toml};

/// The key of a patch that lists removals.
const REMOVE: &str = "remove";
/// The name that means all elements.
const ALL: &str = "*";

/// Applies a patch to a scenario. An error names the key of the patch, and the reason.
pub fn apply(patch: &Table, scenario: &mut Table) -> Result<(), String> {
    if let Some(paths) = patch.get(REMOVE) {
        let Toml::Array(paths) = paths else { return Err("remove: expected a list of paths".to_owned()) };
        paths.iter().try_for_each(|path| remove(&path.plain(), scenario))?;
    }
    for (key, value) in patch.iter().filter(|(key, _)| *key != REMOVE) {
        apply_key(key, value, scenario).map_err(|what| format!("{key}: {what}"))?;
    }
    Ok(())
}

fn apply_key(key: &str, value: &Toml, scenario: &mut Table) -> Result<(), String> {
    if let Some(added) = value.tables().filter(|added| !added.is_empty()) {
        return add(&added, key, scenario);
    }
    let is_list = scenario.get(key).is_some_and(|own| own.tables().is_some());
    match (scenario.get_mut(key), value) {
        (Some(Toml::Array(elements)), Toml::Table(changes)) if is_list => change(changes, elements),
        (Some(Toml::Table(section)), Toml::Table(changes)) => {
            set(changes, section);
            Ok(())
        }
        // Only elements are tables of tables: a missing section has a plain value.
        (None, Toml::Table(changes)) if names_elements(changes) => {
            Err(format!("the scenario has no [[{key}]], so that there is nothing to change by name"))
        }
        _ => {
            scenario.insert(key, value.clone());
            Ok(())
        }
    }
}

fn names_elements(changes: &Table) -> bool {
    !changes.is_empty() && changes.iter().all(|(_, value)| matches!(value, Toml::Table(_)))
}

fn set(changes: &Table, table: &mut Table) {
    changes.iter().for_each(|(key, value)| table.insert(key, value.clone()));
}

/// Adds elements to those of a key. Their names must be new, or they have none.
fn add(added: &[&Table], key: &str, scenario: &mut Table) -> Result<(), String> {
    let mut elements = match scenario.get(key) {
        None => Vec::new(),
        Some(Toml::Array(elements)) => elements.clone(),
        Some(_) => return Err(format!("the scenario has one [{key}], so that no [[{key}]] can be added")),
    };
    for element in added {
        if let Some(name) = element.name()
            && names(&elements).contains(&name)
        {
            return Err(format!(
                "{name:?} is there already; change it by [{key}.{name:?}], or remove \"{key}.{name}\" first"
            ));
        }
        elements.push(Toml::Table((*element).clone()));
    }
    scenario.insert(key, Toml::Array(elements));
    Ok(())
}

/// Changes elements by their names.
fn change(changes: &Table, elements: &mut [Toml]) -> Result<(), String> {
    for (name, value) in changes.iter() {
        let Toml::Table(keys) = value else {
            return Err(format!("{name}: expected the keys of the element {name:?}, found {value}"));
        };
        let known = names(elements).join(", ");
        let mut meant = elements.iter_mut().filter_map(|element| match element {
            Toml::Table(element) if name == ALL || element.name() == Some(name) => Some(element),
            _ => None,
        });
        let first =
            meant.next().ok_or_else(|| format!("there is no element {name:?}; there are: {known}"))?;
        set(keys, first);
        meant.for_each(|element| set(keys, element));
    }
    Ok(())
}

fn names(elements: &[Toml]) -> Vec<&str> {
    elements
        .iter()
        .filter_map(|element| if let Toml::Table(element) = element { element.name() } else { None })
        .collect()
}

/// Removes the object of a path: "section", "section.key", "section.element" or "section.element.key".
fn remove(path: &str, scenario: &mut Table) -> Result<(), String> {
    let nothing = || format!("remove: there is no {path:?}");
    let (section, rest) = path.split_once('.').map_or((path, None), |(section, rest)| (section, Some(rest)));
    let Some(rest) = rest else { return scenario.remove(section).map(drop).ok_or_else(nothing) };
    match scenario.get_mut(section).ok_or_else(nothing)? {
        Toml::Table(section) => section.remove(rest).map(drop).ok_or_else(nothing),
        Toml::Array(elements) => {
            let (name, key) = rest.split_once('.').map_or((rest, None), |(name, key)| (name, Some(key)));
            let is_named =
                |element: &Toml| matches!(element, Toml::Table(element) if element.name() == Some(name));
            let index = elements.iter().position(is_named).ok_or_else(nothing)?;
            match (&mut elements[index], key) {
                (Toml::Table(element), Some(key)) => element.remove(key).map(drop).ok_or_else(nothing),
                _ => {
                    elements.remove(index);
                    Ok(())
                }
            }
        }
        _ => Err(nothing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        duration = "30s"
        [[flow]]
        name = "a"
        cc = "cubic"
        workload = { kind = "fixed", size = "1MB" }
        [[flow]]
        name = "b"
        cc = "bbr1"
        [[pep]]
        host = "edge"
        [rnis]
        period = "8ms"
        delay = "1ms"
    "#;

    fn table(text: &str) -> Table {
        toml_edit::de::from_str(text).unwrap()
    }

    fn patched(patch: &str) -> Result<String, String> {
        let mut scenario = table(SCENARIO);
        apply(&table(patch), &mut scenario)?;
        Ok(scenario.document())
    }

    #[test]
    fn patch_changes_only_the_named_values() {
        for (case, patch, from, to) in [
            ("a key", "duration = \"9s\"", "\"30s\"", "\"9s\""),
            ("a new key", "seed = 4", "duration = \"30s\"\n", "duration = \"30s\"\nseed = 4\n"),
            ("a section", "[rnis]\nperiod = \"1ms\"", "period = \"8ms\"", "period = \"1ms\""),
            (
                "a new section",
                "[modem]\nevery = 2",
                "delay = \"1ms\"\n",
                "delay = \"1ms\"\n\n[modem]\nevery = 2\n",
            ),
            ("an element", "[flow.b]\ncc = \"cubic\"", "bbr1", "cubic"),
            (
                "all elements",
                "[flow.\"*\"]\ncc = \"reno\"",
                "cc = \"cubic\"\nworkload = { kind = \"fixed\", size = \"1MB\" }\n\n[[flow]]\nname = \"b\"\ncc = \"bbr1\"",
                "cc = \"reno\"\nworkload = { kind = \"fixed\", size = \"1MB\" }\n\n[[flow]]\nname = \"b\"\ncc = \"reno\"",
            ),
            (
                "a table, which is replaced whole",
                "[flow.a]\nworkload = { kind = \"bulk\" }",
                "{ kind = \"fixed\", size = \"1MB\" }",
                "{ kind = \"bulk\" }",
            ),
            (
                "another element",
                "[[flow]]\nname = \"c\"",
                "cc = \"bbr1\"\n",
                "cc = \"bbr1\"\n\n[[flow]]\nname = \"c\"\n",
            ),
            ("an element less", "remove = [\"flow.b\"]", "\n[[flow]]\nname = \"b\"\ncc = \"bbr1\"\n", ""),
            ("a key less", "remove = [\"rnis.delay\"]", "delay = \"1ms\"\n", ""),
            ("an element's key less", "remove = [\"flow.b.cc\"]", "cc = \"bbr1\"\n", ""),
            ("a section less", "remove = [\"rnis\"]", "\n[rnis]\nperiod = \"8ms\"\ndelay = \"1ms\"\n", ""),
            (
                "another list in the place of one",
                "remove = [\"pep\"]\n[[pep]]\nhost = \"mast\"",
                "[[pep]]\nhost = \"edge\"\n\n[rnis]\nperiod = \"8ms\"\ndelay = \"1ms\"\n",
                "[rnis]\nperiod = \"8ms\"\ndelay = \"1ms\"\n\n[[pep]]\nhost = \"mast\"\n",
            ),
        ] {
            let expected = table(SCENARIO).document().replace(from, to);
            assert_ne!(expected, table(SCENARIO).document(), "{case}");
            assert_eq!(patched(patch).unwrap(), expected, "{case}");
        }
    }

    #[test]
    fn patch_of_a_missing_entry_is_refused() {
        for (case, patch, expected) in [
            ("an element", "[flow.c]\ncc = \"x\"", "flow: there is no element \"c\"; there are: a, b"),
            ("a list", "[proxy.edge]\nkind = \"x\"", "proxy: the scenario has no [[proxy]]"),
            ("a key to remove", "remove = [\"rnis.stop\"]", "remove: there is no \"rnis.stop\""),
            ("an element to remove", "remove = [\"flow.c\"]", "remove: there is no \"flow.c\""),
            ("a name that is taken", "[[flow]]\nname = \"a\"", "flow: \"a\" is there already"),
            (
                "a value for an element",
                "[flow]\na = 1",
                "flow: a: expected the keys of the element \"a\", found 1",
            ),
            ("a list of what is there once", "[[rnis]]\nstop = 1", "rnis: the scenario has one [rnis]"),
            ("one path", "remove = \"rnis\"", "remove: expected a list"),
        ] {
            let error = patched(patch).unwrap_err();
            assert!(error.starts_with(expected), "{case}: {error}");
        }
    }
}
