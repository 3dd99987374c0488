"""``attdyn status STORE``: how far a sweep is, what came of its points, and what is damaged."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from dynamics.cli import arguments


def flags(parser: arguments.Parser) -> None:
    """Flags beside the store."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(store: str, given: dict[str, Any]) -> int:
    """Look and print; returns the exit code, 1 where something is damaged."""
    from dynamics.sweep import status

    found = status(store)
    if given.get("json"):
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        axes = ", ".join(f"{n} ({len(v)})" for n, v in found["request"]["axes"].items())
        print(f"{found['system']}: {found['points']} points" + (f" over {axes}" if axes else ""))
        print(f"  blocks   {found['done']} of {found['blocks']} done")
        for kind, number in found["outcomes"].items():
            print(f"{number:7d}  {kind}")
        for why, number in Counter(found["damaged"].values()).items():
            print(f"damaged  {number} blocks: {why}; the same attdyn sweep runs them again")
    return 1 if found["damaged"] else 0
