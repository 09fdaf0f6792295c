#!/usr/bin/env python3
"""Checks a built site: every link and picture that is not on another host leads to a file, and to an element with that id.

    tools/site_links.py target/guide/site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page leads, and what can be linked to on it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])


def main(site):
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    failures = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            folder = site if parts.path.startswith("/") else path.parent
            target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                failures.append(f"{path.relative_to(site.resolve())}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                failures.append(f"{path.relative_to(site.resolve())}: {link}: no such place on that page")
    for failure in sorted(set(failures)):
        print(failure, file=sys.stderr)
    print(f"{len(pages)} pages, {len(set(failures))} broken links")
    return 1 if failures or not pages else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
