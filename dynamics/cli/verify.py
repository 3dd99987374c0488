"""``attdyn verify``: every claim of the paper with a measured verdict, and a picture of it."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, report
from dynamics.training.progress import interruption
from dynamics.validation import integer

if TYPE_CHECKING:
    from dynamics.cli.command_request import Asked
    from dynamics.experiments.verify import Verdict
    from dynamics.registry import System

WIDTH = 110
CLAIM = 30
"""Columns of the name of a claim."""


def flags(parser: arguments.Parser, command: str, system: System) -> None:
    """Flags beside the parameters."""
    parser.add_argument(
        "--claims", metavar="LIST", help="sources, separated by commas (default all)"
    )
    parser.add_argument("--thorough", action="store_true", help="more sizes and seeds")
    parser.add_argument("--seed", type=arguments.value, metavar="X", help="default 0")
    parser.add_argument("--out", metavar="DIR", help="result (default results/verify-SYSTEM)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(asked: Asked) -> int:
    """Check, print every verdict as it comes, write evidence; returns the exit code."""
    from dynamics.experiments.verify import sources, verdicts
    from dynamics.results import storage

    given = asked.flags
    out = Path(str(given.get("out", f"results/verify-{asked.system.name}")))
    storage.check_writable(out)
    seed = integer("seed", given.get("seed", 0), at_least=0)
    chosen = sources(asked.system, None)
    if "claims" in given:
        words = separated(str(given["claims"]), chosen)
        chosen = sources(asked.system, words or [str(given["claims"])])
    parameters = asked.parameters() if asked.names_parameters else None
    checked = verdicts(asked.system, parameters, chosen, given.get("thorough", False), seed)
    quiet = given.get("json", False)
    if not quiet:
        print(f"{asked.system.title}\n\n{heading()}", flush=True)
    done, stopped = _collect(checked, quiet)
    if stopped:
        told = f"interrupted after {len(done)} claims" + ("" if done else ", nothing is written")
        print(f"attdyn: {told}", file=sys.stderr)
    if done:
        summary = _write(asked, out, done, stopped)
        print(summary if quiet else f"\nevidence {out}")
    return 130 if stopped else 0


def separated(text: str, known: list[str]) -> list[str]:
    """The names in a list with commas, some of which may belong to a name.

    Parameters
    ----------
    text : str
    known : list of str
        Names that there are, in any case of their letters.

    Returns
    -------
    list of str
        From left to right the longest known names; what is not known, up to the next comma.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    names, found = {name.lower() for name in known}, []
    while parts:
        whole = [n for n in range(len(parts), 1, -1) if ", ".join(parts[:n]).lower() in names]
        count = whole[0] if whole else 1
        found.append(", ".join(parts[:count]))
        parts = parts[count:]
    return found


def _collect(checked: Iterator[Verdict], quiet: bool) -> tuple[list[Verdict], bool]:
    """The verdicts, printed as they come, and whether an interruption cut them short.

    What a check makes of a run that was cut short, an error included, is not a verdict.
    """
    done: list[Verdict] = []
    with interruption() as interrupted:
        while True:
            try:
                verdict = next(checked, None)
            except Exception:
                if interrupted.is_set():
                    return done, True
                raise
            if verdict is None or interrupted.is_set():
                return done, verdict is not None
            done.append(verdict)
            if not quiet:
                print(row(verdict), flush=True)


def _write(asked: Asked, out: Path, done: list[Verdict], stopped: bool) -> str:
    """Write pictures and summary, whole or not at all; returns the summary."""
    from dynamics import plotting
    from dynamics.results import storage

    files: list[str] = []
    document = {
        "system": asked.system.name, "claims": [v.document() for v in done],
        "interrupted": stopped, "files": files,
    }  # fmt: skip
    with storage.replacing(out) as folder:
        for verdict in done:
            axes = plotting.evidence(verdict)
            if axes is not None:
                name = re.sub(r"\W+", "_", verdict.claim.source.lower()) + ".png"
                files.append(plotting.write(axes, folder / name).name)
        summary = json.dumps(report.finite(document), indent=2, allow_nan=False)
        (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    return summary


def heading() -> str:
    """Names of the columns."""
    return f"{'claim':<{CLAIM}}{'verdict':<28}{'measured':>12}{'bound':>12}  quantity"


def row(verdict: Verdict) -> str:
    """A verdict as a line, with its reason under it."""
    document: dict[str, Any] = verdict.document()
    first = (
        f"{verdict.claim.source:<{CLAIM}}{document['verdict']:<28}{verdict.measured:>12.4g}"
        f"{verdict.bound:>12.4g}  {verdict.evidence['quantity']}"
    )
    indent = " " * CLAIM
    reason = textwrap.fill(
        str(verdict.evidence["reason"]), WIDTH, initial_indent=indent, subsequent_indent=indent
    )
    return f"{first}\n{reason}"
