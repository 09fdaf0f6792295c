//! What a server's answer promises: which bytes it sends, how many, of which version of the content, and with which digest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::response::Parts;
use http::{HeaderMap, StatusCode, header};

/// The digest of a content by the algorithm that everybody has (RFC 9530, 5).
pub type Sha256 = [u8; 32];

/// The beginning of a content that is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Its bytes.
    pub bytes: u64,
    /// The entity tag of the version that it is of, a strong one.
    pub etag: String,
}

/// What the body of an answer will be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Place of its first byte in the content.
    pub from: u64,
    /// Bytes of the body; `None` if the server does not say.
    pub length: Option<u64>,
    /// The content's strong entity tag, by which a download can go on (RFC 9110, 8.8.3 and 13.1.5).
    pub etag: Option<String>,
    /// Digest of the whole content.
    pub digest: Option<Sha256>,
}

/// What to do about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Take the body.
    Content(Promise),
    /// The server does not go on from the beginning that is there: ask for the whole content.
    StartOver,
}

/// Why an answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is no success.
    #[error("the server answered {status}{}", location.as_ref().map(|to| format!(": it redirects to {to}")).unwrap_or_default())]
    Status {
        /// The answer's status.
        status: StatusCode,
        /// Where it redirects to.
        location: Option<String>,
    },
    /// A field is not what HTTP allows.
    #[error("expected {field} to be {expected}, found {found:?}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
}

/// Reads an answer; `asked` is the beginning behind which it was to go on.
///
/// # Errors
///
/// If it is no success, or its length, range or digest cannot be read.
pub fn read(answer: &Parts, asked: Option<&Beginning>) -> Result<Meaning, AnswerError> {
    let fields = &answer.headers;
    let length = match fields.get(header::CONTENT_LENGTH) {
        None => None,
        Some(value) => {
            Some(number(value.to_str().unwrap_or_default()).ok_or_else(|| AnswerError::Field {
                field: "content-length",
                expected: "a number of bytes",
                found: format!("{value:?}"),
            })?)
        }
    };
    let etag = text(fields, "etag").filter(|tag| tag.starts_with('"')).map(str::to_owned);
    let promise = Promise { from: 0, length, etag, digest: digest(fields, "repr-digest")? };
    match (answer.status, asked) {
        (StatusCode::OK, _) => {
            // Without a content coding, which nobody asked for, content and representation are the same (RFC 9530, 2).
            let digest =
                promise.digest.map_or_else(|| digest(fields, "content-digest"), |found| Ok(Some(found)))?;
            Ok(Meaning::Content(Promise { digest, ..promise }))
        }
        (StatusCode::PARTIAL_CONTENT, Some(asked)) => {
            let range = text(fields, "content-range").unwrap_or_default();
            let (first, last, total) = range_of(range).ok_or_else(|| AnswerError::Field {
                field: "content-range",
                expected: "bytes FIRST-LAST/TOTAL",
                found: range.to_owned(),
            })?;
            let other = promise.etag.as_ref().is_some_and(|tag| *tag != asked.etag);
            if other || first != asked.bytes || total.is_some_and(|total| last + 1 != total) {
                return Ok(Meaning::StartOver);
            }
            let bytes = last + 1 - first;
            if promise.length.is_some_and(|length| length != bytes) {
                let found = promise.length.unwrap_or_default().to_string();
                return Err(AnswerError::Field {
                    field: "content-length",
                    expected: "as long as its content-range",
                    found,
                });
            }
            let etag = Some(asked.etag.clone());
            Ok(Meaning::Content(Promise { from: first, length: Some(bytes), etag, ..promise }))
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => Ok(Meaning::StartOver),
        (status, _) => {
            Err(AnswerError::Status { status, location: text(fields, "location").map(str::to_owned) })
        }
    }
}

fn text<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    fields.get(name)?.to_str().ok()
}

/// A number as HTTP writes it: digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// `bytes FIRST-LAST/TOTAL`, where TOTAL may be `*` (RFC 9110, 14.4).
fn range_of(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let total = if total == "*" { None } else { Some(number(total)?) };
    (first <= last && last < u64::MAX && total.is_none_or(|total| last < total))
        .then_some((first, last, total))
}

