"""Checks a built site: every internal link, anchor, picture and script that a page names must exist.

python docs/tools/check_site.py build/site/0.1.0
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the places in it that links may name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.without_text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects what a tag links to and what it is called."""
        for name, value in attrs:
            if value and name in ("href", "src") and tag != "base":
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)
        if tag == "img" and not dict(attrs).get("alt"):
            self.without_text.append(dict(attrs).get("src") or "")


@cache
def parsed(path: Path) -> Page:
    """A page of the site."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


#: Pages of the theme whose links depend on what is searched for.
GENERATED = ("search.html", "genindex.html")


def broken_links(site: Path) -> list[str]:
    """Each link inside the site that leads nowhere, with its page."""
    found = []
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.parts:
            continue
        for link in sorted(parsed(path).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (link.startswith("#") and path.name in GENERATED):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_relative_to(site.resolve()) or not target.exists():
                found.append(f"{path.relative_to(site)}: {link}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).anchors:
                found.append(f"{path.relative_to(site)}: {link} (no such place in that page)")
    return found


def pictures_without_text(site: Path) -> list[str]:
    """Each picture without a text in its place, with its page."""
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return [f"{path.relative_to(site)}: {src}" for path in pages for src in parsed(path).without_text]


def main(site: Path) -> int:
    """Prints what is wrong; 1 if anything is, or if there is no page."""
    broken, silent = broken_links(site), pictures_without_text(site)
    for line in broken:
        sys.stderr.write(f"broken link: {line}\n")
    for line in silent:
        sys.stderr.write(f"picture without alternative text: {line}\n")
    pages = sum("_static" not in path.parts for path in site.rglob("*.html"))
    sys.stdout.write(f"{pages} pages, {len(broken)} broken links, {len(silent)} pictures without text\n")
    return 1 if broken or silent or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
