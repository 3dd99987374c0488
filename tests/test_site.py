"""The site: its links, its cache, and its page of statements."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from dynamics.registry import load_system

SITE = Path(__file__).resolve().parents[1] / "docs" / "site"
NAMES = ("cache", "cards", "explorers", "links", "pages", "sources", "statements")
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
        ("", '<a href="c.html">c</a>', "is not a file"),
        ("", '<img srcset="one.png 1x">', "is not a file"),
        ("", '<a href="#none">c</a>', "names no element"),
        ("", '<a href="../c.html">c</a>', "leaves the site"),
        ('<script src="https://example.org/a.js"></script>', "", "is loaded from a network"),
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
    (built / "lonely.html").write_text(PAGE.format("", '<a href="lonely.html">itself</a>'))
    assert list(links.unreached(built)) == ["lonely.html: nothing links to it"]


def test_links_of_the_repository_are_led_to_pages(site):
    sources = site("sources")
    places = sources.targets()
    text = "[a](../CONTRIBUTING.md), [b](library.md#x), [c](https://example.org), [d](#here)"
    led = sources.led(text, "docs/verdicts.md", places)
    expected = "[a](../contributing.md), [b](../models/index.md#x), [c](https://example.org)"
    assert led == f"{expected}, [d](#here)"
    model = sources.led("[m](../dynamics/models/topic_model.py)", "docs/library.md", places)
    assert model == "[m](../models/topic_model.md)"
    with pytest.raises(sources.BrokenLink, match=r"links to \.\./setup\.cfg"):
        sources.led("[s](../setup.cfg)", "docs/events.md", places)


def test_every_page_has_a_place_in_the_side_bar(site):
    sources = site("sources")
    listed = {name for names in sources.CONTENTS.values() for name in names}
    for path, place in sources.pages_of_repository().items():
        name, _, kind = place.rpartition(".")
        if kind == "md" and place not in ("index.md", "license.md"):
            assert name in listed, path


def test_the_cache_is_of_what_there_is_and_small(site):
    cache = site("cache")
    items = {item.record: item for item in cache.items()}
    assert {*cache.CACHE.glob("*/*.json")} <= {*items}
    for record, item in items.items():
        if not record.is_file():
            continue
        content = json.loads(record.read_text(encoding="utf-8"))
        assert content["command"].split() == item.words
        if item.name == "verdicts":
            text = (record.with_suffix("") / "verdicts.md").read_text(encoding="utf-8")
            assert len(content["verdicts"]) == text.count("\n## ")
            repeat = re.findall(r"^Repeat: `attdyn verify (\S+) .*`$", text, re.MULTILINE)
            assert repeat == [item.system] * text.count("\n## ")
            names = {path.name for path in record.with_suffix("").glob("*.png")}
            assert names == {name for name in names if f"({name})" in text}
        elif "refused" not in content:
            assert item.picture.stat().st_size < 2 * cache.MOST_BYTES
    assert sum(path.stat().st_size for path in cache.CACHE.rglob("*.*")) < 10e6


def test_figures_of_papers_are_called_by_number_and_claimed_values_by_signs(site):
    cards, cache, pages = site("cards"), site("cache"), site("pages")
    names = ("figure-7a", "figure-loss_plane", "compare")
    titles = [cards.called(cache.Item("shallow_vit", name)) for name in names]
    assert titles == ["Figure 7a", "loss plane", "compare"]
    row = pages.BOUND.sub(pages._bound, "| slope | \\<= -1e-3 | -2 |")
    assert row.split() == ["|", "slope", "|", "≤", "−1e−3", "|", "-2", "|"]


def test_the_verdicts_of_a_paper_begin_with_their_shares(site, tmp_path):
    cache, pages = site("cache"), site("pages")
    (tmp_path / "verdicts").mkdir()
    text = pages._verdicts(cache.Item("deep_linear", "verdicts"), tmp_path)
    assert "*holds*" not in text.partition("\n| claim |")[0]
    assert 0 < text.index("<div") < text.index("attdyn verify deep_linear") < text.index("\n## ")


def test_the_page_of_statements_is_that_of_the_claims_and_their_verdicts(site):
    statements = site("statements")
    text = statements.page()
    assert statements.PAGE.read_text(encoding="utf-8") == text
    for name in statements.PAPERS:
        for claim in load_system(name).claims:
            assert (f"\n| {statements.prose(claim.source)} | " in text) != claim.ours


def test_claims_without_a_verdict_are_named(site, tmp_path, monkeypatch):
    cache = site("cache")
    item = cache.Item("deep_linear", "verdicts")
    first, *others = (claim.source for claim in load_system("deep_linear").claims)
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    assert not item.is_current()
    report = tmp_path / "deep_linear" / "verdicts" / "verdicts.md"
    report.parent.mkdir(parents=True)
    (tmp_path / "deep_linear" / "verdicts.json").write_text("{}")
    report.write_text(f"# Title\n\n## {first}\n")
    assert item.unmeasured() == others
    assert not item.is_current()
    report.write_text("\n".join(f"## {source}" for source in (first, *others)))
    assert item.is_current()
