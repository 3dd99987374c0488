"""The HTML page of an explorer: one file with its style, its scripts and the model inlined.

The scripts are plain JavaScript in ``assets/page``, one topic a file; `SCRIPTS` is their order.
They share one scope of the page and need no build step. The script of the worker is inlined as
text and started from there, because a page opened from a file may load no other file. The page
carries a content security policy that forbids it to load or send anything.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any
from xml.etree import ElementTree

from dynamics.explorer.printing import asset

SCRIPTS = (
    "numbers",
    "letters",
    "palette",
    "surfaces",
    "scales",
    "charts",
    "contours",
    "phase_plane",
    "matrices",
    "requests",
    "exports",
    "controls",
    "figures",
    "event_table",
    "address",
    "training",
    "results",
    "page",
)
"""Names of the scripts, each after those that it uses as it is read."""
FORBIDDEN = ("script", "style", "iframe", "object", "embed", "form", "img", "link", "svg")
"""Elements that a derivation may not have: it is text with formulas and tables."""


def page(description: Mapping[str, Any], worker: str) -> str:
    """The page of a model.

    Parameters
    ----------
    description : mapping
        What the page says of the model: ``name``, ``title``, ``source``, ``summary``, ``version``,
        ``command``, ``constants``, ``states``, ``observables``, ``events``, ``panels``,
        ``matrices``, ``plane``, ``derivation`` and ``run``, all of them plain values. ``mathml`` of
        the letters is MathML, the derivation is HTML with formulas.
    worker : str
        The script of the worker, which answers the requests ``check``, ``flow``, ``descent``,
        ``plane`` and ``matrix``.

    Returns
    -------
    str
        A whole HTML document.

    Raises
    ------
    ValueError
        If a formula is no MathML, the derivation has elements that do more than be read, or a
        number of the description is infinite or not a number, which JSON has no word for.
    """
    for key in ("constants", "states", "observables", "events"):
        for formula in filter(None, (entry["mathml"] for entry in description[key])):
            for tag in _tags(formula, "a formula of the page is no MathML"):
                if not tag.startswith("m") and tag not in ("semantics", "annotation"):
                    raise ValueError(f"a formula of the page has <{tag}>, which is not in MathML")
    text = f"<div>{description['derivation']}</div>"
    for tag in _tags(text, "the derivation of the page is not well formed"):
        if tag in FORBIDDEN:
            raise ValueError(f"the derivation of the page has <{tag}>, which is no text")
    texts = {key: html.escape(str(description[key])) for key in ("title", "source", "summary")}
    scripts = "\n".join(asset(f"page/{name}.js") for name in SCRIPTS)
    return Template(asset("page/page.html")).substitute(
        texts,
        version=html.escape(str(description["version"])),
        style=asset("page/page.css"),
        description=_inlined(dict(description)),
        worker=_inlined(worker),
        scripts=scripts.replace("</script", "<\\/script"),
    )


def _inlined(value: Any) -> str:
    """A value as JSON that ends no element of HTML and begins no comment, whatever it says."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _tags(text: str, fault: str) -> Iterator[str]:
    """Names of all elements; refuses text that is not well formed, and attributes that act."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"{fault} ({error}): {text[:60]}") from None
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        yield tag
        if any(name.lower().startswith(("on", "href", "src")) for name in element.attrib):
            raise ValueError(f"the page would have a <{tag}> that does more than be read")
