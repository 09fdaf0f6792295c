//! Settings of a transport, which may stand flat in `[[flow]]` or in a table of their own there.

use crate::key::{self, Group, Key, Kind, Table};
use crate::reader::{Field, Section};

/// Where the settings are looked for.
pub(crate) struct Settings<'f, 't> {
    flow: &'f mut Section<'t>,
    table: Option<Section<'t>>,
    /// The table's key.
    name: &'static str,
}

impl<'f, 't> Settings<'f, 't> {
    /// Opens the table at `key`; these keys are declared for it.
    pub fn open(flow: &'f mut Section<'t>, key: &Key<Table>, declared: &'static [Group]) -> Self {
        let field = flow.find(key);
        let table = field.and_then(|field| field.section(format!("in {} of [[flow]]", key.name)));
        Self { flow, table: table.map(|table| table.of(declared)), name: key.name }
    }

    /// What is written at a key, here or there.
    pub fn find<K: Kind, D: key::Default<K::Value>>(&mut self, key: &Key<K, D>) -> Option<Field<'t>> {
        let (flat, inner) = (self.flow.find(key), self.table.as_mut().and_then(|table| table.find(key)));
        if let (Some(flat), Some(_)) = (&flat, &inner) {
            flat.error(format!("is given twice, here and in `{}`", self.name));
        }
        inner.or(flat)
    }

    /// The value of a key if it is written.
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

    /// Reports keys of the table that are not understood.
    pub fn finish(self) {
        if let Some(table) = self.table {
            table.finish();
        }
    }
}
