//! Result folders: `results/<name>/<key>/` holds one run, where the key is a digest of its origin.
//!
//! A file is written under a temporary name and then renamed, so that no incomplete file ever has its final name. A run's summary
//! is written last: **a folder with a valid `summary.json` is complete**, any other run is repeated. The summary holds digests of
//! the other files, and of itself in its last line, so that a file truncated by a crash or changed by hand is detected.
//!
//! | file | rows |
//! |---|---|
//! | `summary.json` | every figure, see [`crate::RunSummary`] |
//! | `flows.parquet` | a row per flow |
//! | `flow-<n>.parquet`, `link-<n>.parquet` | a row per sample of the series |
//! | `distributions.parquet` | a row per point of a distribution function |
//! | `transfers.parquet` | a row per transfer of fixed size |

mod error;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ranpace_sim::RunResult;
use sha2::{Digest as _, Sha256};

use crate::columnar::{self, Metadata};
use crate::frames;
use crate::summary::{FileSummary, Origin, RunSummary, SCHEMA};

pub use error::StoreError;
pub(crate) use error::is_too_many_files;

const SUMMARY: &str = "summary.json";

/// A folder of results that belong together.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder `name` under `results`, created if missing, and tested: an unwritable folder is an error now, not after an hour
    /// of computing.
    pub fn open(results: &Path, name: &str) -> Result<Self, StoreError> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
            return Err(StoreError::Name { name: name.to_owned() });
        }
        let folder = results.join(name);
        fs::create_dir_all(&folder).map_err(|error| StoreError::of("create", &folder, error))?;
        let store = Self { folder };
        let probe = temporary(&store.folder, "probe");
        File::create(&probe).map_err(|error| StoreError::of("write", &store.folder, error))?;
        fs::remove_file(&probe).map_err(|error| StoreError::of("write", &store.folder, error))?;
        Ok(store)
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the run with this origin, existing or not.
    pub fn run_folder(&self, origin: &Origin) -> PathBuf {
        self.folder.join(key(origin))
    }

    /// A subfolder for something that is measured anew each time, with the next number, unique among processes. It is a store of
    /// its own; its run is written by [`Self::save_here`].
    pub fn next(&self) -> Result<Self, StoreError> {
        let failed = |error| StoreError::of("read", &self.folder, error);
        let mut last = 0;
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            last = last.max(name.to_str().and_then(|name| name.parse::<u64>().ok()).unwrap_or(0));
        }
        loop {
            last = last.saturating_add(1);
            let folder = self.folder.join(last.to_string());
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self { folder }),
                // Somebody else was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && last < u64::MAX => {}
                Err(error) => return Err(StoreError::of("create", &folder, error)),
            }
        }
    }

    /// Removes the folder if it is empty, or contains only empty files.
    pub fn remove_if_empty(&self) {
        let files: Vec<_> = fs::read_dir(&self.folder).into_iter().flatten().flatten().collect();
        if files.iter().all(|file| file.metadata().is_ok_and(|data| data.is_file() && data.len() == 0)) {
            for file in files {
                let _ = fs::remove_file(file.path());
            }
        }
        // Usually it is not empty.
        let _ = fs::remove_dir(&self.folder);
    }

    /// Writes a run and returns its folder. A run with the same origin is replaced.
    pub fn save(&self, origin: &Origin, run: &RunResult) -> Result<PathBuf, StoreError> {
        let folder = self.run_folder(origin);
        fs::create_dir_all(&folder).map_err(|error| StoreError::of("create", &folder, error))?;
        Self { folder }.save_here(origin, run)
    }

    /// Writes a run into the folder itself, and returns its path.
    pub fn save_here(&self, origin: &Origin, run: &RunResult) -> Result<PathBuf, StoreError> {
        let folder = self.folder.clone();
        // Without its summary the folder counts as incomplete while its files change.
        match fs::remove_file(folder.join(SUMMARY)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::of("write", &folder.join(SUMMARY), error));
            }
            _ => {}
        }
        let metadata = metadata(origin);
        let mut summary = RunSummary::of(origin, run);
        for (name, frame) in frames::of_run(run) {
            let path = folder.join(&name);
            let file = columnar::write(&frame, &metadata)
                .map_err(|source| StoreError::Columnar { path: path.clone(), source })?;
            // Not flushed to the disk: a damaged file is detected by its digest, and the run is repeated.
            place(&path, &file, false)?;
            summary.files.push(FileSummary {
                name,
                bytes: file.len() as u64,
                sha256: hex(&Sha256::digest(&file)),
            });
        }
        let path = folder.join(SUMMARY);
        place(&path, &sealed(json(&path, &summary)?), false)?;
        Ok(folder)
    }

    /// The run with this origin if it is complete, intact and was not interrupted; `None` means that it has to be run.
    pub fn load(&self, origin: &Origin) -> Option<RunResult> {
        let folder = self.run_folder(origin);
        let summary = summary_in(&folder).ok()??;
        let same = (summary.version == origin.version)
            && (summary.scenario_text == origin.scenario_text)
            && (summary.traces == origin.traces)
            && (summary.seed == origin.seed)
            && !summary.interrupted;
        same.then(|| load(&folder, &summary)).flatten()
    }

    /// The summaries of all complete runs, including interrupted ones, in the order of their folders' names.
    pub fn summaries(&self) -> Result<Vec<RunSummary>, StoreError> {
        let entries =
            fs::read_dir(&self.folder).map_err(|error| StoreError::of("read", &self.folder, error))?;
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| StoreError::of("read", &self.folder, error))?;
            folders.push(entry.path());
        }
        folders.sort();
        let mut found = Vec::new();
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            found.extend(summary_in(folder)?);
        }
        Ok(found)
    }

    /// Writes another file, such as the report, into the folder, completely or not at all. Returns its path.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(name);
        put(&path, content)?;
        sync_folder(&self.folder);
        Ok(path)
    }

    /// Like [`Self::write`], for anything serialisable as JSON, such as the rows of a comparison.
    pub fn write_json(&self, name: &str, value: &impl serde::Serialize) -> Result<PathBuf, StoreError> {
        let content = json(&self.folder.join(name), value)?;
        self.write(name, &content)
    }
}

