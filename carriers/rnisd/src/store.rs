//! What survives a restart: subscriptions, and the notifications that wait for them, in an embedded database (redb).

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Version;
use crate::queue::{Change, Item};
use crate::viewer::Viewer;

const SUBSCRIPTIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("subscriptions");
/// By subscription and number.
const WAITING: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("waiting");
/// Of each subscription: number of the latest notification, and how many were missed.
const COUNTS: TableDefinition<'_, u64, (u64, u64)> = TableDefinition::new("counts");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const NEXT: &str = "next subscription";

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
#[error("the store of subscriptions: {0}")]
pub struct StoreError(String);

impl StoreError {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// A subscription as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Its number.
    pub id: u64,
    /// Who made it.
    pub owner: String,
    /// What its owner may see.
    pub viewer: Viewer,
    /// Version of the standard.
    pub version: Version,
    /// Its representation, without `_links`.
    pub body: Value,
    /// The secret in the address of its web socket, if it has one.
    pub secret: Option<String>,
    /// What the feed returned, if it is a subscription to the feed.
    pub feed: Option<Map<String, Value>>,
    /// Changes of the subscription: its ETag.
    pub revision: u64,
}

/// A subscription as it was kept, with what waited for it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The subscription.
    pub kept: Kept,
    /// What waited, by number.
    pub items: Vec<Item>,
    /// Number of the latest notification.
    pub number: u64,
    /// Notifications missed.
    pub missed: u64,
}

/// The database.
#[derive(Debug)]
pub struct Store {
    database: Database,
    /// Only one transaction writes at a time; the database would wait, too, but this says who holds it.
    writing: Mutex<()>,
}

