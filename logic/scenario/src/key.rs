//! A key of a table, declared once. What reads it, `vary`, messages about unknown keys and the tables of the guide
//! (`docs/`) follow from the declaration.
//!
//! A [`Key`] has a kind, which says what may be written and how it is read, and a default, which says what holds
//! otherwise: [`Required`], [`Is`] a value, or [`Open`], where the reader decides and the declaration only says what pages
//! show. [`Section::get`](crate::reader::Section::get) returns a value for [`Is`] and an `Option` for the others.

mod kinds;

pub(crate) use self::kinds::*;
use crate::field::Field;

/// A key of a table.
pub(crate) struct Key<K, D = Open> {
    /// As a scenario writes it.
    pub name: &'static str,
    /// What may be written.
    pub kind: K,
    /// What holds where it is not written.
    pub default: D,
    /// What it is for, in a sentence; Markdown, may be empty.
    pub about: &'static str,
}

/// Keys that a page shows in one table.
pub(crate) type Group = &'static [&'static (dyn Declared + Sync)];

/// Whatever a key's kind and default are.
pub(crate) trait Declared {
    /// As a scenario writes it.
    fn name(&self) -> &'static str;
    /// Whether the value is a string, even if it looks like a number.
    fn is_text(&self) -> bool;
    /// Whether the value may be a table.
    fn is_table(&self) -> bool;
    /// Its row in a page: name, value, default, and what it is for.
    fn row(&self) -> [String; 4];
}

impl<K: Describe, D: Shown<K>> Declared for Key<K, D> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_text(&self) -> bool {
        self.kind.is_text()
    }

    fn is_table(&self) -> bool {
        self.kind.is_table()
    }

    fn row(&self) -> [String; 4] {
        let default = self.default.shown(&self.kind);
        [format!("`{}`", self.name), self.kind.shown(), default, self.about.to_owned()]
    }
}

/// What may be written, in words.
pub(crate) trait Describe {
    /// As pages show it.
    fn shown(&self) -> String;
    /// Whether it is a string, even if it looks like a number.
    fn is_text(&self) -> bool {
        false
    }
    /// Whether it may be a table.
    fn is_table(&self) -> bool {
        false
    }
}

/// A kind that one function reads.
pub(crate) trait Kind: Describe {
    /// What is read.
    type Value;
    /// The value, or `None` and a report.
    fn read(&self, field: &Field<'_>) -> Option<Self::Value>;
}

/// A kind whose values can be shown as a scenario writes them.
pub(crate) trait Print: Kind {
    /// As a scenario writes it.
    fn print(&self, value: &Self::Value) -> String;
}

/// There is no default.
pub(crate) struct Required;
/// This is the default.
pub(crate) struct Is<T>(pub T);
/// The reader decides; pages show this.
pub(crate) struct Open(pub &'static str);

/// What a page shows as the default.
pub(crate) trait Shown<K> {
    fn shown(&self, kind: &K) -> String;
}

impl<K> Shown<K> for Required {
    fn shown(&self, _: &K) -> String {
        "required".to_owned()
    }
}
impl<K> Shown<K> for Open {
    fn shown(&self, _: &K) -> String {
        self.0.to_owned()
    }
}
impl<K: Print> Shown<K> for Is<K::Value> {
    fn shown(&self, kind: &K) -> String {
        format!("`{}`", kind.print(&self.0))
    }
}

/// Whether a key may be absent.
pub(crate) trait Presence {
    /// Whether the absence of the key is reported.
    const IS_REQUIRED: bool = false;
}
impl Presence for Required {
    const IS_REQUIRED: bool = true;
}
impl Presence for Open {}
impl<T> Presence for Is<T> {}

/// What reading a key with this default gives.
pub(crate) trait Default<V>: Presence {
    type Read;
    fn settle(&self, written: Option<V>) -> Self::Read;
}

impl<V> Default<V> for Required {
    type Read = Option<V>;
    fn settle(&self, written: Option<V>) -> Option<V> {
        written
    }
}
impl<V> Default<V> for Open {
    type Read = Option<V>;
    fn settle(&self, written: Option<V>) -> Option<V> {
        written
    }
}
impl<V: Copy> Default<V> for Is<V> {
    type Read = V;
    fn settle(&self, written: Option<V>) -> V {
        written.unwrap_or(self.0)
    }
}
