//! Traces by name: the built-in ones, and files of delivery opportunities, plain or gzipped, in the user's folders.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use ranpace_cc::Entry;
use ranpace_link::{CellularModel, Service, Trace, TraceError, TraceParser};
use ranpace_scenario::{Scenario, ScenarioError, TraceSource};
use ranpace_units::Span;
use sha2::{Digest as _, Sha256};

/// Largest recording, trajectory or file of fading that is read, in bytes: ours.
const MOST_TEXT: u64 = 256 << 20;

/// Why a trace was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceLoadError {
    /// No file with that name, as such or with `.gz`.
    #[error(
        "no trace {name:?}; looked for it (and {name}.gz) in: {looked}. Built in: {builtin}; files elsewhere: give their path, or --traces DIR"
    )]
    NotFound {
        /// The name asked for.
        name: String,
        /// The folders.
        looked: String,
        /// The names of the built-in ones.
        builtin: String,
    },
    /// No built-in trace of that name.
    #[error("no built-in trace {name:?}; there are: {builtin}")]
    UnknownBuiltin {
        /// The name asked for.
        name: String,
        /// The names of the built-in ones.
        builtin: String,
    },
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a trace.
    #[error("{path}: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault and its line.
        source: TraceError,
    },
}

/// A built-in trace.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name, as used after `builtin:`.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    model: fn() -> CellularModel,
    seed: u64,
}

/// The traces that Ranpace generates: a documented model with a fixed seed, the same on any machine.
pub const BUILTIN: [Builtin; 3] = [
    Builtin {
        name: "lte",
        about: "LTE-like, moving: about 12 Mbit/s, varying three- to fivefold within seconds, short outages",
        model: CellularModel::lte,
        seed: 1,
    },
    Builtin {
        name: "umts",
        about: "UMTS-like, moving: about 3 Mbit/s, long outages",
        model: CellularModel::umts,
        seed: 1,
    },
    Builtin {
        name: "nr",
        about: "5G-NR-like, moving: about 100 Mbit/s, with blockage",
        model: CellularModel::nr,
        seed: 1,
    },
];

/// Length of the built-in traces, after which they repeat.
pub const BUILTIN_LENGTH: Span = Span::from_secs(120);

/// Prefix of the names of built-in traces.
const BUILTIN_PREFIX: &str = "builtin:";

/// Default folders of recorded traces: in the working directory, and where the developers keep theirs.
const TRACE_FOLDERS: [&str; 2] = ["traces", "../shared/data/traces"];

/// Folders of recorded traces: the one given, else that of the environment (`RANPACE_TRACES`), else the default ones.
pub fn trace_folders(given: Option<&PathBuf>) -> Vec<PathBuf> {
    match given.cloned().or_else(|| std::env::var_os("RANPACE_TRACES").map(PathBuf::from)) {
        Some(folder) => vec![folder],
        None => TRACE_FOLDERS.map(PathBuf::from).to_vec(),
    }
}

/// Loads traces, each once.
#[derive(Clone, Debug, Default)]
pub struct TraceLibrary {
    folders: Vec<PathBuf>,
    loaded: BTreeMap<String, Arc<Trace>>,
    /// Digests of the loaded ones, by name, computed on demand.
    digests: BTreeMap<String, String>,
    /// Controls of the caller's own, which scenarios may name.
    controls: Vec<&'static Entry>,
    /// Whether only files that really lie in the folders are found.
    is_confined: bool,
}

