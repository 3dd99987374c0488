"""The closure of a realized model: classes of entries and samples, and the walk along the run.

The walk goes back to the first stage with every state at which the full gradient leaves the
classes, until none does; see `theory.closure`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.functions import WATCHED, functions_of, slope_of
from dynamics.models.engine.program import evaluated
from dynamics.models.engine.space_and_laws import SEED, space_and_laws
from dynamics.validation import learning_rate
from theory.closure import Closure
from theory.closure.orbits import orbit_classes
from theory.closure.partition import (
    FLOORS,
    ROUNDING,
    SCALES,
    EntryClasses,
    SampleClasses,
    class_tolerances,
    random_state,
    refine_entries,
    split_samples,
)
from theory.law import FloatArray, ModelError, select_samples

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization, Walk


RECORDS = 60
"""States of the walk at which the whole gradient is evaluated, at most."""
LEAST_RECORDS = 10
WALK_NUMBERS = 1 << 34
"""Numbers that the steps of the walk may compute."""
LOOK_NUMBERS = 1 << 34
"""Numbers that its checks on the whole law may compute."""
LEFT = 1e-13
"""Part of a class's gradient that counts as leaving, beside the floors."""
SAMPLE_STATES = 6
"""States near the start, and as many of the walk, at which samples are compared."""
VISITED = 12
"""States of the walk at which the linear space and the laws must hold too."""
NEAR = 1e-4
"""Part of a gradient below which a difference that splits a class is named."""
FAR = 1e8
"""Times the start, or 1: a run beyond it diverges, and no gradient there is evaluated."""
PROBES = 4
"""Runs in single precision that tell whether a gradient leaves the classes."""
MOST_ROUNDS = 60


