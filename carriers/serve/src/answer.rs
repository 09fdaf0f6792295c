//! What a request is answered with: status, header fields and content, by RFC 9110. The same for both protocols.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use headers::{
    AcceptRanges, ContentLength, ContentRange, Date, ETag, HeaderMapExt as _, IfMatch, IfModifiedSince,
    IfNoneMatch, IfRange, IfUnmodifiedSince, LastModified,
};
use http::header::{ALLOW, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::content::Content;
use crate::files::{self, FileError, Folder, Found, Opened};

/// What a folder is answered with.
const INDEX: &str = "index.html";
/// What is encoded in the path of a URL (RFC 3986, 3.3), and in an attribute of HTML.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'\'')
    .add(b':')
    .add(b';')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status and header fields.
    pub head: Response<()>,
    /// What follows them; nothing for HEAD.
    pub content: Option<Content>,
}

impl Answer {
    /// The server failed in a way that says nothing about the request.
    pub fn failed() -> Self {
        text(StatusCode::INTERNAL_SERVER_ERROR, "the server failed\n".to_owned())
    }
}

/// Answers requests for files.
#[derive(Debug)]
pub struct Answerer {
    folder: Folder,
    list_folders: bool,
    generated: Option<u64>,
}

/// Something that can be sent, or parts of it.
struct Resource {
    whole: Whole,
    length: u64,
    modified: Option<SystemTime>,
    tag: String,
    kind: HeaderValue,
}

enum Whole {
    File(Opened),
    Generated,
}

impl Whole {
    fn part(self, part: Range<u64>) -> Content {
        match self {
            Self::File(opened) => Content::file(opened.file, part),
            Self::Generated => Content::generated(part),
        }
    }
}

impl Answerer {
    /// Of the files of a folder; `list_folders` and `generated` are those of [`crate::Config`].
    pub fn new(folder: Folder, list_folders: bool, generated: Option<u64>) -> Self {
        Self { folder, list_folders, generated }
    }

    /// The answer to a request; `path` is that of its URL. This may wait for the disk.
    pub fn answer(&self, method: &Method, path: &str, fields: &HeaderMap) -> Answer {
        let mut answer = if matches!(*method, Method::GET | Method::HEAD) {
            self.answer_get(path, fields).unwrap_or_else(|error| refuse(path, &error))
        } else {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n".to_owned());
            answer.head.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            answer
        };
        answer.head.headers_mut().typed_insert(Date::from(SystemTime::now()));
        if *method == Method::HEAD {
            answer.content = None;
        }
        answer
    }

    fn answer_get(&self, path: &str, fields: &HeaderMap) -> Result<Answer, FileError> {
        if let Some(most) = self.generated
            && let Some(length) =
                path.rsplit_once("/bytes/").and_then(|(_, length)| length.parse::<u64>().ok())
        {
            if length > most {
                let reason = format!("expected at most /bytes/{most} (an option of the server)\n");
                return Ok(text(StatusCode::FORBIDDEN, reason));
            }
            let kind = HeaderValue::from_static("application/octet-stream");
            let resource = Resource {
                whole: Whole::Generated,
                length,
                modified: None,
                tag: format!("\"bytes-{length}\""),
                kind,
            };
            return Ok(send(resource, fields));
        }
        let Some(relative) = files::relative(path) else {
            return Ok(text(StatusCode::BAD_REQUEST, "no file has a zero byte in its name\n".to_owned()));
        };
        match self.folder.find(&relative)? {
            Found::File(opened) => Ok(send(Resource::of_file(opened, &relative), fields)),
            // Links in a page count from its folder, so that the folder's address has to end in `/`.
            Found::Folder(_) if !path.ends_with('/') => Ok(moved(path)),
            Found::Folder(folder) => match self.folder.find(&relative.join(INDEX)) {
                Ok(Found::File(opened)) => Ok(send(Resource::of_file(opened, Path::new(INDEX)), fields)),
                Ok(Found::Folder(_)) | Err(FileError::NotFound) if self.list_folders => {
                    Ok(list(&relative, &files::names(&folder)?))
                }
                Ok(Found::Folder(_)) => Err(FileError::NotFound),
                Err(error) => Err(error),
            },
        }
    }
}

