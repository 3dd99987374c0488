"""Points of a page: choices of integer and text constants, each with programs and data."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dynamics.explorer.driver import rules
from dynamics.explorer.own_programs import Lists, Matrix, lists_of, matrices_of, source_of
from dynamics.explorer.own_sliders import words_of
from dynamics.explorer.page_model import scalars, shell_key
from dynamics.explorer.tables import Tables
from dynamics.models.engine.limits import Limit, parse_limits
from dynamics.models.engine.problem import MOST_NAMED, ModelProblem
from dynamics.models.engine.readings import ROLES, Readings, holds, readings
from dynamics.system import System
from dynamics.validation import InvalidRequest
from theory.model import Model
from theory.program import NoProgram

MOST_TRIED = 12
"""Maximum number of choices of the constants, besides the initial one, with a derived model."""
MOST_TERMS = 150_000
"""Maximum number of tried choices of the constants, times the number of terms of a gradient."""
ENOUGH = 2
"""A constant is no longer varied if `ENOUGH` tried values of the constant give no point."""
BYTES = 110_000
"""Maximum number of bytes of the encoded programs and data of a page."""
REACH = 4
"""Maximum distance of an integer constant from its initial value, in either direction."""
MOST_SAMPLES = 4_000
"""Maximum number of samples of a law at a point, or the number at the initial sliders if larger."""
NUMBERS_OF_DRAWS = 12_000
"""Maximum number of values in all samples together of a law that can only be sampled."""
LEAST_DRAWS = 100
MOVES = (0.83, 1.09)
"""Real constants are multiplied by these factors to compare the classes of equal entries."""
SMALL = 0.1
"""A real constant of value 0 is replaced by this number when the classes are compared."""
GRID = (0.75, 1.25, 0.5, 1.5)
"""The slider of a real constant in `Center.held` has the initial value times these factors."""


@dataclass(frozen=True)
class Point:
    """Programs and data of a page at one choice of the integer and text constants."""

    at: Mapping[str, Any]
    """Value of each constant whose slider is a choice of values, by the name of the constant."""
    lists: Lists
    readings: Readings
    law: bool
    """Whether the risk is a sum over samples, rather than a formula in the model file."""
    matrices: Mapping[str, Matrix] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    """Values of the constants that only event rules use, by the name of the constant."""


@dataclass(frozen=True)
class Center:
    """The problem around which a page is made, at the initial positions of the sliders."""

    system: System
    parameters: Any
    problem: ModelProblem
    """Reduced problem at real constants that give the most classes of equal entries."""
    held: tuple[str, ...]
    """Real constants whose slider is a choice of values, because symbolic evaluation in them does
    not reproduce the model."""
    draws: tuple[int, int]
    """Size and seed of the samples for a law that can only be sampled, else (0, 0)."""
    roles: tuple[str, ...]
    """Names of the model's functions that are evaluated symbolically."""
    read: Readings
    """Arrays of the problem as functions of the real constants."""
    still: frozenset[str] = frozenset()
    """Constants without a slider."""
    derived: Callable[[Any], Mapping[str, float]] = lambda parameters: {}
    """Function that maps parameters to the field `constants` of a point."""

    @property
    def model(self) -> Model:
        """The model of the problem, with its functions."""
        return self.problem.realization.model

    @property
    def command(self) -> str:
        """Command that writes the page."""
        return f"attdyn explore {shell_key(self.system)}"

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Limits of the model's constants."""
        return parse_limits(self.model.limits or (), self.model.constants)

    @property
    def remark(self) -> str:
        """Remark on a law that is sampled, or "" for any other law."""
        count, seed = self.draws
        text = f"the law is represented by {count} draws (--samples {count} --seed {seed})"
        return text if count else ""

    @cached_property
    def observable_names(self) -> tuple[str, ...]:
        """Names of the risk and of the model's observables."""
        return ("risk", *self.problem.realization.observable_names)

    def matrices(self) -> Iterator[Mapping[str, Any]]:
        """JSON-ready descriptions of the trained arrays."""
        names = self.problem.closure.names
        for name, each in matrices_of(self.problem, self.read).items():
            shape, slices = each.shape, len(each.shape) > 2
            sizes = f", {' x '.join(map(str, shape))}" if np.prod(shape) > 1 else ""
            yield {
                "name": name,
                "title": f"{name}, its first slice" if slices else name,
                "meaning": f"trained entries of {name}{sizes}",
                "classes": [
                    {"label": f"{'-' if sign < 0 else ''}{names[k]}", "value": names[k]}
                    for k, sign in each.classes
                ],
            }


