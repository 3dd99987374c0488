"""Proofs of the exact statements of the theory by computation.

Statements are typed in this file and compared with expressions that `model` and `recursion` derive.
The gradients are also checked in a small case, one sample with three tokens. The loss of the small
case has a symbol for every entry of the weights, of X and of D, and is differentiated by every
weight. These derivatives, written in the attention :math:`S_{il}`, are compared with
`model.gradients`. In a second small case, three patterns with symbolic token counts, the loss is
differentiated by H and B.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from theory.claims import Evidence, Exponential
from theory.papers.shallow_vit import model, recursion
from theory.papers.shallow_vit.model import W_K, W_O, W_Q, W_V, A, D, L, S, X, contract, terms
from theory.papers.shallow_vit.notation import NOTATION
from theory.papers.shallow_vit.recursion import G_K, G_Q, G_V, GAMMA, B, E, H, J, K, M, P, Q, T, V
from theory.papers.shallow_vit.recursion import D as BACKWARD
from theory.papers.shallow_vit.symmetry import (
    named,
    orbit_means,
    pattern_group,
    scalars,
    unordered,
)
from theory.symmetry import classes

d, m, m_a, m_b, eta = model.d, model.m, model.m_a, model.m_b, recursion.eta
SYMMETRIC = recursion.SYMMETRIC
Stated = Mapping[Any, Any]
"""Mapping from each matrix or scalar to an expression that is typed in this file."""

TOKENS = {d: 2, m_a: 1, m_b: 1, m: 1, L: 3}
"""Sizes of the small case of one sample, whose matrices are written out entry by entry."""
PATTERNS = {M: 3, m: 2}
"""Sizes of the small case of three patterns, whose matrices are written out entry by entry."""


def attention_of_tokens(counts: tuple[int, ...]) -> list[bool]:
    """Whether each query's attention to all tokens of a pattern sums to the entry of P."""
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
    """Attention P from scores B: counts times exponentials, divided by their column sums."""
    weights = _weights(scores, counts, exponential)
    totals = [sympy.Add(*weights.col(j)) for j in range(weights.cols)]
    return sympy.Matrix(*scores.shape, lambda i, j: weights[i, j] / totals[j])


def _weights(scores: sympy.Matrix, counts: Sequence[Any], exponential: Any) -> sympy.Matrix:
    return sympy.Matrix(*scores.shape, lambda i, j: counts[i] * exponential(scores[i, j]))


@dataclass(frozen=True)
class ExplicitCase:
    """Small case with symbolic entries, and derivatives of its loss in terms of the attention."""

    values: Mapping[Any, sympy.Matrix]
    slopes: Mapping[Any, tuple[sympy.Expr, ...]]
    rest: Mapping[Any, Any]

    def agrees(self, matrix: Any, expected: sympy.Matrix) -> list[bool]:
        """Whether the derivative of the loss by each entry of a matrix equals the expected one."""
        pairs = zip(self.slopes[matrix], expected, strict=True)
        return [sympy.expand(claimed.xreplace(self.rest)) == slope for slope, claimed in pairs]


@cache
def tokens() -> ExplicitCase:
    """Small case of three tokens, with derivatives by every weight."""
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
    """Small case of three patterns with symbolic counts; derivatives by H = W_O V and scores B."""
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
    """Derivatives of a loss by all entries of a matrix, as polynomials in the attention."""
    sums, parts, rest = back
    derivatives = (sympy.diff(loss, entry).xreplace(sums).xreplace(parts) for entry in entries)
    return tuple(sympy.expand(slope.xreplace(rest)) for slope in derivatives)


def _back(
    weights: sympy.Matrix, attention: sympy.Matrix
) -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]:
    """Mappings: column sums to symbols, weights to attention, its last row to the other rows."""
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


def stated_gradients() -> Stated:
    """Derivatives of the loss of one sample by the weights, typed by hand."""
    R = W_O.T * D
    return {
        W_O: D * (W_V * X * S).T,
        W_V: R * (X * S).T,
        W_K: (W_Q * X) * model.DZ.T * X.T,
        W_Q: (W_K * X) * model.DZ * X.T,
    }


def stated_closure() -> Stated:
    """Step of gradient descent on W_O, V, K and Q, typed by hand."""
    return {
        W_O: W_O - eta * E * V.T,
        V: V - eta * W_O.T * E * GAMMA,
        K: K - eta * Q * T.T * GAMMA,
        Q: Q - eta * K * T * GAMMA,
    }


