r"""Reduced dynamics: steps of W_O, V, K and Q, of inner products, and of 16 attention scalars.

Without noise every token is one of M patterns, the columns of :math:`\mu`. Let :math:`V = W_V \mu`,
:math:`K = W_K \mu` and :math:`Q = W_Q \mu`. The network depends on its weights only through
:math:`H = W_O V` and :math:`B = K^\top Q`. With token counts c of patterns and output weights a,

.. math::
   P_{ij} = \frac{c_i e^{B_{ij}}}{\sum_k c_k e^{B_{kj}}}, \quad U = HP, \quad
   F = \frac1L \sum_{ij} a_i c_j\, \mathrm{relu}(U_{ij}).

`pattern_slopes` differentiates the loss by H and B. From the derivatives by H and B, the chain rule
gives `closure`, a step of gradient descent on :math:`(W_O, V, K, Q)`, with :math:`\Gamma = \mu^\top
\mu`. Expanding the inner products after one step gives `gram`, a recursion on the inner products
alone (`INNER`). For matrices that are constant on the classes of `symmetry`, matrix products reduce
to products of scalars for every M; this gives `collapse`.

If a depends on the position, only the derivative D of the loss by U changes: :math:`a_i c_j` is
replaced by the sum of :math:`a_i` over the positions of tokens of pattern j. Only the derivatives E
by H and T by B are averaged over samples (``weighted``), so the steps also hold for mini-batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import sympy
from sympy import MatrixSymbol, Trace

from theory.page import Entries, functions
from theory.papers.shallow_vit import model
from theory.papers.shallow_vit.model import W_K, W_O, W_Q, W_V, contract, d, evaluate, m, m_a, m_b
from theory.papers.shallow_vit.notation import EVEN_PAIRS, NOTATION, PAIRS

M, L, eta, margin, y = NOTATION.symbols("M L eta margin y")
n_star, n_confusion = NOTATION.symbols("n_star n_confusion")
n_other = sympy.Symbol("n_other", nonnegative=True)
"""Number of tokens of each non-discriminative pattern, if it is the same for all of them."""

MU = MatrixSymbol("mu", d, M)
GAMMA = MatrixSymbol("Gamma", M, M)
V = MatrixSymbol("V", m_a, M)
K = MatrixSymbol("K", m_b, M)
Q = MatrixSymbol("Q", m_b, M)
H = MatrixSymbol("H", m, M)
B = MatrixSymbol("B", M, M)
G_V = MatrixSymbol("G_V", M, M)
G_K = MatrixSymbol("G_K", M, M)
G_Q = MatrixSymbol("G_Q", M, M)
J = MatrixSymbol("J", m, m)
P = MatrixSymbol("P", M, M)
D = MatrixSymbol("D", m, M)
E = MatrixSymbol("E", m, M)
RHO = MatrixSymbol("rho", M, M)
T = MatrixSymbol("T", M, M)

SYMMETRIC = (GAMMA, G_V, G_K, G_Q, J)
IMAGES = {(W_V, MU): V, (W_K, MU): K, (W_Q, MU): Q, (MU.T, MU): GAMMA}
INNER = {
    (W_O, V): H,
    (K.T, Q): B,
    (V.T, V): G_V,
    (K.T, K): G_K,
    (Q.T, Q): G_Q,
    (W_O, W_O.T): J,
}
"""Mapping from each pair of factors to the matrix of their inner products."""

Steps = Mapping[Any, Any]
"""Mapping from each matrix or scalar to its value after one step, as an expression."""


i, j, k = sympy.symbols("i j k", integer=True, positive=True)
a, c, p, scores, preactivations = map(Entries, ["a", "c", "P", "B", "U"])
gate, weighted = functions("gate mean")
"""The function `gate` is the step function, and `weighted` the weighted mean over samples."""


@cache
def pattern_slopes() -> Mapping[Any, Any]:
    """Derivatives E, rho and T of a sample's loss by H = W_O V, attention P and scores B.

    Gates and activity are fixed. The softmax has the argument B plus the logarithms of the counts,
    so its derivative by B does not contain the counts.
    """
    loss = Trace(D.T * H * P)
    by_attention = model.slope(loss, P)
    return {
        E: model.slope(loss, H),
        RHO: by_attention,
        T: model.through_softmax(P, by_attention),
    }


@cache
def closure() -> Steps:
    """Step of gradient descent on W_O, V, K, Q, from the step on the weights W_O, W_V, W_K, W_Q."""
    values, keys = Trace(E.T * W_O * W_V * MU), Trace(T.T * (W_K * MU).T * (W_Q * MU))
    moved = {W_O: W_O - eta * model.slope(values, W_O)}
    for image, matrix, through in ((V, W_V, values), (K, W_K, keys), (Q, W_Q, keys)):
        moved[image] = (matrix - eta * model.slope(through, matrix)) * MU
    return {name: contract(step, IMAGES, SYMMETRIC) for name, step in moved.items()}


@cache
def gram() -> Steps:
    """Step of gradient descent on the inner products, which expands products of `closure`."""
    step = closure()
    return {
        name: contract(_moved(first, step) * _moved(second, step), INNER, SYMMETRIC)
        for (first, second), name in INNER.items()
    }


def _moved(factor: Any, step: Steps) -> Any:
    return step[factor] if factor in step else step[factor.T].T


POINTS = ("1", "2", "k", "l", "o")
"""Representatives of all patterns: 1 and 2, two other patterns k and l, and o for M - 4 more."""
ClassMatrix = Mapping[str, sympy.Expr]
"""Matrix that is constant on classes, as a mapping from each class to the common entry."""


def class_of(i: str, j: str) -> str:
    """Class of the pair of key `i` and query `j`; both are in `POINTS`."""
    if i in "12" and j in "12":
        return "11" if i == j else "12"
    if i in "12" or j in "12":
        return "1k" if i in "12" else "k1"
    return "kk" if i == j else "kl"


def class_product(left: ClassMatrix, right: ClassMatrix) -> ClassMatrix:
    """Product of two matrices that are constant on the classes; M is the number of patterns."""
    first = {class_of(i, j): (i, j) for j in reversed(POINTS[:4]) for i in reversed(POINTS[:4])}
    many = dict.fromkeys(POINTS, sympy.Integer(1)) | {"o": M - 4}
    return {
        name: sympy.expand(
            sympy.Add(*[n * left[class_of(i, z)] * right[class_of(z, j)] for z, n in many.items()])
        )
        for name, (i, j) in first.items()
    }


def class_matrix(code: str, even: bool) -> ClassMatrix:
    """Class matrix with the symbols ``<code>_<pair>``, symmetric if `even`."""
    return {
        pair: NOTATION.symbol(f"{code}_{'1k' if even and pair == 'k1' else pair}") for pair in PAIRS
    }


def transposed(matrix: ClassMatrix) -> ClassMatrix:
    """Transpose of a class matrix, which exchanges the entries of classes 1k and k1."""
    return dict(matrix) | {"1k": matrix["k1"], "k1": matrix["1k"]}


@cache
def collapse() -> Steps:
    """Step of gradient descent on the 16 attention scalars, for orthonormal patterns and any M.

    The step is derived from `gram`. The symbols ``t_<pair>`` are the orbit means of T, the
    derivative of the loss by B (`symmetry.orbit_means`).
    """
    symbols = {
        B: class_matrix("B", even=False),
        T: class_matrix("t", even=False),
        G_K: class_matrix("G_K", even=True),
        G_Q: class_matrix("G_Q", even=True),
    }
    values = symbols | {matrix.T: transposed(value) for matrix, value in symbols.items()}
    result: dict[Any, Any] = {}
    for matrix in (B, G_K, G_Q):
        step = contract(gram()[matrix].subs(GAMMA, sympy.Identity(M)), {}, SYMMETRIC)
        parts = evaluate(step, values, class_product)
        for pair in PAIRS if matrix == B else EVEN_PAIRS:
            total = sympy.Add(*[coefficient * value[pair] for coefficient, value in parts])
            result[symbols[matrix][pair]] = _by_powers(total)
    return result


def _by_powers(total: sympy.Expr) -> sympy.Expr:
    """Polynomial collected by powers of eta; the coefficients are factored in M."""
    terms = sympy.Poly(total, eta).terms()
    return sympy.Add(*[eta**power * by_products(part, M) for (power,), part in terms])


def by_products(total: sympy.Expr, number: sympy.Symbol) -> sympy.Expr:
    """Polynomial collected by products of all symbols but `number`, with factored coefficients."""
    products = sympy.Poly(total, *sorted(total.free_symbols - {number}, key=str))
    terms = [
        sympy.factor(coefficient)
        * sympy.prod([s**n for s, n in zip(products.gens, powers, strict=True)])
        for powers, coefficient in products.terms()
    ]
    return sympy.Add(*terms)


def class_sizes() -> Mapping[sympy.Symbol, sympy.Expr]:
    """Mapping from each attention scalar to the number of matrix entries with its value."""
    others = M - 2
    sizes = {"11": 2, "12": 2, "1k": 2 * others, "k1": 2 * others, "kk": others}
    sizes["kl"] = others * (others - 1)
    result = {NOTATION.symbol(f"B_{pair}"): sympy.sympify(sizes[pair]) for pair in PAIRS}
    for code in ("G_K", "G_Q"):
        for pair in EVEN_PAIRS:
            count = sizes[pair] + (sizes["k1"] if pair == "1k" else 0)
            result[NOTATION.symbol(f"{code}_{pair}")] = sympy.sympify(count)
    return result


def relevant_masses() -> Mapping[str, sympy.Expr]:
    """Attention of each class of queries to label-relevant tokens, in terms of the 16 scalars."""
    scores = class_matrix("B", even=False)
    tokens = {"1": n_star, "2": n_confusion, "k": n_other, "l": n_other, "o": (M - 4) * n_other}
    result = {}
    for name, query in (("relevant", "1"), ("confusion", "2"), ("other", "k")):
        weights = [(n, scores[class_of(i, query)]) for i, n in tokens.items()]
        alike = [sympy.factor(sum(n for n, s in weights if s == score)) for _, score in weights]
        total = {score: n * sympy.exp(score) for n, (_, score) in zip(alike, weights, strict=True)}
        result[f"relevant_by_{name}"] = n_star * sympy.exp(weights[0][1]) / sum(total.values())
    return result


def entrywise(matrix: Any) -> sympy.Expr:
    """Entry (i, j) of a matrix expression, with indices from 1."""
    written = matrix[i, j].doit()
    written = written.replace(
        lambda part: isinstance(part, sympy.matrices.expressions.matexpr.MatrixElement),
        lambda part: Entries(str(part.parent))[part.args[1], part.args[2]],
    )
    return written.replace(
        sympy.Sum, lambda term, limits: sympy.Sum(term.subs(limits[0], k), (k, 1, limits[2] + 1))
    )


@cache
def of_sample() -> Mapping[Any, Any]:
    """Expressions of one sample's forward and backward pass, and of mean derivatives E and T."""
    F, g = NOTATION.symbols("F g")
    total = sympy.Sum(c[k] * sympy.exp(scores[k, j]), (k, 1, M))
    terms = a[i] * c[j] * sympy.Max(preactivations[i, j], 0)
    return {
        p[i, j]: c[i] * sympy.exp(scores[i, j]) / total,
        MatrixSymbol("U", m, M): H * P,
        F: sympy.Sum(terms, (i, 1, m), (j, 1, M)) / L,
        g: -y / L * gate(margin - y * F),
        Entries("D")[i, j]: g * a[i] * c[j] * gate(preactivations[i, j]),
        E: weighted(pattern_slopes()[E]),
        RHO: pattern_slopes()[RHO],
        Entries("T")[i, j]: weighted(entrywise(model.through_softmax(P, RHO))),
    }
