"""Write ``docs/statements.md``: all statements of the three papers, with verdict or open reason.

Run as ``python docs/site/statements.py``. Verdicts on the claims come from the cache (`cache`);
statements without a measurement are the ``[[unmeasured]]`` entries of ``claims.toml``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from cache import Item

from dynamics.registry import load_system
from dynamics.verdicts.verdict_report import escaped, prose
from theory import papers

PAPERS = ("positional_attention", "masked_image_modeling", "shallow_vit")
PAGE = Path(__file__).resolve().parents[1] / "statements.md"


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Statements of the papers",
        "Every statement of the three papers that our texts of them hold: with its verdict at the "
        "parameters of `attdyn verify`, or the reason why it has none yet. Literal words and a "
        "reading, where there is one, have a verdict each.",
    ]
    for name in PAPERS:
        measured = _measured(name)
        rows = measured + _unmeasured(name)
        parts += [
            f"## {escaped(load_system(name).title)}",
            f"{len(rows)} statements, {len(measured)} with a verdict (`attdyn verify {name}`).",
            "| where | statement | verdict |\n|---|---|---|\n"
            + "\n".join(f"| {where} | {words} | {verdict} |" for where, words, verdict in rows),
        ]
    return "\n\n".join(parts) + "\n"


def _measured(name: str) -> list[tuple[str, str, str]]:
    verdicts = (Item(name, "verdicts").read() or {}).get("verdicts", {})
    rows = []
    for claim in load_system(name).claims:
        if claim.ours:
            continue
        words = verdicts.get(claim.source, {"verdict": "not measured yet"})
        both = words["verdict"]
        if "literal" in words:
            both += f"; literal words: {words['literal']}"
        rows.append((prose(claim.source), _cell(claim.statement), both))
    return rows


def _unmeasured(name: str) -> list[tuple[str, str, str]]:
    path = Path(papers.__path__[0]) / name / "claims.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        (prose(one["source"]), _cell(one["statement"]), f"none yet: {prose(one['why'])}")
        for one in table.get("unmeasured", ())
    ]


def _cell(text: str) -> str:
    return prose(text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
