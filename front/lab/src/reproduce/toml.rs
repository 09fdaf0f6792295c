//! TOML values that keep the order of their keys, so that a scenario made from them reads as it was written.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// A TOML value. Dates are not supported: scenarios have none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Toml {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// A list of values.
    Array(Vec<Toml>),
    /// Keys with values.
    Table(Table),
}

/// Keys with values, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(String, Toml)>);

impl Toml {
    /// The elements, if this is a list of tables (`[[flow]]`).
    pub fn tables(&self) -> Option<Vec<&Table>> {
        let Self::Array(elements) = self else { return None };
        elements
            .iter()
            .map(|element| if let Self::Table(table) = element { Some(table) } else { None })
            .collect()
    }

    /// The value as inserted into a text: a string without its quotes, everything else as TOML.
    pub fn plain(&self) -> String {
        if let Self::Text(text) = self { text.clone() } else { self.to_string() }
    }
}

impl From<&str> for Toml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Deserialises parsed TOML into any type.
impl<'de> Deserializer<'de> for Toml {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Boolean(value) => visitor.visit_bool(value),
            Self::Integer(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(text) => visitor.visit_string(text),
            Self::Array(elements) => visitor.visit_seq(SeqDeserializer::new(elements.into_iter())),
            Self::Table(table) => visitor.visit_map(MapDeserializer::new(table.0.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(name) => visitor.visit_enum(name.into_deserializer()),
            Self::Table(table) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(table.0.into_iter())))
            }
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Toml {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// As TOML, on one line.
impl fmt::Display for Toml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{}", toml_edit::Value::from(text)),
            Self::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(Self::to_string).collect();
                write!(f, "[{}]", elements.join(", "))
            }
            Self::Table(table) if table.0.is_empty() => f.write_str("{}"),
            Self::Table(table) => {
                let entries: Vec<String> = table.iter().map(|(key, value)| entry(key, value)).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}

fn entry(key: &str, value: &Toml) -> String {
    format!("{} = {value}", toml_edit::Key::new(key))
}

impl Table {
    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Toml)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Toml> {
        self.iter().find_map(|(own, value)| (own == key).then_some(value))
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Toml> {
        self.0.iter_mut().find_map(|(own, value)| (own == key).then_some(value))
    }

    /// Sets the value of a key in place; a new key comes last.
    pub fn insert(&mut self, key: &str, value: Toml) {
        match self.get_mut(key) {
            Some(own) => *own = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Puts an entry before all others.
    pub fn insert_first(&mut self, key: &str, value: Toml) {
        self.0.insert(0, (key.to_owned(), value));
    }

    /// This, with the entries of another table replacing its own.
    pub fn with(&self, other: &Self) -> Self {
        let mut with = self.clone();
        other.iter().for_each(|(key, value)| with.insert(key, value.clone()));
        with
    }

    /// The entries by their keys.
    pub fn to_set(&self) -> BTreeMap<String, Toml> {
        self.0.iter().cloned().collect()
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<Toml> {
        let index = self.0.iter().position(|(own, _)| own == key)?;
        Some(self.0.remove(index).1)
    }

    /// The name of the element (`name = "down"`).
    pub fn name(&self) -> Option<&str> {
        self.get("name").and_then(|name| if let Toml::Text(name) = name { Some(name.as_str()) } else { None })
    }

    /// The table as a TOML document: its own keys, then `[section]` and `[[section]]` with one entry per line.
    pub fn document(&self) -> String {
        let mut text = String::new();
        let mut lines = |head: &str, table: &Table| {
            text.push_str(head);
            for (key, value) in table.iter() {
                text.push_str(&entry(key, value));
                text.push('\n');
            }
        };
        let is_section = |value: &Toml| {
            matches!(value, Toml::Table(_)) || value.tables().is_some_and(|elements| !elements.is_empty())
        };
        lines("", &self.iter().filter(|(_, value)| !is_section(value)).collect());
        for (key, value) in self.iter() {
            let name = toml_edit::Key::new(key);
            match (value, value.tables()) {
                (Toml::Table(section), _) => lines(&format!("\n[{name}]\n"), section),
                (_, Some(elements)) => {
                    elements.into_iter().for_each(|element| lines(&format!("\n[[{name}]]\n"), element));
                }
                _ => {}
            }
        }
        text
    }
}

impl<'a> FromIterator<(&'a str, &'a Toml)> for Table {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a Toml)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.to_owned(), value.clone())).collect())
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Table;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Table(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_round_trips_unchanged() {
        let text = r#"duration = "30s"
seed = 7

[[link]]
name = "down"
rate = "1Gbit/s"
queue = { kind = "droptail", limit = "100 packets" }
duplex = true

[[link]]
name = "up"
points = [[0, -50, 1.5], [0.25, 0, 1e-6]]

[rnis]
period = "8ms"
"#;
        let table: Table = toml_edit::de::from_str(text).unwrap();
        assert_eq!(table.document(), text);
    }

    #[test]
    fn top_level_keys_precede_all_sections() {
        let table: Table = toml_edit::de::from_str("[rnis]\nstop = \"5s\"").unwrap();
        let mut table = table;
        table.insert("duration", "30s".into());
        assert_eq!(table.document(), "duration = \"30s\"\n\n[rnis]\nstop = \"5s\"\n");
    }
}
