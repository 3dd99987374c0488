"""Search for the linear space and the conservation laws of a closure, and for their scope."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics.models.engine.field_gradient import ANY, ANY_LAW, GIVEN, FieldGradient
from theory.closure.conservation import (
    ConservationLaw,
    Products,
    linear_laws,
    linear_laws_in_floats,
    pair_laws,
    quadratic_forms,
    quadratic_laws,
)
from theory.closure.linear import (
    LinearSpace,
    Span,
    closed_span,
    exact_basis,
    leaves,
    numeric_basis,
    reduced_basis,
    whole_span,
)
from theory.closure.partition import EntryClasses
from theory.closure.refinement import leaving, refine
from theory.closure.regime import Regime
from theory.color_refinement import IntArray
from theory.law import FloatArray
from theory.program import field
from theory.program.evaluate import generic, run_floats
from theory.program.field import Triples

AS_GIVEN = "at these constants"
"""Scope of a closure that is proved at the given constants alone."""


class SpaceSearch:
    """Search for the linear space and the conservation laws of given classes of entries.

    `kinds` has the array and the parameter group of each scalar. `tables` has two gradients: by
    every entry (None if the model states the classes), and by the scalars. The function `gradient`
    returns the gradient by every entry in floats. The search collects messages for the user in
    `remarks`.
    """

    def __init__(
        self,
        classes: EntryClasses,
        kinds: tuple[IntArray, IntArray],
        tables: tuple[FieldGradient | None, FieldGradient],
        gradient: Callable[[FloatArray], FloatArray],
        generator: np.random.Generator,
    ) -> None:
        self.classes, self._gradient, self._generator = classes, gradient, generator
        self._arrays, self._groups = kinds
        self._entries, self._scalars = tables
        self._at_start = classes.start[classes.first]
        self._start = self._scalars.numbers(self._at_start)
        self.remarks: list[str] = []

    def found(self, regime: Regime) -> tuple[LinearSpace, tuple[ConservationLaw, ...], str]:
        """Linear space, conservation laws, and a text with the scope in which they are proved."""
        slopes, start, generator = self._scalars.of(GIVEN), self._start, self._generator
        laws: list[ConservationLaw] = []
        if regime.spaces:
            span = closed_span(slopes, start, self._groups, generator)
            space = self._in_floats(span, regime.decay)
        else:
            count = self.classes.count
            span, space = whole_span(count), LinearSpace(np.eye(count))
            laws += self._pairs(regime)
        if space.free < len(span.rows):
            laws += linear_laws_in_floats(space.basis, self._at_start)
        elif space.free < self.classes.count:
            laws += linear_laws(span, space.basis, self._at_start)
        products = Products.of(self._arrays)
        forms = np.zeros((0, 0, 3), dtype=np.uint64)
        if regime.flow and len(np.unique(self._groups)) == 1 and products.first.size:
            forms = quadratic_forms(products, slopes, span, start, generator)
            rows = self._product_rates(space, products) if len(forms) else np.zeros((0, 0))
            laws += quadratic_laws(products, forms, rows, self._at_start)
        scope, tables = self._scope(span, products, forms), (self._entries, self._scalars)
        if not all(table.table.values.simple for table in tables if table is not None):
            scope = ", ".join(filter(None, (scope, "for data read to 2^-40")))
        return space, tuple(laws), scope

    def _pairs(self, regime: Regime) -> list[ConservationLaw]:
        """Sums and differences of two scalars that every update rule of the regime conserves.

        Two scalars that start and stay equal, up to sign, give a conservation law. Without weight
        decay, two scalars with always equal gradients, up to sign, give one too.
        """
        slopes, at_start, generator = self._scalars.of(GIVEN), self._at_start, self._generator
        tied = refine(slopes, at_start, self._start, self._groups, generator, regime.signs)
        laws = pair_laws(tied.labels, tied.signs, at_start)
        if not regime.decay:
            slope = slopes(field.drawn(generator, self.classes.count)[:, None])[:, 0]
            other = field.negative(slope)
            turned = regime.signs & (other[:, 0] < slope[:, 0])
            key = np.column_stack([self._groups, np.where(turned[:, None], other, slope)])
            labels = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)
            laws += pair_laws(labels, np.where(turned, -1.0, 1.0), at_start)
        return list({law.terms: law for law in laws}.values())

    def _in_floats(self, span: Span, decay: bool) -> LinearSpace:
        """Float basis of the linear space, from exact fractions if possible, else from gradients.

        If the data are not simple fractions, the finite field misses relations between them. If
        gradients in floats then lie in a smaller space up to rounding, that space is returned, with
        a remark to the user.
        """
        table, free, count = self._scalars.table, len(span.rows), self.classes.count
        basis, simple = exact_basis(span), table.values.simple
        if simple and (basis is not None or free == count):
            return LinearSpace(np.eye(count) if basis is None else basis)
        program, numbers = table.program({"": table.gradient}), table.numbers(self._scalars.data)
        functions = generic(self._generator)

        def rates(state: FloatArray) -> FloatArray:
            found = run_floats(program, np.concatenate([state, numbers]), functions)
            slope = found[program.outputs[""]]
            return slope + self._generator.standard_normal() * state if decay else slope

        found, clear = numeric_basis(rates, self._at_start, self._groups, self._generator)
        if clear and found.shape[1] < free and not simple:
            self.remarks.append(
                f"the linear space of dimension {found.shape[1]} is checked by gradients, not "
                f"proved: the data are not simple fractions (proved dimension: {free})"
            )
            return LinearSpace(found, proved=False)
        if basis is None and found.shape[1] == free:
            basis = reduced_basis(found, span)
        return LinearSpace(np.eye(count) if basis is None else basis)

    def _product_rates(self, space: LinearSpace, products: Products) -> FloatArray:
        """Time derivatives of products of two scalars at random states of the linear space."""
        size = products.first.size + 8
        moved = self._generator.standard_normal((size, space.free))
        states = self._at_start + moved @ np.linalg.qr(space.basis)[0].T
        lifted = map(self.classes.lift, states)
        slopes = [self.classes.project(self._gradient(state)) for state in lifted]
        return products.rates_in_floats(states, np.array(slopes))

    def _scope(self, span: Span, products: Products, forms: Triples) -> str:
        """Text naming the data laws and real constants for which the linear space is proved."""
        has_law = self._scalars.table.weights.size > 0
        for how in (ANY, ANY_LAW) if has_law else (ANY,):
            if self._holds(how, span, products, forms):
                every_law = "any law with the same equal weights" if has_law else ""
                loose = ", ".join(self._scalars.loose) if how == ANY else ""
                words = " and ".join(filter(None, (every_law, f"any {loose}" if loose else "")))
                return f"for {words}" if words else ""
        return f"{AS_GIVEN} alone"

    def _holds(self, how: str, span: Span, products: Products, forms: Triples) -> bool:
        """Whether the closure holds for random weights and, for `how` = ANY, random constants."""
        if self._entries is not None:
            start = self._entries.numbers(self.classes.start)
            if leaving(self._entries.of(how), self.classes, start, self._generator).size:
                return False
        slopes = self._scalars.of(how)
        if leaves(span, slopes, self._start, self._groups, self._generator):
            return False
        if not len(forms):
            return True
        points = span.points(self._start, 2, self._generator)
        rates = products.rates(points, slopes(points))
        along = field.multiply(forms[:, None], rates[None]).sum(axis=2) % field.PRIMES
        return not along.any()
