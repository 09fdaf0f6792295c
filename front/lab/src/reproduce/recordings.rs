//! Recorded traces: the origin of each of them, and whether a file is the right one.
//!
//! The recordings themselves are not part of Ranpace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ranpace_link::Trace;
use ranpace_scenario::TraceSource;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::traces::{TraceLibrary, TraceLoadError, open};

/// A recorded trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Its file's name, without `.gz`.
    pub name: String,
    /// A description of the recording.
    pub about: String,
    /// Its origin: repository, commit, path.
    pub source: String,
    /// Digest of its uncompressed text, in hexadecimal digits.
    pub sha256: String,
    /// Its last time.
    pub length: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "trace")]
    traces: Vec<Recording>,
}

/// Loads recordings, and collects those not found.
#[derive(Clone, Debug)]
pub struct Recordings {
    known: BTreeMap<String, Recording>,
    traces: TraceLibrary,
    checked: BTreeMap<String, Result<Arc<Trace>, Refused>>,
    missing: BTreeSet<String>,
}

/// Why a recording was not loaded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is not there.
    #[error("the recording {name} is not there")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A file with that name has another content.
    #[error(
        "{path} is not the recording that was meant: expected sha256 {expected} (unpacked), found {found}; get it anew from {origin}"
    )]
    Different {
        /// The file.
        path: PathBuf,
        /// The digest it should have.
        expected: String,
        /// The digest it has.
        found: String,
        /// The place where it can be fetched.
        origin: String,
    },
    /// It could not be read.
    #[error("{0}")]
    Unreadable(String),
}

impl Recordings {
    /// The recordings listed in the text, searched for in `folders` and their direct subfolders.
    pub fn new(text: &str, folders: Vec<PathBuf>) -> Result<Self, toml_edit::de::Error> {
        let file: File = toml_edit::de::from_str(text)?;
        Ok(Self {
            known: file.traces.into_iter().map(|trace| (trace.name.clone(), trace)).collect(),
            traces: TraceLibrary::new(folders),
            checked: BTreeMap::new(),
            missing: BTreeSet::new(),
        })
    }

    /// The recording with this name.
    pub fn about(&self, name: &str) -> Option<&Recording> {
        self.known.get(name)
    }

    /// Returns the recordings requested and not found since the last call.
    pub fn take_missing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.missing).into_iter().collect()
    }

    /// Errors of files that exist.
    pub fn refused(&self) -> Option<&Refused> {
        self.checked
            .values()
            .filter_map(|trace| trace.as_ref().err())
            .find(|refused| !matches!(refused, Refused::Missing { .. }))
    }

    fn get(&mut self, name: &str) -> Result<Arc<Trace>, Refused> {
        if let Some(known) = self.checked.get(name) {
            return known.clone();
        }
        let loaded = self.check(name);
        self.checked.insert(name.to_owned(), loaded.clone());
        loaded
    }

    fn check(&mut self, name: &str) -> Result<Arc<Trace>, Refused> {
        let unreadable = |error: TraceLoadError| Refused::Unreadable(error.to_string());
        if let Some(recording) = self.known.get(name) {
            let path = match self.traces.find(name) {
                Err(TraceLoadError::NotFound { .. }) => {
                    return Err(Refused::Missing { name: name.to_owned() });
                }
                found => found.map_err(unreadable)?,
            };
            let found = digest(&path)
                .map_err(|source| unreadable(TraceLoadError::Unreadable { path: path.clone(), source }))?;
            if found != recording.sha256 {
                return Err(Refused::Different {
                    path,
                    expected: recording.sha256.clone(),
                    found,
                    origin: recording.source.clone(),
                });
            }
        }
        self.traces.get(name).map_err(unreadable)
    }
}

impl TraceSource for Recordings {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        let loaded = self.get(name);
        if let Err(Refused::Missing { name }) = &loaded {
            self.missing.insert(name.clone());
        }
        loaded.map_err(|refused| refused.to_string())
    }
}

/// SHA-256 of a file's content, decompressed if it is gzipped.
fn digest(path: &Path) -> std::io::Result<String> {
    let mut source = open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match source.read(&mut chunk)? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// A sum that no file has.
    const ANOTHER: &str = "00";

    fn recordings(sha256: &str, folder: &Path) -> Recordings {
        let text = format!(
            "[[trace]]\nname = \"x.down\"\nabout = \"\"\nsource = \"there\"\nsha256 = \"{sha256}\"\nlength = \"3ms\"\n"
        );
        Recordings::new(&text, vec![folder.to_owned()]).unwrap()
    }

    #[test]
    fn a_recording_is_checked_before_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let mut missing = recordings(ANOTHER, folder.path());
        assert!(missing.load("x.down").is_err());
        assert!(missing.refused().is_none());
        assert_eq!(missing.take_missing(), ["x.down"]);

        let text = b"1\n2\n3\n";
        let file = std::fs::File::create(folder.path().join("x.down.gz")).unwrap();
        let mut zip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        zip.write_all(text).unwrap();
        zip.finish().unwrap();
        let mut other = recordings(ANOTHER, folder.path());
        assert!(other.load("x.down").unwrap_err().contains("get it anew from there"));
        assert!(matches!(other.refused(), Some(Refused::Different { .. })));

        let sha256: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut right = recordings(&sha256, folder.path());
        assert_eq!(right.load("x.down").unwrap().opportunities(), 3);
        assert!(right.refused().is_none() && right.take_missing().is_empty());
    }
}
