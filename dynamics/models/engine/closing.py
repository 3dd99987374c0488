"""Closure of a realized model: classes of entries and samples, linear space, conservation laws.

The risk is traced into two tables of values. The table with one input for each trained entry gives
the classes of equal entries. The table with one input for each class gives the linear space and the
conservation laws. Each table is evaluated at a few points of a finite field (`theory.closure`). If
the risk cannot be traced, equal gradients in floats give the classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from dynamics.cache import jax
from dynamics.models.engine.field_gradient import GIVEN, FieldGradient
from dynamics.models.engine.functions import class_embedding
from dynamics.models.engine.program import evaluated
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk
from dynamics.models.engine.space_search import AS_GIVEN, SpaceSearch
from dynamics.models.engine.tracing import refusals
from theory.closure import CHECKED, PROVED, STATED, Closure, checked
from theory.closure.conservation import ConservationLaw
from theory.closure.linear import MOST_SCALARS, LinearSpace
from theory.closure.orbits import Generator, orbit_classes
from theory.closure.partition import EntryClasses, SampleClasses, cells
from theory.closure.refinement import leaving, refine, tied
from theory.closure.regime import PLAIN, Regime
from theory.color_refinement import by_appearance
from theory.law import FloatArray, ModelError, select_samples
from theory.program import NoProgram, Values, field

SEED = 20240
"""Seed of the random numbers in the search for a closure."""
MOST_TRACED = 1 << 28
"""The risk is not traced into a table if the losses of all samples take more numbers than this."""
MOST_VALUES = 4_000_000
"""A risk whose table has more distinct values than this counts as untraceable."""
SCALES = (0.0, 0.1, 0.3, 1.0, 1.0)
"""Float gradients are compared at random states with these standard deviations about the start."""
SAME = 1e-9
"""Maximum change of a gradient under a stated symmetry, relative to the largest component."""
ROUNDING, NEAR = 1e-12, 1e-4
"""A remark names two entries with equal starts if the relative difference of their gradients lies
between these two numbers."""
ERRORS = 8.0
"""Number of standard errors by which a stated symmetry may change a mean gradient."""
DRAWS = 2000
"""Standard errors of mean gradients are computed from at most this number of draws."""


class ClosedModel(Realization):
    """A model at one set of constants, with the closure of its training."""

    @cached_property
    def closure(self) -> Closure:
        """Closure of training by gradient descent or by gradient flow."""
        return self.closure_under(PLAIN)

    def closure_under(self, regime: Regime) -> Closure:
        """Closure of training by the update rules of a regime.

        Raises InvalidRequest if the gradient at the start is not finite, or if the risk lacks a
        symmetry that the model states.
        """
        if regime not in self._closures:
            # Idle BLAS threads spin and would take cores from a run.
            with refusals(), threadpool_limits(1, "blas"):
                self._closures[regime] = Closing(self, regime).closure()
        return self._closures[regime]

    @cached_property
    def _closures(self) -> dict[Regime, Closure]:
        return {}


class Closing:
    """Search for the closure of training a realized model by the update rules of a regime."""

    def __init__(self, made: Realization, regime: Regime = PLAIN) -> None:
        self.made, self.regime = made, regime
        self.generator = np.random.default_rng(SEED)
        self.remarks: list[str] = []
        sizes = [array.size for array in made.arrays.values()]
        self.arrays = np.repeat(np.arange(len(sizes)), sizes)
        names = [made.model.groups.get(name, "") for name in made.arrays]
        self.groups = np.repeat(by_appearance(np.array(names))[0], sizes)
        if regime.by_array:
            self.groups = self.arrays
        self.why = ""

    def closure(self) -> Closure:
        """Closure, after a search for classes, linear space and conservation laws."""
        made = self.made
        self._check_start()
        classes, samples, entries = self._stated() if made.only_sampled else self._found()
        grade = self._grade(classes)
        if self.why:
            self.remarks.append(f"the closure is not proved: {self.why}")
        exact = bool(classes.count) and not (self.why or made.only_sampled)
        scalars = self._table(classes, samples) if exact else None
        if exact and self.why:
            self.remarks.append(f"no search for the linear space: {self.why}")
        space, laws, scope = self._space_and_laws(classes, entries, scalars)
        if len(np.unique(self.groups)) > 1:
            self.remarks.append(
                "conservation laws across parameter groups are left out: they hold for equal "
                "learning rates only"
            )
        names = made.scalar_names(classes)
        self.remarks += made.unused_names(classes)
        return Closure(
            classes, space, samples, laws, names, self._residual(classes), grade,
            scope, tuple(self.remarks), made.shapes,
        )  # fmt: skip

    def _grade(self, classes: EntryClasses) -> str:
        made = self.made
        if made.only_sampled:
            assert made.law is not None
            self.remarks.append(
                f"the law is estimated from {made.law.size} draws: the gradient outside the "
                "classes is sampling error; the symmetry is stated by the model, not proved"
            )
            return STATED
        return CHECKED.format(len(classes.rounds)) if self.why else PROVED

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient by every entry in floats, shape (n,), with weight decay if the rule has one."""
        return self._risk_and_gradient(state)[1] + float(self.regime.decay) * state

    def _risk_and_gradient(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        return evaluated(self.made.program.compiled_descent, state, self.made.data)

    def _check_start(self) -> None:
        """Raise ModelError if the risk or its gradient at the start is not finite."""
        made = self.made
        risk, gradient = self._risk_and_gradient(made.flat_start)
        bad = np.flatnonzero(~np.isfinite(gradient))
        if bad.size:
            raise ModelError(
                f"the gradient at the start is not finite: {gradient[bad[0]]:g} for "
                f"{made.entry_name(int(bad[0]))}"
            )
        if not np.isfinite(risk):
            raise ModelError(f"the risk at the start is not finite: {risk:g}")

    # Classes

    def _found(self) -> tuple[EntryClasses, SampleClasses | None, FieldGradient | None]:
        """Classes of entries and of samples, and the traced risk, None if it cannot be traced."""
        made, start = self.made, self.made.flat_start
        each = EntryClasses(np.arange(start.size), np.ones(start.size), np.zeros(start.size))
        risk = self._table(each, None)
        if risk is None:
            refined = checked.refine(
                self.gradient, start, self.arrays, self.generator, self.regime.signs
            )
            classes = self._orbits(refined, None)
            return classes, None if made.law is None else same_samples(made.law.samples), None
        triples = risk.numbers(start)
        classes = refine(
            risk.of(GIVEN), start, triples, self.arrays, self.generator, self.regime.signs
        )
        classes = self._orbits(classes, risk)
        self._name_near(classes)
        if made.law is None:
            return classes, None, risk
        point = tied(classes.labels, classes.signs, triples, self.generator)
        rows = risk.values(risk.table.rows.reshape(-1), point)
        rows = rows.reshape(len(risk.table.rows), -1).astype(np.int64)
        merged = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        return classes, SampleClasses(by_appearance(merged[risk.table.classes])[0]), risk

    def _orbits(self, found: EntryClasses, risk: FieldGradient | None) -> EntryClasses:
        """Classes of entries equal by the stated symmetry; `found` if the model states none."""
        made = self.made
        if not made.generators:
            return found
        classes = orbit_classes(made.flat_start, self._generators())
        moves = np.zeros(classes.count + 1, dtype=bool)
        moves[classes.labels[found.labels >= 0]] = True
        classes = classes.without(~moves[:-1])
        self._check_symmetry(classes)
        if risk is not None:
            triples = risk.numbers(made.flat_start)
            left = leaving(risk.of(GIVEN), classes, triples, self.generator)
            if left.size:
                raise ModelError(
                    "the risk does not have the stated symmetry: the gradient of "
                    f"{made.entry_name(int(left[0]))} differs from that of its class"
                )
        return classes

    def _generators(self) -> list[Generator]:
        """Generators of the stated symmetry, without sign changes unless the rule is odd."""
        every = self.made.generators
        return [g for g in every if self.regime.signs or (g.signs > 0).all()]

    def _stated(self) -> tuple[EntryClasses, SampleClasses, None]:
        """Classes of entries by the stated symmetry, classes of equal draws, no traced risk."""
        made = self.made
        classes = orbit_classes(made.flat_start, self._generators())
        self._check_symmetry(classes)
        at_start, alone = classes.start[classes.first], np.arange(classes.count)

        def slope(z: FloatArray) -> FloatArray:
            return classes.project(self.gradient(classes.lift(z)))

        moving = checked.refine(slope, at_start, alone, self.generator, self.regime.signs)
        assert made.law is not None
        return classes.without(moving.labels < 0), same_samples(made.law.samples), None

    def _check_symmetry(self, classes: EntryClasses) -> None:
        """Raise ModelError if the gradient changes under a generator of the stated symmetry."""
        made = self.made
        for state in self._states(classes):
            gradient = self.gradient(state)
            if not np.isfinite(gradient).all():
                continue
            size = float(np.abs(gradient).max())
            noise = SAME * size + (self._sampling_error(state) if made.only_sampled else 0.0)
            for generator in self._generators():
                off = float(np.abs(generator.moved(gradient) - gradient).max())
                if off > noise:
                    raise ModelError(
                        f"the risk does not have the stated symmetry: {generator.text} "
                        f"changes its gradient by {off:.3g}; the largest component is {size:.3g}"
                    )

    def _sampling_error(self, state: FloatArray) -> float:
        """`ERRORS` times the largest standard error of a mean gradient component at a state."""
        made, law = self.made, self.made.law
        assert law is not None
        some = select_samples(law.samples, np.arange(min(law.size, DRAWS)))
        slopes = evaluated(made.program.compiled_slopes, state, some, made.data)
        return ERRORS * float(slopes.std(axis=0).max() / np.sqrt(law.size))

    def _states(self, classes: EntryClasses) -> Iterable[FloatArray]:
        """Yield the start, then random states whose entries are equal within each class."""
        at_start = classes.start[classes.first] if classes.count else np.zeros(0)
        for scale in SCALES:
            yield classes.lift(at_start + scale * self.generator.standard_normal(classes.count))

    def _residual(self, classes: EntryClasses) -> float:
        """Largest `EntryClasses.residual` at `_states`, over the largest gradient component."""
        parts = [0.0]
        for state in self._states(classes):
            slope = self.gradient(state)
            size = float(np.abs(slope).max(initial=0.0))
            if np.isfinite(size) and size > 0:
                parts.append(float(np.abs(classes.residual(slope)).max()) / size)
        return max(parts)

    def _name_near(self, classes: EntryClasses) -> None:
        """Add a remark on two entries that start equal and whose gradients differ slightly."""
        start = self.made.flat_start
        own = cells(start, self.arrays)
        signs = np.where(start != 0, np.sign(start), classes.signs)
        drawn = np.random.default_rng(SEED).standard_normal(int(own.max(initial=0)) + 1)
        moved = signs * drawn[own]
        slope = signs * self.gradient(start + np.where(classes.labels >= 0, moved, 0.0))
        if not np.isfinite(slope).all():
            return
        order = np.lexsort((slope, own))
        one, two = order[:-1], order[1:]
        sizes = np.maximum(np.abs(slope[one]), np.abs(slope[two]))
        share = np.abs(slope[one] - slope[two]) / np.where(sizes > 0, sizes, 1.0)
        apart = (own[one] == own[two]) & (classes.labels[one] != classes.labels[two])
        apart &= sizes > SAME * np.abs(slope).max(initial=0.0)
        near = np.flatnonzero(apart & (share < NEAR) & (share > ROUNDING))
        if near.size:
            first, second = sorted((int(one[near[0]]), int(two[near[0]])))
            self.remarks.append(
                f"{self.made.entry_name(first)} and {self.made.entry_name(second)} separate: the "
                f"gradients are {slope[first]:.9g} and {slope[second]:.9g} at a state where "
                "the two entries are equal"
            )

    # Tables

    def _table(self, classes: EntryClasses, samples: SampleClasses | None) -> FieldGradient | None:
        """Finite-field gradient of the risk by the classes, or None with the reason in `why`."""
        made = self.made
        names = [f"z_{k}" for k in range(classes.count)]
        count = 1 if made.law is None else made.law.size if samples is None else samples.count
        try:
            if count * made.numbers_of_a_sample() > MOST_TRACED:
                raise NoProgram(f"no program: more than {MOST_TRACED:,} numbers for a risk")
            data = made.representatives(samples)._replace(held_out=None)
            table = ReducedRisk(
                made.program, data, class_embedding(classes), names,
                values=Values(read=field.on_grid, most=MOST_VALUES),
            )  # fmt: skip
            labels = table.classes
            if samples is not None and made.law is not None:
                labels = labels[samples.labels]
            return FieldGradient(table, made, data, labels, self.generator, self.regime.decay)
        except NoProgram as error:
            self.why = str(error)
            return None

    def _space_and_laws(
        self, classes: EntryClasses, entries: FieldGradient | None, scalars: FieldGradient | None
    ) -> tuple[LinearSpace, tuple[ConservationLaw, ...], str]:
        """Linear space, conservation laws, and the scope in which they are proved."""
        if scalars is None or not classes.count:
            return LinearSpace(np.eye(classes.count)), (), AS_GIVEN
        if classes.count > MOST_SCALARS:
            remark = f"no search for the linear space: more than {MOST_SCALARS} scalars"
            self.remarks.append(remark)
            return LinearSpace(np.eye(classes.count)), (), AS_GIVEN
        kinds = self.arrays[classes.first], self.groups[classes.first]
        search = SpaceSearch(classes, kinds, (entries, scalars), self.gradient, self.generator)
        found = search.found(self.regime)
        self.remarks += search.remarks
        return found


def same_samples(samples: object) -> SampleClasses:
    """Classes of samples whose arrays are equal."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(samples)]
    rows = [leaf.reshape(len(leaf), -1).astype(float) for leaf in leaves]
    merged = np.unique(np.column_stack(rows), axis=0, return_inverse=True)[1]
    return SampleClasses(by_appearance(merged.reshape(-1))[0])
