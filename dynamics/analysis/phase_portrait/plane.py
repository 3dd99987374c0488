"""Phase portraits: the flow of a reduced problem in the plane of two of its scalars.

Arrows, nullclines and fixed points are those of a vector field on the plane: minus the gradient by
the two scalars, with all further scalars eliminated (`elimination`). Runs of the whole problem
are projected to the plane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from dynamics.analysis.phase_portrait.basins import Basin, basins, ends_of
from dynamics.analysis.phase_portrait.elimination import (
    RUN,
    SLOW,
    Elimination,
    PlaneFunction,
    SlavedScalar,
    along_run,
    eliminations,
    is_fast,
)
from dynamics.analysis.phase_portrait.nullclines import Nullcline, nullcline
from dynamics.analysis.phase_portrait.plane_field import CountedGradient, PlaneField
from dynamics.analysis.phase_portrait.roots import (
    CONTINUUM,
    WIDTH,
    Box,
    FixedPoint,
    GradientField,
    fixed_points,
    scalar_names,
)
from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Problem
from dynamics.results.trajectory import Trajectory
from dynamics.training.flow import flow
from dynamics.training.progress import interruption
from dynamics.validation import integer, refuse
from theory.summary import summarized

MARGINS = (0.10, 0.14)
"""Margins of the rectangle below and above the main run's values, relative to the values' range."""
RECORDS = 150
"""Number of records of each run other than the main run."""
LATE = 100.0
"""Horizon of the flows that determine basins, divided by the horizon of the runs."""
ARROWS = 24
BUDGET = 40
"""Maximum number of nodes in the grid of a nullcline, divided by ``grid`` squared."""
Window = tuple[tuple[float, float] | None, tuple[float, float] | None]
LOOKS, RESTS = 8, 1e-12
"""The plane is at rest if its rates are below `RESTS` times the largest rate of any scalar along
the main run. About `LOOKS` states of the main run give the largest rate."""
GOLDEN = 1.32471795724474602596
"""The plastic number; its powers give points that fill a square evenly."""


@summarized
@dataclass(frozen=True)
class SlowManifold:
    """Lines of the plane on which a fast scalar has rate zero."""

    name: str
    """Name of the fast scalar."""
    attracting: tuple[FloatArray, ...]
    """Lines that attract the fast scalar, each of shape (points, 2)."""
    repelling: tuple[FloatArray, ...]
    """Lines that repel the fast scalar, each of shape (points, 2)."""


@summarized
@dataclass(frozen=True)
class Portrait:
    """Phase portrait in the plane of two scalars.

    Attributes
    ----------
    system, view, parameters, presentation
        Identity, parameters and symbols of the reduced problem.
    plane : (str, str)
        Names of the scalars along x and y.
    box : two pairs of float
        Sides of the rectangle along x and y.
    eliminated : mapping
        Name of every further scalar -> `Elimination`.
    x, y : float array, shape (points,)
        Coordinates of the arrows of the field.
    rates : float array, shape (2, points, points)
        Rates of both scalars, indexed by scalar, y and x, or NaN if unknown.
    nullclines : mapping
        Name of each scalar -> `Nullcline` of its rate.
    fixed_points : tuple of FixedPoint
    slow : SlowManifold or None
        Slow manifold of a fast scalar of the plane, or None if neither scalar is fast.
    runs : tuple of Trajectory
        Runs of the whole problem, the main run first.
    basins : tuple of Basin
        Basins of attraction, empty if not requested.
    gradients : int
        Number of gradient evaluations outside the runs.
    """

    system: str
    view: str
    parameters: Mapping[str, Any]
    plane: tuple[str, str]
    box: Box
    eliminated: Mapping[str, Elimination]
    x: FloatArray
    y: FloatArray
    rates: FloatArray
    nullclines: Mapping[str, Nullcline]
    fixed_points: tuple[FixedPoint, ...]
    slow: SlowManifold | None
    runs: tuple[Trajectory, ...]
    basins: tuple[Basin, ...]
    gradients: int
    presentation: Presentation

    def overview(self) -> dict[str, Any]:
        """Entries of the portrait's text form: plane, fixed points, nullclines and runs."""
        (left, right), (low, high) = self.box
        x, y = self.plane
        kinds = Counter(point.kind for point in self.fixed_points)
        return {
            "system": f"{self.system}, {self.view}",
            "parameters": self.parameters,
            "plane": f"{x} from {left:.4g} to {right:.4g}, {y} from {low:.4g} to {high:.4g}",
            "eliminated": {name: how.kind for name, how in self.eliminated.items()},
            "fixed points": [f"{number} {kind}" for kind, number in kinds.items()] or "none",
            "nullclines": {n: f"{len(c.branches)} branches" for n, c in self.nullclines.items()},
            "runs": f"{len(self.runs)} to time {self.runs[0].time[-1]:.6g}",
            "basins": [f"{basin.starts} starts" for basin in self.basins],
        }


