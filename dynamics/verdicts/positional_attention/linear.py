r"""Definition 2.1, Theorems 3.1 and 3.2: exact errors with and without the partition.

Let :math:`z_l` be the sum of the values in set l. Given y = +1, the labelling function
:math:`f^\star = \sum_l Thr_{0.9C}(z_l)` and :math:`Z = \sum_l z_l` are sums over independent sets
(`label_law`). A generalized linear model g is a function, the link, of one weighted sum of all D
values. The weights :math:`3^j` of patches j encode all values in this sum, so some link equals the
sign of f*. This g has the minimum error, :math:`\Pr[f^\star g \leq 0] = \Pr[f^\star = 0]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Literal, Picture
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import LINEAR, claim
from theory.color_refinement import IntArray
from theory.papers.positional_attention import constructions, linear_rules
from theory.symmetry import Partition

Size = tuple[int, int, float]
"""Size (D, C, q) of a law."""
BOUND = float(linear_rules.BOUND)
HEAD = constructions.Head()
SHARE = 0.8
"""Minimum decay exponent of an error in D, divided by C - 1; the quotient tends to 1 as D grows."""
MOST_ADDITIONS = 4e9
"""Maximum number of additions for an exact error, by convolutions over the sets."""
GROWING = tuple({"D": 2 * C * (C + 1), "C": C, "q": C / (2 * C + 1)} for C in (2, 4, 6))
"""Laws with q (D - C) = C^2, at which the error of sign(Z) is above 1/8."""
MORE = tuple({"D": 2 * C * (C + 1), "C": C, "q": C / (2 * C + 1)} for C in (3, 8))


def joint_law(
    law: Size, value: Callable[[int], int], whole: bool = True
) -> tuple[IntArray, IntArray, FloatArray]:
    """Values t of sum_l value(z_l) and z of Z, and their joint probabilities (t, z) given y = +1.

    `value`: odd function with its maximum at C; `whole`: whether to include Z; otherwise the law is
    that of the first sum alone.
    """
    D, C, q = law
    reach, sums = D // C * value(C), D * whole
    chances = np.zeros((2 * reach + 1, 2 * sums + 1))
    chances[reach + value(C), sums + C * whole] = 1.0
    of_set = linear_rules.walk_law(C, q)
    for _ in range(D // C - 1):
        steps = zip(of_set, range(-C, C + 1), strict=True)
        chances = sum(w * np.roll(chances, (value(z), z), (0, 1)) for w, z in steps)
    return np.arange(-reach, reach + 1)[:, None], np.arange(-sums, sums + 1)[None], chances


def label_law(law: Size, whole: bool = True) -> FloatArray:
    """P(f* = t, Z = z) given y = +1, for t and z from -D to D; P(f* = t) unless `whole`."""
    return joint_law(law, lambda z: z if abs(z) > 0.9 * law[1] else 0, whole)[2]


def equal_weights(law: Size) -> float:
    """Minimum error Pr[f* phi(Z) <= 0] over all functions phi of Z, the sum with equal weights."""
    D, both = law[0], label_law(law)
    both = (both + both[::-1, ::-1]) / 2  # y = -1 is the mirror image
    return float(1 - np.maximum(both[:D].sum(axis=0), both[D + 1 :].sum(axis=0)).sum())


@claim(
    "Theorem 3.1", "least Pr[f* g <= 0] over weights and links", ">=", BOUND,
    laws=({"D": 64, "C": 4, "q": 0.25}, {"D": 32, "C": 4, "q": 0.5}, {"D": 8, "C": 2, "q": 0.5}),
    thorough=({"D": 16, "C": 4, "q": 0.5}, {"D": 196, "C": 4, "q": 4 / 49}),
    words="P(f* = 0) = {value:.4g}, reached with weights 3^j; with equal weights and the best "
    "link {equal:.4g}, q(D-C)/C^2 = {ratio:.3g}",
    picture=Picture("q(D - C) / C^2", "Pr[f* g <= 0], equal weights", {"1/8": BOUND}, LINEAR),
)  # fmt: skip
def theorem_3_1(case: Case) -> dict[str, Any]:
    """Minimum error of generalized linear models, also with equal weights; a tie is an error."""
    D, C, q = size = _size(case.parameters)
    chances = np.linspace(0.0, min(1.0, 2 * C**2 / (D - C)), 21)[1:]
    errors = [equal_weights((D, C, float(chance))) for chance in chances]
    return {
        "value": float(label_law(size, False)[D, 0]), "equal": equal_weights(size),
        "ratio": q * (D - C) / C**2, "curves": {case.label: (chances * (D - C) / C**2, errors)},
    }  # fmt: skip


def along_size(case: Case, error: Any) -> dict[str, Any]:
    """Exponent in D of an error, from its last doubling of D, divided by C - 1.

    `error`: function of (D, C, q), evaluated at D, 2 D, 4 D, 8 D and fixed q (D - C).
    """
    D, C, q = _size(case.parameters)
    sizes = [D, 2 * D, 4 * D, 8 * D]
    errors = [error(size, C, q * (D - C) / (size - C)) for size in sizes]
    exponent = -np.log2(errors[-1] / errors[-2])
    return {
        "value": exponent / (C - 1), "exponent": exponent, "error": errors[0],
        "curves": {case.label: (sizes, errors)},
    }  # fmt: skip


ALONG = {
    "laws": GROWING, "thorough": MORE, "picture": Picture("D", "probability", {"1/8": BOUND}),
}  # fmt: skip


@claim(
    "Definition 2.1", "least exponent of Pr[y f* <= 0] in D, over C - 1", ">=", SHARE, **ALONG,
    words="Pr[y f* <= 0] = {error:.3g}, falling as D^-{exponent:.2f}",
)  # fmt: skip
def definition_2_1(case: Case) -> dict[str, Any]:
    """Probability that Assumption 1's labelling function and the label differ in sign."""
    falling = along_size(case, lambda *law: float(label_law(law, False)[: law[0] + 1].sum()))
    return falling | {"open": "size"}