def stated_gram() -> Stated:
    """Step of gradient descent on the inner products (`recursion.INNER`), typed by hand."""
    return {
        B: B - eta * (G_K * T * GAMMA + GAMMA * T * G_Q) + eta**2 * GAMMA * T * B.T * T * GAMMA,
        G_K: G_K
        - eta * (B * T.T * GAMMA + GAMMA * T * B.T)
        + eta**2 * GAMMA * T * G_Q * T.T * GAMMA,
        G_Q: G_Q
        - eta * (B.T * T * GAMMA + GAMMA * T.T * B)
        + eta**2 * GAMMA * T.T * G_K * T * GAMMA,
        H: H - eta * (E * G_V + J * E * GAMMA) + eta**2 * E * H.T * E * GAMMA,
        G_V: G_V - eta * (H.T * E * GAMMA + GAMMA * E.T * H) + eta**2 * GAMMA * E.T * J * E * GAMMA,
        J: J - eta * (E * H.T + H * E.T) + eta**2 * E * G_V * E.T,
    }


def gradients(stated: Stated | None = None) -> Evidence:
    """Check the gradients by all weights for all sizes, and entry by entry in a small case."""
    stated = stated_gradients() if stated is None else stated
    derived = model.gradients()
    same = _number_equal(derived, stated)
    case = tokens()
    written = [
        agrees
        for matrix in model.TRAINED
        for agrees in case.agrees(matrix, model.explicit(stated[matrix], TOKENS, case.values))
    ]
    findings = (
        f"all sizes: {same} of {len(stated)} matrix expressions equal",
        f"written out: equal for {sum(written)} of {len(written)} weights",
    )
    return Evidence(same == len(stated) and all(written), _sizes(TOKENS), findings)


def pattern_closure(stated: Stated | None = None) -> Evidence:
    """Check, for tokens without noise, the attention, the derivatives and the step of `closure`."""
    stated = stated_closure() if stated is None else stated
    sums = attention_of_tokens((2, 1, 1))
    derived, full = recursion.closure(), gradients()
    case, slopes = patterns(), recursion.pattern_slopes()
    expected = {name: model.explicit(slopes[name], PATTERNS, case.values) for name in (E, T)}
    agrees = [good for name, slope in expected.items() for good in case.agrees(name, slope)]
    same = _number_equal(derived, stated)
    findings = (
        f"tokens of one pattern summed give P: {sum(sums)} of {len(sums)} pairs, counts (2, 1, 1)",
        f"dLoss/dH = E, dLoss/dB = T written out: {sum(agrees)} of {len(agrees)} entries",
        f"steps of W_O, V, K, Q for all sizes and any Gamma: {same} of {len(stated)} equal",
        *full.findings,
    )
    holds = all(sums) and all(agrees) and same == len(stated) and bool(full.holds)
    return Evidence(holds, _sizes(PATTERNS) + "; counts, H, B, D free", findings)


def gram_form(stated: Stated | None = None) -> Evidence:
    """Compare typed steps of the inner products with those derived from steps of W_O, V, K, Q."""
    stated = stated_gram() if stated is None else stated
    derived = recursion.gram()
    findings, holds = [], True
    for matrix, value in stated.items():
        equal = _equal(derived[matrix], value)
        holds &= equal
        words = len(terms(derived[matrix]))
        findings.append(f"{matrix}: {words} products, {'equal' if equal else 'different'}")
    named_only = all(_closed(value) for value in derived.values())
    findings.append("only H, G_V, J, B, G_K, G_Q, E, T and Gamma appear" * named_only)
    return Evidence(holds and named_only, "all sizes, any Gamma, all symbols free", tuple(findings))


def collapse(sizes: Sequence[int] = (4, 5), step: Stated | None = None) -> Evidence:
    """Compare the steps of the 16 scalars with a step of matrices that are constant on the orbits.

    The matrices are written out for the numbers M of patterns in `sizes`. Products of matrices that
    are constant on the orbits are constant on them too, so one entry per orbit is compared.
    """
    step = recursion.collapse() if step is None else step
    findings, holds = [f"scalars: {len(scalars(5))} for every M > 3, {len(scalars(3))} for 3"], True
    one = {name: str(mean) for name, mean in orbit_means(5).items()}
    for size in sizes:
        means = {name: str(mean) for name, mean in orbit_means(size).items()}
        equal = _explicit_collapse(size, step)
        holds &= all(equal) and means == one
        findings.append(f"M = {size}: {sum(equal)} of {len(equal)} steps equal")
    findings += [f"t_{name} = {mean}" for name, mean in one.items()]
    return Evidence(holds, f"M = {', '.join(map(str, sizes))}; scalars and t free", tuple(findings))