impl TraceLibrary {
    /// Searches these folders (and the path as given, relative to the working directory); a trace may also be in a direct subfolder
    /// of one of them.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect(), ..Self::default() }
    }

    /// The same with controls of the caller's own, which scenarios may then name like the listed ones.
    #[must_use]
    pub fn with_controls(self, controls: Vec<&'static Entry>) -> Self {
        Self { controls, ..self }
    }

    /// The same for texts of others: a name is that of a file in one of the folders or their direct subfolders, and never a path; links
    /// that lead out of the folders are not followed.
    #[must_use]
    pub fn confined(self) -> Self {
        Self { is_confined: true, ..self }
    }

    /// The trace with this name: `builtin:NAME`, a path, or a file in one of the folders; `builtin:NAME@SEED` is another trace of
    /// the same model, `FILE@30s` the recording rotated to start at 30 s.
    pub fn get(&mut self, name: &str) -> Result<Arc<Trace>, TraceLoadError> {
        if let Some(trace) = self.loaded.get(name) {
            return Ok(Arc::clone(trace));
        }
        let trace = match name.strip_prefix(BUILTIN_PREFIX) {
            Some(builtin) => Arc::new(generate(builtin)?),
            None => match name.rsplit_once('@').and_then(|(file, at)| Some((file, at.parse::<Span>().ok()?)))
            {
                Some((file, from)) if self.find(name).is_err() => Arc::new(rotated(&*self.get(file)?, from)?),
                _ => Arc::new(read(&self.find(name)?)?),
            },
        };
        self.loaded.insert(name.to_owned(), Arc::clone(&trace));
        Ok(trace)
    }

    /// Parses a scenario, and returns the digests of the files that it uses: [`Self::digests_of`] its traces, then the other files
    /// it names (recordings, trajectories, fading), in the order in which they are read. `file` is its name in errors.
    pub fn parse(&mut self, text: &str, file: &str) -> Result<(Scenario, Vec<String>), ScenarioError> {
        let mut noting = Noting { traces: self, digests: Vec::new() };
        let scenario = ranpace_scenario::parse(text, file, &mut noting)?;
        let others = noting.digests;
        let mut digests = self.digests_of(&scenario);
        digests.extend(others);
        Ok((scenario, digests))
    }

    /// Digests of the traces of a scenario's links, in the order of the links.
    pub fn digests_of(&mut self, scenario: &Scenario) -> Vec<String> {
        let played = scenario.links.iter().filter_map(|link| match &link.config.service {
            Service::Trace(play) => Some(&play.trace),
            _ => None,
        });
        played
            .map(|trace| {
                let name =
                    self.loaded.iter().find(|(_, known)| Arc::ptr_eq(known, trace)).map(|(name, _)| name);
                match name {
                    Some(name) => self.digests.entry(name.clone()).or_insert_with(|| digest(trace)).clone(),
                    None => digest(trace),
                }
            })
            .collect()
    }

    /// The file that a name means.
    pub fn find(&self, name: &str) -> Result<PathBuf, TraceLoadError> {
        let zipped = format!("{name}.gz");
        let here = [PathBuf::from(name), PathBuf::from(&zipped)];
        let is_path = name.is_empty() || name.contains(['/', '\\', '\0']);
        if !self.is_confined
            && let Some(path) = here.into_iter().find(|path| path.is_file())
        {
            return Ok(path);
        }
        for folder in self.folders.iter().filter(|_| !(self.is_confined && is_path)) {
            let mut places = vec![folder.clone()];
            if let Ok(entries) = std::fs::read_dir(folder) {
                let mut below: Vec<PathBuf> = entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.is_dir())
                    .collect();
                below.sort();
                places.extend(below);
            }
            let files = places.iter().flat_map(|place| [place.join(name), place.join(&zipped)]);
            let mut found = files.filter(|path| path.is_file());
            if let Some(path) = found.find(|path| !self.is_confined || lies_in(path, folder)) {
                return Ok(path);
            }
        }
        let looked =
            std::iter::once(".".to_owned()).chain(self.folders.iter().map(|f| f.display().to_string()));
        Err(TraceLoadError::NotFound {
            name: name.to_owned(),
            looked: looked.collect::<Vec<_>>().join(", "),
            builtin: builtin_names(),
        })
    }
}

impl TraceSource for TraceLibrary {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        self.get(name).map_err(|error| error.to_string())
    }

    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        let path = self.find(name).map_err(|error| match error {
            TraceLoadError::NotFound { name, looked, .. } => format!(
                "no file {name:?}; looked for it (and {name}.gz) in: {looked}. Files elsewhere: give their path, or --traces DIR"
            ),
            other => other.to_string(),
        })?;
        let mut text = String::new();
        let read = open(&path).and_then(|file| file.take(MOST_TEXT + 1).read_to_string(&mut text));
        read.map_err(|source| format!("cannot read {}: {source}", path.display()))?;
        if text.len() as u64 > MOST_TEXT {
            let most = MOST_TEXT >> 20;
            return Err(format!(
                "{} has more than {most} MiB of text, the most that is read",
                path.display()
            ));
        }
        Ok(text.into())
    }

    fn controls(&self) -> Vec<&'static Entry> {
        self.controls.clone()
    }
}

/// Whether a file lies in a folder when all links have been followed.
fn lies_in(path: &Path, folder: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder)))
}

