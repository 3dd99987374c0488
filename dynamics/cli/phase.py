"""``attdyn phase STORE``: a sweep as a picture, a table, or a power law.

A quantity over two axes is drawn as a heat map, or as lines with ``--slices``; a quantity over one
axis is drawn as lines. The flag ``--fit`` fits a power law; ``--refine`` runs further points near
the boundary of a yes-or-no quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.cli.files import PICTURES, print_result, table_path, writable, write_files
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.phase_diagrams import Slice
    from dynamics.sweep import Sweep

Picture = tuple[Callable[[], Any], dict[str, Any]]
"""Function that draws and returns axes; document whose entry ``text`` has the lines to print."""
ERRORS = ("test_error", "error", "risk")
"""Candidates for the default quantity; the first that the sweep has is used."""


LATTICE = ("cells", "coarse", "tolerance", "workers", "scheduler")
"""Flags that apply only to a refined boundary."""
READ = {
    "plane": ("at",),
    "fit": ("quantity", "at"),
    "refine": ("quantity", "at", "x", "y", *LATTICE),
    "slices": ("quantity", "at", "x", "y", "facet"),
    "": ("quantity", "at", "x", "y", "facet", "contours", "boundary"),
}
"""Flag that selects a picture -> flags permitted with it; ``""`` stands for a heat map."""


def add_flags(parser: Parser) -> None:
    """Add the command's flags."""
    words = {
        "quantity": "a variable of the store (time_T1), or a yes or no: 'patch_association>=1', "
        "'time_T1<1e4', 'reached(T1)' (default: the error)",
        "x": "axis across (default: the longest)",
        "y": "axis upwards (default: the next longest)",
        "facet": "axis of the panels",
        "at": "values at which other axes are held: C=4,p=3",
        "contours": "events whose times are drawn as lines: T0,T1",
        "boundary": "a yes or no whose boundary is drawn",
        "fit": "fit the quantity by a power law in these: 'D,q*(D-C),C'",
        "plane": "phase plane of two scalars (gamma,rho) at the point --at",
    }
    parser.add_flags(words, group="what")
    parser.add_switches({"slices": "lines along x, one for each y"}, group="what")
    refined = "refined boundaries"
    parser.add_switches({"refine": "run more points where a yes or no changes"}, group=refined)
    numbers = {
        "cells": "cells along each axis of the picture (default 64)",
        "coarse": "points along each axis at first (default 9)",
        "tolerance": "then bisect to this share of each axis",
        "workers": "number of processes (default: one for each core)",
    }
    parser.add_flags(numbers, value, "N", group=refined)
    parser.add_flags({"scheduler": "address of a dask scheduler"}, metavar="ADDR", group=refined)
    files = {
        "out": "picture: .png, .svg or .pdf",
        "csv": "also the points, with --at those there, as a table",
        "netcdf": "also all points as NetCDF",
    }
    parser.add_flags(files, metavar="FILE")
    parser.add_switches({"force": "overwrite the files of --csv and --netcdf"})


def execute(request: CommandRequest) -> int:
    """Draw a picture of a sweep, write and print the results, and return the exit code."""
    from dynamics.phase_diagrams.selection import hold
    from dynamics.sweep import load
    from dynamics.sweep.result import EXPORTS

    store, options = request.path, request.flags
    _refuse_unread(options)
    picture = writable(options.get("out", f"results/phase-{Path(store).stem}.png"), PICTURES)
    endings = {"csv": (".csv",), "netcdf": (".nc", ".netcdf")}
    named = {name: table_path(options, name, endings[name]) for name in endings}
    tables = {name: path for name, path in named.items() if path is not None}
    result = load(store)
    if "plane" in options:
        draw, document = _draw_plane(result, options)
    elif "fit" in options:
        draw, document = _draw_fit(result, options)
    elif options.get("refine"):
        draw, document = _draw_boundary(result, store, options)
    else:
        draw, document = _draw_slice(result, options)
    text = document.pop("text")
    positions, _ = hold(result.dataset, _held(options))
    points = result.dataset.isel({name: [k] for name, k in positions.items()})
    exported = {"csv": replace(result, dataset=points), "netcdf": result}
    exports = {path: partial(EXPORTS[name], exported[name]) for name, path in tables.items()}
    files, code = write_files(picture, draw, exports)
    lines = [*text, *(f"written  {name}" for name in files)]
    print_result(options, document | {"files": files}, "\n".join(lines))
    return code


