r"""A model at one set of constants: its arrays, its law, and what it closes on.

`Realization.closure` is the algorithm of `theory.closure` as a whole: classes of entries, classes
of samples, and the walk along the reduced run, which goes back to the first stage with every state
at which the full gradient leaves the classes, until none does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.embedding import Embedding, class_embedding
from dynamics.models.engine.functions import WATCHED, functions_of, slope_of
from dynamics.models.engine.program import (
    Data,
    Program,
    device_data,
    program_of,
    split_constants,
)
from dynamics.models.engine.tracing_errors import refusals, require_jax
from dynamics.validation import InvalidRequest
from theory.closure import Closure, EntryClasses, LinearSpace, SampleClasses
from theory.closure.conservation import conservation_laws
from theory.closure.linear import group_numbers, linear_space
from theory.closure.orbits import Generator, generators_of, orbit_classes
from theory.closure.partition import (
    FLOORS,
    ROUNDING,
    SCALES,
    class_tolerances,
    random_state,
    refine_entries,
)
from theory.closure.samples import Signature, split_samples
from theory.model import Law, Model, ModelError, check_name, gathered

FloatArray = NDArray[np.float64]

SEED = 20240
"""Of the points at which closures are looked at."""
SINGLE = 2.0**-23
TWIN = 2.0**-29
"""From the error of a run in single precision, with perturbed data, to that in double precision."""
RECORDS = 60
"""States of the walk at which the whole gradient is taken, at most."""
LEAST_RECORDS = 10
WALK_NUMBERS = 1 << 34
"""Numbers that the steps of the walk may compute."""
LOOK_NUMBERS = 1 << 34
"""Numbers that its looks at the whole law may compute."""
LEFT = 1e-13
"""Part of a class's gradient that counts as leaving, beside the floors."""
SAMPLE_STATES = 6
"""States near the start, and as many of the walk, at which samples are told apart."""
VISITED = 12
"""States of the walk at which the linear space and the laws are held too."""
NEAR = 1e-4
"""Part of a gradient below which a difference that splits a class is named."""
FAR = 1e8
"""Times the start, or 1: a run beyond it diverges, and no gradient there is looked at."""
MOST_ROUNDS = 60


class FullTraining:
    """The full problem as a closure sees it; see `theory.closure.partition.Training`."""

    def __init__(self, made: Realization, data: Data) -> None:
        self.start = made.flat_start
        names = list(made.arrays)
        sizes = [prod(shape) for shape in made.shapes.values()]
        self.arrays = np.repeat(np.arange(len(names)), sizes)
        groups = group_numbers([made.model.groups.get(name, "") for name in names])
        self.groups = np.repeat(groups, sizes)
        self._program, self._data = made.program, data
        self._generator = np.random.default_rng(SEED)

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient at a state, shape (n,)."""
        import jax

        with jax.enable_x64(True):
            return np.asarray(self._program.compiled_gradient(state, self._data))

    def probe(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, and the rounding error of each entry."""
        import jax

        gradient = self.gradient(state)
        data = perturbed(self._data, self._generator)
        noise = 1 + SINGLE * self._generator.standard_normal(state.size)
        with jax.enable_x64(False):
            twin = np.asarray(
                self._program.compiled_gradient((state * noise).astype(np.float32), data)
            )
        return gradient, np.abs(gradient - twin.astype(np.float64)) * TWIN

    def signatures(self, state: FloatArray, direction: FloatArray) -> list[Signature]:
        """Numbers of each sample that equal samples share, with their rounding errors."""
        import jax

        with jax.enable_x64(True):
            rows = np.asarray(self._program.compiled_signatures(state, direction, self._data))
        data = perturbed(self._data, self._generator)
        noise = 1 + SINGLE * self._generator.standard_normal(state.size)
        with jax.enable_x64(False):
            twins = np.asarray(
                self._program.compiled_signatures(
                    (state * noise).astype(np.float32), direction.astype(np.float32), data
                )
            ).astype(np.float64)
        return [(row, np.abs(row - twin) * TWIN) for row, twin in zip(rows, twins, strict=True)]


def perturbed(data: Data, generator: np.random.Generator) -> Data:
    """Data in single precision, each number moved by a rounding error of that."""
    import jax

    def moved(part: Any) -> Any:
        values = np.asarray(part)
        if values.dtype.kind != "f":
            return values.astype(np.int32) if values.dtype.kind in "iu" else values
        noise = 1 + SINGLE * generator.standard_normal(values.shape)
        return (values * noise).astype(np.float32)

    return Data(*jax.tree.map(moved, tuple(data)))


