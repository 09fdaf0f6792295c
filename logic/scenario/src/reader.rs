//! Typed access to the tables of a TOML text: problems are reported at their positions, and reading continues.
//!
//! A [`Section`] remembers which keys were read. [`Section::finish`] reports every other one, so a key that nothing
//! reads is never accepted.

use toml_edit::{Item, TableLike};

use crate::error::{Diagnostics, did_you_mean};
pub(crate) use crate::field::Field;
use crate::field::Found;
use crate::key::{self, Group, Key, Kind};

/// A table, with the keys read so far.
pub(crate) struct Section<'t> {
    table: &'t dyn TableLike,
    /// Its name in error messages: `in [[link]]`.
    what: String,
    /// Byte offset of its start.
    pub at: usize,
    asked: Vec<&'static str>,
    /// The keys declared for it, in the order in which messages list them.
    declared: &'static [Group],
    pub report: &'t Diagnostics<'t>,
}

impl<'t> Section<'t> {
    pub fn new(
        table: &'t dyn TableLike,
        what: impl Into<String>,
        at: usize,
        report: &'t Diagnostics<'t>,
    ) -> Self {
        Self { table, what: what.into(), at, asked: Vec::new(), declared: &[], report }
    }

    /// Declares these keys for the table.
    #[must_use]
    pub fn of(mut self, declared: &'static [Group]) -> Self {
        self.declared = declared;
        self
    }

    /// The field of a key, for the caller to read; a missing required key is reported.
    pub fn find<K, D: key::Presence>(&mut self, key: &Key<K, D>) -> Option<Field<'t>> {
        if D::IS_REQUIRED { self.required(key.name) } else { self.field(key.name) }
    }

    /// The value of a key if it is written, whatever its default.
    pub fn written<K: Kind, D: key::Default<K::Value>>(&mut self, key: &Key<K, D>) -> Option<K::Value> {
        self.find(key).and_then(|field| key.kind.read(&field))
    }

    /// The value of a key, or its default.
    pub fn get<K: Kind, D: key::Default<K::Value>>(&mut self, key: &Key<K, D>) -> D::Read {
        let written = self.written(key);
        key.default.settle(written)
    }

    /// Sets `place` if the key is written.
    pub fn set<K: Kind, D: key::Default<K::Value>>(&mut self, place: &mut K::Value, key: &Key<K, D>) {
        if let Some(value) = self.written(key) {
            *place = value;
        }
    }

    /// The field of `key`, if it is written.
    pub fn field(&mut self, key: &'static str) -> Option<Field<'t>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let item = self.table.get(key).filter(|item| !item.is_none())?;
        let key_at = || self.table.key(key).and_then(toml_edit::Key::span);
        let at = item.span().or_else(key_at).map_or(self.at, |span| span.start);
        Some(Field { key, item: Found::Item(item), at, report: self.report })
    }

    /// Like [`Self::field`], but reports a missing key.
    pub fn required(&mut self, key: &'static str) -> Option<Field<'t>> {
        let field = self.field(key);
        if field.is_none() {
            self.error(format!("missing key {key:?} {}", self.what));
        }
        field
    }

    /// Returns whether the key is written, without reading it.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reports a problem at the section's start.
    pub fn error(&self, message: impl Into<String>) {
        self.report.add(self.at, message);
    }

    /// Reports every key that was not read.
    pub fn finish(self) {
        let Self { table, what, at, asked, declared, report } = self;
        let known = || declared.iter().flat_map(|group| group.iter()).map(|key| key.name());
        debug_assert!(
            declared.is_empty() || asked.iter().all(|key| known().any(|known| known == *key)),
            "a key is read {what} that is not declared for it: {asked:?}"
        );
        // Only keys that were read are valid here; they are listed in the order of declaration.
        let asked: Vec<&str> =
            if declared.is_empty() { asked } else { known().filter(|key| asked.contains(key)).collect() };
        for (key, _) in table.iter().filter(|(key, _)| !asked.contains(key)) {
            let at = table.key(key).and_then(toml_edit::Key::span).map_or(at, |span| span.start);
            let near = did_you_mean(key, asked.iter().copied());
            report.add(at, format!("unknown key {key:?} {what}; expected one of {}{near}", asked.join(", ")));
        }
    }
}

impl<'t> Field<'t> {
    /// The value as a table; otherwise `None` and a report. `what` is its name in messages: `in queue of [[link]]`.
    pub fn section(&self, what: impl Into<String>) -> Option<Section<'t>> {
        let table = match self.item {
            Found::Item(item) => item.as_table_like(),
            Found::Value(value) => value.as_inline_table().map(|table| table as &dyn TableLike),
        };
        match table {
            Some(table) => Some(Section::new(table, what, self.at, self.report)),
            None => {
                self.wrong("a table such as { key = value }");
                None
            }
        }
    }

    /// The tables of `[[key]]`, which may also be written as a list of inline tables.
    pub fn tables(&self) -> Vec<Section<'t>> {
        let what = format!("in [[{}]]", self.key);
        if let Found::Item(Item::ArrayOfTables(tables)) = self.item {
            let at = |table: &toml_edit::Table| table.span().map_or(self.at, |span| span.start);
            let section =
                |table: &'t toml_edit::Table| Section::new(table, what.clone(), at(table), self.report);
            return tables.iter().map(section).collect();
        }
        if self.is_table() {
            self.error(format!("expected [[{0}]] with two brackets, found [{0}]", self.key));
            return Vec::new();
        }
        let elements = self.list(&format!("tables, each headed [[{}]]", self.key)).unwrap_or_default();
        elements.iter().filter_map(|element| element.section(what.clone())).collect()
    }
}