/// Records the content of the files that a scenario names, besides its traces.
struct Noting<'a> {
    traces: &'a mut TraceLibrary,
    digests: Vec<String>,
}

impl TraceSource for Noting<'_> {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        self.traces.load(name)
    }

    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        let text = self.traces.text(name)?;
        self.digests.push(hexadecimal(&Sha256::digest(text.as_bytes())));
        Ok(text)
    }

    fn controls(&self) -> Vec<&'static Entry> {
        self.traces.controls()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn builtin_names() -> String {
    BUILTIN.map(|builtin| format!("{BUILTIN_PREFIX}{}", builtin.name)).join(", ")
}

fn generate(name: &str) -> Result<Trace, TraceLoadError> {
    let unknown = || TraceLoadError::UnknownBuiltin { name: name.to_owned(), builtin: builtin_names() };
    let (model, seed) = match name.split_once('@') {
        Some((model, seed)) => (model, Some(seed.parse::<u64>().map_err(|_| unknown())?)),
        None => (name, None),
    };
    let builtin = BUILTIN.iter().find(|builtin| builtin.name == model).ok_or_else(unknown)?;
    (builtin.model)()
        .generate(BUILTIN_LENGTH, seed.unwrap_or(builtin.seed))
        .map_err(|source| TraceLoadError::Malformed { path: PathBuf::from(name), source })
}

/// SHA-256, in hexadecimal, of a trace as mahimahi's text, which is that of the uncompressed file if it is in the usual format.
pub fn digest(trace: &Trace) -> String {
    let (mut sha, mut text) = (Sha256::new(), String::new());
    for (ms, count) in trace.iter() {
        let line = format!("{ms}\n");
        for _ in 0..count {
            text.push_str(&line);
        }
        if text.len() > 1 << 16 {
            sha.update(&text);
            text.clear();
        }
    }
    sha.update(&text);
    hexadecimal(&sha.finalize())
}

/// The trace from `from` on (modulo its length), then its beginning.
fn rotated(trace: &Trace, from: Span) -> Result<Trace, TraceLoadError> {
    let length = trace.duration().as_millis();
    let from = if length == 0 { 0 } else { from.as_millis() % length };
    let (mut late, mut early) = (Vec::new(), Vec::new());
    for (ms, count) in trace.iter() {
        let ms = u64::from(ms);
        if ms > from { late.push((ms - from, count)) } else { early.push((ms + length - from, count)) }
    }
    Trace::from_counts(late.into_iter().chain(early))
        .map_err(|source| TraceLoadError::Malformed { path: PathBuf::from("a rotated trace"), source })
}

/// Reads a file of delivery opportunities; gzip is detected by the first bytes, not by the name.
pub fn read(path: &Path) -> Result<Trace, TraceLoadError> {
    let unreadable = |source| TraceLoadError::Unreadable { path: path.to_owned(), source };
    let malformed = |source| TraceLoadError::Malformed { path: path.to_owned(), source };
    let mut parser = TraceParser::new();
    let mut source = open(path).map_err(unreadable)?;
    let mut chunk = vec![0; 1 << 16];
    loop {
        match source.read(&mut chunk).map_err(unreadable)? {
            0 => return parser.finish().map_err(malformed),
            length => parser.push(&chunk[..length]).map_err(malformed)?,
        }
    }
}

