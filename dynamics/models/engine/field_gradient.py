"""Gradient of a risk in a finite field; weights and real constants are given or random numbers."""

from __future__ import annotations

import numpy as np

from dynamics.models.engine.program import Data
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk
from theory.closure.refinement import Gradient
from theory.color_refinement import IntArray
from theory.law import FloatArray
from theory.program import Ids, field
from theory.program.field import Triples
from theory.program.identities import Identities

GIVEN, ANY_LAW, ANY = "given", "any law", "any"
"""Modes of a gradient: GIVEN uses no random numbers, ANY_LAW uses random weights of the law, and
ANY also uses random real constants of the loss."""
DATA = ("start", "fixed", "law", "sample")
"""The table of a risk contains the results of these functions as numbers. A real constant that one
of these functions takes is never replaced by a random number."""
SAME_WEIGHT = 1e-13
"""Two weights of a law with at most this relative difference are replaced by one random number."""
NUMBERS = 1 << 23
"""Approximate maximum number of field elements in one evaluation at several points."""


class FieldGradient:
    """Gradient of a risk, evaluated in a finite field from the table of the risk.

    `labels`, shape (samples,), has the class of each sample of the law. With `decay`, a random
    multiple of each point is added to its gradient, as weight decay of any strength does. `loose`
    names the real constants that only the loss uses; these can be random.
    """

    def __init__(
        self,
        table: ReducedRisk,
        made: Realization,
        data: Data,
        labels: IntArray,
        generator: np.random.Generator,
        decay: bool = False,
    ) -> None:
        self.table, self.data, self._labels = table, data, labels
        self._generator, self._decay = generator, decay
        values = table.values
        self.inputs = np.concatenate([table.scalars, [*table.reals.values()], table.weights])
        self.inputs = self.inputs.astype(np.int64)
        reals = np.array([float(made.data.reals[name]) for name in table.reals])
        own = self.numbers(reals)
        weights = np.zeros(0) if made.law is None else made.law.weights
        distinct, alike = _alike(weights)
        unknown = field.drawn(generator, distinct.size)[alike]
        given = field.data_triples(distinct, field.on_grid)[alike]
        arguments = made.model.arguments
        taken = {name for role in DATA for name in arguments.get(role, ())}
        self.loose = [name for name in table.reals if name not in taken]
        some, free = own.copy(), [name in self.loose for name in table.reals]
        some[free] = field.drawn(generator, len(self.loose))
        self._fixed = {
            GIVEN: np.concatenate([own, self._summed(given)]),
            ANY_LAW: np.concatenate([own, self._summed(unknown)]),
            ANY: np.concatenate([some, self._summed(unknown)]),
        }
        self._gradient = Identities(values, table.gradient)

    def numbers(self, numbers: FloatArray) -> Triples:
        """Field elements, shape (n, 3), of floats, rounded like the constants of the table."""
        ids = self.table.values.constants(numbers)
        return self.table.values.triples[ids]

    def _summed(self, weights: Triples) -> Triples:
        """Sum of the weights of each class of samples, as field elements."""
        sums = np.zeros((self.table.weights.size, 3), dtype=np.uint64)
        np.add.at(sums, self._labels, weights)
        return sums % field.PRIMES

    def of(self, how: str) -> Gradient:
        """Gradient in the finite field; `how` selects the random numbers in it (see `GIVEN`)."""
        most = max(1, NUMBERS // max(1, len(self.table.values)))

        def at(points: Triples) -> Triples:
            parts = np.split(points, range(most, points.shape[1], most), axis=1)
            slopes = np.concatenate([self._at(self._gradient, p, how) for p in parts], axis=1)
            if not self._decay:
                return slopes
            strengths = field.drawn(self._generator, points.shape[1])
            return field.add(slopes, field.multiply(strengths, points))

        return at

    def values(self, ids: Ids, point: Triples) -> Triples:
        """Field elements, shape (m, 3), of table values `ids` at one point of shape (n, 3)."""
        return self._at(Identities(self.table.values, ids), point[:, None], GIVEN)[:, 0]

    def _at(self, identities: Identities, points: Triples, how: str) -> Triples:
        fixed = np.repeat(self._fixed[how][:, None], points.shape[1], axis=1)
        return identities.at(self.inputs, np.concatenate([points, fixed]))


def _alike(weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct weights, and the label of each weight; nearly equal weights are merged."""
    order = np.argsort(weights, kind="stable")
    near = np.diff(weights[order]) <= SAME_WEIGHT * np.abs(weights[order][1:])
    label = np.zeros(weights.size, dtype=np.int64)
    label[order] = np.cumsum(np.r_[False, ~near])[: weights.size]
    distinct = np.zeros(int(label.max(initial=-1)) + 1)
    distinct[label] = weights
    return distinct, label