/// The figures of the run in a folder, without its tables; `None` if there is no complete, unmodified summary of this version's schema.
///
/// # Errors
///
/// If the summary cannot be read.
pub fn read_summary(folder: &Path) -> Result<Option<RunSummary>, StoreError> {
    summary_in(folder)
}

/// The run in a folder of results, whatever it came from; `None` if there is no complete, unmodified run of this version's schema.
///
/// # Errors
///
/// If the summary cannot be read.
pub fn read_run(folder: &Path) -> Result<Option<RunResult>, StoreError> {
    Ok(read_run_with_origin(folder)?.map(|(_, run)| run))
}

/// The same with its origin.
///
/// # Errors
///
/// If the summary cannot be read.
pub fn read_run_with_origin(folder: &Path) -> Result<Option<(Origin, RunResult)>, StoreError> {
    let Some(summary) = summary_in(folder)? else { return Ok(None) };
    let Some(run) = load(folder, &summary) else { return Ok(None) };
    let RunSummary { scenario, scenario_text, seed, version, traces, .. } = summary;
    Ok(Some((Origin { scenario, scenario_text, seed, version, traces }, run)))
}

/// A scenario's name as that of a folder.
pub fn folder_name(name: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
    let folder: String = name.chars().map(safe).collect();
    if folder.chars().all(|c| c == '.') { "scenario".to_owned() } else { folder }
}

/// Writes a temporary file and renames it to `path`, so that `path` is never incomplete.
pub fn put(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    place(path, content, true)
}