class Closing:
    """One closure under way."""

    def __init__(self, made: Realization, walk: Walk) -> None:
        self.made, self.walk = made, walk
        self.training = made.training
        if len(walk.eta) > 1:
            learning_rate(list(walk.eta), tuple(dict.fromkeys(made.group_of_arrays().values())))
        self.generator = np.random.default_rng(SEED)
        self.remarks: list[str] = []
        self.visited: list[FloatArray] = []
        self.along: dict[int, FloatArray] = {}  # step of the walk -> state
        self.residual, self.floor, self.size, self.walked = 0.0, 0.0, 0.0, 0

    def closure(self) -> Closure:
        """The closure of training."""
        made, training = self.made, self.training
        self._check_start()
        groups: SampleClasses | None = None
        if made.generators or made.only_sampled:
            classes = self._stated()
        else:
            classes = refine_entries(training, self.generator)
        if made.model.representatives:
            groups = self._walked_samples(classes)
        elif not made.only_sampled:
            classes, groups = self._walked(classes)
        self._name_splits(classes)
        between = partial(self._between, classes, groups)
        space, laws = space_and_laws(made, classes, self.visited, self.along, between)
        if space.remark and classes.count:
            self.remarks.append(f"the linear space was not sought: {space.remark}")
        if len(np.unique(training.groups)) > 1:
            self.remarks.append(
                "laws that join parameter groups need equal rates, and are left out"
            )
        names = made.scalar_names(classes)
        self.remarks += made.unused_names(classes)
        if made.only_sampled and made.law is not None:
            self.remarks.append(
                f"the law is known by {made.law.size} draws: what the gradient has outside the "
                "classes is their sampling error; the symmetry is stated by the model"
            )
        size = self.size or 1.0
        return Closure(
            classes, space, groups, laws, names, self.residual / size,
            self.floor / size, self.walked, tuple(self.remarks), made.shapes,
        )  # fmt: skip

    def _between(
        self, classes: EntryClasses, groups: SampleClasses | None, first: int, last: int
    ) -> list[FloatArray]:
        """States of the reduced run at steps from one to another."""
        schedule = np.unique(np.linspace(first, last, RECORDS).astype(np.int64))
        return self._run(classes, groups, schedule)[0]

    def _name_splits(self, classes: EntryClasses) -> None:
        """Remark on entries whose gradients differ by little."""
        for split in [s for s in classes.splits if 0 < s.share < NEAR][:1]:
            one, two = self.made.entry_name(split.first), self.made.entry_name(split.second)
            how = "near rounding" if split.unclear else f"{split.share:.1e} of it"
            self.remarks.append(
                f"{one} and {two} part: gradients {split.values[0]:.9g} and {split.values[1]:.9g}, "
                f"a difference of {how}"
            )

    def _check_start(self) -> None:
        """Refuse a risk or a gradient that is not finite where training begins."""
        made = self.made
        risk, gradient = self.training.risk_and_gradient(made.flat_start)
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
            if made.only_sampled:
                noise += 8 * self._standard_error(state)
            for generator in made.generators:
                off = float(np.abs(generator.moved(gradient) - gradient).max())
                if off > noise:
                    raise ModelError(
                        f"the risk does not have the symmetry that is stated: {generator.text} "
                        f"changes its gradient by {off:.3g} of {size:.3g}"
                    )
            self._note(classes, gradient, floor)
        if made.only_sampled:
            moving = self._moving_along(classes, moving)
        return classes.without(~moving)

    def _moving_along(self, classes: EntryClasses, moving: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which classes move: near the start, or where training of those that do leads."""
        for _ in range(MOST_ROUNDS):
            before = moving.copy()
            for state in self._run(classes.without(~moving), None)[0]:
                gradient, floor = self.training.probe(state)
                if np.isfinite(gradient).all():
                    own = class_tolerances(self.training, classes, gradient, floor)[classes.first]
                    moving = moving | (np.abs(classes.project(gradient)) > own)
            if (moving == before).all():
                break
        return moving

    def _standard_error(self, state: FloatArray) -> float:
        """Standard error of the sampled gradient at a state: the largest over its entries."""
        made = self.made
        law = made.law
        assert law is not None
        some = select_samples(law.samples, np.arange(min(law.size, 2000)))
        slopes = evaluated(made.program.compiled_slopes, state, some, made.data)
        spread = slopes.std(axis=0).max()
        return float(spread / np.sqrt(law.size))

    def _walked(self, classes: EntryClasses) -> tuple[EntryClasses, SampleClasses | None]:
        """Classes of entries and of samples after the walk that looks for what was missed."""
        groups = self._sample_classes(classes, [])
        for _ in range(MOST_ROUNDS):
            states, steps = self._run(classes, groups)
            finer, parting = self._looked_at(classes, groups, states)
            if finer is None:
                selected = states[:: max(1, len(states) // SAMPLE_STATES)]
                again = self._sample_classes(classes, [*selected, *parting], groups)
                if groups is not None and again is not None and again.count > groups.count:
                    groups = again
                    continue
                finer = self._certified(classes)
                if finer is None:
                    break
                self.residual = self.floor = self.size = 0.0  # of the classes that are left
            classes, groups = finer, self._sample_classes(finer, [])
        else:
            self._certified(classes)
            self.remarks.append(f"after {MOST_ROUNDS} rounds classes were still being split")
        self.visited = states[:: max(1, len(states) // VISITED)][-VISITED:] + states[-1:]
        self.along = dict(zip(steps, states, strict=False))
        self.walked = max(steps, default=0)
        return classes, groups

    def _walked_samples(self, classes: EntryClasses) -> SampleClasses | None:
        """Classes of representatives, compared near the start and along the run too."""
        groups = self._sample_classes(classes, [])
        for _ in range(MOST_ROUNDS if groups is not None else 0):
            states, _ = self._run(classes, groups)
            again = self._sample_classes(classes, states[:: max(1, len(states) // VISITED)], groups)
            if again is None or groups is None or again.count == groups.count:
                break
            groups = again
        return groups

    def _certified(self, classes: EntryClasses) -> EntryClasses | None:
        """Finer classes if the gradient leaves them at a fresh point; else None, the residual kept.

        Points at random may be few where the gradient has kinks, and have missed a part of them.
        """
        for scale in (*SCALES, *SCALES):
            state = random_state(classes, self.generator, scale)
            gradient, floor = self.training.probe(state)
            finite = np.isfinite(gradient).all()
            self._note(classes, gradient, floor)
            leaves = finite and self._leaves(classes, state, gradient)
            if leaves and (finer := self._finer(classes, state)) is not None:
                return finer
        return None

    def _leaves(self, classes: EntryClasses, state: FloatArray, gradient: FloatArray) -> bool:
        """Whether the gradient at a state leaves the classes by more than rounding.

        The floor of one probe may be 0 by chance: that it does is found by several.
        """
        off = np.abs(classes.residual(gradient))
        if not (off > LEFT * self._largest(classes, gradient)[classes.labels]).any():
            return False
        floor = np.zeros_like(gradient)
        for _ in range(PROBES):
            floor = np.maximum(floor, self.training.probe(state)[1])
            if not (off > class_tolerances(self.training, classes, gradient, floor)).any():
                return False
        return True

    def _largest(self, classes: EntryClasses, gradient: FloatArray) -> FloatArray:
        """Largest entry of the gradient in each class, and 0 for frozen entries, the last."""
        largest = np.zeros(classes.count + 1)
        np.maximum.at(largest, classes.labels, np.abs(gradient))
        largest[-1] = 0.0
        return largest

    def _finer(self, classes: EntryClasses, state: FloatArray) -> EntryClasses | None:
        """The classes split where the gradient leaves them; None where no two entries part."""
        finer = refine_entries(self.training, self.generator, [state], classes)
        if finer.count > classes.count:
            return finer
        remark = "the gradient leaves the classes by little more than rounding"
        if remark not in self.remarks:
            self.remarks.append(remark)
        return None

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
        groups = before or SampleClasses(np.zeros(law.size, dtype=np.int64))
        if before is None:
            states = [
                random_state(classes, self.generator, SCALES[k % len(SCALES)])
                for k in range(SAMPLE_STATES)
            ] + states
        for state in states:
            direction = classes.tangent(self.generator.standard_normal(classes.count))
            groups = split_samples(groups.labels, self.training.signatures(state, direction))
        return groups

    def _run(
        self,
        classes: EntryClasses,
        groups: SampleClasses | None,
        schedule: NDArray[np.int64] | None = None,
    ) -> tuple[list[FloatArray], list[int]]:
        """States of every entry along the reduced run, and their steps: about log-spaced ones."""
        made = self.made
        law, numbers = made.law, made.numbers_of_a_sample()
        whole = 1 if law is None else law.size
        samples = whole if groups is None else groups.count
        steps = int(min(self.walk.steps, max(20, WALK_NUMBERS // (samples * numbers))))
        looks = int(min(RECORDS, max(LEAST_RECORDS, LOOK_NUMBERS // (whole * numbers))))
        if schedule is None:
            schedule = np.unique(np.rint(np.geomspace(1, steps, looks)).astype(np.int64))
        if not classes.count:
            return [made.flat_start], []
        # The order parameters of a problem without events: the same compiled loop.
        loop = functions_of(made.program, True, WATCHED, classes.count).loop
        at_start = classes.start[classes.first]
        state = at_start.copy()
        groups_of = self.training.groups[classes.first]
        eta = np.array(self.walk.eta)[groups_of if len(self.walk.eta) > 1 else 0 * groups_of]
        records = np.empty((schedule.size, state.size))
        tracked = np.empty((int(schedule[-1]) + 1, len(WATCHED)))
        span = (0, int(schedule[-1]) + 1)
        payload = made.reduced_payload(classes, groups)
        reached = loop.advance(state, eta, span, (tracked, schedule, records), payload)
        near = (schedule <= reached) & (np.abs(records).max(axis=1) <= far(made))
        near &= np.logical_and.accumulate(near)
        return [*classes.lift(records[near])] or [made.flat_start], schedule[near].tolist()

    def _looked_at(
        self, classes: EntryClasses, groups: SampleClasses | None, states: list[FloatArray]
    ) -> tuple[EntryClasses | None, list[FloatArray]]:
        """Classes split at the first state at which the gradient leaves them, None if at no one.

        And the states at which samples part.
        """
        parting: list[FloatArray] = []
        slope = slope_of(self.made.program, True)
        payload = None if groups is None else self.made.reduced_payload(classes, groups)
        for state in states:
            gradient = self.training.gradient(state)
            if not np.isfinite(gradient).all():
                break
            if self._leaves(classes, state, gradient):
                if (finer := self._finer(classes, state)) is not None:
                    return finer, parting
            elif payload is not None:
                inside, largest = classes.project(gradient), self._largest(classes, gradient)[:-1]
                apart = np.abs(evaluated(slope, state[classes.first], payload) - inside)
                # Where nothing is above rounding at first sight, no floor is computed.
                if (apart > LEFT * largest).any():
                    _, floor = self.training.probe(state)
                    tolerance = class_tolerances(self.training, classes, gradient, floor)
                    if (apart > tolerance[classes.first] + LEFT * largest).any():
                        parting.append(state)
            self._note(classes, gradient, None)
        return None, parting


def far(made: Realization) -> float:
    """Entries of this size are those of a run that diverges."""
    return FAR * max(1.0, float(np.abs(made.flat_start).max()))