def _refuse_unread(options: Mapping[str, Any]) -> None:
    """Refuse flags that do not apply to the requested kind of picture."""
    kind = next(kind for kind in READ if options.get(kind) or not kind)
    known = {name for names in READ.values() for name in names} | READ.keys()
    unread = sorted(known - {"", kind, *READ[kind]})
    if name := next((name for name in unread if options.get(name) not in (None, False)), ""):
        own = f"{name} and {kind} exclude each other"
        raise InvalidRequest(own if kind else f"{name} needs --refine")


def _held(options: Mapping[str, Any]) -> dict[str, float]:
    """Parse ``C=4,p=3`` of the flag ``at`` to a mapping."""
    held: dict[str, float] = {}
    for part in str(options.get("at", "")).split(",") if options.get("at") else []:
        name, equals, text = part.partition("=")
        number = value(text.strip())
        if not equals or isinstance(number, str):
            raise InvalidRequest(f"at={part!r} is not NAME=NUMBER; at can be like C=4,p=3")
        held[name.strip()] = number
    return held


def _axes(sweep: Sweep, options: Mapping[str, Any], held: Mapping[str, float]) -> dict[str, Any]:
    """Names of the axes ``x``, ``y`` and ``facet``; by default the longest axes not in ``--at``."""
    sizes = dict(zip(sweep.plan.grid.dims, sweep.plan.grid.shape, strict=True))
    named = [options[name] for name in ("x", "y", "facet") if name in options]
    free = [n for n in sizes if sizes[n] > 1 and n not in held and n not in named and n != "seed"]
    free.sort(key=lambda name: -sizes[name])
    if not sizes or not (free or named):
        raise InvalidRequest("no axis is left: each has a single point or a value in --at")
    axes = {name: options.get(name) for name in ("x", "y", "facet")}
    for name in axes:
        if axes[name] is None and free:
            axes[name] = free.pop(0)
    return axes


def _quantity(sweep: Sweep, options: Mapping[str, Any]) -> str:
    if "quantity" in options:
        return str(options["quantity"])
    for name in ERRORS:
        if name in sweep.dataset:
            return name
    from dynamics.phase_diagrams.quantities import variables

    names = ", ".join(variables(sweep.dataset))
    raise InvalidRequest(f"quantity is needed; this store has {names}")


def _draw_slice(sweep: Sweep, options: Mapping[str, Any]) -> Picture:
    """Heat map or lines of a quantity, as requested."""
    from dynamics import plotting
    from dynamics.phase_diagrams import boundary, select

    held, quantity = _held(options), _quantity(sweep, options)
    where = {**_axes(sweep, options, held), "at": held}
    result = select(sweep.dataset, quantity, **where)
    document = _slice_document(sweep, result)
    if options.get("slices") or result.y is None:
        for name in ("contours", "boundary"):
            if name in options:
                raise InvalidRequest(f"{name} needs a heat map, which has two axes")
        return partial(plotting.slices, result), document
    events = [name.strip() for name in str(options.get("contours", "")).split(",") if name.strip()]
    lines = [select(sweep.dataset, f"time_{name}", **where) for name in events]
    question = None
    if "boundary" in options:
        question = select(sweep.dataset, str(options["boundary"]), **where)
        document["boundary"] = [line.tolist() for line in boundary(question)]
    return partial(plotting.phase, result, lines, question), document


def _draw_boundary(sweep: Sweep, store: str, options: Mapping[str, Any]) -> Picture:
    """Boundary of a yes-or-no quantity, refined by further runs."""
    from dynamics import plotting
    from dynamics.phase_diagrams import Quantity
    from dynamics.phase_diagrams.boundary_refinement import Question, refinement
    from dynamics.plotting import labels

    held, quantity = _held(options), _quantity(sweep, options)
    axes = _axes(sweep, options, held)
    if axes["y"] is None:
        raise InvalidRequest("refine needs two axes with several points")
    lattice = {name: options[name] for name in ("coarse", "cells", "tolerance") if name in options}
    question = Question(quantity, axes["x"], axes["y"], held, **lattice)
    folder = Path(str(store).rstrip("/") + ".refined")
    result = refinement(sweep, question, folder, options.get("workers"), options.get("scheduler"))
    notation = sweep.presentation.notation
    name = labels.quantity(notation, Quantity.read(quantity, sweep.dataset))
    fine = result.refined
    lines = "1 line" if len(fine.lines) == 1 else f"{len(fine.lines)} lines"
    # On a logarithmic axis the tolerance is relative.
    within = [
        f"{100 * width:.2g} % of {axis.name}" if axis.logarithmic else f"{width:.3g} in {axis.name}"
        for axis, width in zip((fine.x, fine.y), fine.tolerance, strict=True)
    ]
    line = f"boundary: {lines}, within {' and '.join(within)}"
    text = [
        f"{quantity}: {result.runs} runs and {result.stored} points of the sweep give "
        f"{fine.values.size} lattice points ({len(fine.x.values)} x {len(fine.y.values)})",
        line if fine.lines else "boundary: none found on this lattice",
    ]
    if fine.missed:
        many = "1 point" if fine.missed == 1 else f"{fine.missed} points"
        text.append(
            f"{many} of the sweep, in regions too small for this lattice, differ from the cells; "
            "try more --cells"
        )
    document = {
        "quantity": quantity,
        "runs": result.runs,
        "known": result.stored,
        "lattice": {question.x: fine.x.values, question.y: fine.y.values},
        "values": fine.values,
        "boundary": [line.tolist() for line in fine.lines],
        "tolerance": {question.x: fine.tolerance[0], question.y: fine.tolerance[1]},
        "missed": fine.missed,
        "held": dict(result.held),
        "text": text,
    }
    return partial(plotting.refined, fine, name, notation, result.held), document