@dataclass(frozen=True)
class Walk:
    """How the reduced run of a closure goes.

    Attributes
    ----------
    eta : tuple of float
        Learning rate of each parameter group; of all where there is one.
    steps : int
    """

    eta: tuple[float, ...]
    steps: int


class Realization:
    """A model at one set of constants.

    Parameters
    ----------
    model : Model
    constants : mapping
        A value for every constant.
    samples, seed : int
        Of the draws, where the law can only be drawn from.

    Raises
    ------
    InvalidRequest
        In one line, for anything that is wrong with the model.
    """

    def __init__(
        self, model: Model, constants: Mapping[str, Any], samples: int = 0, seed: int = 0
    ) -> None:
        require_jax()
        self.model, self.constants = model, dict(constants)
        statics, self.reals = split_constants(constants)
        with refusals():
            self.arrays = model.starting_arrays(constants)
            fixed = model.fixed_arrays(constants)
            twice = set(fixed) & set(self.arrays)
            if twice:
                raise ModelError(f"{min(twice)!r} is trained and fixed")
            self.law = self._law(samples, seed)
        self.shapes = {name: array.shape for name, array in self.arrays.items()}
        self.flat_start = np.concatenate([array.ravel() for array in self.arrays.values()])
        self.program: Program = program_of(model, statics, self.shapes)
        self.data = device_data(self.law, fixed, self.reals)
        self.program.check(self.data)
        self._closures: dict[Walk, Closure] = {}

    def _law(self, samples: int, seed: int) -> Law | None:
        if self.model.risk is not None:
            return None
        if self.model.law is not None:
            return self.model.enumerated_law(self.constants)
        return self.model.drawn_samples(self.constants, samples, seed)

    @property
    def drawn(self) -> bool:
        """Whether the law is known by draws alone."""
        return self.law is not None and self.model.law is None

    @cached_property
    def training(self) -> FullTraining:
        """The full problem as the closure sees it."""
        return FullTraining(self, self.data)

    @cached_property
    def generators(self) -> list[Generator]:
        """The symmetry that the model states; none where it states none."""
        if self.model.symmetry is None:
            return []
        with refusals():
            stated = self.model.call("symmetry", constants=self.constants)
            with self.model.blamed("symmetry"):
                return generators_of(stated, self.model.axes, self.shapes)

    @cached_property
    def seen_names(self) -> tuple[str, ...]:
        """Names of what the model observes."""
        import jax

        with jax.enable_x64(True):
            shapes = jax.eval_shape(self.program.observed, self.flat_start, self.data)
        return tuple(str(name) for name in shapes)

    def entry_name(self, entry: int) -> str:
        """An entry of the flat state by its array and position: ``A[0, 3]``."""
        array, position = self.entry_position(entry)
        return f"{array}[{', '.join(map(str, position))}]" if position else array

    def entry_position(self, entry: int) -> tuple[str, tuple[int, ...]]:
        """Array and position of an entry of the flat state."""
        for name, shape in self.shapes.items():
            count = prod(shape)
            if entry < count:
                return name, tuple(int(k) for k in np.unravel_index(entry, shape)) if shape else ()
            entry -= count
        raise IndexError(entry)

    def entry_number(self, array: str, *position: int) -> int:
        """Position in the flat state of an entry given by array and position.

        Raises
        ------
        InvalidRequest
            If there is no such entry.
        """
        first = 0
        for name, shape in self.shapes.items():
            if name == array:
                fits = len(position) == len(shape) and all(
                    isinstance(k, (int, np.integer)) and -n <= k < n
                    for k, n in zip(position, shape, strict=False)
                )
                if not fits:
                    raise InvalidRequest(
                        f"names: {array} has the shape {shape}, and no entry {position}"
                    )
                inside = tuple(k % n for k, n in zip(position, shape, strict=True))
                return first + int(np.ravel_multi_index(inside, shape)) if shape else first
            first += prod(shape)
        raise InvalidRequest(f"names: there is no trained array {array!r}")

    def closure(self, walk: Walk) -> Closure:
        """What training closes on; computed once for each walk.

        Raises
        ------
        InvalidRequest
            If the gradient is not finite at the start, or a stated symmetry is none.
        """
        if walk not in self._closures:
            with refusals():
                self._closures[walk] = _Closing(self, walk).closure()
        return self._closures[walk]

    def open_closure(self) -> Closure:
        """Every entry a scalar of its own: what a start without symmetry closes on."""
        size = self.program.size
        classes = EntryClasses(np.arange(size), np.ones(size), self.flat_start)
        groups = None if self.law is None else SampleClasses(np.arange(self.law.size))
        return Closure(
            classes, LinearSpace(np.eye(size)), groups, (), scalar_names(self, classes), 0.0, 0.0,
            0, ("nothing moves at the start without noise",), self.shapes,
        )  # fmt: skip

    def first_leaving(self, closure: Closure, states: FloatArray) -> tuple[int, int] | None:
        """The first of some states at which the full gradient leaves the classes, and an entry.

        Parameters
        ----------
        closure : Closure
        states : float array, shape (states, n)
            Of every entry.
        """
        for number, state in enumerate(states):
            if np.abs(state).max() > _far(self):
                return None
            gradient, floor = self.training.probe(state)
            if not np.isfinite(gradient).all():
                return None
            off = np.abs(closure.classes.residual(gradient))
            tolerance = class_tolerances(self.training, closure.classes, gradient, floor)
            if (off > tolerance).any():
                return number, int(np.argmax(off - tolerance))
        return None

    def numbers_of_a_sample(self) -> int:
        """Numbers that the loss of one sample needs, roughly."""
        import jax

        if self.law is None:
            return 64 * self.program.size
        with jax.enable_x64(True):
            return max(1, self.program._numbers(self.data))