fn place(path: &Path, content: &[u8], flush: bool) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = temporary(folder, &name);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(content)?;
        // Flushing detects space that the file system promised but does not have.
        if flush {
            file.sync_all()?;
        }
        fs::rename(&beside, path)
    })();
    written.map_err(|error| {
        // The remains are useless; if removing them fails, the first error is still the one to report.
        let _ = fs::remove_file(&beside);
        StoreError::of("write", path, error)
    })
}

/// A temporary name that no other thread or process uses at the same time.
fn temporary(folder: &Path, name: &str) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".{name}.{}-{number}.tmp", std::process::id()))
}

/// Makes renames survive a power failure where the system can; a run lost that way is only repeated.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// 32 hexadecimal digits of the SHA-256 of everything that determines a result.
pub fn key(origin: &Origin) -> String {
    let mut digest = Sha256::new();
    // Each part is preceded by its length, so that no two origins have the same input.
    let (seed, schema) = (origin.seed.to_le_bytes(), SCHEMA.to_le_bytes());
    let parts = [origin.scenario_text.as_bytes(), &seed, origin.version.as_bytes(), &schema];
    for part in parts.into_iter().chain(origin.traces.iter().map(String::as_bytes)) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let mut key = hex(&digest.finalize());
    key.truncate(32);
    key
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn metadata(origin: &Origin) -> Metadata {
    vec![
        ("ranpace.schema".to_owned(), SCHEMA.to_string()),
        ("ranpace.version".to_owned(), origin.version.clone()),
        ("ranpace.scenario".to_owned(), origin.scenario.clone()),
        ("ranpace.scenario_text".to_owned(), origin.scenario_text.clone()),
        ("ranpace.seed".to_owned(), origin.seed.to_string()),
    ]
}

fn json(path: &Path, value: &impl serde::Serialize) -> Result<Vec<u8>, StoreError> {
    let mut content = serde_json::to_vec_pretty(value)
        .map_err(|source| StoreError::Json { path: path.to_owned(), source })?;
    content.push(b'\n');
    Ok(content)
}

/// Beginning and end of a summary's last line.
const SEAL: (&[u8], &[u8]) = (b",\n  \"sha256\": \"", b"\"\n}\n");

/// Appends the digest of a JSON object to it as its last field.
fn sealed(object: Vec<u8>) -> Vec<u8> {
    let digest = hex(&Sha256::digest(&object));
    match object.strip_suffix(b"\n}\n") {
        Some(body) => [body, SEAL.0, digest.as_bytes(), SEAL.1].concat(),
        None => object,
    }
}

/// Returns whether a sealed object is unchanged.
fn is_intact(sealed_object: &[u8]) -> bool {
    let digits = 2 * Sha256::output_size();
    let body = sealed_object
        .strip_suffix(SEAL.1)
        .and_then(|rest| rest.len().checked_sub(digits).map(|at| &rest[..at]));
    let object = body.and_then(|body| body.strip_suffix(SEAL.0)).map(|body| [body, b"\n}\n"].concat());
    object.is_some_and(|object| sealed(object) == sealed_object)
}

/// The content of a file; a pipe or a device in its place could block forever, and counts as missing.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::NotFound.into());
    }
    fs::read(path)
}

/// The summary in a run's folder; `None` if the run is incomplete, modified, or of another schema.
fn summary_in(folder: &Path) -> Result<Option<RunSummary>, StoreError> {
    let path = folder.join(SUMMARY);
    let content = match read_file(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::of("read", &path, error)),
    };
    if !is_intact(&content) {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&content).ok().filter(|summary: &RunSummary| summary.schema == SCHEMA))
}