def portrait(
    problem: Problem,
    time: float,
    plane: tuple[str, str] | None = None,
    box: Window | None = None,
    starts: int = 4,
    grid: int = 32,
    basin_starts: int = 0,
) -> Portrait:
    """Phase portrait of a reduced problem in the plane of two of its scalars.

    Parameters
    ----------
    problem : Problem
        A problem whose state consists of at least two scalars.
    time : float
        Horizon of the runs, in units of eta * steps.
    plane : (str, str), optional
        Names of the scalars along x and y; default: the last two scalars.
    box : two pairs of float, optional
        Sides of the rectangle; a side that is None (default) encloses the main run.
    starts : int
        Number of further runs, with starts spread over the rectangle.
    grid : int
        Cells along each side at the first resolution; 20 to 160 times grid^2 gradients are needed.
    basin_starts : int
        Number of starts along each side (at least 4) from which basins are computed, by flows to
        `LATE` times the horizon; 0 computes no basins.

    Raises
    ------
    InvalidRequest
        If an argument is invalid.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> result = portrait(problem, time=100.0, starts=0, grid=4)
    >>> result.plane, result.eliminated["alpha"].kind, len(result.runs)
    (('gamma', 'rho'), 'run', 1)
    """
    names = scalar_names(problem)
    axes = _plane(names, names[-2:] if plane is None else plane)
    grid = integer("grid", grid, at_least=4, at_most=512)
    count = basin_starts and integer("basin_starts", basin_starts, at_least=4, at_most=512)
    shares = _spread(starts)
    with interruption() as interrupted:
        main = flow(problem, time)
        counted = CountedGradient(problem, interrupted)
        left, right = (_side(main, *each) for each in zip(axes, box or (None, None), strict=True))
        rectangle = left, right
        eliminated = eliminations(counted, main, axes)
        field, contents = _contents(counted, main, axes, rectangle, eliminated, grid)
        low, high = np.array(rectangle).T
        states = [field.state(u, v) for u, v in (low + shares * (high - low)).tolist()]
        valid = [state for state in states if np.isfinite(state).all()]
        runs = [flow(problem, time, initial=state, record=RECORDS) for state in valid]
        shown = names.index(axes[0]), names.index(axes[1])
        ends = ends_of(problem, field.state, LATE * time, interrupted)
        divided = basins(ends, rectangle, shown, count) if count else ()
        if interrupted.is_set():
            raise KeyboardInterrupt
    return Portrait(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        plane=axes,
        box=rectangle,
        eliminated=eliminated,
        **contents,
        runs=(main, *runs),
        basins=divided,
        gradients=counted.count,
        presentation=Presentation.of(problem),
    )


def _contents(
    problem: CountedGradient,
    main: Trajectory,
    plane: tuple[str, str],
    box: Box,
    eliminated: Mapping[str, Elimination],
    grid: int,
) -> tuple[PlaneField, dict[str, Any]]:
    """Field, nullclines, fixed points and slow manifold of a portrait, by attribute name."""
    functions = _functions(problem, main, plane, box, eliminated, grid)
    field = PlaneField(problem, plane, functions)
    middles = (np.arange(min(grid, ARROWS)) + 0.5) / min(grid, ARROWS)
    x, y = (low + (high - low) * middles for low, high in box)
    rates = field.grid(x, y)
    _moves(problem, main, plane, eliminated, rates)
    lines = {
        name: nullcline(partial(field.rate, k), *box, grid=grid, budget=BUDGET * grid**2)
        for k, name in enumerate(plane)
    }
    fixed = fixed_points(field, box, *(lines[name].branches for name in plane))
    slow = _slow_in_plane(problem, field, main, plane, box, lines)
    names = ("x", "y", "rates", "nullclines", "fixed_points", "slow")
    return field, dict(zip(names, (x, y, rates, lines, fixed, slow), strict=True))


