//! Settings of a transport, either flat in `[[flow]]` or in their own table in it.

use crate::key::{self, Group, Key, Kind, Table};
use crate::reader::{Field, Section};

/// The places of the settings.
pub(crate) struct Settings<'f, 't> {
    flow: &'f mut Section<'t>,
    table: Option<Section<'t>>,
    /// The table's key.
    name: &'static str,
}

impl<'f, 't> Settings<'f, 't> {
    /// Opens the table at `key`, with these keys declared for it.
    pub fn open(flow: &'f mut Section<'t>, key: &Key<Table>, declared: &'static [Group]) -> Self {
        let field = flow.find(key);
        let table = field.and_then(|field| field.section(format!("in {} of [[flow]]", key.name)));
        Self { flow, table: table.map(|table| table.of(declared)), name: key.name }
    }

    /// The field of a key, in either place.
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

    /// Reports unknown keys of the table.
    pub fn finish(self) {
        if let Some(table) = self.table {
            table.finish();
        }
    }
}