def margin_and_weights(first: Any = None, second: Any = None) -> Evidence:
    """Check that training is the same for two scalings of output weights, margin and eta."""
    neurons, rate = NOTATION.symbols("m eta")
    root = sympy.sqrt(neurons)
    (a1, g1, e1) = first or (1 / neurons, sympy.Integer(1), root * rate)
    (a2, g2, e2) = second or (1 / root, root, rate)
    factor, f, y = sympy.symbols("s f y", real=True)
    linear = _linear_in_a(factor)
    same = {
        "F is proportional to a": linear,
        "steps, eta times the size of a": sympy.simplify(e1 * a1 - e2 * a2) == 0,
        "activity, yF < margin": sympy.simplify(g1 / a1 - g2 / a2) == 0,
        "loss over margin": sympy.simplify((1 - y * a1 * f / g1) - (1 - y * a2 * f / g2)) == 0,
    }
    findings = tuple(f"{name}: {'equal' if held else 'different'}" for name, held in same.items())
    return Evidence(all(same.values()), "m, eta, F free", findings)


def _equal(first: Any, second: Any) -> bool:
    plain = (contract(value, {}, SYMMETRIC) for value in (first, second))
    one, two = map(terms, plain)
    return one == two


def _number_equal(derived: Stated, stated: Stated) -> int:
    """Number of typed expressions that equal the derived expressions."""
    return sum(_equal(derived[matrix], value) for matrix, value in stated.items())


def _closed(value: Any) -> bool:
    allowed = {H, G_V, J, B, G_K, G_Q, E, T, GAMMA}
    return all(factor in allowed or factor.T in allowed for word in terms(value) for factor in word)


def _sizes(sizes: Mapping[Any, int]) -> str:
    listed = ", ".join(f"{name} = {number}" for name, number in sizes.items())
    return f"all sizes as matrix expressions; every entry free at {listed}"


def _linear_in_a(factor: sympy.Symbol) -> bool:
    """Whether the output F and the derivative D of the loss are linear in the output weights."""
    scaled = {A: factor * A}
    output = (model.output().subs(scaled) - factor * model.output()).doit()
    difference = model.backward().subs(scaled) - factor * model.backward()
    sizes = {m: 2, L: 2}
    entries = {s: model.free(s, sizes) for s in (A, model.GATES)}
    back = model.explicit(difference, sizes, entries).expand()
    return bool(sympy.simplify(output) == 0 and back == sympy.zeros(2, 2))


def _explicit_collapse(size: int, step: Stated) -> list[bool]:
    """Whether each orbit's entry of a stepped matrix B, G_K or G_Q is the stepped scalar."""
    orbits = classes(pattern_group(size))
    values = {B: _constant("B", named(orbits)), T: _constant("t", named(orbits))}
    even = named(unordered(orbits))
    values |= {matrix: _constant(matrix.name, even) for matrix in (G_K, G_Q)}
    both = values | {matrix.T: value.T for matrix, value in values.items()}
    held = []
    for matrix in (B, G_K, G_Q):
        plain = contract(recursion.gram()[matrix].subs(GAMMA, sympy.Identity(M)), {}, SYMMETRIC)
        parts = model.evaluate(plain, both, operator.mul)
        for pair in orbits.representatives:
            moved = sympy.Add(*[coefficient * value[pair] for coefficient, value in parts])
            scalar = step[values[matrix][pair]].subs(M, size)
            held.append(sympy.expand(moved - scalar) == 0)
    return held


def _constant(code: str, pairs_of: Mapping[str, NDArray[np.int64]]) -> sympy.Matrix:
    """Matrix with the symbol ``<code>_<class>`` for all entries of each class of pairs."""
    size = max(int(pairs.max()) for pairs in pairs_of.values()) + 1
    result = sympy.zeros(size, size)
    for name, pairs in pairs_of.items():
        for i, j in pairs.tolist():
            result[i, j] = NOTATION.symbol(f"{code}_{name}")
    return result
