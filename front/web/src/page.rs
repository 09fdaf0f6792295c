//! The page's files, as they were built: `front/web/page/dist`.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its address.
    pub path: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $file:literal, $kind:literal) => {
        Asset { path: $path, kind: $kind, content: include_bytes!(concat!("../page/dist/", $file)) }
    };
}

/// All files; the address of the first is also that of the page.
pub const ASSETS: &[Asset] = &[
    asset!("/", "index.html", "text/html; charset=utf-8"),
    asset!("/page.js", "page.js", "text/javascript; charset=utf-8"),
    asset!("/page.css", "page.css", "text/css; charset=utf-8"),
];