def center_of(system: System, parameters: Any, still: Sequence[str] = (), **more: Any) -> Center:
    """Make the center of a page at the initial positions of the sliders.

    Constants that are None or Boolean, or named in `still`, have no slider; `more` are further
    fields of `Center`. Raises InvalidRequest if the model has more scalars than a page shows.
    """
    draws = _draws(system, parameters)
    problem = reduced_problem(system, parameters, draws)
    if not scalars(problem):
        raise InvalidRequest(
            f"{system.name} closes on {problem.layout.size} scalars; a page can show at most "
            f"{MOST_NAMED}"
        )
    made = problem.realization
    reals = tuple(made.reals)
    roles = _read_roles(system, problem, draws)
    unread = {
        name for role in ROLES if role not in roles for name in made.model.arguments.get(role, ())
    }  # fmt: skip
    held = tuple(name for name in reals if name in unread)
    free = [name for name in reals if name not in held]
    others = _elsewhere(system, parameters, free, draws)
    finest = max([problem, *others], key=lambda p: (p.closure.scalars, p.closure.sample_classes))
    if not all(_alike(each, finest) for each in others) or not _refines(finest, problem):
        finest, held = problem, reals
    read = readings(finest, draws, roles)
    if finest is not problem and not holds(read, others):
        finest, held, roles, read = problem, reals, (), readings(problem, draws, ())
    fixed = {
        name for name, value in dataclasses.asdict(parameters).items()
        if name in still or value is None or isinstance(value, bool)
    }  # fmt: skip
    return Center(system, parameters, finest, held, draws, roles, read, frozenset(fixed), **more)


def _read_roles(system: System, problem: ModelProblem, draws: tuple[int, int]) -> tuple[str, ...]:
    """Functions of the model that symbolic evaluation reproduces, also at other constants."""
    arguments, reals = problem.realization.model.arguments, problem.realization.reals
    read = tuple(role for role in ROLES if role not in readings(problem, draws).unread)

    def right(roles: tuple[str, ...]) -> bool:
        names = {name for role in roles for name in arguments.get(role, ()) if name in reals}
        others = _elsewhere(system, problem.parameters, sorted(names), draws)
        alike = [each for each in others if _key(each) == _key(problem)]
        return holds(readings(problem, draws, roles), [problem, *alike])

    return read if right(read) else tuple(role for role in read if right((role,)))


def _elsewhere(
    system: System, parameters: Any, names: Sequence[str], draws: tuple[int, int]
) -> list[ModelProblem]:
    """The reduced problem at other values of some real constants."""
    now = {name: getattr(parameters, name) for name in names}
    made = []
    for factor in MOVES if names else ():
        for power in (1.0, -1.0, 0.25, -0.25):  # first power of `factor` that the model allows
            changes = {n: x * factor**power if x else SMALL * power for n, x in now.items()}
            try:
                moved = dataclasses.replace(parameters, **changes)
                made.append(reduced_problem(system, moved, draws))
                break
            except InvalidRequest:
                continue
    return made


