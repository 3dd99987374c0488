"""Pages of a model whose texts try to run scripts, in a browser: nothing runs, nothing is asked."""

from types import SimpleNamespace

import pytest
from browser import Tab, chromium

import dynamics
from dynamics.cli import main

pytestmark = pytest.mark.browser
RUN = "window.ran=1"
TAG = f"<script>{RUN}</script><img src=x onerror={RUN}><svg onload={RUN}>"
LINK = f"[a](javascript:{RUN}) <javascript:{RUN}> ![b](https://example.org/b.png)"
FORMULAS = (
    rf"\text{{{TAG}}}", rf"\href{{javascript:{RUN}}}{{x}}", rf"\style{{x\" onclick={RUN}}}{{y}}",
    rf"\mbox{{{TAG}}}", rf"\color{{red\" onclick=\"{RUN}}}{{z}}", rf"\unicode{{3cscript}}{TAG}",
)  # fmt: skip
DOLLARS = " ".join(f"${formula}$" for formula in FORMULAS)
WORDS = f"{TAG} {LINK} {DOLLARS}\n\n~~~\n# heading {TAG}"
DOCSTRING = f"""{TAG} {LINK}

{TAG} {LINK} {" ".join(f":math:`{formula}`" for formula in FORMULAS)}

.. math:: {FORMULAS[0]} + {FORMULAS[1]}

:t: {" ".join(f":math:`{formula}`" for formula in FORMULAS)} {TAG} {LINK}
:w*: {TAG}
"""
MODEL = f"""{DOCSTRING!r}
import numpy as np
import dynamics

SOURCE = {WORDS!r}
eta, steps = 0.02, 100
panels = [("w_0",), ("w_1",)]
events = {{"half": "w_0 >= t/2"}}


def start(w0=0.1, word={WORDS!r}):
    return {{"w": np.array([w0, 2 * w0])}}


def law():
    for sign in (-1.0, 1.0):
        yield 0.5, {{{f"y {TAG} `{TAG}` {LINK}"!r}: sign}}


def loss(theta, sample, xp, t=1.0):
    return xp.sum((theta["w"] ** 2 - t) ** 2) + theta["w"][0] * [*sample.values()][0] ** 2
    # ``` {TAG}


def stated(system, protocol):
    {WORDS!r}
    return dynamics.Finding(True, {WORDS!r}, 1.0, 2.0, {WORDS!r}, relation="<=")


claims = {{{f"Lemma {TAG}"!r}: stated}}
"""
NAME = f"{TAG}`$(touch x)`&'\".py".replace("/", "")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every kind of page of the hostile model, written once."""
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / NAME
    path.write_text(MODEL, encoding="utf-8")
    words = ["--out", str(folder / "out"), "--report", str(folder / "report")]
    assert main(["verify", str(path), *words]) == 0
    assert main(["gallery", str(path), "--out", str(folder / "gallery")]) == 0
    assert main(["explore", str(path), "--out", str(folder / "explore.html")]) == 0
    shown = dynamics.load_system(str(path)).describe()._repr_html_()
    (folder / "notebook.html").write_text(f'<!DOCTYPE html><meta charset="utf-8">{shown}')
    return SimpleNamespace(
        gallery=folder / "gallery/index.html", verify=folder / "report/verdicts.html",
        explore=folder / "explore.html", notebook=folder / "notebook.html",
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


ACTIVE = """() => [...document.querySelectorAll('*')].filter(element =>
  element.localName === 'script' || [...element.attributes].some(attribute =>
    /^on/i.test(attribute.name) || /^\\s*javascript:/i.test(attribute.value)
  )).map(element => element.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("kind", ["gallery", "verify", "explore", "notebook"])
def test_nothing_runs_whatever_the_texts_are(browser, pages, kind):
    tab = Tab(browser, getattr(pages, kind).as_uri())
    if kind == "explore":
        tab.rests()
    assert tab.page.evaluate("window.ran") is None
    found = tab.page.evaluate(ACTIVE)
    own = 3 if kind == "explore" else 0
    assert len(found) == own, found
    assert {url.split(":")[0] for url in tab.requests} <= {"file", "blob", "data"}
    assert tab.complaints == []
    assert "<script>window.ran=1</script>" in tab.page.locator("body").inner_text()
    tab.context.close()


@pytest.mark.parametrize("kind", ["gallery", "verify"])
def test_a_page_to_read_forbids_scripts_and_has_its_pictures_inside(browser, pages, kind):
    tab = Tab(browser, getattr(pages, kind).as_uri())
    policy = tab.page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    tab.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'ran = 1'}))"
    )
    assert tab.page.evaluate("window.ran") is None
    widths = tab.page.evaluate("[...document.images].map(i => [i.src.slice(0, 5), i.naturalWidth])")
    assert len(widths) == {"gallery": 2, "verify": 0}[kind]
    assert all(scheme == "data:" and width > 300 for scheme, width in widths)
    tab.context.close()
