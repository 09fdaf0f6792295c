//! Paths below the server's folder, and nowhere else.

use std::path::{Component, Path, PathBuf};

use crate::problem::Refusal;

/// A folder that no path leads out of.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The folder, which must exist.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        folder.canonicalize().map(Self)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file or folder at a path with `/` below this one: it exists, and is really below it, symbolic links followed.
    pub fn find(&self, path: &str) -> Result<PathBuf, Refusal> {
        let outside = || Refusal::forbidden(format!("{path:?}: expected a path below the server's folder"));
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
        if path.contains(['\0', '\\']) || !Path::new(path).components().all(is_below) {
            return Err(outside());
        }
        // What is not there and what may not be read look the same from outside.
        let missing = |_| Refusal::not_found(format!("{path:?}: there is nothing below the server's folder"));
        let found = self.0.join(path).canonicalize().map_err(missing)?;
        if found.starts_with(&self.0) { Ok(found) } else { Err(outside()) }
    }

    /// The path of something below this folder, with `/`; `None` if its name is not UTF-8, or it is not below.
    pub fn relative(&self, path: &Path) -> Option<String> {
        let parts = path.strip_prefix(&self.0).ok()?.components();
        let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
        Some(parts?.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;

    #[test]
    fn nothing_outside_the_folder_is_found() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("results");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        std::fs::write(all.path().join("secret"), b"").unwrap();
        std::fs::write(folder.join("a/file"), b"").unwrap();
        #[cfg(unix)]
        for (target, link) in
            [("../secret", "out"), ("a", "in"), ("out", "twice"), ("..", "up"), ("loop", "loop")]
        {
            std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        }
        let root = Root::new(&folder).unwrap();
        for path in ["", "a", "a/b", "a/file", "a//b", "in/file"] {
            let found = root.find(path).unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"));
            assert!(root.relative(&found).is_some(), "{path}");
        }
        assert_eq!(root.find("in/file").unwrap(), root.find("a/file").unwrap());
        for path in [
            "..",
            "../secret",
            "a/../../secret",
            "/etc/passwd",
            "a/../a",
            ".",
            "a\\b",
            "a\0b",
            "out",
            "twice",
            "up/secret",
        ] {
            let status = root.find(path).unwrap_err().status;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path:?}");
        }
        for path in ["none", "a/none", "a/file/x", "loop"] {
            assert_eq!(root.find(path).unwrap_err().status, StatusCode::NOT_FOUND, "{path}");
        }
    }
}