impl Resource {
    fn of_file(opened: Opened, name: &Path) -> Self {
        let Opened { length, modified, .. } = opened;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let kind = mime_guess::from_path(name).first_raw().unwrap_or("application/octet-stream");
        Self {
            whole: Whole::File(opened),
            length,
            modified: Some(modified),
            // Strong, as If-Range wants it (RFC 9110, 13.1.5): a change within a nanosecond that keeps the length is not noticed.
            tag: format!("\"{length:x}-{:x}-{:x}\"", since.as_secs(), since.subsec_nanos()),
            kind: HeaderValue::from_static(kind),
        }
    }
}

/// A part that was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Everything: no part was asked for, or several, or in a unit that is unknown (RFC 9110, 14.2).
    Whole,
    /// This part.
    Bytes(Range<u64>),
    /// A part that there is not.
    Unsatisfiable,
}

impl Part {
    fn of(fields: &HeaderMap, length: u64) -> Self {
        let mut all = fields.get_all(http::header::RANGE).iter();
        let (Some(field), None) = (all.next(), all.next()) else { return Self::Whole };
        let Some(range) = field.to_str().ok().and_then(|text| text.trim().strip_prefix("bytes=")) else {
            return Self::Whole;
        };
        let Some((first, last)) = range.trim().split_once('-') else { return Self::Whole };
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // A number that is too large is behind every end.
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        };
        let part = match (first, last) {
            ("", last) => match number(last) {
                Some(last) => length.saturating_sub(last)..length,
                None => return Self::Whole,
            },
            (first, "") => match number(first) {
                Some(first) => first..length,
                None => return Self::Whole,
            },
            (first, last) => match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
                _ => return Self::Whole,
            },
        };
        if part.start < part.end { Self::Bytes(part) } else { Self::Unsatisfiable }
    }
}

/// Sends something or a part of it, unless a condition says otherwise (RFC 9110, 13.2.2).
fn send(resource: Resource, fields: &HeaderMap) -> Answer {
    let Resource { whole, length, modified, tag, kind } = resource;
    let tag: ETag = tag.parse().expect("it has quotes, and digits between them");
    let modified = modified.map(LastModified::from);
    let mut head = Response::new(());
    let out = head.headers_mut();
    out.typed_insert(tag.clone());
    if let Some(modified) = modified {
        out.typed_insert(modified);
    }
    out.typed_insert(AcceptRanges::bytes());
    let since = modified.map_or(UNIX_EPOCH, SystemTime::from);
    let is_expected = match fields.typed_get::<IfMatch>() {
        Some(expected) => expected.precondition_passes(&tag),
        None => fields.typed_get::<IfUnmodifiedSince>().is_none_or(|limit| limit.precondition_passes(since)),
    };
    if !is_expected {
        *head.status_mut() = StatusCode::PRECONDITION_FAILED;
        return Answer { head, content: None };
    }
    let is_new = match fields.typed_get::<IfNoneMatch>() {
        Some(known) => known.precondition_passes(&tag),
        None => {
            modified.is_none()
                || fields.typed_get::<IfModifiedSince>().is_none_or(|known| known.is_modified(since))
        }
    };
    if !is_new {
        *head.status_mut() = StatusCode::NOT_MODIFIED;
        return Answer { head, content: None };
    }
    let is_same = fields
        .typed_get::<IfRange>()
        .is_none_or(|condition| !condition.is_modified(Some(&tag), modified.as_ref()));
    let part = match if is_same { Part::of(fields, length) } else { Part::Whole } {
        Part::Whole => 0..length,
        Part::Bytes(part) => {
            *head.status_mut() = StatusCode::PARTIAL_CONTENT;
            // It fails for parts that are empty or beyond the end, and this is neither.
            if let Ok(range) = ContentRange::bytes(part.clone(), length) {
                head.headers_mut().typed_insert(range);
            }
            part
        }
        Part::Unsatisfiable => {
            let mut answer = text(StatusCode::RANGE_NOT_SATISFIABLE, format!("there are {length} bytes\n"));
            answer.head.headers_mut().typed_insert(ContentRange::unsatisfied_bytes(length));
            return answer;
        }
    };
    head.headers_mut().insert(CONTENT_TYPE, kind);
    let content = whole.part(part);
    head.headers_mut().typed_insert(ContentLength(content.length()));
    Answer { head, content: Some(content) }
}

/// A text for people.
fn text(status: StatusCode, text: String) -> Answer {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    head.headers_mut().typed_insert(ContentLength(text.len() as u64));
    Answer { head, content: Some(Content::of(text)) }
}