/// Opens a file, decompressing it if it is gzipped.
pub fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let zipped = std::io::BufRead::fill_buf(&mut file)?.starts_with(&[0x1f, 0x8b]);
    Ok(if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_not_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let mut library = TraceLibrary::new([folder.path().to_owned()]);
        let error = library.text("missing.csv").unwrap_err();
        assert!(error.starts_with("no file \"missing.csv\"") && !error.contains("builtin"), "{error}");
        std::fs::write(folder.path().join("here.csv"), "time_s,cqi\n0,7\n").unwrap();
        assert_eq!(&*library.text("here.csv").unwrap(), "time_s,cqi\n0,7\n");
    }
    use std::io::Write as _;

    #[test]
    fn a_confined_library_has_only_what_lies_in_its_folders() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("traces");
        std::fs::create_dir_all(folder.join("more")).unwrap();
        for file in ["secret", "traces/own", "traces/more/other"] {
            std::fs::write(all.path().join(file), "1\n2\n").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        let mut library = TraceLibrary::new([folder.clone()]).confined();
        for name in ["own", "other", "own@0s", "builtin:lte"] {
            assert!(library.get(name).is_ok(), "{name}");
        }
        let absolute = all.path().join("secret").display().to_string();
        let inside = folder.join("own").display().to_string();
        for name in
            [&absolute, &inside, "../secret", "more/other", "link", "..", ".", "", "Cargo.toml", "own\0"]
        {
            assert!(library.get(name).is_err() && library.text(name).is_err(), "{name}");
        }
    }

    #[test]
    fn other_files_are_searched_like_traces() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("drive.csv"), "time_s,sinr_db\n0,10\n").unwrap();
        std::fs::write(folder.path().join("bytes"), [0xff, 0xfe]).unwrap();
        let mut library = TraceLibrary::new([folder.path().to_owned()]);
        assert_eq!(library.text("drive.csv").as_deref(), Ok("time_s,sinr_db\n0,10\n"));
        assert!(library.text("bytes").is_err_and(|error| error.starts_with("cannot read ")));
        assert!(library.text("none.csv").is_err());
    }

    #[test]
    fn changed_file_makes_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"
            duration = "1s"
            [[cell]]
            [[user]]
            name = "phone"
            recording = "drive.csv"
            [[user]]
            name = "other"
            recording = "drive.csv"
            trajectory = "way.csv"
            [[flow]]
            from = "phone"
            to = "other"
            cc = "cubic"
        "#;
        let digests = |drive: &str, way: &str| {
            std::fs::write(folder.path().join("drive.csv"), drive).unwrap();
            std::fs::write(folder.path().join("way.csv"), way).unwrap();
            let mut library = TraceLibrary::new([folder.path().to_owned()]);
            library.parse(text, "test.toml").unwrap().1
        };
        let (drive, way) = ("time_s,sinr_db\n0,10\n1,12\n", "time_s,x_m,y_m\n0,10,0\n1,20,0\n");
        let first = digests(drive, way);
        assert_eq!(first, digests(drive, way));
        assert_eq!(first.len(), 2);
        let other = digests("time_s,sinr_db\n0,10\n1,13\n", way);
        assert!(other[0] != first[0] && other[1] == first[1]);
        assert_ne!(first[1], digests(drive, "time_s,x_m,y_m\n0,10,0\n1,21,0\n")[1]);
    }

    #[test]
    fn plain_and_zipped_files_are_found_below_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("set");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("plain.down"), "1\n2\n2\n").unwrap();
        let file = File::create(below.join("zipped.down.gz")).unwrap();
        let mut zip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        zip.write_all(b"5\n7\n").unwrap();
        zip.finish().unwrap();
        let mut library = TraceLibrary::new([folder.path().to_owned()]);
        assert_eq!(library.get("plain.down").unwrap().opportunities(), 3);
        assert_eq!(library.get("zipped.down").unwrap().opportunities(), 2);
        let error = library.get("missing.down").unwrap_err().to_string();
        assert!(error.contains("missing.down.gz") && error.contains("builtin:lte"), "{error}");
    }

    #[test]
    fn broken_files_say_which_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken");
        std::fs::write(&path, "1\n2\nthree\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains("line 3"), "{error}");
        std::fs::write(&path, [0x1f, 0x8b, 0, 1, 2]).unwrap();
        assert!(matches!(read(&path), Err(TraceLoadError::Unreadable { .. })));
    }

    #[test]
    fn a_rotated_trace_keeps_its_opportunities_and_its_length() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t"), "100\n200\n200\n1000\n").unwrap();
        let mut library = TraceLibrary::new([folder.path().to_owned()]);
        let trace = library.get("t@150ms").unwrap();
        assert_eq!(trace.iter().collect::<Vec<_>>(), [(50, 2), (850, 1), (950, 1)]);
        assert_eq!(library.get("t@1s").unwrap().opportunities(), 4);
        assert_ne!(*library.get("builtin:lte@2").unwrap(), *library.get("builtin:lte").unwrap());
        // sha256sum of "100\n200\n200\n1000\n".
        let plain = library.get("t").unwrap();
        assert_eq!(digest(&plain), "ede5de5bbb40b7d9d1e43fa990b7c27461d1766b1574d0bc5b2d2022b5811ae1");
    }

    #[test]
    fn builtin_traces_are_made_and_unknown_ones_are_named() {
        let mut library = TraceLibrary::default();
        assert!(library.get("builtin:lte").unwrap().opportunities() > 50_000);
        assert!(library.get("builtin:lten").unwrap_err().to_string().contains("builtin:umts"));
    }
}