/// The whole run, if every file matches the summary.
fn load(folder: &Path, summary: &RunSummary) -> Option<RunResult> {
    let mut run = summary.to_result();
    for file in &summary.files {
        let content = read_file(&folder.join(&file.name)).ok()?;
        if hex(&Sha256::digest(&content)) != file.sha256 {
            return None;
        }
        let (frame, _) = columnar::read(content).ok()?;
        frames::into_run(&mut run, &file.name, frame).ok()?;
    }
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    /// The text of a run, because `==` would fail on NaN in the series.
    fn text(run: &RunResult) -> String {
        format!("{run:?}")
    }

    fn origin(seed: u64) -> Origin {
        Origin::new("drive", "duration = \"60s\"\n", seed)
    }

    #[test]
    fn runs_round_trip_unchanged() {
        let results = tempfile::tempdir().unwrap();
        let store = Store::open(results.path(), "drive").unwrap();
        let run = synthetic::run_of(&["cubic", "bbr1", "copa"], 7);
        assert!(store.load(&origin(7)).is_none());
        let folder = store.save(&origin(7), &run).unwrap();
        assert_eq!(text(&store.load(&origin(7)).unwrap()), text(&run));
        assert!(store.load(&origin(8)).is_none());
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
        assert_eq!(store.summaries().unwrap().len(), 1);
    }

    #[test]
    fn the_same_run_gives_the_same_bytes() {
        let results = tempfile::tempdir().unwrap();
        let run = synthetic::run("cubic", 1);
        let folders = ["a", "b"].map(|name| {
            let store = Store::open(results.path(), name).unwrap();
            store.save(&origin(1), &run).unwrap()
        });
        for entry in fs::read_dir(&folders[0]).unwrap() {
            let name = entry.unwrap().file_name();
            assert_eq!(fs::read(folders[0].join(&name)).unwrap(), fs::read(folders[1].join(&name)).unwrap());
        }
    }

    #[test]
    fn a_thousand_runs_stay_below_a_hundred_megabytes() {
        let results = tempfile::tempdir().unwrap();
        let store = Store::open(results.path(), "size").unwrap();
        let folder = store.save(&origin(1), &synthetic::run("cubic", 1)).unwrap();
        let sizes = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        // Files take whole blocks of 4096 bytes.
        let sum: u64 = sizes.map(|entry| entry.metadata().unwrap().len().next_multiple_of(4096)).sum();
        assert!(sum < 100_000, "{sum} bytes");
    }

    #[test]
    fn damaged_or_interrupted_runs_are_repeated() {
        let results = tempfile::tempdir().unwrap();
        let store = Store::open(results.path(), "drive").unwrap();
        let mut run = synthetic::run("cubic", 1);
        let folder = store.save(&origin(1), &run).unwrap();
        let damage = |name: &str, content: &[u8]| {
            let whole = fs::read(folder.join(name)).unwrap();
            fs::write(folder.join(name), content).unwrap();
            assert!(store.load(&origin(1)).is_none(), "{name}");
            fs::write(folder.join(name), whole).unwrap();
            assert!(store.load(&origin(1)).is_some(), "{name}");
        };
        damage("flow-0.parquet", b"PAR1");
        damage("distributions.parquet", b"");
        damage("summary.json", b"{");
        let summary = fs::read_to_string(folder.join(SUMMARY)).unwrap();
        let goodput = summary.find("\"goodput_bit_s\": ").unwrap() + "\"goodput_bit_s\": ".len();
        let mut better = summary.clone();
        better.insert(goodput, '9');
        damage("summary.json", better.as_bytes());
        damage("summary.json", summary.replace("\n", "\n ").as_bytes());
        fs::remove_file(folder.join("summary.json")).unwrap();
        assert!(store.load(&origin(1)).is_none());
        run.interrupted = true;
        store.save(&origin(1), &run).unwrap();
        assert!(store.load(&origin(1)).is_none());
        assert!(store.summaries().unwrap()[0].interrupted);
    }

    #[test]
    fn repeated_measurements_have_their_own_folder() {
        let results = tempfile::tempdir().unwrap();
        let store = Store::open(results.path(), "drive.emulated").unwrap();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                std::thread::spawn(move || {
                    let own = store.next().unwrap();
                    own.save_here(&origin(1), &synthetic::run("cubic", 1)).unwrap()
                })
            })
            .collect();
        let mut folders: Vec<PathBuf> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        folders.sort();
        let expected: Vec<PathBuf> = (1..=8).map(|number| store.folder().join(number.to_string())).collect();
        assert_eq!(folders, expected);
        assert_eq!(store.summaries().unwrap().len(), 8);
        let empty = store.next().unwrap();
        assert!(empty.folder().ends_with("9"));
        // Output of programs would be here, but no program was started.
        empty.write("programs.log", b"").unwrap();
        empty.remove_if_empty();
        assert!(!empty.folder().exists());
        let begun = store.next().unwrap();
        begun.write("programs.log", b"it began").unwrap();
        begun.write("other.log", b"").unwrap();
        begun.remove_if_empty();
        assert!(begun.folder().join("programs.log").exists() && begun.folder().join("other.log").exists());
    }

    #[cfg(unix)]
    #[test]
    fn named_pipe_in_place_of_a_result_is_not_read() {
        let results = tempfile::tempdir().unwrap();
        let store = Store::open(results.path(), "drive").unwrap();
        let run = synthetic::run("cubic", 1);
        let folder = store.save(&origin(1), &run).unwrap();
        for name in ["flow-0.parquet", SUMMARY] {
            fs::remove_file(folder.join(name)).unwrap();
            let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status().unwrap();
            assert!(made.success());
            assert!(store.load(&origin(1)).is_none(), "{name}");
        }
        store.save(&origin(1), &run).unwrap();
        assert!(store.load(&origin(1)).is_some(), "in the pipe's place is a file again");
    }

    #[test]
    fn origins_differ_in_every_part() {
        let of = |text: &str, seed, version: &str, traces: &[&str]| {
            let traces = traces.iter().map(|&sum| sum.to_owned()).collect();
            let (scenario_text, version) = (text.to_owned(), version.to_owned());
            key(&Origin { scenario: "x".into(), scenario_text, seed, version, traces })
        };
        let keys = [
            of("ab", 1, "1", &[]),
            of("a", 1, "1", &[]),
            of("ab", 2, "1", &[]),
            of("ab", 1, "2", &[]),
            of("a", 1, "b1", &[]),
            of("ab", 1, "1", &["s"]),
            of("ab", 1, "1", &["t"]),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(key.len(), 32);
            assert!(!keys[..index].contains(key));
        }
    }

    #[test]
    fn unwritable_path_is_reported_with_a_remedy() {
        let results = tempfile::tempdir().unwrap();
        let file = results.path().join("taken");
        fs::write(&file, b"").unwrap();
        for (case, root, name) in
            [("a file is the parent", file.as_path(), "x"), ("a file is in the way", results.path(), "taken")]
        {
            let error = Store::open(root, name).unwrap_err();
            assert!(matches!(error, StoreError::InTheWay { .. }), "{case}: {error:?}");
            assert!(error.to_string().contains("choose another folder"), "{case}");
        }
        for name in ["", "..", "a/b"] {
            assert!(matches!(Store::open(results.path(), name), Err(StoreError::Name { .. })), "{name}");
        }
    }

    #[test]
    fn causes_are_distinguished() {
        let path = Path::new("results/x");
        #[cfg(unix)]
        {
            let error = StoreError::of("write", path, io::Error::from_raw_os_error(24)).to_string();
            assert!(error.contains("too many open files; `ulimit -n`"), "{error}");
        }
        for (kind, expected) in [
            (ErrorKind::StorageFull, "disk full while writing results/x"),
            (ErrorKind::QuotaExceeded, "disk full while writing results/x"),
            (ErrorKind::PermissionDenied, "no permission to write results/x"),
            (ErrorKind::ReadOnlyFilesystem, "read-only"),
            (ErrorKind::Interrupted, "cannot write results/x"),
        ] {
            let error = StoreError::of("write", path, io::Error::from(kind)).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
