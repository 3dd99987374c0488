"""``attdyn phase STORE``: a sweep as a picture, a table, or a law.

One quantity over two axes is a heat map, over one (or with ``--slices``) lines; ``--fit`` is a
power law; ``--refine`` runs more points where the answer to a yes or no changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.cli import arguments
from dynamics.cli.files import PICTURES, writable, write_whole
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.phase_diagrams import Slice
    from dynamics.phase_diagrams.boundaries import Refinement
    from dynamics.sweep import Sweep

USUAL = ("test_error", "error", "risk")
"""Drawn when nothing is asked for: the first of these that there is."""


def flags(parser: arguments.Parser) -> None:
    """Flags beside the store."""
    what = parser.add_argument_group("what")
    word: dict[str, Any] = {"metavar": "X"}
    what.add_argument(
        "--quantity", **word,
        help="a variable of the store (time_T1), or a yes or no: 'patch_association>=1', "
        "'time_T1<1e4', 'reached(T1)' (default: the error)",
    )  # fmt: skip
    what.add_argument("--x", **word, help="axis across (default: the longest)")
    what.add_argument("--y", **word, help="axis upwards (default: the next longest)")
    what.add_argument("--facet", **word, help="axis of the panels")
    what.add_argument("--at", **word, help="axes that are held: C=4,p=3")
    what.add_argument("--contours", **word, help="events whose times are drawn as lines: T0,T1")
    what.add_argument("--boundary", **word, help="a yes or no whose boundary is drawn")
    what.add_argument("--slices", action="store_true", help="lines along x, one for each y")
    what.add_argument("--fit", **word, help="fit a power law in these: 'D,q*(D-C),C'")
    what.add_argument(
        "--plane", **word, help="phase plane of two scalars (gamma,rho) at the point --at"
    )
    fine = parser.add_argument_group("refined boundaries")
    number: dict[str, Any] = {"type": arguments.value, "metavar": "N"}
    fine.add_argument(
        "--refine", action="store_true", help="run more points where a yes or no changes"
    )
    fine.add_argument("--cells", **number, help="cells along each axis of the picture (default 64)")
    fine.add_argument("--coarse", **number, help="points along each axis at first (default 9)")
    fine.add_argument("--tolerance", **number, help="then bisect to this share of each axis")
    fine.add_argument("--workers", **number, help="processes (default: one for each core)")
    fine.add_argument("--scheduler", metavar="ADDR", help="dask scheduler")
    parser.add_argument("--out", metavar="FILE", help="picture: .png, .svg or .pdf")
    parser.add_argument("--csv", metavar="FILE", help="also all points as a table")
    parser.add_argument("--netcdf", metavar="FILE", help="also all as NetCDF")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(store: str, given: dict[str, Any]) -> int:
    """Draw, write, print; returns the exit code."""
    from dynamics import plotting
    from dynamics.sweep import load

    picture = writable(given.get("out", f"results/phase-{Path(store).stem}.png"), PICTURES)
    tables = {
        name: writable(given[name], endings)
        for name, endings in (("csv", (".csv",)), ("netcdf", (".nc", ".netcdf")))
        if name in given
    }
    found = load(store)
    if "plane" in given:
        axes, document = _plane(found, given)
    elif "fit" in given:
        axes, document = _fit(found, given)
    elif given.get("refine"):
        axes, document = _refined(found, store, given)
    else:
        axes, document = _drawn(found, given)
    written = [write_whole(picture, lambda path: plotting.write(axes, path))]
    for name, path in tables.items():
        from dynamics.sweep.result import EXPORTS

        written.append(write_whole(path, lambda to, kind=name: EXPORTS[kind](found, to)))
    document["files"] = [str(path) for path in written]
    if given.get("json"):
        print(json.dumps(_plain(document), indent=2, allow_nan=False))
    else:
        print("\n".join(document["text"]))
        for path in written:
            print(f"written  {path}")
    return 0


def _held(given: Mapping[str, Any]) -> dict[str, float]:
    """``C=4,p=3`` as a mapping."""
    held: dict[str, float] = {}
    for part in str(given.get("at", "")).split(",") if given.get("at") else []:
        name, equals, text = part.partition("=")
        number = arguments.value(text.strip())
        if not equals or isinstance(number, str):
            raise InvalidRequest(f"at={part!r} is not NAME=NUMBER; at can be like C=4,p=3")
        held[name.strip()] = number
    return held


def _axes(found: Sweep, given: Mapping[str, Any], held: Mapping[str, float]) -> dict[str, Any]:
    """Axes as asked; for those that are not, the longest that are left."""
    sizes = dict(zip(found.plan.grid.dims, found.plan.grid.shape, strict=True))
    named = [given[name] for name in ("x", "y", "facet") if name in given]
    free = [n for n in sizes if sizes[n] > 1 and n not in held and n not in named and n != "seed"]
    free.sort(key=lambda name: -sizes[name])
    if not sizes or not (free or named):
        raise InvalidRequest("this sweep has no axis of two points or more that is not held")
    chosen = {name: given.get(name) for name in ("x", "y", "facet")}
    for name in chosen:
        if chosen[name] is None and free:
            chosen[name] = free.pop(0)
    return chosen


def _quantity(found: Sweep, given: Mapping[str, Any]) -> str:
    if "quantity" in given:
        return str(given["quantity"])
    there = [name for name in USUAL if name in found.dataset]
    if not there:
        names = ", ".join(str(name) for name in found.dataset.data_vars)
        raise InvalidRequest(f"quantity is needed; this store has {names}")
    return there[0]


def _drawn(found: Sweep, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A heat map, or lines."""
    from dynamics import plotting
    from dynamics.phase_diagrams import boundary, select

    held, asked = _held(given), _quantity(found, given)
    chosen = _axes(found, given, held)
    where = {"x": chosen["x"], "y": chosen["y"], "at": held, "facet": chosen["facet"]}
    result = select(found.dataset, asked, **where)
    document = _described(found, result)
    if given.get("slices") or result.y is None:
        for name in ("contours", "boundary"):
            if name in given:
                raise InvalidRequest(f"{name} is of a picture over two axes, not of slices")
        return plotting.slices(result), document
    events = [name.strip() for name in str(given.get("contours", "")).split(",") if name.strip()]
    lines = [select(found.dataset, f"time_{name}", **where) for name in events]
    question = None
    if "boundary" in given:
        question = select(found.dataset, str(given["boundary"]), **where)
        document["boundary"] = [line.tolist() for line in boundary(question)]
    return plotting.phase(result, lines, question), document


