"""The HTML page of an explorer: one file with its style, its scripts and the model inlined.

The scripts are plain JavaScript in ``assets/page``, one topic a file; `SCRIPTS` is their order.
They share one scope of the page and need no build step. The script of the worker is inlined as
text and started from there, because a page opened from a file may load no other file. The page
carries a content security policy that forbids it to load or send anything.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from string import Template
from typing import Any

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


def page(description: Mapping[str, Any], worker: str) -> str:
    """The page of a model.

    `description`: what the page says of the model: ``name``, ``title``, ``source``, ``summary``,
    ``version``, ``command``, ``constants``, ``presets``, ``states``, ``observables``, ``events``,
    ``panels``, ``matrices``, ``plane``, ``derivation`` and ``run``, all of them plain values.
    ``mathml`` of the letters is MathML, the derivation is HTML with formulas; both are escaped
    already; `worker`: the script of the worker, which answers the requests ``check``, ``flow``,
    ``descent``, ``plane`` and ``matrix``. Returns str: a whole HTML document. Raises ValueError if
    a number of the description is infinite or not a number, which JSON has no word for.
    """
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