def _moves(
    problem: CountedGradient,
    main: Trajectory,
    plane: tuple[str, str],
    eliminated: Mapping[str, Elimination],
    rates: FloatArray,
) -> None:
    """Refuse a plane whose scalars rest, since conservation laws tie them to eliminated ones."""
    some = main.states[:: max(1, len(main.states) // LOOKS)]
    along = max(float(np.abs(problem.gradient(state)).max()) for state in some)
    if eliminated and np.nanmax(np.abs(rates), initial=0.0) < RESTS * along:
        rest = ", ".join(eliminated)
        words = f"is at rest wherever {rest} is at rest: conservation laws tie them"
        refuse("plane", plane, words, f"two of {', '.join(main.layout.scalars)}", "")


def _plane(names: tuple[str, ...], plane: object) -> tuple[str, str]:
    if len(names) < 2:
        refuse("plane", names, "has one scalar only", "two scalars of a state", "none")
    pair = tuple(plane) if isinstance(plane, (tuple, list)) else (plane,)
    if len(pair) != 2 or len({*pair} & {*names}) != 2:
        refuse(
            "plane", plane, "is not a plane of the state", f"two of {', '.join(names)}", names[-2:]
        )
    return pair[0], pair[1]


def _side(run: Trajectory, name: str, side: tuple[float, float] | None) -> tuple[float, float]:
    """A side of the rectangle: the requested side, or the range of the main run with margins."""
    if side is not None:
        low, high = side
        if not -np.inf < low < high < np.inf:
            refuse("box", side, "is empty", "two pairs of ascending numbers", (0.0, 1.0))
        return float(low), float(high)
    low, high = float(run[name].min()), float(run[name].max())
    extent = (high - low) or max(abs(low), 1.0)
    return low - MARGINS[0] * extent, high + MARGINS[1] * extent


def _spread(starts: int) -> FloatArray:
    """Coordinates of `starts` points that fill the unit square evenly."""
    numbers = np.arange(1, integer("starts", starts, 0, 100) + 1)[:, None]
    return 0.06 + 0.88 * (numbers / np.array([GOLDEN, GOLDEN**2]) % 1)


def _functions(
    problem: GradientField,
    run: Trajectory,
    plane: tuple[str, str],
    box: Box,
    eliminated: Mapping[str, Elimination],
    grid: int,
) -> dict[str, PlaneFunction]:
    """Value of every eliminated scalar as a function of the plane, by the name of the scalar."""
    functions: dict[str, PlaneFunction] = {}
    for name, how in sorted(eliminated.items(), key=lambda item: item[1].kind == SLOW):
        if how.kind == RUN:
            functions[name] = along_run(run, name, plane, how)
        else:
            slaved = SlavedScalar(problem, name, plane, box, dict(functions), run, grid)
            functions[name] = slaved
    return functions


def _slow_in_plane(
    problem: GradientField,
    field: PlaneField,
    run: Trajectory,
    plane: tuple[str, str],
    box: Box,
    lines: Mapping[str, Nullcline],
) -> SlowManifold | None:
    """Nullcline of a fast coordinate, cut where attracting and repelling parts meet."""
    for k, name in enumerate(plane):
        if not is_fast(problem, run, name):
            continue
        step = WIDTH * np.ptp(box[k]) * np.eye(2)[k]
        parts: dict[bool, list[FloatArray]] = {True: [], False: []}
        for branch in lines[name].branches:
            falls = np.array([field(*(at + step))[k] < field(*(at - step))[k] for at in branch])
            for piece in np.split(np.arange(len(branch)), np.flatnonzero(np.diff(falls)) + 1):
                parts[bool(falls[piece[0]])].append(branch[piece])
        return SlowManifold(name, tuple(parts[True]), tuple(parts[False]))
    return None


def summary(result: Portrait) -> dict[str, Any]:
    """JSON-ready values of a portrait."""
    return {
        "box": [list(side) for side in result.box],
        "hidden": {name: how.kind for name, how in result.eliminated.items()},
        "nullclines": {
            name: {
                "branches": [branch.tolist() for branch in line.branches],
                "settled": line.converged,
                "unresolved": line.unresolved,
            }
            for name, line in result.nullclines.items()
        },
        "fixed_points": [
            {
                "place": point.position.tolist(),
                "kind": point.kind,
                "eigenvalues": [[value.real, value.imag] for value in point.eigenvalues],
            }
            for point in result.fixed_points
        ],
        "basins": [
            {"starts": basin.starts, "separatrices": [line.tolist() for line in basin.separatrices]}
            for basin in result.basins
        ],
        "gradients": result.gradients,
    }


def sentence(result: Portrait) -> str:
    """Describe a portrait in one sentence by its counts and values."""
    counts = ", ".join(
        f"{len(line.branches)} of d{name}/dt = 0"
        + ("" if line.converged else " (two resolutions differ)")
        for name, line in result.nullclines.items()
    )
    fixed = ", ".join(
        f"a {point.kind} {'through' if point.kind == CONTINUUM else 'at'} "
        f"({point.position[0]:.4g}, {point.position[1]:.4g})"
        for point in result.fixed_points
    )
    return (
        f"({', '.join(result.plane)}): nullcline branches: {counts}; fixed points of the plane: "
        f"{fixed or 'none'}; {result.gradients:,} gradients beside the runs."
    )