/// The SHA-256 of a dictionary of digests, `sha-256=:BASE64:, sha-512=...` (RFC 9530, 2 and 3). Others are not looked at.
fn digest(fields: &HeaderMap, name: &'static str) -> Result<Option<Sha256>, AnswerError> {
    for value in fields.get_all(name) {
        for member in value.to_str().unwrap_or_default().split(',') {
            let Some(value) = member.trim().strip_prefix("sha-256=") else { continue };
            let bytes = value.strip_prefix(':').and_then(|value| value.strip_suffix(':'));
            let bytes =
                bytes.and_then(|text| STANDARD.decode(text).ok()).and_then(|bytes| bytes.try_into().ok());
            let fault =
                || AnswerError::Field { field: name, expected: "sha-256=:BASE64:", found: value.to_owned() };
            return bytes.ok_or_else(fault).map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(status: u16, fields: &[(&str, &str)]) -> Parts {
        let mut answer = http::Response::builder().status(status);
        for (name, value) in fields {
            answer = answer.header(*name, *value);
        }
        answer.body(()).unwrap().into_parts().0
    }

    fn beginning() -> Beginning {
        Beginning { bytes: 100, etag: "\"v1\"".to_owned() }
    }

    #[test]
    fn a_whole_content_promises_length_version_and_digest() {
        // RFC 9530, appendix B.1: {"hello": "world"} and a line's end.
        let digest = "sha-512=:AA==:, sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        let found =
            read(&answer(200, &[("content-length", "18"), ("etag", "\"a\""), ("repr-digest", digest)]), None);
        let Ok(Meaning::Content(promise)) = found else { panic!("{found:?}") };
        assert_eq!((promise.from, promise.length, promise.etag.as_deref()), (0, Some(18), Some("\"a\"")));
        let content = ring::digest::digest(&ring::digest::SHA256, b"{\"hello\": \"world\"}\n");
        assert_eq!(promise.digest.as_ref().map(|digest| &digest[..]), Some(content.as_ref()));
    }

    #[test]
    fn a_download_goes_on_only_where_it_stopped_and_in_the_same_version() {
        let going_on = Meaning::Content(Promise {
            from: 100,
            length: Some(50),
            etag: Some("\"v1\"".into()),
            digest: None,
        });
        for (case, status, fields, expected) in [
            ("the rest", 206, vec![("content-range", "bytes 100-149/150")], Ok(going_on.clone())),
            ("of unknown length", 206, vec![("content-range", "bytes 100-149/*")], Ok(going_on.clone())),
            (
                "with its tag",
                206,
                vec![("content-range", "bytes 100-149/150"), ("etag", "\"v1\"")],
                Ok(going_on),
            ),
            (
                "another version",
                206,
                vec![("content-range", "bytes 100-149/150"), ("etag", "\"v2\"")],
                Ok(Meaning::StartOver),
            ),
            ("another place", 206, vec![("content-range", "bytes 90-149/150")], Ok(Meaning::StartOver)),
            ("a part of the rest", 206, vec![("content-range", "bytes 100-119/150")], Ok(Meaning::StartOver)),
            ("nothing there", 416, vec![], Ok(Meaning::StartOver)),
            (
                "the whole",
                200,
                vec![("content-length", "9")],
                Ok(Meaning::Content(Promise { length: Some(9), ..Promise::default() })),
            ),
            ("no range", 206, vec![], Err("content-range to be bytes FIRST-LAST/TOTAL")),
            ("backwards", 206, vec![("content-range", "bytes 150-100/200")], Err("content-range")),
            (
                "another length",
                206,
                vec![("content-range", "bytes 100-149/150"), ("content-length", "51")],
                Err("content-length to be as long"),
            ),
        ] {
            let found = read(&answer(status, &fields), Some(&beginning()));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{case}"),
                Err(expected) => assert!(
                    found.clone().is_err_and(|error| error.to_string().contains(expected)),
                    "{case}: {found:?}"
                ),
            }
        }
    }

    #[test]
    fn what_is_no_content_is_an_error_that_says_why() {
        for (status, fields, expected) in [
            (404, vec![], "the server answered 404 Not Found"),
            (302, vec![("location", "https://other/")], "redirects to https://other/"),
            (206, vec![("content-range", "bytes 0-1/2")], "206"),
            (200, vec![("content-length", "-1")], "content-length to be a number of bytes"),
            (200, vec![("content-length", "99999999999999999999999")], "content-length"),
            (200, vec![("repr-digest", "sha-256=:AAAA:")], "repr-digest to be sha-256=:BASE64:"),
        ] {
            let error = read(&answer(status, &fields), None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_weak_tag_is_none() {
        let Ok(Meaning::Content(promise)) = read(&answer(200, &[("etag", "W/\"a\"")]), None) else {
            panic!()
        };
        assert_eq!(promise.etag, None);
    }

    proptest! {
        #[test]
        fn any_fields_are_read_without_panic(
            length in "\\PC{0,24}", range in "(bytes )?[0-9*/-]{0,30}", digest in "(sha-256=)?[:A-Za-z0-9+/=]{0,60}",
        ) {
            let mut fields = Vec::new();
            for (name, value) in [("content-length", &length), ("content-range", &range), ("repr-digest", &digest)] {
                if http::HeaderValue::from_str(value).is_ok() { fields.push((name, value.as_str())); }
            }
            if let Ok(Meaning::Content(promise)) = read(&answer(206, &fields), Some(&beginning())) {
                prop_assert_eq!(promise.from, 100);
                prop_assert!(promise.length.is_some_and(|length| length > 0));
            }
        }
    }
}
