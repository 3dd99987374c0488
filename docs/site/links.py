"""Links of the built site: ``python docs/site/links.py [FOLDER]`` lists what leads nowhere.

Every ``href``, ``src``, ``srcset`` and ``data`` of every page is followed. A link inside of the
site leads to a file and, behind ``#``, to an element of that page. What a browser loads by itself,
scripts, styles, pictures and frames, comes from the site: it is read without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src", "data")
FOLLOWED = ("a", "area")
"""Elements whose link a reader follows; those of all others a browser loads."""
UNLOADED = ("canonical", "prev", "next", "index", "search", "author")
"""Relations of a ``link`` that a browser does not load."""
WRITTEN = ("genindex.html", "search.html", "py-modindex.html", "_modules/index.html")
"""Pages without a source, which Sphinx writes."""


class _Page(HTMLParser):
    """What a page links to, and what can be linked to in it.

    Attributes
    ----------
    anchors : set of str
    links : list of (str, bool)
        Address, and whether a browser loads it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the names and the links of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        relation = values.get("rel", "").split() if tag == "link" else []
        loaded = tag not in FOLLOWED and not {*relation} & {*UNLOADED}
        if tag != "script" or "src" in values:
            self.links += [(values[name], loaded) for name in ATTRIBUTES if name in values]
        for candidate in values.get("srcset", "").split(","):
            self.links += [(word, loaded) for word in candidate.split()[:1]]


def broken(folder: Path) -> Iterator[str]:
    """What is wrong with the links of a folder of pages, a line each.

    Parameters
    ----------
    folder : Path
        Of the built site.
    """
    pages = {path: _Page() for path in sorted(folder.resolve().rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        for link, loaded in dict.fromkeys(page.links):
            reason = _fault(path, link, loaded, folder.resolve(), pages)
            if reason:
                yield f"{path.relative_to(folder.resolve())}: {link} {reason}"


def _fault(path: Path, link: str, loaded: bool, folder: Path, pages: dict[Path, _Page]) -> str:
    """What is wrong with a link of a page; nothing, where it leads on."""
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
    """Pages to which no other page has a link.

    Parameters
    ----------
    folder : Path
        Of the built site.
    """
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
    """Print what is wrong with the links of a site; returns the exit code.

    Parameters
    ----------
    folder : Path
        Of the built site.
    """
    faults = [*broken(folder), *unreached(folder)]
    for fault in faults:
        print(fault, file=sys.stderr)
    count = sum(1 for _ in folder.rglob("*.html"))
    print(f"{count} pages, {len(faults)} broken links")
    return 1 if faults else 0


def main() -> int:
    """Check a folder; returns the exit code."""
    default = Path(__file__).resolve().parents[2] / "build" / "html"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    if not (folder / "index.html").is_file():
        print(f"{folder} is not a built site", file=sys.stderr)
        return 2
    return check(folder)


if __name__ == "__main__":
    sys.exit(main())
