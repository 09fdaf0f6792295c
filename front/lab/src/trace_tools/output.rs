//! Writes files completely or not at all, gzipped if their name says so.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ranpace_link::Trace;

use super::ToolError;

/// Writes a trace in mahimahi's format: a line for each opportunity, with its time in whole milliseconds.
pub fn write_mahimahi(trace: &Trace, to: &mut dyn Write) -> std::io::Result<()> {
    let mut line = Vec::new();
    for (ms, count) in trace.iter() {
        line.clear();
        writeln!(line, "{ms}")?;
        for _ in 0..count {
            to.write_all(&line)?;
        }
    }
    Ok(())
}

/// A file to be written. It is created at once, so that an unwritable path is reported before any work is done, and gets its name
/// only when it is complete.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Its temporary path; `None` if the name belongs to something other than a file, such as a pipe.
    part: Option<PathBuf>,
    file: Option<File>,
}

impl OutputFile {
    /// Prepares to write to `path`.
    pub fn create(path: &Path) -> Result<Self, ToolError> {
        let unwritable = |source| ToolError::Unwritable { path: path.to_owned(), source };
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let part = match path.file_name() {
            Some(name) if !is_special => {
                let mut part = name.to_owned();
                part.push(".part");
                Some(path.with_file_name(part))
            }
            _ => None,
        };
        let file = File::create(part.as_deref().unwrap_or(path)).map_err(unwritable)?;
        Ok(Self { path: path.to_owned(), part, file: Some(file) })
    }

    /// Returns whether the name ends in `.gz`.
    pub fn is_zipped(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
    }

    /// Writes the output of `fill`, gzipped if the name says so, and renames the file.
    pub fn write(
        mut self,
        fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), ToolError> {
        let is_zipped = self.is_zipped();
        let written = self.file.take().map_or(Ok(()), |file| {
            let mut buffer = BufWriter::with_capacity(1 << 16, file);
            if is_zipped {
                let mut zip = GzEncoder::new(&mut buffer, Compression::default());
                fill(&mut zip)?;
                zip.finish()?;
            } else {
                fill(&mut buffer)?;
            }
            buffer.flush()
        });
        let named = written.and_then(|()| match &self.part {
            Some(part) => fs::rename(part, &self.path),
            None => Ok(()),
        });
        named.map_err(|source| ToolError::Unwritable { path: self.path.clone(), source })?;
        self.part = None;
        Ok(())
    }

    /// Writes a trace in mahimahi's format.
    pub fn write_trace(self, trace: &Trace) -> Result<(), ToolError> {
        self.write(|to| write_mahimahi(trace, to))
    }
}

/// Removes what did not become complete.
impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // If it cannot be removed, it remains under its temporary name.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_output_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        fs::write(&path, "old").unwrap();
        drop(OutputFile::create(&path).unwrap());
        let failed = OutputFile::create(&path).unwrap().write(|_| Err(std::io::Error::other("full")));
        assert!(failed.unwrap_err().to_string().contains("full"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        OutputFile::create(&path).unwrap().write_trace(&Trace::from_millis([3, 3]).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "3\n3\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn unwritable_output_is_reported_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none/trace")] {
            let error = OutputFile::create(&path).unwrap_err();
            assert!(error.to_string().starts_with("cannot write") && !error.is_ours(), "{error}");
        }
    }
}