def _draws(system: System, parameters: Any) -> tuple[int, int]:
    """Size and seed of the samples for a law that can only be sampled, else (0, 0)."""
    if not system.sampling_options:
        return 0, 0
    one = system.ReducedPopulation(parameters, samples=LEAST_DRAWS)
    import jax

    leaves = jax.tree.leaves(one.payload[0].samples)
    numbers = sum(leaf.size for leaf in leaves) // LEAST_DRAWS
    return max(LEAST_DRAWS, NUMBERS_OF_DRAWS // max(1, numbers) // 100 * 100), 0


def reduced_problem(system: System, parameters: Any, draws: tuple[int, int]) -> ModelProblem:
    """The reduced problem at given parameters; for `draws` see `Center`."""
    count, seed = draws
    options = {"samples": count, "seed": seed} if count else {}
    made: Any = system.ReducedPopulation(parameters, **options)
    return made


def _key(problem: ModelProblem) -> tuple[Any, ...]:
    """Hashable key of a problem: its classes of equal entries and its samples."""
    closure = problem.closure
    groups = () if closure.sample_groups is None else closure.sample_groups.labels.tobytes()
    classes = closure.classes
    return classes.labels.tobytes(), classes.signs.tobytes(), groups, problem.coordinates


def _alike(problem: ModelProblem, other: ModelProblem) -> bool:
    """Whether two problems have the same classes of equal entries, samples and closed space."""
    if _key(problem) != _key(other) or problem.coordinates != "linear":
        return _key(problem) == _key(other)
    one, two = problem.embedding.matrix, other.embedding.matrix
    return one.shape == two.shape and np.allclose(one @ (one.T @ two), two, atol=1e-9)


def _refines(finer: ModelProblem, coarser: ModelProblem) -> bool:
    """Whether the classes of equal entries of one problem refine those of another problem."""
    pairs = [(finer.closure.classes.labels, coarser.closure.classes.labels)]
    if finer.closure.sample_groups is not None and coarser.closure.sample_groups is not None:
        pairs.append((finer.closure.sample_groups.labels, coarser.closure.sample_groups.labels))
    return finer.coordinates == coarser.coordinates and all(
        one.shape == other.shape and len(set(zip(one, other, strict=True))) == len(set(one))
        for one, other in pairs
    )


def points_around(center: Center) -> list[Point]:
    """Points of a page: the initial positions of the sliders, then other points, nearest first.

    Raises InvalidRequest if the model has an operation that lists of instructions cannot express.
    """
    points = [_point(center, center.problem)]
    short = bytes_of(points) > BYTES
    if short:
        points = [_without_tangents(points[0])]
    most = min(MOST_TRIED, MOST_TERMS // max(1, points[0].lists.programs[0].index.size))
    reals, tried = center.problem.realization.reals, 0
    fits: dict[str, list[bool]] = {}
    for changes in _nearest(center):
        if tried == most:
            break
        if any(len(fits.get(n, ())) >= ENOUGH and not any(fits[n]) for n in changes):
            continue
        try:
            parameters = dataclasses.replace(center.parameters, **{**reals, **changes})
            if not _affordable(center, dataclasses.asdict(parameters)):
                continue
            problem = reduced_problem(center.system, parameters, center.draws)
        except InvalidRequest:
            continue
        tried += 1
        made = _matched(center, problem)
        if made is not None and short:
            made = _without_tangents(made)
        if made is not None and bytes_of([*points, made]) > BYTES:
            made = None
        if made is not None:
            points.append(made)
        if len(changes) == 1:
            (name,) = changes
            fits.setdefault(name, []).append(made is not None)
    return points


def _without_tangents(point: Point) -> Point:
    """Copy of a point without the list of directional derivatives, which is the longest list."""
    lists = point.lists
    short = dataclasses.replace(lists, programs=lists.programs[:3], by_row=lists.by_row[:3])
    return dataclasses.replace(point, lists=short)


def bytes_of(points: Sequence[Point]) -> int:
    """Bytes of the encoded tables of all points; tables that points share count once."""
    tables = Tables()
    for point in points:
        point.lists.documents(tables)
        read = [*point.readings.inputs, point.readings.start, *point.lists.rows]
        for _, table in itertools.chain(*(each.parts for each in read)):
            tables.number(table)
        for each in point.matrices.values():
            tables.number(each.labels)
            tables.number(each.along)
    return tables.size


def _affordable(center: Center, constants: Mapping[str, Any]) -> bool:
    """Whether a law has at most `MOST_SAMPLES` samples, or no more than at the center."""
    law = center.problem.realization.law
    if law is None:
        return True
    most = max(law.size, MOST_SAMPLES)
    try:
        samples = center.model.call("law", constants=constants)
        return len(list(itertools.islice(iter(samples), most + 1))) <= most
    except Exception:  # the message comes later, when the model is constructed
        return True


def _nearest(center: Center) -> Iterator[dict[str, Any]]:
    """Changes of integer and text constants, the smallest first."""
    moves = _moves(center)
    yield from ({name: value} for _, name, value in moves)
    pairs = [
        (one[0] + two[0], {one[1]: one[2], two[1]: two[2]})
        for one, two in itertools.combinations(moves, 2)
        if one[1] != two[1]
    ]
    yield from (changes for _, changes in sorted(pairs, key=lambda pair: pair[0]))


def _moves(center: Center) -> list[tuple[int, str, Any]]:
    """Distance, constant and value of every change of a single constant, smallest first."""
    moves: list[tuple[int, str, Any]] = []
    for name, value in dataclasses.asdict(center.parameters).items():
        if name in center.still:
            continue
        if isinstance(value, str):
            own = [words_of(limit) for limit in center.limits if name in limit.names]
            words = [word for word in itertools.chain(*own) if word != value]
            moves += [(k + 1, name, word) for k, word in enumerate(words)]
        elif name in center.held:
            moves += [(k + 1, name, value * factor) for k, factor in enumerate(GRID) if value]
        elif isinstance(value, int):
            moves += [(k, name, value + sign * k) for k in range(1, REACH + 1) for sign in (-1, 1)]
    return sorted(moves, key=lambda move: move[0])


def _matched(center: Center, problem: ModelProblem) -> Point | None:
    """Point of another problem, or None if its scalars or events differ from the center's."""

    def reported(each: ModelProblem) -> tuple[Any, ...]:
        entries = map(int, each.closure.classes.first)
        return (
            len(each.scalars),
            each.coordinates,
            [each.realization.entry_position(k)[0] for k in entries],
            each.columns,
            each.realization.observable_names,
            rules(each.events, each.order_names, each.rates),
        )

    if reported(problem) != reported(center.problem):
        return None
    point = _point(center, problem)
    matrices = matrices_of(center.problem, center.read)
    same = all(point.matrices[name].classes == each.classes for name, each in matrices.items())
    return point if same and holds(point.readings, [problem]) else None


def _point(center: Center, problem: ModelProblem) -> Point:
    moving = {*problem.realization.reals}.difference(center.held) | center.still
    at = {name: v for name, v in problem.realization.constants.items() if name not in moving}
    first = problem is center.problem
    read = center.read if first else readings(problem, center.draws, center.roles)
    try:
        lists = lists_of(source_of(problem), read, bool(center.draws[0]))
    except NoProgram as error:
        raise InvalidRequest(f"{center.system.name} has no page because it has {error}") from None
    law = problem.realization.program.has_law
    derived = center.derived(problem.parameters)
    return Point(at, lists, read, law, matrices_of(problem, read), derived)
