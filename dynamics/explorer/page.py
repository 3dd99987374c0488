"""HTML page of an explorer: one file with style, scripts and model inlined.

The scripts are plain JavaScript in ``assets/page``, in the order of `SCRIPTS` and in one scope. The
worker's script is inlined as text, because a page opened from a file may not load other files. A
content security policy forbids loading and sending data.
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
"""Names of the scripts, each after the scripts that it uses."""


def page(description: Mapping[str, Any], worker: str) -> str:
    """HTML of the page of a model, from JSON-ready texts and the script of the worker.

    The description has the keys ``name``, ``title``, ``source``, ``summary``, ``version``,
    ``command``, ``constants``, ``presets``, ``states``, ``observables``, ``events``, ``panels``,
    ``matrices``, ``plane``, ``derivation`` and ``run``; symbols are MathML and the derivation is
    HTML, both escaped. The worker answers the requests ``check``, ``flow``, ``descent``, ``plane``
    and ``matrix``. Raises ValueError if a number of the description is infinite or NaN.
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
    """JSON of a value, escaped so that it cannot end an HTML element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
