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

from theory.claims import Exponential
from theory.systems.shallow_vit import model
from theory.systems.shallow_vit.model import D, L, S, X, d, m, m_a, m_b
from theory.systems.shallow_vit.recursion import B, E, H, M, P, T
from theory.systems.shallow_vit.recursion import D as BACKWARD

TOKENS = {d: 2, m_a: 1, m_b: 1, m: 1, L: 3}
"""Sizes of the sample that is written out; products of matrices are sound for all."""
PATTERNS = {M: 3, m: 2}
"""Sizes of the patterns that are written out."""


def attention_of_tokens(counts: tuple[int, ...]) -> list[bool]:
    """Whether the attention of tokens, summed over those of a pattern, is P: pair by pair."""
    size = len(counts)
    scores = model.free(B, {M: size})
    pattern = np.repeat(np.arange(size), counts).tolist()
    tokens = sympy.Matrix(len(pattern), len(pattern), lambda i, j: scores[pattern[i], pattern[j]])
    attention, P = model.column_softmax(tokens), pattern_attention(scores, counts)
    held = []
    for i, column in itertools.product(range(size), range(len(pattern))):
        total = sympy.Add(*[attention[r, column] for r, p in enumerate(pattern) if p == i])
        held.append(sympy.cancel(sympy.together(total - P[i, pattern[column]])) == 0)
    return held


def pattern_attention(
    scores: sympy.Matrix, counts: Sequence[Any], exponential: Any = sympy.exp
) -> sympy.Matrix:
    """P of explicit scores: counts times exponentials, over the sum of the column.

    Parameters
    ----------
    scores : sympy.Matrix, shape (M, M)
        B.
    counts : sequence of M numbers or symbols
    exponential : callable
        Stands for the exponential.
    """
    weights = _weights(scores, counts, exponential)
    return sympy.Matrix(*scores.shape, lambda i, j: weights[i, j] / sympy.Add(*weights.col(j)))


def _weights(scores: sympy.Matrix, counts: Sequence[Any], exponential: Any) -> sympy.Matrix:
    return sympy.Matrix(*scores.shape, lambda i, j: counts[i] * exponential(scores[i, j]))


@dataclass(frozen=True)
class ExplicitCase:
    """A small case with free entries, and the derivatives of its loss in terms of attention."""

    values: Mapping[Any, sympy.Matrix]
    slopes: Mapping[Any, tuple[sympy.Expr, ...]]
    rest: Mapping[Any, Any]

    def agrees(self, matrix: Any, expected: sympy.Matrix) -> list[bool]:
        """Entry by entry, whether a matrix of derivatives is as expected."""
        pairs = zip(self.slopes[matrix], expected, strict=True)
        return [sympy.expand(claimed.xreplace(self.rest)) == slope for slope, claimed in pairs]


@cache
def tokens() -> ExplicitCase:
    """Three tokens, differentiated by every weight through the exponentials."""
    values = {s: model.free(s, TOKENS) for s in (*model.TRAINED, X, D)}
    scores = model.explicit(model.scores(), TOKENS, values)
    attention = model.free(S, TOKENS)
    back = _back(scores.applyfunc(Exponential), attention)
    attended = values | {S: model.column_softmax(scores, Exponential)}
    loss = _inner(model.explicit(model.hidden(), TOKENS, attended), values[D])
    entries = values | {S: attention}
    entries[model.DZ] = model.explicit(model.by_scores(), TOKENS, entries)
    slopes = {matrix: _slopes(loss, values[matrix], back) for matrix in model.TRAINED}
    return ExplicitCase(entries, slopes, back[2])


@cache
def patterns() -> ExplicitCase:
    """Three patterns with free numbers of tokens, differentiated by H and B."""
    scores, hidden, slope = (model.free(s, PATTERNS) for s in (B, H, BACKWARD))
    counts = sympy.symbols(f"c_1:{PATTERNS[M] + 1}", positive=True)
    attended = pattern_attention(scores, counts, Exponential)
    attention = model.free(P, PATTERNS)
    weights = _weights(scores, counts, Exponential)
    sums, parts, rest = _back(weights, attention)
    parts = {
        Exponential(scores[i, j]): parts[weights[i, j]] / counts[i]
        for i, j in np.ndindex(*scores.shape)
    }
    loss = _inner(hidden * attended, slope)
    slopes = {name: _slopes(loss, m, (sums, parts, rest)) for name, m in ((E, hidden), (T, scores))}
    return ExplicitCase({P: attention, H: hidden, BACKWARD: slope}, slopes, rest)


def _slopes(loss: sympy.Expr, entries: sympy.Matrix, back: Any) -> tuple[sympy.Expr, ...]:
    """Derivatives of a loss by every entry, as polynomials in the attention."""
    sums, parts, rest = back
    derivatives = (sympy.diff(loss, entry).xreplace(sums).xreplace(parts) for entry in entries)
    return tuple(sympy.expand(slope.xreplace(rest)) for slope in derivatives)


def _back(
    weights: sympy.Matrix, attention: sympy.Matrix
) -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]:
    """Totals of columns, their terms as attention, and the last of each column by the sum."""
    totals = sympy.symbols(f"tot_:{weights.cols}", positive=True)
    last = weights.rows - 1
    sums = {sympy.Add(*weights.col(j)): totals[j] for j in range(weights.cols)}
    parts = {weights[i, j]: totals[j] * attention[i, j] for i, j in np.ndindex(*weights.shape)}
    rest = {
        attention[last, j]: 1 - sympy.Add(*[attention[i, j] for i in range(last)])
        for j in range(weights.cols)
    }
    return sums, parts, rest


def _inner(first: sympy.Matrix, second: sympy.Matrix) -> sympy.Expr:
    return sympy.Add(*first.multiply_elementwise(second))