class _Closing:
    """One closure under way."""

    def __init__(self, made: Realization, walk: Walk) -> None:
        self.made, self.walk = made, walk
        self.training = made.training
        self.generator = np.random.default_rng(SEED)
        self.signatures: list[Signature] = []
        self.remarks: list[str] = []
        self.visited: list[FloatArray] = []
        self.residual, self.floor, self.size, self.walked = 0.0, 0.0, 0.0, 0

    def closure(self) -> Closure:
        made, training = self.made, self.training
        self._check_start()
        groups: SampleClasses | None = None
        if made.generators or made.drawn:
            classes = self._stated()
        else:
            classes = refine_entries(training, self.generator)
        if made.model.representatives:
            groups = self._sample_classes(classes, [])
        elif not made.drawn:
            classes, groups = self._walked(classes)
        self._name_splits(classes)
        space = linear_space(training, classes, np.random.default_rng(SEED + 1), self.visited)
        if space.remark and classes.count:
            self.remarks.append(f"the linear space was not sought: {space.remark}")
        laws = () if made.drawn else conservation_laws(
            training, classes, space, np.random.default_rng(SEED + 2), self.visited
        )  # fmt: skip
        size = self.size or 1.0
        return Closure(
            classes, space, groups, laws, scalar_names(made, classes), self.residual / size,
            self.floor / size, self.walked, tuple(self.remarks), made.shapes,
        )  # fmt: skip

    def _name_splits(self, classes: EntryClasses) -> None:
        """Say which entries are told apart by little."""
        for split in [s for s in classes.splits if 0 < s.share < NEAR][:1]:
            one, two = self.made.entry_name(split.first), self.made.entry_name(split.second)
            how = "near rounding; --prove decides" if split.unclear else f"{split.share:.1e} of it"
            self.remarks.append(
                f"{one} and {two} part: gradients {split.values[0]:.9g} and {split.values[1]:.9g}, "
                f"a difference of {how}"
            )

    def _check_start(self) -> None:
        """Refuse a risk or a gradient that is not finite where training begins."""
        import jax

        made = self.made
        with jax.enable_x64(True):
            risk = float(made.program.compiled_risk(made.flat_start, made.data))
        gradient = self.training.gradient(made.flat_start)
        bad = np.flatnonzero(~np.isfinite(gradient))
        if bad.size:
            raise ModelError(
                f"the gradient at the start is {gradient[bad[0]]:g} for "
                f"{made.entry_name(int(bad[0]))}, not finite"
            )
        if not np.isfinite(risk):
            raise ModelError(f"the risk at the start is {risk:g}, not finite")

    def _stated(self) -> EntryClasses:
        """Classes from the symmetry that the model states, held against the risk."""
        made = self.made
        classes = orbit_classes(made.flat_start, made.generators)
        moving = np.zeros(classes.count, dtype=bool)
        for scale in SCALES:
            state = random_state(classes, self.generator, scale)
            gradient, floor = self.training.probe(state)
            if not np.isfinite(gradient).all():
                continue
            size = float(np.abs(gradient).max())
            noise = FLOORS * float(floor.max()) + ROUNDING * size
            own = class_tolerances(self.training, classes, gradient, floor)[classes.first]
            moving |= np.abs(classes.project(gradient)) > own
            if made.model.representatives:
                continue
            if made.drawn:
                noise += 8 * self._standard_error(state)
            for generator in made.generators:
                off = float(np.abs(generator.moved(gradient) - gradient).max())
                if off > noise:
                    raise ModelError(
                        f"the risk does not have the symmetry that is stated: {generator.text} "
                        f"changes its gradient by {off:.3g} of {size:.3g}"
                    )
            self._note(classes, gradient, floor)
        return classes.without(~moving)

    def _standard_error(self, state: FloatArray) -> float:
        """Standard error of the drawn gradient at a state: the largest over its entries."""
        import jax

        made = self.made
        with jax.enable_x64(True):
            each = jax.jit(
                jax.vmap(
                    jax.grad(lambda f, s: made.program.sample_loss(f, s, made.data)), (None, 0)
                )
            )
            law = made.law
            assert law is not None
            some = gathered(law.samples, np.arange(min(law.size, 2000)))
            spread = np.asarray(each(state, some)).std(axis=0).max()
        return float(spread / np.sqrt(law.size))

    def _walked(self, classes: EntryClasses) -> tuple[EntryClasses, SampleClasses | None]:
        """Classes of entries and of samples after the walk that looks for what was missed."""
        groups = self._sample_classes(classes, [])
        for _ in range(MOST_ROUNDS):
            states = self._run(classes, groups)
            leaving, parting = self._looked_at(classes, groups, states)
            if leaving is not None:
                finer = refine_entries(self.training, self.generator, [leaving], classes)
                if finer.count == classes.count:
                    self.remarks.append(
                        "the gradient leaves the classes by little more than rounding"
                    )
                    break
                classes, groups = finer, self._sample_classes(finer, [])
                continue
            chosen = states[:: max(1, len(states) // SAMPLE_STATES)]
            again = self._sample_classes(classes, [*chosen, *parting], groups)
            if groups is None or again is None or again.count == groups.count:
                break
            groups = again
        self.visited = states[:: max(1, len(states) // VISITED)][-VISITED:] + states[-1:]
        self._certify(classes)
        return classes, groups

    def _certify(self, classes: EntryClasses) -> None:
        """The residual at fresh points."""
        for scale in (*SCALES, *SCALES):
            gradient, floor = self.training.probe(random_state(classes, self.generator, scale))
            self._note(classes, gradient, floor)

    def _note(self, classes: EntryClasses, gradient: FloatArray, floor: FloatArray | None) -> None:
        """Keep the largest residual and floor, and the largest gradient that they are parts of."""
        size = float(np.abs(gradient).max(initial=0.0))
        if not np.isfinite(size):
            return
        self.size = max(self.size, size)
        self.residual = max(self.residual, float(np.abs(classes.residual(gradient)).max()))
        if floor is not None:
            self.floor = max(self.floor, float(floor.max()))

    def _sample_classes(
        self,
        classes: EntryClasses,
        states: list[FloatArray],
        before: SampleClasses | None = None,
    ) -> SampleClasses | None:
        law = self.made.law
        if law is None:
            return None
        labels = np.zeros(law.size, dtype=np.int64) if before is None else before.labels
        if before is None:
            states = [
                random_state(classes, self.generator, SCALES[k % len(SCALES)])
                for k in range(SAMPLE_STATES)
            ] + states
        still = replace(classes, start=np.zeros_like(classes.start))
        groups = SampleClasses(labels)
        for state in states:
            direction = still.lift(self.generator.standard_normal(classes.count))
            groups = split_samples(groups.labels, self.training.signatures(state, direction))
        return groups

    def _run(self, classes: EntryClasses, groups: SampleClasses | None) -> list[FloatArray]:
        """States of every entry along the reduced run, about log-spaced."""
        made = self.made
        law, numbers = made.law, made.numbers_of_a_sample()
        samples = 1 if groups is None else groups.count
        steps = int(min(self.walk.steps, max(20, WALK_NUMBERS // (samples * numbers))))
        whole = 1 if law is None else law.size
        looks = int(min(RECORDS, max(LEAST_RECORDS, LOOK_NUMBERS // (whole * numbers))))
        schedule = np.unique(np.rint(np.geomspace(1, steps, looks)).astype(np.int64))
        if not classes.count:
            return [made.flat_start]
        # The order parameters of a problem without events: the same compiled loop.
        loop = functions_of(made.program, True, WATCHED, classes.count).loop
        at_start = classes.start[classes.first]
        state = at_start.copy()
        groups_of = self.training.groups[classes.first]
        eta = np.array(self.walk.eta)[groups_of if len(self.walk.eta) > 1 else 0 * groups_of]
        records = np.empty((schedule.size, state.size))
        tracked = np.empty((int(schedule[-1]) + 1, len(WATCHED)))
        span = (0, int(schedule[-1]) + 1)
        payload = reduced_payload(made, classes, groups)
        reached = loop.advance(state, eta, span, (tracked, schedule, records), payload)
        near = (schedule <= reached) & (np.abs(records).max(axis=1) <= _far(made))
        near &= np.logical_and.accumulate(near)
        self.walked = int(schedule[near][-1]) if near.any() else 0
        return [*classes.lift(records[near])] or [made.flat_start]

    def _looked_at(
        self, classes: EntryClasses, groups: SampleClasses | None, states: list[FloatArray]
    ) -> tuple[FloatArray | None, list[FloatArray]]:
        """The first state at which the gradient leaves the classes; those where samples part."""
        parting: list[FloatArray] = []
        reduced = None if groups is None else self._reduced_gradient(classes, groups)
        for state in states:
            gradient = self.training.gradient(state)
            if not np.isfinite(gradient).all():
                break
            off = np.abs(classes.residual(gradient))
            inside = classes.project(gradient)
            apart = np.zeros_like(inside) if reduced is None else np.abs(reduced(state) - inside)
            # Where neither is above rounding at first sight, the floors are not computed.
            largest = np.zeros(classes.count + 1)
            np.maximum.at(largest, classes.labels, np.abs(gradient))
            largest[-1] = 0.0  # frozen entries
            if (off > LEFT * largest[classes.labels]).any() or (apart > LEFT * largest[:-1]).any():
                _, floor = self.training.probe(state)
                tolerance = class_tolerances(self.training, classes, gradient, floor)
                if (off > tolerance).any():
                    return state, parting
                if (apart > tolerance[classes.first] + LEFT * largest[:-1]).any():
                    parting.append(state)
            self._note(classes, gradient, None)
        return None, parting

    def _reduced_gradient(self, classes: EntryClasses, groups: SampleClasses) -> Any:
        """Gradient from the representatives alone, by every class."""
        import jax

        payload = reduced_payload(self.made, classes, groups)
        slope = slope_of(self.made.program, True)

        def gradient(state: FloatArray) -> FloatArray:
            with jax.enable_x64(True):
                return np.asarray(slope(state[classes.first], payload))

        return gradient


def _far(made: Realization) -> float:
    """Entries of this size are those of a run that diverges."""
    return FAR * max(1.0, float(np.abs(made.flat_start).max()))


def representative_data(made: Realization, groups: SampleClasses | None) -> Data:
    """One sample of each class, with the probability of all; the whole data without classes."""
    import jax

    if groups is None or made.law is None:
        return made.data
    with jax.enable_x64(True):
        samples = gathered(made.law.samples, groups.first)
        return made.data._replace(
            weights=jax.numpy.asarray(groups.summed(made.law.weights)),
            samples=jax.tree.map(jax.numpy.asarray, samples),
        )


def reduced_payload(
    made: Realization, classes: EntryClasses, groups: SampleClasses | None
) -> tuple[Data, Embedding]:
    """Data and embedding of the problem on the scalars."""
    import jax

    with jax.enable_x64(True):
        embedding = jax.tree.map(jax.numpy.asarray, class_embedding(classes))
    return representative_data(made, groups), embedding


def scalar_names(made: Realization, classes: EntryClasses) -> tuple[str, ...]:
    """Name of each scalar: as the model says, else by the first entry of its class.

    Raises
    ------
    ModelError
        If a name is of a constant, or names two scalars.
    """
    names = [_first_entry_name(made, int(entry)) for entry in classes.first]
    taken = dict.fromkeys((*made.constants, *made.seen_names))
    given: dict[int, str] = {}
    for name, entry in made.model.table("names", made.constants).items():
        place = entry if isinstance(entry, (tuple, list)) else (entry,)
        check_name("names", name, taken)
        if not place or not isinstance(place[0], str):
            raise ModelError(f"names: {name} = {entry!r} is no entry, as ('A', 0, 1)")
        number = made.entry_number(str(place[0]), *place[1:])
        label = int(classes.labels[number])
        if label >= 0:
            given.setdefault(label, name)
    for label, name in given.items():
        names[label] = name
    for name in names:
        if name in taken:
            raise ModelError(f"{name!r} is a scalar and something else; rename the array or that")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"names: {twice!r} is the name of two scalars; give them others")
    return tuple(names)


def _first_entry_name(made: Realization, entry: int) -> str:
    array, position = made.entry_position(entry)
    return "_".join([array, *map(str, position)])
