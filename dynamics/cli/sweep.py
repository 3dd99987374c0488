"""``attdyn sweep`` and ``attdyn status``: a grid of runs, and the progress of the grid."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.cli.files import print_result
from dynamics.cli.rules import add_rule_flags
from dynamics.system import EXPECTATION_OPTIONS, SAMPLING_OPTIONS
from dynamics.validation import InvalidRequest, brief, path_of
from theory.update_rules import OPTIONS

if TYPE_CHECKING:
    from dynamics.sweep import Sweep

ENTRIES = {
    "time": "gradient flow to this time (the default, for as long as attdyn run goes)",
    "rtol": "tolerance of the flow (default 1e-8)",
    "eta": "learning rate of gradient descent, instead of time",
    "steps": "number of steps of gradient descent",
    "expectation": "how the reduced problem averages over data",
    "tolerance": "accuracy of the spectral or auto expectation (default 1e-10)",
    "full": "population or empirical, instead of the reduced problem",
    "samples": "number N of samples, of {}",
    "seed": "random seed of {}",
}
FEW_REASONS = 5
"""Maximum number of reasons for invalid points in the text output; ``--json`` prints all."""


def add_flags(parser: Parser) -> None:
    """Add the flags except the system's parameters; numerical flags accept axes and formulas."""
    system = parser.system
    if parser.command == "status":
        return
    assert set(ENTRIES) >= {*EXPECTATION_OPTIONS, *SAMPLING_OPTIONS}
    lists = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, tuple)]
    run = parser.group(
        "run",
        "Parameters and numbers below take a number, a grid a:b:n or a:b:n:log, a list with commas,"
        " or a formula of other names."
        + (f" Lists themselves, and one for all points: {', '.join(lists)}." if lists else ""),
    )
    words = {}
    if system.expectations:
        choices = " or ".join(system.expectations)
        words["expectation"] = f"how the reduced problem averages over data: {choices} (default)"
    if not system.flows:
        words |= {"time": "no flow here", "rtol": "no flow here"}
        words |= {"eta": "learning rate (default: that of attdyn run)"}
    if system.sampling_options:
        words |= {"samples": "number of samples of every problem"}
        words |= {"seed": "random seed of every problem"}
    missing = {*EXPECTATION_OPTIONS} - {*system.expectation_options}
    meanings = {name: text for name, text in ENTRIES.items() if name not in missing}
    meanings |= {**words, **system.empirical_options}
    meanings = {name: text.replace("{}", system.sampling_hint) for name, text in meanings.items()}
    parser.add_flags(meanings, group="run")
    add_rule_flags(parser, system.default_runs["run"])
    run.add_argument(
        "--let", action="append", metavar="NAME=X", help="a free letter for formulas: m=2:16:8:log"
    )
    switches = {
        "paired": "walk all axes together: first values, second values, ...",
        "strict": "refuse points that cannot be run",
    }
    parser.add_switches(switches, group="sweep")
    counts = {
        "trajectory": "keep N records of each run",
        "workers": "number of processes (default: one for each core)",
    }
    parser.add_flags(counts, value, "N", group="sweep")
    scheduler = {"scheduler": "address of a dask scheduler (default DASK_SCHEDULER_ADDRESS)"}
    parser.add_flags(scheduler, metavar="ADDR", group="sweep")
    parser.add_flags({"out": "zarr store (default results/SYSTEM.zarr)"}, metavar="STORE")


def execute(request: CommandRequest) -> int:
    """Run the command ``sweep`` or ``status``, and return the exit code."""
    return _status(request) if request.command == "status" else _sweep(request)


def _sweep(request: CommandRequest) -> int:
    """Run a sweep, print a summary of it, and return the exit code."""
    from dynamics.sweep import sweep
    from dynamics.sweep.cluster import SchedulerGone
    from dynamics.sweep.store import StoreError

    options = request.flags
    out = str(request.flags.get("out", f"results/{request.system.name}.zarr"))
    names = ("paired", "strict", "trajectory", "workers", "scheduler")
    place = path_of("out", out)
    made = [folder for folder in (place, *place.parents) if not os.path.exists(folder)]
    try:
        result = sweep(
            request.system, _entries(request), out, **{n: options[n] for n in names if n in options}
        )
    except (StoreError, SchedulerGone) as error:
        print(f"attdyn: {error}", file=sys.stderr)
        return 1
    document = _document(result, out)
    nothing = set(result.outcomes) == {"invalid"}
    if nothing and made:
        document["store"] = None
        shutil.rmtree(made[0], ignore_errors=True)
        with suppress(OSError):  # fails for a folder with files of another process
            for folder in made[1:]:
                folder.rmdir()
    print_result(options, document, _text(document))
    if result.interrupted:
        print("attdyn: interrupted; the same command goes on", file=sys.stderr)
        return 130
    return 2 if nothing else 0


