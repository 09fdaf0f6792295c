//! The feed's shared table: it has all users of all cells, for programs of this host that may read its file.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::TableConfig;
use crate::feed_port::{FeedRefused, FeedSubscription};
use crate::metrics::FeedMetrics;
use crate::source::Update;
use crate::table::{TableError, TableWriter};
use crate::viewer::Viewer;

/// Writes the table.
pub struct SharedMemory {
    writer: TableWriter,
    path: PathBuf,
    metrics: FeedMetrics,
}

impl SharedMemory {
    /// Creates the table, or continues in the one that is there.
    pub fn open(config: &TableConfig, metrics: FeedMetrics) -> Result<Self, TableError> {
        let writer = TableWriter::create(&config.path, config.size(), config.mode)?;
        Ok(Self { writer, path: config.path.clone(), metrics })
    }

    /// A subscription by table: it says where the table is. The file's permissions decide who reads it.
    pub fn subscribe(&self, subscription: &FeedSubscription) -> Result<Map<String, Value>, FeedRefused> {
        if subscription.viewer != Viewer::default() {
            return Err(FeedRefused::Restricted);
        }
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        Ok(Map::from_iter([
            ("transport".to_owned(), json!("shared-memory")),
            ("path".to_owned(), json!(path.to_string_lossy())),
        ]))
    }

    /// News of a source.
    pub fn on_update(&mut self, update: &Update) {
        let size = self.writer.size();
        let is_beyond = match update {
            Update::Cell(cell) => u32::from(cell.info.cell) >= size.cells,
            Update::User(user) => user.user >= size.users,
            _ => false,
        };
        if is_beyond {
            self.metrics.beyond_table.inc();
            tracing::warn!(?size, "a cell or user is left out of the shared table, which is too small");
        }
        self.writer.on_update(update);
    }
}