@claim(
    "Theorem 3.2", "least exponent of the error in D, over C - 1", ">=", SHARE,
    **{**ALONG, "laws": (*GROWING, {"D": 64, "C": 4, "q": 0.25})},
    also=(
        Also("own", "<=", 0.0, "members of the own set among the C largest of a row, j = i apart"),
        Also("of_uniform", "<", 1.0, "error over that of uniform attention"),
        Also("rebuilt", "<", 1e-9, "error of the logits that the encodings give"),
    ),
    literal=Literal(
        "with_diagonal", "<=", 0.0,
        "most members of the own set among the C largest of a row, j = i included",
        "as Definition 2.2 is written, no encodings can: |p_i|^2 of the longest p_i is no less "
        "than any <p_i, p_j>, so it is among its own C largest",
    ),
    words="attention to the next set errs with {error:.3g} in the limit of sharp attention and "
    "nu -> 0, with {finite:.3g} at nu=0.001 and alpha=0.3; it falls as D^-{exponent:.2f}",
)  # fmt: skip
def theorem_3_2(case: Case) -> dict[str, Any]:
    """Decay in D of the error of attention to the next set; own-set patches in a row's top C."""
    D, C, q = size = _size(case.parameters)
    p, partition = case.parameters.p, Partition.contiguous([C] * (D // C))
    if (8 * D / C) ** 2 * (2 * C + 1) * 2 * C**p > MOST_ADDITIONS:
        raise Undecided(f"the exact error up to D={8 * D} takes too many additions")
    logits = constructions.set_logits(partition, 4.0, 1)
    positions = constructions.encodings(constructions.neighbour_gram(partition))
    gram = positions.T @ positions
    rebuilt = positions.T @ constructions.query_key(positions, logits) @ positions
    own, apart, literal = (
        constructions.overlap(scores, partition, diagonal).most
        for scores, diagonal in ((logits, True), (gram, False), (gram, True))
    )
    row = along_size(case, lambda *at: float(constructions.sharp_error(at, p).error))
    uniform = float(linear_rules.sign_rule_error(*size).error)
    row |= {
        "own": max(own, apart), "with_diagonal": literal,
        "of_uniform": row["error"] / max(uniform, 1e-300),
        "rebuilt": float(np.abs(rebuilt - logits).max()), "finite": finite_error(size, p),
    }  # fmt: skip
    return row if row["own"] else row | {"open": "size"}


def finite_error(law: Size, p: int) -> float:
    """Error if each patch attends evenly to one set, at `HEAD`'s nu and alpha; ties count half."""
    powers, sums, chances = joint_law(law, lambda z: z**p)
    attended = law[0] * HEAD.alpha / law[1]  # the hidden value o = D alpha z / C
    margin = attended**p * powers + HEAD.nu * attended * sums
    return float(chances[margin < 0].sum() + chances[margin == 0].sum() / 2)


def _size(parameters: Any) -> Size:
    return int(parameters.D), int(parameters.C), float(parameters.q)
