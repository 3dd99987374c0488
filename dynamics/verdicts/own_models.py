"""Figures of any model: classes of entries, phase plane, transverse curvature, stability limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np

from dynamics import plotting
from dynamics.analysis.phase_portrait import portrait
from dynamics.analysis.phase_portrait.roots import CONTINUUM
from dynamics.analysis.transverse_growth import transverse_growth
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.training.stability_limit import limits_along
from dynamics.validation import InvalidRequest, real, refuse
from dynamics.verdicts.figure import Drawing, Figure, FigureRequest, with_flags
from theory.closure import DECLARED

GRID, BASINS = 24, 24
"""Number of cells (first) and of starts (second) along each side of a phase plane."""
ROUNDING = 1e-12
"""A least curvature above minus this times max(1, largest curvature) counts as zero."""


def classes(system: System, request: FigureRequest) -> Drawing:
    """Draw each trained array with its entries coloured by class."""
    request.options({})
    parameters = request.make_parameters(system)
    closure = system.closure(parameters)
    document = closure.document()
    if not document["labels"]:
        why = "are too many to be drawn one by one"
        if closure.grade == DECLARED:
            why = "are those of a declaration, which does not say which of them are equal"
        raise InvalidRequest(f"{closure.entries} entries {why}")
    caption = f"{system.title}: {closure.summary()}."
    axes = plotting.entry_classes(document, asdict(parameters))
    return Drawing(axes, {"labels": document["labels"]}, caption)


@with_flags(
    {},
    plane="scalars along x and y, as w,e (default the first two)",
    x="window along x, as -3:3; with one of x and y the basins are drawn",
    y="window along y",
    basins="starts along each side whose ends divide the window into basins (0 for none)",
)
def plane(system: System, request: FigureRequest) -> Drawing:
    """Phase plane of two scalars.

    The option ``plane`` names the two scalars, ``x`` and ``y`` are the window, and ``basins`` is
    the number of starts along each side. Further options are ``time``, ``starts`` and ``grid``.
    """
    run = system.default_runs["run"]
    problem = system.ReducedPopulation(request.make_parameters(system))
    names = problem.state_names
    if len(names) < 2:
        raise InvalidRequest(f"{system.name} closes on one scalar, {names[0]}: there is no plane")
    given = {n: str(v) if n in ("x", "y") else v for n, v in request.user_options.items()}
    divided = BASINS if {"x", "y"} & given.keys() else 0
    quick = {"plane": names[:2], "x": "", "y": "", "basins": divided,
             "time": run.eta * run.steps, "starts": 4, "grid": GRID}  # fmt: skip
    request = replace(request, user_options=given)
    options = request.options(quick, {"grid": 2 * GRID}, starts=0, basins=0)
    axes, time = tuple(options["plane"]), real("time", options["time"], above=0.0)
    window = _window("x", options["x"]), _window("y", options["y"])
    sizes = {"starts": options["starts"], "grid": options["grid"]}
    result = portrait(problem, time, axes, window, **sizes, basin_starts=options["basins"])
    points = [
        {"place": point.position, "eigenvalues": point.eigenvalues, "kind": point.kind}
        for point in result.fixed_points
    ]
    single = sum(point.kind != CONTINUUM for point in result.fixed_points)
    words = "1 isolated fixed point" if single == 1 else f"{single} isolated fixed points"
    if single < len(points):
        words += ", and a curve or a region of them"
    if result.basins:
        count = len(result.basins)
        words += f"; {count} basin{'s' * (count > 1)} of the starts of a grid"
    caption = f"{system.title}: phase plane of {axes[0]} and {axes[1]}, {words}."
    divides = [line for basin in result.basins for line in basin.separatrices]
    data = {"fixed_points": points, "separatrices": divides}
    return Drawing(plotting.portrait(result), data, caption)


def _window(name: str, text: str) -> tuple[float, float] | None:
    """Window parsed from text such as ``-3:3``, or None if the text is empty."""
    try:
        low, high = map(float, text.split(":")) if text else (0.0, 1.0)
    except ValueError:
        low, high = 0.0, 0.0
    if not low < high:
        refuse(name, text, "is not a window", "two ascending numbers with a colon", "-3:3")
    return (low, high) if text else None


def transverse(system: System, request: FigureRequest) -> Drawing:
    """Least curvature along a run, in directions in which entries of a class become unequal.

    Options are ``eta``, ``steps`` and ``records`` (number of states).
    """
    default = system.default_runs["run"]
    quick = {"eta": default.eta, "steps": default.steps, "records": 64}
    options = request.options(quick, {"records": 256})
    parameters = request.make_parameters(system)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    if reduced.closure.scalars == reduced.closure.entries:
        raise InvalidRequest(
            f"{system.name} closes on all of its entries: nothing lies across the closed space"
        )
    run = descend(reduced, options["eta"], options["steps"])
    growth = transverse_growth(reduced, full, run, options["records"])
    worst = float(growth.least.min())
    conclusion = (
        f"the least is {worst:.3g}, and a deviation grows by at most "
        f"{growth.amplification[-1]:.3g} ({growth.halved:.3g} from half as many states)"
        if worst < -ROUNDING * max(1.0, float(np.abs(growth.least).max()))
        else f"none is negative (least {worst:.3g}): the closed space attracts or holds"
    )
    caption = (
        f"{system.title}: least curvature across the closed space along one run; {conclusion}."
    )
    data = {name: np.asarray(values) for name, values in vars(growth).items()}
    return Drawing(plotting.transverse_growth(growth, run), data, caption)


def stability(system: System, request: FigureRequest) -> Drawing:
    """Stability limit of the learning rate along a run; options ``eta``, ``steps``."""
    default = system.default_runs["run"]
    options = request.options({"eta": default.eta, "steps": default.steps})
    problem = system.ReducedPopulation(request.make_parameters(system))
    eta = real("eta", options["eta"], above=0.0)
    run = descend(problem, eta, options["steps"])
    calm = flow(problem, eta * options["steps"])
    limits = limits_along(problem, calm)
    least = float(np.nanmin(np.where(limits > 0, limits, np.inf)))
    caption = (
        f"{system.title}: stability limit 2 / largest curvature along the flow; least {least:.4g}."
    )
    axes = plotting.stability(run, calm, limits, problem.state_names[0])
    return Drawing(axes, {"time": calm.time, "limit": limits}, caption)


FIGURES: Mapping[str, Figure] = {
    "classes": classes,
    "plane": plane,
    "transverse": transverse,
    "stability": stability,
}
