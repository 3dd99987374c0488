"""Check the links of the built site: ``python docs/site/links.py [FOLDER]`` lists broken ones.

Every ``href``, ``src``, ``srcset`` and ``data`` of every page is checked. A link inside the site
must lead to a file and, after ``#``, to an element of that page. Scripts, styles, pictures and
frames must be files of the site, so that it works without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src", "data")
FOLLOWED = ("a", "area")
"""HTML elements whose links a reader follows; links of other elements are loaded by the browser."""
UNLOADED = ("canonical", "prev", "next", "index", "search", "author")
"""Values of ``rel`` for which a browser does not load the target of a ``link`` element."""
WRITTEN = ("genindex.html", "search.html", "py-modindex.html", "_modules/index.html")
"""Pages that Sphinx writes without a source; other pages need not link to them."""


class _Page(HTMLParser):
    """Parser that collects the anchors of a page and its links (address, loaded unasked)."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store the anchors and the links of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        relation = values.get("rel", "").split() if tag == "link" else []
        loaded = tag not in FOLLOWED and not {*relation} & {*UNLOADED}
        if tag != "script" or "src" in values:
            self.links += [(values[name], loaded) for name in ATTRIBUTES if name in values]
        for candidate in values.get("srcset", "").split(","):
            self.links += [(word, loaded) for word in candidate.split()[:1]]


def broken(folder: Path) -> Iterator[str]:
    """Yield one line per broken link of the built site."""
    pages = {path: _Page() for path in sorted(folder.resolve().rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        for link, loaded in dict.fromkeys(page.links):
            reason = _fault(path, link, loaded, folder.resolve(), pages)
            if reason:
                yield f"{path.relative_to(folder.resolve())}: {link} {reason}"


def _fault(path: Path, link: str, loaded: bool, folder: Path, pages: dict[Path, _Page]) -> str:
    """Error of one link of a page; empty if it is valid."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "is loaded from a network" if loaded and parts.scheme != "data" else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(folder):
        return "leaves the site"
    if not target.is_file():
        return "is not a file"
    if target in pages and parts.fragment and parts.fragment not in ("", "top"):
        fragment = unquote(parts.fragment)
        return "" if fragment in pages[target].anchors else "names no element of that page"
    return ""


def unreached(folder: Path) -> Iterator[str]:
    """Yield one line per page of the built site without a link from another page."""
    whole = folder.resolve()
    reached: set[Path] = {whole / name for name in ("index.html", *WRITTEN)}
    every = sorted(p for p in whole.rglob("*.html") if "_static" not in p.parts)
    for path in every:
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        targets = (path.parent / unquote(urlsplit(link).path) for link, _ in page.links)
        reached |= {target.resolve() for target in targets} - {path}
    yield from (str(p.relative_to(whole)) + ": nothing links to it" for p in {*every} - reached)


def check(folder: Path) -> int:
    """Print the faults of the links of a built site; return the exit code."""
    faults = [*broken(folder), *unreached(folder)]
    for fault in faults:
        print(fault, file=sys.stderr)
    count = sum(1 for _ in folder.rglob("*.html"))
    print(f"{count} pages, {len(faults)} broken links")
    return 1 if faults else 0


def main() -> int:
    """Check the folder named on the command line; return the exit code."""
    default = Path(__file__).resolve().parents[2] / "build" / "html"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    if not (folder / "index.html").is_file():
        print(f"{folder} is not a built site", file=sys.stderr)
        return 2
    return check(folder)


if __name__ == "__main__":
    sys.exit(main())
