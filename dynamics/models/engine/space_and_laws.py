"""The linear space in which training stays, and the laws that it keeps, along a run.

Both are sought by gradients: at random points, and at some states of a run. Where the run itself
leaves the space, or changes a law, there may be states between at which the gradient does (a short
event of training), or rounding has grown. So states from that part of the run are added, and the
gradient there decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from theory.closure.conservation import ConservationLaw, conservation_laws
from theory.closure.linear import LinearSpace, linear_space
from theory.closure.partition import EntryClasses
from theory.law import FloatArray

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization

SpaceAndLaws = tuple[LinearSpace, tuple[ConservationLaw, ...]]

SEED = 20240
"""Seed of the points at which closures are checked."""
MOST_LOOKS = 4
"""Times at which states are added."""
OUTSIDE = 1e-9
"""Part of its way by which a run may be outside a space, or change a linear law, unasked."""
CHANGED = 1e-3
"""The same of a quadratic law, which finite steps change."""


def space_and_laws(
    made: Realization,
    classes: EntryClasses,
    visited: Sequence[FloatArray],
    along: Mapping[int, FloatArray],
    between: Callable[[int, int], list[FloatArray]],
) -> SpaceAndLaws:
    """The linear space and the laws of training on the classes.

    Parameters
    ----------
    made : Realization
    classes : EntryClasses
    visited : sequence of float arrays, shape (n,)
        States of a run at which they must hold.
    along : mapping
        Step -> state of the run, shape (n,), ascending.
    between : callable
        First and last step -> states of the run from one to the other.
    """
    seen, steps = list(visited), list(along)
    space, laws = _sought(made, classes, seen)
    for _ in range(MOST_LOOKS):
        numbers = departures(classes, space, laws, list(along.values()))
        if not numbers:
            break
        for k in numbers:
            seen += between(steps[k - 1] if k else 0, steps[k])
        found = _sought(made, classes, seen)
        if found[0].free == space.free and len(found[1]) == len(laws):
            break
        space, laws = found
    return space, laws


def _sought(made: Realization, classes: EntryClasses, seen: Sequence[FloatArray]) -> SpaceAndLaws:
    space = linear_space(made.training, classes, np.random.default_rng(SEED + 1), seen)
    if made.only_sampled:
        return space, ()
    generator = np.random.default_rng(SEED + 2)
    return space, conservation_laws(made.training, classes, space, generator, seen)


def departures(
    classes: EntryClasses,
    space: LinearSpace,
    laws: Sequence[ConservationLaw],
    states: Sequence[FloatArray],
) -> list[int]:
    """States of a run before which it has gone out of a space most, or has changed a law most.

    Parameters
    ----------
    classes : EntryClasses
    space : LinearSpace
    laws : sequence of ConservationLaw
    states : sequence of float arrays, shape (n,)
        Of the run, in order.

    Returns
    -------
    list of int
        Numbers of the states, ascending; none for what the run stays in, and keeps.
    """
    everywhere = space.free == classes.count
    if not states or not classes.count or (everywhere and not laws):
        return []
    scalars = np.array([state[classes.first] for state in states])
    series: list[tuple[FloatArray, float]] = []
    if not everywhere:
        start, roots = classes.start[classes.first], np.sqrt(classes.sizes)
        moved = (scalars - start) * roots
        basis = np.linalg.qr(space.basis * roots[:, None])[0]
        size = max(float(np.linalg.norm(moved, axis=1).max()), 1e-300)
        series = [(np.linalg.norm(moved - moved @ basis @ basis.T, axis=1) / size, OUTSIDE)]
    for law in laws:
        values = law.at(scalars)
        terms = replace(law, coefficients=tuple(map(abs, law.coefficients)))
        scale = max(float(terms.at(np.abs(scalars)).max()), abs(law.value), 1e-300)
        # A step changes a quadratic law of the flow by its own square.
        series.append((np.abs(values - law.value) / scale, OUTSIDE if law.degree == 1 else CHANGED))
    return sorted({
        int(np.abs(np.diff(values, prepend=0.0)).argmax())
        for values, limit in series if float(values.max()) > limit
    })  # fmt: skip