impl Store {
    /// Opens the database in a folder, and makes both if needed.
    ///
    /// # Errors
    ///
    /// If they cannot be made, or another process has the database open.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let of = |error: std::io::Error| StoreError(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(of)?;
        let file = folder.join("subscriptions.redb");
        let database =
            Database::create(&file).map_err(|error| StoreError(format!("{}: {error}", file.display())))?;
        let store = Self { database, writing: Mutex::new(()) };
        store.write(|transaction| {
            transaction.open_table(SUBSCRIPTIONS).map_err(StoreError::of)?;
            transaction.open_table(WAITING).map_err(StoreError::of)?;
            transaction.open_table(COUNTS).map_err(StoreError::of)?;
            transaction.open_table(NUMBERS).map_err(StoreError::of)?;
            Ok(())
        })?;
        Ok(store)
    }

    fn write(
        &self,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = self.database.begin_write().map_err(StoreError::of)?;
        change(&transaction)?;
        transaction.commit().map_err(StoreError::of)
    }

    /// All subscriptions, and the number of the next one.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn load(&self) -> Result<(Vec<Loaded>, u64), StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::of)?;
        let subscriptions = transaction.open_table(SUBSCRIPTIONS).map_err(StoreError::of)?;
        let waiting = transaction.open_table(WAITING).map_err(StoreError::of)?;
        let counts = transaction.open_table(COUNTS).map_err(StoreError::of)?;
        let numbers = transaction.open_table(NUMBERS).map_err(StoreError::of)?;
        let mut all = Vec::new();
        for entry in subscriptions.iter().map_err(StoreError::of)? {
            let (id, bytes) = entry.map_err(StoreError::of)?;
            let kept: Kept = serde_json::from_slice(bytes.value()).map_err(StoreError::of)?;
            let mut items = Vec::new();
            for item in waiting.range((id.value(), 0)..=(id.value(), u64::MAX)).map_err(StoreError::of)? {
                let (key, body) = item.map_err(StoreError::of)?;
                items.push(Item { number: key.value().1, body: body.value().to_vec().into() });
            }
            let of = counts.get(id.value()).map_err(StoreError::of)?;
            let (number, missed) = of.map_or((0, 0), |of| of.value());
            all.push(Loaded { kept, items, number, missed });
        }
        let next = numbers.get(NEXT).map_err(StoreError::of)?.map_or(1, |next| next.value());
        Ok((all, next))
    }

    /// Keeps a subscription, new or changed; returns when it is on the disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn put(&self, kept: &Kept) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(kept).map_err(StoreError::of)?;
        self.write(|transaction| {
            let mut table = transaction.open_table(SUBSCRIPTIONS).map_err(StoreError::of)?;
            table.insert(kept.id, &bytes[..]).map_err(StoreError::of)?;
            let mut numbers = transaction.open_table(NUMBERS).map_err(StoreError::of)?;
            let next = numbers.get(NEXT).map_err(StoreError::of)?.map_or(1, |next| next.value());
            numbers.insert(NEXT, next.max(kept.id + 1)).map_err(StoreError::of)?;
            Ok(())
        })
    }

    /// Removes subscriptions and what waits for them, in one transaction.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn remove(&self, ids: &[u64]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(SUBSCRIPTIONS).map_err(StoreError::of)?;
            let mut counts = transaction.open_table(COUNTS).map_err(StoreError::of)?;
            let mut waiting = transaction.open_table(WAITING).map_err(StoreError::of)?;
            for id in ids {
                table.remove(id).map_err(StoreError::of)?;
                counts.remove(id).map_err(StoreError::of)?;
                waiting.retain_in((*id, 0)..=(*id, u64::MAX), |_, _| false).map_err(StoreError::of)?;
            }
            Ok(())
        })
    }

    /// Keeps what has changed in the queues of subscriptions, in one transaction. Subscriptions that are not kept are left out.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep<'a>(&self, changes: impl IntoIterator<Item = (u64, &'a Change)>) -> Result<(), StoreError> {
        self.write(|transaction| {
            let table = transaction.open_table(SUBSCRIPTIONS).map_err(StoreError::of)?;
            let mut counts = transaction.open_table(COUNTS).map_err(StoreError::of)?;
            let mut waiting = transaction.open_table(WAITING).map_err(StoreError::of)?;
            for (id, change) in changes {
                if table.get(id).map_err(StoreError::of)?.is_none() {
                    continue;
                }
                counts.insert(id, (change.number, change.missed)).map_err(StoreError::of)?;
                waiting.retain_in((id, 0)..(id, change.first), |_, _| false).map_err(StoreError::of)?;
                for item in &change.added {
                    waiting.insert((id, item.number), &item.body[..]).map_err(StoreError::of)?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept {
            id: 7,
            owner: "app".to_owned(),
            viewer: Viewer::default(),
            version: Version::V211,
            body: serde_json::json!({ "subscriptionType": "CellChangeSubscription" }),
            secret: Some("s".to_owned()),
            feed: None,
            revision: 3,
        };
        let item = |number: u64| Item { number, body: format!("body {number}").into() };
        {
            let store = Store::open(folder.path()).unwrap();
            store.put(&kept).unwrap();
            store.put(&Kept { id: 8, ..kept.clone() }).unwrap();
            let change = |first, added, number| Change { first, added, number, missed: 2 };
            let (first, other) = (change(4, vec![item(4), item(5)], 5), change(1, vec![item(1)], 1));
            store.keep([(7, &first), (99, &other)]).unwrap();
            store.keep([(7, &change(5, vec![item(6)], 6))]).unwrap();
            store.remove(&[8]).unwrap();
            assert!(Store::open(folder.path()).is_err(), "one process at a time");
        }
        let (all, next) = Store::open(folder.path()).unwrap().load().unwrap();
        assert_eq!((all.len(), next), (1, 9));
        let Loaded { kept, items, number, missed } = &all[0];
        assert_eq!((*number, *missed, kept.revision, kept.version), (6, 2, 3, Version::V211));
        assert_eq!(items, &[item(5), item(6)]);
    }
}