def _entries(request: CommandRequest) -> dict[str, Any]:
    """Name -> value of each entry of the grid, from the flags."""
    system, options = request.system, request.flags
    parameters = [parameter.name for parameter in dataclasses.fields(system.Parameters)]
    allowed = {*parameters, *ENTRIES, *OPTIONS, *system.empirical_options}
    entries = {name: entry for name, entry in options.items() if name in allowed}
    entries |= request.entries
    letters = options.get("let", [])
    for text in [letters] if isinstance(letters, str) else letters:
        name, equals, entry = (part.strip() for part in str(text).partition("="))
        if not equals or not name.isidentifier():
            raise InvalidRequest(f"let={text!r} is not NAME=X; let can be like m=2:16:8:log")
        if name in allowed:
            raise InvalidRequest(f"let={text!r} names a parameter; give it as --{name}")
        entries[name] = entry
    return entries


def _document(result: Sweep, out: str) -> dict[str, Any]:
    """JSON-ready values of the result of a sweep."""
    grid = result.plan.grid
    reasons: dict[str, list[dict[str, Any]]] = {}
    for index, why in result.reasons.items():
        reasons.setdefault(why, []).append(grid.along_axes(index))
    return {
        "store": out,
        "request": result.plan.description,
        "points": grid.size,
        "outcomes": result.outcomes,
        "complete": result.complete,
        "invalid": [{"reason": why, "points": points} for why, points in reasons.items()],
    }


def _text(document: Mapping[str, Any]) -> str:
    """Lines of text from the JSON-ready values of a sweep."""
    request = document["request"]
    lines = [f"{request['system']}: {document['points']} points"]
    for name, values in request["axes"].items():
        many = len(values) > 8
        text = f"{values[0]:g} ... {values[-1]:g}" if many else ", ".join(f"{v:g}" for v in values)
        lines.append(f"  {name:<10} {text}" + (f"  ({len(values)} values)" if many else ""))
    for name, formula in request["derived"].items():
        lines.append(f"  {name:<10} = {formula}")
    fixed = ", ".join(f"{name}={brief(str(entry))}" for name, entry in request["fixed"].items())
    lines += [f"  held fixed {fixed}"] if fixed else []
    lines += [f"{number:7d}  {kind}" for kind, number in document["outcomes"].items()]
    for entry in document["invalid"][:FEW_REASONS]:
        points = entry["points"]
        first = ", ".join(f"{name}={number:g}" for name, number in points[0].items())
        more = f" and {len(points) - 1} more" if len(points) > 1 else ""
        lines.append(f"left out: {first}{more}: {entry['reason']}")
    hidden = len(document["invalid"]) - FEW_REASONS
    lines += [f"left out for {hidden} more reasons (--json lists them)"] if hidden > 0 else []
    return "\n".join([*lines, *([f"store    {document['store']}"] if document["store"] else [])])


def _status(request: CommandRequest) -> int:
    """Print the progress of a sweep; return exit code 1 if blocks are damaged."""
    from dynamics.sweep import status

    state = status(request.path)
    axes = ", ".join(f"{n} ({len(v)})" for n, v in state["request"]["axes"].items())
    lines = [f"{state['system']}: {state['points']} points" + (f" over {axes}" if axes else "")]
    lines.append(f"  blocks   {state['done']} of {state['blocks']} done")
    lines += [f"{number:7d}  {kind}" for kind, number in state["outcomes"].items()]
    for why, number in Counter(state["damaged"].values()).items():
        lines.append(f"damaged  {number} blocks: {why}; the same attdyn sweep runs them again")
    print_result(request.flags, state, "\n".join(lines))
    return 1 if state["damaged"] else 0
