r"""Small cases with a symbol for every entry, differentiated through the exponentials.

`tokens` is one sample of three tokens, differentiated by every weight; `patterns` three patterns
with free numbers of tokens, differentiated by H and B. Derivatives come out as polynomials in the
attention: the exponentials are written back, and the last entry of a column goes by its sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy

from theory.systems.shallow_vit import model
from theory.systems.shallow_vit.model import D, L, S, X, d, m, m_a, m_b
from theory.systems.shallow_vit.recursion import B, E, H, M, P, T
from theory.systems.shallow_vit.recursion import D as BACKWARD

TOKENS = {d: 2, m_a: 1, m_b: 1, m: 1, L: 3}
"""Sizes of the sample that is written out; products of matrices are sound for all."""
PATTERNS = {M: 3, m: 2}
"""Sizes of the patterns that are written out."""


class Exponential(sympy.Function):  # type: ignore[misc]
    """The exponential, without merging products of several into one."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Its derivative is itself."""
        del argindex
        return self


def attention_of_tokens(counts: tuple[int, ...]) -> list[bool]:
    """Whether the attention of tokens, summed over those of a pattern, is P: pair by pair."""
    size = len(counts)
    scores = model.free(B, {M: size})
    pattern = np.repeat(np.arange(size), counts).tolist()
    tokens = sympy.Matrix(len(pattern), len(pattern), lambda i, j: scores[pattern[i], pattern[j]])
    attention, P = model.softmax(tokens), pattern_attention(scores, counts)
    held = []
    for i, column in itertools.product(range(size), range(len(pattern))):
        total = sympy.Add(*[attention[r, column] for r, p in enumerate(pattern) if p == i])
        held.append(sympy.cancel(sympy.together(total - P[i, pattern[column]])) == 0)
    return held


def pattern_attention(
    scores: sympy.Matrix, counts: Sequence[Any], exponential: Any = sympy.exp
) -> sympy.Matrix:
    """P of explicit scores: counts times exponentials, over the sum of the column."""
    weights = sympy.Matrix(*scores.shape, lambda i, j: counts[i] * exponential(scores[i, j]))
    return sympy.Matrix(*scores.shape, lambda i, j: weights[i, j] / sympy.Add(*weights.col(j)))


@dataclass(frozen=True)
class Written:
    """A small case with free entries, and the derivatives of its loss in terms of attention."""

    values: Mapping[Any, sympy.Matrix]
    slopes: Mapping[Any, tuple[sympy.Expr, ...]]
    rest: Mapping[Any, Any]

    def agrees(self, matrix: Any, expected: sympy.Matrix) -> list[bool]:
        """Entry by entry, whether a matrix of derivatives is as expected."""
        pairs = zip(self.slopes[matrix], expected, strict=True)
        return [sympy.expand(claimed.xreplace(self.rest)) == slope for slope, claimed in pairs]


@cache
def tokens() -> Written:
    """Three tokens, differentiated by every weight through the exponentials."""
    values = {s: model.free(s, TOKENS) for s in (*model.TRAINED, X, D)}
    scores = model.explicit(model.scores(), TOKENS, values)
    attention = model.free(S, TOKENS)
    back = _back(scores.applyfunc(Exponential), attention)
    seen = values | {S: model.softmax(scores, Exponential)}
    loss = _inner(model.explicit(model.hidden(), TOKENS, seen), values[D])
    given = values | {S: attention}
    given[model.DZ] = model.explicit(model.by_scores(), TOKENS, given)
    slopes = {matrix: _slopes(loss, values[matrix], back) for matrix in model.TRAINED}
    return Written(given, slopes, back[2])


@cache
def patterns() -> Written:
    """Three patterns with free numbers of tokens, differentiated by H and B."""
    scores, hidden, slope = (model.free(s, PATTERNS) for s in (B, H, BACKWARD))
    counts = sympy.symbols(f"c_1:{PATTERNS[M] + 1}", positive=True)
    seen = pattern_attention(scores, counts, Exponential)
    attention = model.free(P, PATTERNS)
    weights = sympy.Matrix(*scores.shape, lambda i, j: counts[i] * Exponential(scores[i, j]))
    sums, parts, rest = _back(weights, attention)
    parts = {
        Exponential(scores[i, j]): parts[weights[i, j]] / counts[i]
        for i in range(scores.rows)
        for j in range(scores.cols)
    }
    loss = _inner(hidden * seen, slope)
    slopes = {E: _slopes(loss, hidden, (sums, parts, rest))}
    slopes[T] = _slopes(loss, scores, (sums, parts, rest))
    return Written({P: attention, H: hidden, BACKWARD: slope}, slopes, rest)


def _slopes(loss: sympy.Expr, entries: sympy.Matrix, back: Any) -> tuple[sympy.Expr, ...]:
    """Derivatives of a loss by every entry, as polynomials in the attention."""
    sums, parts, rest = back
    found = (sympy.diff(loss, entry).xreplace(sums).xreplace(parts) for entry in entries)
    return tuple(sympy.expand(slope.xreplace(rest)) for slope in found)


def _back(
    weights: sympy.Matrix, attention: sympy.Matrix
) -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]:
    """Totals of columns, their terms as attention, and the last of each column by the sum."""
    totals = sympy.symbols(f"tot_:{weights.cols}", positive=True)
    last = weights.rows - 1
    sums = {sympy.Add(*weights.col(j)): totals[j] for j in range(weights.cols)}
    parts = {
        weights[i, j]: totals[j] * attention[i, j]
        for i in range(weights.rows)
        for j in range(weights.cols)
    }
    rest = {
        attention[last, j]: 1 - sympy.Add(*[attention[i, j] for i in range(last)])
        for j in range(weights.cols)
    }
    return sums, parts, rest


def _inner(first: sympy.Matrix, second: sympy.Matrix) -> sympy.Expr:
    return sympy.Add(*first.multiply_elementwise(second))
