r"""First integrals of the flow: a function of one scalar plus a function of another scalar.

If the ratio of the rates of two scalars :math:`x` and :math:`y` is the product of a function of
each,

.. math:: \dot x / \dot y = a(x)\, b(y),

the flow conserves :math:`\int dx / a(x) - \int b(y)\, dy`. Pairs of scalars with a separable ratio
of rates are found at random states, and sympy computes both integrals. Gradient descent conserves a
first integral only up to order :math:`\eta`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import sympy
from sympy.integrals.manualintegrate import manualintegrate

from theory.law import FloatArray
from theory.program.symbolic import SIMPLIFIED, Parts, size

SAME = 1e-9
"""Two ratios of rates with at most this relative difference are equal."""
SCALES, TRIALS = (1.0, 0.3, 0.1), 4
"""Standard deviations of random displacements from the start, and number of draws with each."""
PLACES = tuple(map(sympy.Rational, ("1", "2", "1/3", "5/7")))
"""Absolute values tried for both scalars until all ratios of their rates are finite and nonzero."""
U, V = sympy.symbols("_u _v", positive=True)
"""Symbols for the absolute values of the two scalars of a first integral."""

Rates = Callable[[FloatArray], FloatArray]
Pair = tuple[int, int]


def separating_pairs(
    rates: Rates, start: FloatArray, known: Iterable[Collection[int]], draw: np.random.Generator
) -> list[Pair]:
    """Pairs (x, y) of scalars with a ratio of rates of the form a(x) b(y).

    A pair is omitted if a conservation law in `known` has no scalars outside the pair. A pair is
    also omitted if the rate of each scalar depends only on this scalar, because every such pair has
    a first integral.
    """
    count, joined = start.size, [set(law) for law in known]
    one, other = states_near(rates, start, 2, draw)
    base, moved = rates(one), np.array([rates(_with(one, other, (k,))) for k in range(count)])
    alone = [_alike(np.delete(moved[:, i], i), base[i]) for i in range(count)]

    def separates(i: int, j: int) -> bool:
        if any(law <= {i, j} for law in joined) or (alone[i] and alone[j]):
            return False
        ratio, ratios = base[i] / base[j], moved[:, i] / moved[:, j]
        if not ratio or not _alike(np.delete(ratios, [i, j]), ratio):
            return False
        both = rates(_with(one, other, (i, j)))
        return _alike(ratio * both[i] / both[j], ratios[i] * ratios[j])

    with np.errstate(all="ignore"):
        return [pair for pair in combinations(range(count), 2) if separates(*pair)]


def states_near(
    rates: Rates, start: FloatArray, count: int, draw: np.random.Generator
) -> FloatArray:
    """Random states with finite rates, shape (count, n); copies of the start fill the array."""
    found: list[FloatArray] = []
    for scale in SCALES * (TRIALS * count):
        if len(found) == count:
            break
        state = start + scale * draw.standard_normal(start.size)
        if np.isfinite(rates(state)).all():
            found.append(state)
    return np.array([*found, *[start] * (count - len(found))])


def _with(one: FloatArray, other: FloatArray, places: Collection[int]) -> FloatArray:
    """Copy of the state `one` in which the entries at `places` are those of the state `other`."""
    state = one.copy()
    state[list(places)] = other[list(places)]
    return state


def _alike(numbers: FloatArray, number: float) -> bool:
    """Whether all numbers are finite and equal to one number, up to rounding."""
    return bool((np.abs(numbers - number) <= SAME * np.abs(number)).all())


def first_integral(
    letters: tuple[sympy.Symbol, sympy.Symbol],
    slopes: tuple[sympy.Expr, sympy.Expr],
    parts: Parts,
    constants: Collection[sympy.Symbol] = (),
) -> sympy.Expr | None:
    """First integral f(x) + g(y) of two scalars x and y, or None if sympy finds none.

    The symbols x and y are `letters`, and `slopes` holds their gradients in terms of the named
    subexpressions `parts`. The integral is scaled so that the first term in x has the coefficient
    1. The integral may also contain the symbols `constants`.

    Examples
    --------
    >>> x, y = sympy.symbols("x y", real=True)
    >>> first_integral((x, y), (x * (1 + 2 * y * abs(y)), 2 * x**2 * abs(y)), [])
    x**2 - y**2 - log(Abs(y))*sign(y)
    """
    ratios = {}
    for signs in ((1, 1), (-1, 1), (1, -1)):
        where = {letters[0]: signs[0] * U, letters[1]: signs[1] * V}
        ratio = _ratio(slopes, parts, where)
        if ratio is None or not ratio.free_symbols <= {U, V, *constants}:
            return None
        ratios[signs] = ratio
    held = next((place for place in PLACES if _regular(ratios, place)), None)
    if held is None:
        return None
    at = ratios[1, 1].subs({U: held, V: held})
    of_x = [sympy.cancel(1 / ratios[sign, 1].subs(V, held)) for sign in (1, -1)]
    of_y = [sympy.cancel(ratios[1, sign].subs(U, held) / at) for sign in (1, -1)]
    f, g = _integral(of_x, U, letters[0]), _integral(of_y, V, letters[1])
    if f is None or g is None:
        return None
    return _scaled(f, g, letters)


def _ratio(
    slopes: tuple[sympy.Expr, sympy.Expr], parts: Parts, where: Mapping[sympy.Symbol, sympy.Expr]
) -> sympy.Expr | None:
    """Quotient of the two slopes, after substitution of `where` and of the named `parts`."""
    above, below = (slope.xreplace(where) for slope in slopes)
    found = _cancelled(above / below)  # named common factors cancel before they are expanded
    for name, part in reversed(parts):
        if found is not None and found.has(name):
            found = _cancelled(found.xreplace({name: part.xreplace(where)}))
    return found


def _cancelled(quotient: sympy.Expr) -> sympy.Expr | None:
    """Quotient without common factors, or None if it is too long or has a case distinction."""
    if size(quotient, SIMPLIFIED) > SIMPLIFIED or quotient.has(sympy.Piecewise, sympy.Max):
        return None
    return sympy.cancel(quotient)


def _regular(ratios: Mapping[tuple[int, int], sympy.Expr], place: sympy.Expr) -> bool:
    """Whether all ratios of rates are finite and nonzero if both scalars have the size `place`."""
    values = [ratio.subs({U: place, V: place}) for ratio in ratios.values()]
    return all(value.is_zero is False and value.is_finite is not False for value in values)


def _integral(
    branches: Sequence[sympy.Expr], size_: sympy.Symbol, letter: sympy.Symbol
) -> sympy.Expr | None:
    """Antiderivative of a function with two formulas, for positive and for negative `letter`."""
    above, below = branches
    first = manualintegrate(sympy.expand(above), size_)
    if sympy.cancel(below - above.subs(size_, -size_)) == 0:  # one formula for both signs
        whole = _of_sizes(first.subs(size_, letter))
    else:
        second = _of_sizes(-manualintegrate(sympy.expand(below), size_))
        even, odd = (sympy.expand((_of_sizes(first) + sign * second) / 2) for sign in (1, -1))
        whole = (even + sympy.sign(letter) * odd).subs(size_, sympy.Abs(letter))
    return None if whole.has(sympy.Integral, sympy.I, sympy.nan) else whole


def _of_sizes(integral: sympy.Expr) -> sympy.Expr:
    """Integral with log(x) replaced by log(abs(x))."""
    real = integral.replace(sympy.log, lambda x: sympy.log(sympy.Abs(x)))
    return sympy.expand(real)


def _scaled(f: sympy.Expr, g: sympy.Expr, letters: tuple[sympy.Symbol, sympy.Symbol]) -> sympy.Expr:
    """Difference f - g without constants, scaled so that the first coefficient in f is 1."""
    terms = [term.as_independent(*letters) for term in sympy.Add.make_args(sympy.expand(f - g))]
    lead = next(c for c, rest in terms if rest.has(letters[0]))
    return sympy.Add(*(sympy.cancel(c / lead) * rest for c, rest in terms if rest != 1))


def change(
    law: sympy.Expr, letters: tuple[sympy.Symbol, sympy.Symbol], rates: tuple[float, float],
    at: Mapping[sympy.Symbol, float],
) -> float:  # fmt: skip
    """Absolute rate of change of f(x) + g(y) at a state, relative to the larger rate of f or g."""
    slopes = [
        sympy.diff(law, letter).replace(sympy.DiracDelta, lambda *_: sympy.S.Zero)
        for letter in letters
    ]
    terms = [float(slope.subs(at)) * rate for slope, rate in zip(slopes, rates, strict=True)]
    return abs(sum(terms)) / (max(map(abs, terms)) or 1.0)