fn refuse(path: &str, error: &FileError) -> Answer {
    let (status, retry) = match error {
        FileError::NotFound => (StatusCode::NOT_FOUND, false),
        FileError::Forbidden => (StatusCode::FORBIDDEN, false),
        FileError::Busy => (StatusCode::SERVICE_UNAVAILABLE, true),
        FileError::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, false),
    };
    if !matches!(error, FileError::NotFound) {
        tracing::warn!(path, %error, "a file cannot be read");
    }
    // What the system says is for the log: it may name files that clients need not know.
    let reason = match error {
        FileError::Failed(_) => "the server cannot read this file\n".to_owned(),
        known => format!("{known}\n"),
    };
    let mut answer = text(status, reason);
    if retry {
        answer.head.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

fn moved(path: &str) -> Answer {
    // Two slashes at the beginning would name another host (RFC 3986, 4.2).
    let target = format!("/{}/", path.trim_start_matches('/'));
    let mut answer = text(StatusCode::MOVED_PERMANENTLY, format!("the folder is at {target}\n"));
    if let Ok(target) = HeaderValue::from_str(&target) {
        answer.head.headers_mut().insert(LOCATION, target);
    }
    answer
}

/// A page with links to what is in a folder.
fn list(folder: &Path, names: &[Vec<u8>]) -> Answer {
    let shown = escaped(&folder.display().to_string());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>/{shown}</title>\n<h1>/{shown}</h1>\n<ul>\n"
    );
    if !folder.as_os_str().is_empty() {
        page.push_str("<li><a href=\"../\">../</a></li>\n");
    }
    for name in names {
        let shown = escaped(&String::from_utf8_lossy(name));
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<li><a href=\"{}\">{shown}</a></li>", percent_encode(name, IN_PATH));
    }
    page.push_str("</ul>\n</html>\n");
    let mut answer = text(StatusCode::OK, page);
    answer.head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    answer
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::fs;

    use super::*;

    fn fields(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    struct Rig {
        all: tempfile::TempDir,
        answerer: Answerer,
    }

    fn rig(list_folders: bool) -> Rig {
        let all = tempfile::tempdir().unwrap();
        fs::write(all.path().join("file.txt"), "0123456789").unwrap();
        fs::create_dir(all.path().join("folder")).unwrap();
        fs::write(all.path().join("folder/a \"<b>&"), "").unwrap();
        fs::create_dir(all.path().join("page")).unwrap();
        fs::write(all.path().join("page/index.html"), "<p>").unwrap();
        let answerer = Answerer::new(Folder::open(all.path()).unwrap(), list_folders, Some(1_000));
        Rig { all, answerer }
    }

    impl Rig {
        fn get(&self, path: &str, all: &[(&'static str, &str)]) -> (u16, String, Answer) {
            let mut answer = self.answerer.answer(&Method::GET, path, &fields(all));
            let mut text = Vec::new();
            if let Some(content) = &mut answer.content {
                let length = answer.head.headers().typed_get::<ContentLength>().unwrap().0;
                assert_eq!(length, content.length());
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                while let Some(piece) = runtime.block_on(content.next()).unwrap() {
                    text.extend_from_slice(&piece);
                }
            }
            (answer.head.status().as_u16(), String::from_utf8_lossy(&text).into_owned(), answer)
        }

        fn field(&self, path: &str, name: &str) -> String {
            let (_, _, answer) = self.get(path, &[]);
            answer
                .head
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
                .unwrap_or_default()
        }
    }

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let rig = rig(false);
        for (range, status, content, of) in [
            ("bytes=0-3", 206, "0123", "bytes 0-3/10"),
            ("bytes=7-", 206, "789", "bytes 7-9/10"),
            ("bytes=-2", 206, "89", "bytes 8-9/10"),
            ("bytes=-100", 206, "0123456789", "bytes 0-9/10"),
            ("bytes=8-100", 206, "89", "bytes 8-9/10"),
            ("bytes=0-18446744073709551615", 206, "0123456789", "bytes 0-9/10"),
            ("bytes=10-", 416, "there are 10 bytes\n", "bytes */10"),
            ("bytes=-0", 416, "there are 10 bytes\n", "bytes */10"),
            ("bytes=99999999999999999999-", 416, "there are 10 bytes\n", "bytes */10"),
            ("bytes=3-2", 200, "0123456789", ""),
            ("bytes=0-1,3-4", 200, "0123456789", ""),
            ("bytes=+1-2", 200, "0123456789", ""),
            ("bytes=-", 200, "0123456789", ""),
            ("lines=0-1", 200, "0123456789", ""),
            ("bytes", 200, "0123456789", ""),
        ] {
            let (found, text, answer) = rig.get("/file.txt", &[("range", range)]);
            let of_found =
                answer.head.headers().get("content-range").map_or("", |value| value.to_str().unwrap());
            assert_eq!((found, text.as_str(), of_found), (status, content, of), "{range}");
        }
        let (status, text, _) = rig.get("/bytes/100", &[("range", "bytes=90-")]);
        assert_eq!((status, text.is_empty()), (206, false));
        assert_eq!(rig.get("/bytes/0", &[]).0, 200);
        assert_eq!(rig.get("/bytes/1001", &[]).0, 403);
        assert_eq!(rig.get("/bytes/-1", &[]).0, 404);
    }

    #[test]
    fn conditions_decide_whether_a_part_or_nothing_is_sent() {
        let rig = rig(false);
        let (tag, modified) = (rig.field("/file.txt", "etag"), rig.field("/file.txt", "last-modified"));
        let (tag, modified) = (tag.as_str(), modified.as_str());
        let early = "Tue, 01 Jan 2019 00:00:00 GMT";
        for (all, status) in [
            (vec![("if-none-match", tag)], 304),
            (vec![("if-none-match", "\"other\"")], 200),
            (vec![("if-none-match", "*")], 304),
            (vec![("if-none-match", "\"other\""), ("if-modified-since", modified)], 200),
            (vec![("if-modified-since", modified)], 304),
            (vec![("if-modified-since", early)], 200),
            (vec![("if-modified-since", "yesterday")], 200),
            (vec![("if-match", "\"other\"")], 412),
            (vec![("if-match", tag)], 200),
            (vec![("if-unmodified-since", early)], 412),
            (vec![("range", "bytes=1-2"), ("if-range", tag)], 206),
            (vec![("range", "bytes=1-2"), ("if-range", "\"other\"")], 200),
            (vec![("range", "bytes=1-2"), ("if-range", modified)], 206),
            (vec![("range", "bytes=1-2"), ("if-range", early)], 200),
        ] {
            assert_eq!(rig.get("/file.txt", &all).0, status, "{all:?}");
        }
        fs::write(rig.all.path().join("file.txt"), "9876543210").unwrap();
        let (status, text, _) = rig.get("/file.txt", &[("range", "bytes=1-2"), ("if-range", tag)]);
        assert_eq!((status, text.as_str()), (200, "9876543210"));
    }

    #[test]
    fn folders_have_an_index_or_a_list_and_other_methods_are_refused() {
        let (with, without) = (rig(true), rig(false));
        assert_eq!(with.field("/folder", "location"), "/folder/");
        assert_eq!(with.field("//folder", "location"), "/folder/");
        assert_eq!(without.get("/page/", &[]).1, "<p>");
        assert_eq!(without.field("/page/", "content-type"), "text/html");
        assert_eq!(without.get("/folder/", &[]).0, 404);
        let (status, page, _) = with.get("/folder/", &[]);
        assert_eq!(status, 200);
        assert!(page.contains("<a href=\"a%20%22%3Cb%3E%26\">a &quot;&lt;b&gt;&amp;</a>"), "{page}");
        let post = with.answerer.answer(&Method::POST, "/file.txt", &HeaderMap::new());
        assert_eq!(
            (post.head.status().as_u16(), &post.head.headers()["allow"]),
            (405, &HeaderValue::from_static("GET, HEAD"))
        );
        let head = with.answerer.answer(&Method::HEAD, "/file.txt", &HeaderMap::new());
        assert_eq!(
            (&head.head.headers()["content-length"], head.content.is_none()),
            (&HeaderValue::from_static("10"), true)
        );
        assert_eq!(with.get("/a%00b", &[]).0, 400);
        assert_eq!(with.field("/file.txt", "content-type"), "text/plain");
    }

    #[test]
    fn a_file_that_may_not_be_read_is_forbidden_and_others_are_served() {
        use std::os::unix::fs::PermissionsExt as _;

        let rig = rig(false);
        let set = |name: &str, mode| {
            fs::set_permissions(rig.all.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("", 0o755);
        set("file.txt", 0o000);
        set("page/index.html", 0o644);
        // Root may read everything; this thread is nobody to the file system. A user's own mode is enough.
        let is_root = nix::unistd::geteuid().is_root();
        if is_root {
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
        }
        let (secret, page) = (rig.get("/file.txt", &[]), rig.get("/page/", &[]));
        if is_root {
            nix::unistd::setfsuid(nix::unistd::geteuid());
        }
        assert_eq!((secret.0, secret.1.as_str()), (403, "permission denied\n"));
        assert_eq!(page.0, 200);
    }
}
