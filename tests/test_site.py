"""The site: its links, its cache, and what is shown where a page to explore can be written."""

import importlib
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from dynamics.validation import InvalidRequest

SITE = Path(__file__).resolve().parents[1] / "docs" / "site"
NAMES = ("cache", "explorers", "links", "sources")
PAGE = """<html><head><link rel="canonical" href="https://example.org">{}</head>
<body id="top"><h1 id="ideas">Ideas</h1><a href="https://example.org">away</a>{}</body></html>"""


@pytest.fixture
def site(monkeypatch):
    """A module of the site by its name."""
    monkeypatch.syspath_prepend(str(SITE))
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def built(tmp_path):
    """A site of two pages, the second of which is reached."""
    (tmp_path / "index.html").write_text(PAGE.format("", '<a href="b.html#ideas">b</a>'))
    (tmp_path / "b.html").write_text(PAGE.format("", '<img src="index.html">'))
    return tmp_path


@pytest.mark.parametrize(
    ("head", "body", "reason"),
    [
        ("", '<a href="c.html">c</a>', "is no file"),
        ("", '<img srcset="one.png 1x">', "is no file"),
        ("", '<a href="index.html#none">c</a>', "names no element"),
        ("", '<a href="#none">c</a>', "names no element"),
        ("", '<a href="../c.html">c</a>', "leaves the site"),
        ('<script src="https://example.org/a.js"></script>', "", "is loaded from a network"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "", "is loaded from a network"),
    ],
)
def test_links_that_lead_nowhere_are_found(site, built, head, body, reason):
    links = site("links")
    assert links.check(built) == 0
    (built / "b.html").write_text(PAGE.format(head, body))
    (fault,) = links.broken(built)
    assert fault.startswith("b.html: ")
    assert reason in fault
    assert links.check(built) == 1


def test_pages_that_nothing_links_to_are_found(site, built):
    links = site("links")
    (built / "lonely.html").write_text(PAGE.format("", '<a href="lonely.html">itself</a>'))
    assert list(links.unreached(built)) == ["lonely.html: nothing links to it"]


def test_links_of_the_repository_are_led_to_pages(site):
    sources = site("sources")
    places = sources.pages_of_repository()
    text = "[a](../CONTRIBUTING.md), [b](library.md#x), [c](https://example.org), [d](#here)"
    led = sources.led(text, "docs/verdicts.md", places)
    expected = "[a](../contributing.md), [b](../models/index.md#x), [c](https://example.org)"
    assert led == f"{expected}, [d](#here)"
    with pytest.raises(sources.BrokenLink, match=r"links to \.\./setup\.cfg"):
        sources.led("[s](../setup.cfg)", "docs/events.md", places)


def test_the_cache_has_every_figure_and_nothing_else(site):
    cache = site("cache")
    items = list(cache.items())
    missing = [f"{item.system}/{item.name}" for item in items if not item.record.is_file()]
    assert not missing, "make docs-cache"
    assert {item.record for item in items} == {*cache.CACHE.glob("*/*.json")}
    for item in items:
        record = json.loads(item.record.read_text(encoding="utf-8"))
        assert record["command"].split() == item.words
        if item.name == "verdicts":
            text = (item.record.with_suffix("") / "verdicts.md").read_text(encoding="utf-8")
            assert sum(record["counts"].values()) > 0
            names = {path.name for path in item.record.with_suffix("").glob("*.png")}
            assert names == {name for name in names if f"({name})" in text}
        elif "refused" not in record:
            assert item.picture.stat().st_size < 2 * cache.MOST_BYTES
    total = sum(path.stat().st_size for path in cache.CACHE.rglob("*") if path.is_file())
    assert total < 10e6


def test_pages_to_explore_are_written_where_there_is_what_writes_them(site, tmp_path, monkeypatch):
    explorers = site("explorers")
    module = ModuleType("dynamics.explorer")
    module.__spec__ = ModuleSpec("dynamics.explorer", None)

    def write_page(name, path):
        if name == "topic_model":
            raise InvalidRequest("too large")
        path.write_text(name)

    module.write_page = write_page
    monkeypatch.setitem(sys.modules, "dynamics.explorer", module)
    written = explorers.write_explorers(tmp_path)
    assert "linear_icl" in written
    assert "topic_model" not in written
    names = {path.stem for path in (tmp_path / "explorers").glob("*.html")}
    assert names == {*written}
    text = explorers.listed(written, written)
    assert all(f'"explorers/{name}.html"' in text for name in written)
    assert 'src="../explorers/linear_icl.html"' in explorers.frame("linear_icl")