def _draw_fit(sweep: Sweep, options: Mapping[str, Any]) -> Picture:
    """Power law fitted to a quantity."""
    from dynamics import plotting
    from dynamics.phase_diagrams import scaling

    law = scaling(sweep.dataset, _quantity(sweep, options), _split(options["fit"]), _held(options))
    left = ", ".join(f"{number} {why}" for why, number in law.left_out.items())
    text = [str(law), f"{law.used} runs used" + (f"; left out: {left}" if left else "")]
    text[1:1] = [line for line in (law.remark, law.logarithmic_text) if line]
    powers = []
    for row in zip(law.factors, law.exponents, law.errors, law.intervals, strict=True):
        factor, power, _, (low, high) = row
        powers.append(dict(zip(("factor", "exponent", "error", "interval"), row, strict=True)))
        text.append(f"  {factor:<12} {power:.4f}  (95 %: {low:.4f} to {high:.4f})")
    document = {
        "quantity": law.quantity.text, "prefactor": law.prefactor, "powers": powers,
        "r2": law.r2, "remark": law.remark, "spread": law.spread, "used": law.used,
        "left_out": dict(law.left_out), "text": text,
        "logarithmic": law.logarithmic
        and dict(zip(("a", "b", "r2"), law.logarithmic, strict=True)),
    }  # fmt: skip
    return partial(plotting.scaling, law), document


def _draw_plane(sweep: Sweep, options: Mapping[str, Any]) -> Picture:
    """Phase plane of one point of the sweep."""
    from dynamics import plotting
    from dynamics.analysis.phase_portrait import portrait, sentence, summary
    from dynamics.phase_diagrams.selection import hold

    grid, runner = sweep.plan.grid, sweep.plan.runner
    if grid.paired or "full" in runner.words:
        raise InvalidRequest("plane needs a sweep of reduced problems, without --paired")
    positions, _ = hold(sweep.dataset, _held(options))
    sizes = dict(zip(grid.dims, grid.shape, strict=True))
    free = [name for name in grid.dims if name not in positions and sizes[name] > 1]
    if free:
        raise InvalidRequest(f"plane needs one point of the sweep; give {', '.join(free)} in --at")
    point = grid.at([positions.get(name, 0) for name in grid.dims])
    if reason := runner.invalid_reason(point):
        raise InvalidRequest(reason)
    parameters, run = runner.parts(point)
    time = run.get("time") or run["eta"] * run["steps"]
    names = tuple(name.strip() for name in str(options["plane"]).split(","))
    result = portrait(runner.problem(point), time, names)  # type: ignore[arg-type]
    document = {"parameters": parameters, "time": time, **summary(result)}
    return partial(plotting.portrait, result), document | {"text": [sentence(result)]}


def _split(text: Any) -> list[str]:
    """Split a text at the commas outside parentheses."""
    parts, depth = [""], 0
    for letter in str(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _slice_document(sweep: Sweep, result: Slice) -> dict[str, Any]:
    """JSON-ready values of a slice, with lines of text."""
    axes = {a.name: a.values for a in (result.facet, result.y, result.x) if a is not None}
    numbers = result.values[~np.isnan(result.values)]
    extent = f"{numbers.min():.4g} to {numbers.max():.4g}" if numbers.size else "nowhere"
    held = ", ".join(f"{name}={number}" for name, number in result.held.items())
    outcomes = ", ".join(f"{number} {kind}" for kind, number in sweep.outcomes.items())
    return {
        "quantity": result.quantity.text,
        "axes": axes,
        "values": result.values,
        "held": dict(result.held),
        "outcomes": sweep.outcomes,
        "text": [
            f"{result.quantity.text} over {', '.join(reversed(list(axes)))}: {extent}, "
            f"{numbers.size} of {result.values.size} points",
            f"  held     {held}",
            f"  sweep    {outcomes}",
        ],
    }
