//! Declaration of the keys of tables. Reading, `vary`, messages about unknown keys and the tables of the guide
//! (`docs/`) all follow from it.
//!
//! A [`Key`] has a kind, which defines the valid values and how they are read, and a default for when it is not written:
//! [`Required`], [`Is`] a value, or [`Open`], where the reader decides and the declaration only says what pages
//! show. [`Section::get`](crate::reader::Section::get) returns a value for [`Is`] and an `Option` for the others.

mod kinds;

pub(crate) use self::kinds::*;
use crate::field::Field;

/// A key of a table.
pub(crate) struct Key<K, D = Open> {
    /// As written in a scenario.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: K,
    /// Default if it is not written.
    pub default: D,
    /// Its purpose in a sentence; Markdown, may be empty.
    pub about: &'static str,
}

/// Keys that a page lists in one table.
pub(crate) type Group = &'static [&'static (dyn Declared + Sync)];

/// A key of any kind, with any default.
pub(crate) trait Declared {
    /// As written in a scenario.
    fn name(&self) -> &'static str;
    /// Returns whether the value is a string, even if it looks like a number.
    fn is_text(&self) -> bool;
    /// Returns whether the value may be a table.
    fn is_table(&self) -> bool;
    /// Its row in a page: name, value, default, and purpose.
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

/// A description of the valid values.
pub(crate) trait Describe {
    /// As shown on pages.
    fn shown(&self) -> String;
    /// Returns whether it is a string, even if it looks like a number.
    fn is_text(&self) -> bool {
        false
    }
    /// Returns whether it may be a table.
    fn is_table(&self) -> bool {
        false
    }
}

/// A kind with a function that reads it.
pub(crate) trait Kind: Describe {
    /// Type of the values.
    type Value;
    /// Reads the value; on `None` a problem was reported.
    fn read(&self, field: &Field<'_>) -> Option<Self::Value>;
}

/// A kind whose values can be printed as written in a scenario.
pub(crate) trait Print: Kind {
    /// As written in a scenario.
    fn print(&self, value: &Self::Value) -> String;
}

/// The key has no default.
pub(crate) struct Required;
/// The default is this value.
pub(crate) struct Is<T>(pub T);
/// The reader decides on the default; pages show this.
pub(crate) struct Open(pub &'static str);

/// The default as shown on pages.
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
    /// Whether a missing key is reported.
    const IS_REQUIRED: bool = false;
}
impl Presence for Required {
    const IS_REQUIRED: bool = true;
}
impl Presence for Open {}
impl<T> Presence for Is<T> {}

/// The result of reading a key with this default.
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
