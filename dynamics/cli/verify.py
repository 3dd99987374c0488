"""``attdyn verify``: every claim of the paper with a measured verdict, and a picture of it."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.cli.report import json_text
from dynamics.training.progress import interruption
from dynamics.validation import integer

if TYPE_CHECKING:
    from dynamics.experiments.verify import Verdict
    from dynamics.registry import System

WIDTH = 110
CLAIM = 30
"""Columns of the name of a claim."""


def flags(parser: Parser, command: str, system: System) -> None:
    """Add the flags beside the parameters.

    Parameters
    ----------
    parser : Parser
    command : str
    system : System
    """
    claims = {"claims": "sources, separated by commas (default all)"}
    parser.add_flags(claims, metavar="LIST")
    parser.add_switches({"thorough": "more sizes and seeds"})
    parser.add_flags({"seed": "default 0"}, value)
    parser.add_flags({"out": "result (default results/verify-SYSTEM)"}, metavar="DIR")


def execute(request: CommandRequest) -> int:
    """Check, print every verdict as it comes, write evidence; returns the exit code."""
    from dynamics.experiments.verify import sources, verdicts
    from dynamics.results import storage

    given, system = request.flags, request.system
    out = Path(str(given.get("out", f"results/verify-{system.name}")))
    storage.check_writable(out)
    seed = integer("seed", given.get("seed", 0), at_least=0)
    claims = sources(system, None)
    if "claims" in given:
        words = separated(str(given["claims"]), claims)
        claims = sources(system, words or [str(given["claims"])])
    parameters = request.parameters() if request.given_parameters else None
    checked = verdicts(system, parameters, claims, given.get("thorough", False), seed)
    quiet = given.get("json", False)
    if not quiet:
        columns = f"{'claim':<{CLAIM}}{'verdict':<28}{'measured':>12}{'bound':>12}  quantity"
        print(f"{system.title}\n\n{columns}", flush=True)
    done, interrupted = _collect(checked, quiet)
    if interrupted:
        written = "" if done else ", nothing is written"
        print(f"attdyn: interrupted after {len(done)} claims{written}", file=sys.stderr)
    if done:
        summary = _write(request, out, done, interrupted)
        print(summary if quiet else f"\nevidence {out}")
    return 130 if interrupted else 0


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
    folded, names = {name.lower() for name in known}, []
    while parts:
        whole = [n for n in range(len(parts), 1, -1) if ", ".join(parts[:n]).lower() in folded]
        count = whole[0] if whole else 1
        names.append(", ".join(parts[:count]))
        parts = parts[count:]
    return names


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
                print(_row(verdict), flush=True)


def _write(request: CommandRequest, out: Path, done: list[Verdict], interrupted: bool) -> str:
    """Write pictures and summary, whole or not at all; returns the summary."""
    from dynamics import plotting
    from dynamics.results import storage

    files: list[str] = []
    with storage.replacing(out) as folder:
        for verdict in done:
            axes = plotting.evidence(verdict)
            if axes is not None:
                name = re.sub(r"\W+", "_", verdict.claim.source.lower()) + ".png"
                files.append(plotting.write(axes, folder / name).name)
        summary = json_text({
            "system": request.system.name, "claims": [v.document() for v in done],
            "interrupted": interrupted, "files": files,
        })  # fmt: skip
        (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    return summary


def _row(verdict: Verdict) -> str:
    """A verdict as a line, with its reason under it."""
    document: dict[str, Any] = verdict.document()
    first = (
        f"{verdict.claim.source:<{CLAIM}}{document['verdict']:<28}{verdict.measured:>12.4g}"
        f"{verdict.bound:>12.4g}  {verdict.evidence['quantity']}"
    )
    reason = textwrap.wrap(str(verdict.evidence["reason"]), WIDTH - CLAIM)
    return "\n".join([first, *(f"{'':{CLAIM}}{line}" for line in reason)])
