"""``attdyn sweep``: a grid of runs, kept block by block; the same command goes on with it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments
from dynamics.registry import EXPECTATION_OPTIONS, SAMPLING_OPTIONS
from dynamics.validation import InvalidRequest, brief

if TYPE_CHECKING:
    from dynamics.cli.command_request import Asked
    from dynamics.registry import System
    from dynamics.sweep import Sweep

ENTRIES = {
    "time": "gradient flow to this time (the default, for as long as attdyn run goes)",
    "rtol": "tolerance of the flow (default 1e-8)",
    "eta": "learning rate of gradient descent, instead of time",
    "steps": "steps of gradient descent",
    "expectation": "of the reduced problem",
    "tolerance": "of the spectral, truncated or auto expectation (default 1e-10)",
    "dropped": "probability that a truncation leaves out for good",
    "full": "population or empirical, instead of the reduced problem",
    "samples": "N of {}",
    "seed": "of {}",
}
TOLD = 5
"""Reasons that are printed; --json has all."""


def flags(parser: arguments.Parser, command: str, system: System) -> None:
    """Flags beside the parameters; every number may be an axis or a formula."""
    assert set(ENTRIES) >= {*EXPECTATION_OPTIONS, *SAMPLING_OPTIONS}
    lists = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, tuple)]
    run = parser.add_argument_group(
        "run",
        "Parameters and numbers below take a number, a grid a:b:n or a:b:n:log, a list with commas,"
        " or a formula of other names."
        + (f" Lists themselves, and one for all points: {', '.join(lists)}." if lists else ""),
    )
    words = {"expectation": f"of the reduced problem: {' or '.join(system.expectations)} (default)"}
    if not system.flows:
        words |= {"time": "no flow here", "rtol": "no flow here"}
        words |= {"eta": "learning rate (default: that of attdyn run)"}
    if system.sampling_options:
        words |= {"samples": "N of every problem", "seed": "of every problem"}
    offered = {
        n: m
        for n, m in ENTRIES.items()
        if n not in EXPECTATION_OPTIONS or n in system.expectation_options
    }
    for name, meaning in {**offered, **words, **system.empirical_options}.items():
        run.add_argument(f"--{name}", metavar="X", help=meaning.replace("{}", system.sampling_hint))
    run.add_argument(
        "--let", action="append", metavar="NAME=X", help="a free letter for formulas: m=2:16:8:log"
    )
    how = parser.add_argument_group("sweep")
    how.add_argument("--paired", action="store_true", help="walk all axes together")
    how.add_argument("--strict", action="store_true", help="refuse points that cannot be run")
    how.add_argument(
        "--trajectory", type=arguments.value, metavar="N", help="keep N records of each run"
    )
    how.add_argument(
        "--workers",
        type=arguments.value,
        metavar="N",
        help="processes (default: one for each core)",
    )
    how.add_argument(
        "--scheduler", metavar="ADDR", help="dask scheduler (default DASK_SCHEDULER_ADDRESS)"
    )
    how.add_argument("--repair", action="store_true", help="not needed: damaged blocks run again")
    parser.add_argument("--out", metavar="STORE", help="zarr store (default results/SYSTEM.zarr)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(asked: Asked) -> int:
    """Sweep and print; returns the exit code."""
    from dynamics.sweep import sweep
    from dynamics.sweep.store import StoreError

    given, out = asked.flags, str(asked.flags.get("out", f"results/{asked.system.name}.zarr"))
    try:
        found = sweep(
            asked.system,
            entries(asked),
            out,
            paired=given.get("paired", False),
            strict=given.get("strict", False),
            trajectory=given.get("trajectory", 0),
            workers=given.get("workers"),
            scheduler=given.get("scheduler"),
        )
    except StoreError as error:
        print(f"attdyn: {error}", file=sys.stderr)
        return 1
    document = summary(found, out)
    if given.get("json"):
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print("\n".join(table(document)))
    if found.interrupted:
        print("attdyn: interrupted; the same command goes on", file=sys.stderr)
    return 130 if found.interrupted else 0


def entries(asked: Asked) -> dict[str, Any]:
    """What a sweep is asked to do, by name."""
    given = asked.flags
    names = [parameter.name for parameter in dataclasses.fields(asked.system.Parameters)]
    known = {*names, *ENTRIES, *asked.system.empirical_options}
    found = {name: entry for name, entry in given.items() if name in known}
    letters = given.get("let", [])
    for text in [letters] if isinstance(letters, str) else letters:
        name, equals, entry = str(text).partition("=")
        if not equals or not name.strip().isidentifier():
            raise InvalidRequest(f"let={text!r} is not NAME=X; let can be like m=2:16:8:log")
        if name.strip() in known:
            raise InvalidRequest(f"let={text!r} names a parameter; give it as --{name.strip()}")
        found[name.strip()] = entry.strip()
    return found


def summary(found: Sweep, out: str) -> dict[str, Any]:
    """The sweep as plain values."""
    grid = found.plan.grid
    reasons: dict[str, list[dict[str, Any]]] = {}
    for index, why in found.reasons.items():
        places = [index[0]] * len(grid.axes) if grid.paired else index
        point = {a.name: a.values[k] for a, k in zip(grid.axes, places, strict=True)}
        reasons.setdefault(why, []).append(point)
    return {
        "store": out,
        "request": found.plan.description,
        "points": grid.size,
        "outcomes": found.outcomes,
        "complete": found.complete,
        "invalid": [{"reason": why, "points": points} for why, points in reasons.items()],
    }


def table(document: Mapping[str, Any]) -> list[str]:
    """The summary as lines of text."""
    request_ = document["request"]
    lines = [f"{request_['system']}: {document['points']} points"]
    for name, values in request_["axes"].items():
        many = len(values) > 8
        shown = f"{values[0]:g} ... {values[-1]:g}" if many else ", ".join(f"{v:g}" for v in values)
        lines.append(f"  {name:<10} {shown}" + (f"  ({len(values)} values)" if many else ""))
    for name, formula in request_["derived"].items():
        lines.append(f"  {name:<10} = {formula}")
    fixed = ", ".join(f"{name}={brief(str(value))}" for name, value in request_["fixed"].items())
    lines += [f"  held fixed {fixed}"] if fixed else []
    lines += [f"{number:7d}  {kind}" for kind, number in document["outcomes"].items()]
    for entry in document["invalid"][:TOLD]:
        points = entry["points"]
        first = ", ".join(f"{name}={value:g}" for name, value in points[0].items())
        more = f" and {len(points) - 1} more" if len(points) > 1 else ""
        lines.append(f"left out: {first}{more}: {entry['reason']}")
    hidden = len(document["invalid"]) - TOLD
    lines += [f"left out for {hidden} more reasons (--json lists them)"] if hidden > 0 else []
    return [*lines, f"store    {document['store']}"]