def _refined(found: Sweep, store: str, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A yes or no from few runs."""
    from dynamics import plotting
    from dynamics.phase_diagrams import Quantity
    from dynamics.phase_diagrams.boundaries import Question, refinement
    from dynamics.plotting import words

    for name in ("facet", "contours", "slices", "boundary"):
        if name in given:
            raise InvalidRequest(f"{name} and refine exclude each other")
    held, asked = _held(given), _quantity(found, given)
    chosen = _axes(found, given, held)
    if chosen["y"] is None:
        raise InvalidRequest("refine needs two axes")
    lattice = {name: given[name] for name in ("coarse", "cells", "tolerance") if name in given}
    question = Question(asked, chosen["x"], chosen["y"], held, **lattice)
    place = Path(str(store).rstrip("/") + ".refined")
    made = refinement(found, question, place, given.get("workers"), given.get("scheduler"))
    notation = found.presentation.notation
    name = words.quantity(notation, Quantity.read(asked, found.dataset))
    axes = plotting.refined(made.refined, name, notation, made.held)
    return axes, _refined_document(made, question)


def _refined_document(made: Refinement, question: Any) -> dict[str, Any]:
    fine = made.refined
    total = fine.values.size
    text = [
        f"{question.quantity}: {made.runs} runs and {made.known} points of the sweep stand for "
        f"{total} ({len(fine.x.values)} x {len(fine.y.values)})",
        f"boundary: {len(fine.lines)} lines, within {fine.tolerance[0]:.3g} in {question.x} and "
        f"{fine.tolerance[1]:.3g} in {question.y}",
    ]
    return {
        "quantity": question.quantity,
        "runs": made.runs,
        "known": made.known,
        "lattice": {question.x: fine.x.values, question.y: fine.y.values},
        "values": fine.values,
        "boundary": [line.tolist() for line in fine.lines],
        "tolerance": {question.x: fine.tolerance[0], question.y: fine.tolerance[1]},
        "held": dict(made.held),
        "text": text,
    }


def _fit(found: Sweep, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A power law."""
    from dynamics import plotting
    from dynamics.phase_diagrams import scaling

    law = scaling(found.dataset, _quantity(found, given), _split(given["fit"]), _held(given))
    left = ", ".join(f"{number} {why}" for why, number in law.left_out.items())
    text = [str(law), f"{law.used} runs used" + (f"; left out: {left}" if left else "")]
    rows = zip(law.factors, law.exponents, law.errors, law.intervals, strict=True)
    powers = [
        {"factor": factor, "exponent": power, "error": error, "interval": interval}
        for factor, power, error, interval in rows
    ]
    for row in powers:
        low, high = row["interval"]
        text.append(f"  {row['factor']:<12} {row['exponent']:.4f}  (95 %: {low:.4f} to {high:.4f})")
    document = {
        "quantity": law.quantity.text, "prefactor": law.prefactor, "powers": powers,
        "r2": law.r2, "spread": law.spread, "used": law.used, "left_out": dict(law.left_out),
        "text": text,
    }  # fmt: skip
    return plotting.scaling(law), document


def _plane(found: Sweep, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The phase plane of one point of the sweep."""
    from dynamics import plotting
    from dynamics.analysis.phase_portrait import portrait, sentence, summary
    from dynamics.phase_diagrams.selection import hold

    grid, runner = found.plan.grid, found.plan.runner
    if grid.paired or "full" in runner.words:
        raise InvalidRequest("a phase plane is of a point of a grid of reduced problems")
    places, _ = hold(found.dataset, _held(given))
    sizes = dict(zip(grid.dims, grid.shape, strict=True))
    free = [name for name in grid.dims if name not in places and sizes[name] > 1]
    if free:
        raise InvalidRequest(f"a phase plane is of one point; give {', '.join(free)} in --at")
    point = grid.at([places.get(name, 0) for name in grid.dims])
    parameters, options = runner.parts(point)
    system = runner.system
    why = runner.invalid_reason(point)
    if why:
        raise InvalidRequest(why)
    problem = system.problem(system.Parameters(**parameters), None, options)
    time = options.get("time") or options["eta"] * options["steps"]
    names = tuple(name.strip() for name in str(given["plane"]).split(","))
    made = portrait(problem, time, names)  # type: ignore[arg-type]
    document = {"parameters": parameters, "time": time, **summary(made)}
    return plotting.portrait(made), document | {"text": [sentence(made)]}


def _split(text: Any) -> list[str]:
    """Parts between commas that are not inside parentheses."""
    parts, depth = [""], 0
    for letter in str(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _described(found: Sweep, result: Slice) -> dict[str, Any]:
    """A slice as plain values, and in words."""
    axes = {a.name: a.values for a in (result.facet, result.y, result.x) if a is not None}
    there = result.values[~np.isnan(result.values)]
    extent = f"{there.min():.4g} to {there.max():.4g}" if there.size else "nowhere"
    held = ", ".join(f"{name}={value}" for name, value in result.held.items())
    outcomes = ", ".join(f"{number} {kind}" for kind, number in found.outcomes.items())
    text = [
        f"{result.quantity.text} over {', '.join(reversed(list(axes)))}: {extent}, "
        f"{there.size} of {result.values.size} points",
        f"  held     {held}",
        f"  sweep    {outcomes}",
    ]
    return {
        "quantity": result.quantity.text,
        "axes": axes,
        "values": result.values,
        "held": dict(result.held),
        "outcomes": found.outcomes,
        "text": text,
    }


def _plain(value: Any) -> Any:
    """Arrays as lists, NaN as null."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items() if name != "text"}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
