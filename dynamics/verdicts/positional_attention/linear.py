r"""Theorems 3.1 and 3.2: what needs the partition and what does not, exactly.

Theorem 3.1 says that a generalized linear model errs with probability 1/8 at least; Theorem 3.2,
that a transformer without patch association need not. Both are decided by exact laws
(`theory.papers.positional_attention.linear_rules`, `constructions`); one construction, pairs of
sets, is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.study import LINEAR, Study, either, measures
from theory.papers.positional_attention import constructions, linear_rules
from theory.papers.positional_attention.data_law import SetLaw, bayes_error
from theory.symmetry import Partition

Size = tuple[int, int, float]
"""(D, C, q)."""
BOUND = float(linear_rules.BOUND)

TABLE = ((8, 2, 1 / 2), (16, 4, 1 / 4), (16, 4, 1 / 2), (32, 4, 1 / 2), (64, 4, 1 / 4),
         (196, 4, 4 / 49))  # fmt: skip
"""Sizes of the default table; the last has about the patches of ViT-base on ImageNet."""

WITNESS = (64, 4, 1 / 4)
"""A law well inside the region where sign(Z) errs more than 1/8."""

TILTS: tuple[tuple[int, ...], ...] = ((1,), (1, 1), (3, 1), (1, 1, 1), (9, 3, 1))
LARGEST_SCORE = 5e7
"""Additions beyond which a tilt is not tried."""

GAP = 1e-5
"""Room between uniform attention and the best rule below which nothing can be won."""

RATIO = "least ratio of the exponent of the error in D to C - 1"
EXPONENT_SHARE = 0.8
"""Share of C - 1 that the measured exponent must reach: it approaches C - 1 as D grows."""

DRAWS = 40_000
LARGEST_SAMPLE = 1e9
"""Products of a value and an attention beyond which fewer are sampled."""

LARGEST_CONVOLUTION = 4e9
"""Additions beyond which an exact error is not computed."""


@measures("least error of a generalized linear model with arbitrary link", ">=", BOUND)
def _linear_worded(study: Study) -> Finding:
    study.rows = [linear_errors((D, C, float(q))) for D, C, q in TABLE]
    counts = (2, 3, 4, 6, 8, 16) if study.thorough else (2, 4, 8, 16)
    worst = linear_errors(WITNESS)
    first, _, half, *_ = study.rows
    least = worst["any_link"]
    crossing = linear_rules.gaussian_crossing()
    reason = (
        f"{'as worded it fails: ' if least < BOUND else ''}with weights 3^j the best link errs "
        f"with {least:.4f} at D=64, C=4, q=1/4, and at D=16, C=4, q=1/2 sign(Z) errs with "
        f"{half['equal_weights']:.4f}. Of equal weights with any link sign(Z) is the best: "
        f"{worst['equal_weights']:.4f} at D=64, C=4, q=1/4, and it passes 1/8 where q(D-C) is "
        f"above about {crossing:.3f} C^2; with unequal weights and an "
        f"increasing link D=8, C=2, q=1/2 gives {first['unequal_weights']:.4f} against "
        f"{first['equal_weights']:.4f}"
    )
    _draw_linear(study, [("D to infinity", C, None) for C in counts])
    rules = counterexamples(3 + study.thorough)
    return study.conclude(
        least, reason, region=region(counts), gaussian_crossing=crossing, counterexamples=rules
    )


@measures("least error found of a generalized linear model", ">=", BOUND)
def _linear_at(study: Study) -> Finding:
    """At one size: an arbitrary link can refute the claim, and so can any rule that was tried."""
    D, C, q = size = _size(study.parameters)
    study.row(errors := linear_errors(size))
    rules = ("any_link", "unequal_weights", "equal_weights")
    least = min(errors[name] for name in rules)
    sides = {name: "below" if errors[name] < BOUND else "not below" for name in rules}
    reason = (
        f"at D={D}, C={C}, q={q:g}, q(D-C)/C^2={errors['m_over_C2']:.3f}: with an arbitrary link "
        f"on weights 3^j {errors['any_link']:.4g}, {sides['any_link']} 1/8; with an increasing "
        f"link, the least found, {errors['unequal_weights']:.4f}, {sides['unequal_weights']} it; "
        f"with equal weights and any link {errors['equal_weights']:.4f}, exactly, "
        f"{sides['equal_weights']} it"
    )
    _draw_linear(study, [("D to infinity", C, None), (f"D={D}", C, D)])
    holds, where = False if least < BOUND else None, {"D": D, "C": C, "q": q}
    return study.conclude(least, reason, holds=holds, parameters=where, region=region((C,)))


theorem_3_1 = either(_linear_worded, _linear_at)
"""Error of generalized linear models against 1/8.

With parameters of the user, on rules with an increasing link at that size: the best with equal
weights, and unequal weights that decide its ties. By default on the theorem as it is worded, with
an arbitrary link and no condition on q and C.
"""


def linear_errors(size: Size) -> dict[str, Any]:
    """The least error of each class of generalized linear models at one size.

    Parameters
    ----------
    size : (D, C, q)

    Returns
    -------
    dict
        ``equal_weights`` (any link; P(Z<0), P(Z=0) beside it), ``unequal_weights`` (increasing
        link; the best of few tilts, with the tilt), ``any_link`` (the Bayes error).
    """
    D, C, q = size
    sign = linear_rules.sign_rule_error(D, C, q)
    partition = Partition.contiguous([C] * (D // C))
    tried: list[tuple[float, tuple[int, ...]]] = [(float(sign.error), ())]
    for tilt in TILTS:
        weights = linear_rules.tilted_weights(partition, tilt)
        if len(tilt) < D // C and 2.0 * sum(weights) * D * (1 + len(set(tilt))) < LARGEST_SCORE:
            error = linear_rules.weighted_rule_error(weights, partition, q)
            tried.append((float(error), tilt))
    best, tilt = min(tried)
    return {
        "D": D, "C": C, "q": float(q), "m_over_C2": q * (D - C) / C**2,
        "negative": float(sign.negative), "zero": float(sign.zero),
        "equal_weights": float(sign.error), "unequal_weights": best, "tilt": list(tilt),
        "any_link": bayes_error(SetLaw(C, float(q)), D // C),
    }  # fmt: skip


def region(counts: Sequence[int]) -> list[dict[str, Any]]:
    """Where sign(Z) passes 1/8: m = q(D - C) for each C, at several D and in the limit.

    None where it does for no q <= 1.
    """
    rows = []
    for C in counts:
        for sets in (4, 8, 16, None):
            D = None if sets is None else sets * C
            m = linear_rules.crossing(C, D)
            passed = not np.isnan(m)
            rows.append({
                "C": C, "D": D, "m": m if passed else None,
                "m_over_C2": m / C**2 if passed else None,
            })  # fmt: skip
    return rows


def counterexamples(largest: int) -> list[dict[str, Any]]:
    """Rules that beat sign(Z): by a search over all small weights, and by an arbitrary link."""
    rows = []
    for D, C, q in ((6, 2, 0.5), (8, 2, 0.5)):
        partition = Partition.contiguous([C] * (D // C))
        equal = float(linear_rules.sign_rule_error(D, C, q).error)
        error, weights = linear_rules.best_weights(partition, q, largest)
        common = {"D": D, "C": C, "q": q, "equal_weights": equal}
        rows.append(common | {"link": "increasing", "error": error, "weights": list(weights)})
        code = linear_rules.encoding_weights(D)
        error = float(linear_rules.best_link_error(code, partition, q))
        rows.append(common | {"link": "arbitrary", "error": error, "weights": list(code)})
    return rows


def _draw_linear(study: Study, families: Sequence[tuple[str, int, int | None]]) -> None:
    """Error of sign(Z) over q(D - C) / C^2, for families (label, C, D or None for the limit)."""
    for label, C, D in families:
        most = 2.0 if D is None else min(2.0, (D - C) / C**2)
        ratios = np.linspace(most / 60, most, 60)
        errors = [
            linear_rules.limit_error(C, ratio * C**2)
            if D is None
            else float(linear_rules.sign_rule_error(D, C, ratio * C**2 / (D - C)).error)
            for ratio in ratios
        ]
        study.curve(f"C = {C}, {label}", ratios, errors)
    level = {"1/8": BOUND}
    study.draw("q(D - C) / C^2", "error of sign(Z)", level, *LINEAR)


@measures(RATIO, ">=", EXPONENT_SHARE)
def theorem_3_2(study: Study) -> Finding:
    """A transformer whose patches attend to the next set: its error along D, and where it attends.

    The exponent in D of the exact error at fixed C and q(D - C) tends to C - 1, the probability
    that one random set is all -y; as C grows it passes every power, which is d^(-omega(1)). By
    default for several C at q(D - C) = C^2, where sign(Z) errs more than 1/8; with parameters,
    at their C and q(D - C), from their D on.
    """
    size, degree = WITNESS, 3
    if study.parameters is None:
        counts = (2, 3, 4, 6, 8) if study.thorough else (2, 4, 6)
        starts = [(2 * C * (C + 1), C, C**2 / (2 * C * (C + 1) - C)) for C in counts]
    else:
        size, degree = _size(study.parameters), study.parameters.p
        starts = [size]
    D, C, q = size
    where = {"D": D, "C": C, "q": q, "p": degree}
    if _additions(size, degree) > LARGEST_CONVOLUTION / 4:
        reason = f"the exact error at D={D}, C={C}, p={degree} takes too many additions"
        raise Undecided(reason, parameters=where)
    ladders = [ladder(start, degree) for start in starts]
    shares = [run["exponents"][-1] / (run["C"] - 1) for run in ladders]
    attention = where_it_attends(size, degree, study.seed)
    disjoint = attention["logits"]["with_diagonal"][1] == 0 == attention["gram"]["off_diagonal"][1]
    to_win = attention["uniform_error"] - attention["bayes_error"]
    beaten = attention["error"] < attention["uniform_error"] if to_win >= GAP else None
    fast = min(shares) >= EXPONENT_SHARE
    holds: bool | None = False
    if disjoint and beaten is not False:
        holds = True if fast and beaten else None
    powers = ", ".join(f"D^-{run['exponents'][-1]:.2f} at C={run['C']}" for run in ladders)
    near = "an exponent near C-1" if fast else "not yet the exponent C-1, so undecided"
    equal = "" if beaten is not None else "; uniform attention is as good as the best rule here"
    reason = (
        f"attention to the next set errs with {attention['error']:.3g} at D={D}, C={C}, q={q:g} "
        f"(uniform attention {attention['uniform_error']:.3g}) and the error falls as {powers}: "
        f"{near}{equal}. Top_C of its logits {'avoids' if disjoint else 'does not avoid'} the own "
        "set, and so does Top_C of the Gram matrix of its encodings, j = i excluded"
    )
    own = attention["gram"]["with_diagonal"][1]
    study.literal = Finding(
        own == 0, "most members of the own set among the C largest of a row, j = i included",
        float(own), 0.0, "as Definition 2.2 is written, no encodings can: |p_i|^2 of the longest "
        "p_i is no less than any <p_i, p_j>, so it is among its own C largest", relation="<=",
    )  # fmt: skip
    for run in ladders:
        study.curve(f"C = {run['C']}, q(D - C) = {run['m']:g}", run["D"], run["error"])
    study.draw("D", "error", {"1/8": BOUND})
    return study.conclude(
        float(min(shares)), reason, holds=holds, parameters=where, attention=attention,
        ladders=ladders,
    )  # fmt: skip


def ladder(start: Size, degree: int) -> dict[str, Any]:
    """Sharp-limit error of attention to one set at D, 2D, 4D, 8D, at fixed C and q(D - C).

    Parameters
    ----------
    start : (D, C, q)
    degree : int
        p.
    """
    first, C, q = start
    m = q * (first - C)
    laws = [(D, C, min(1.0, m / (D - C))) for D in (first, 2 * first, 4 * first, 8 * first)]
    laws = [law for law in laws if _additions(law, degree) <= LARGEST_CONVOLUTION]
    errors = [float(constructions.sharp_error(law, degree).error) for law in laws]
    uniform = [float(linear_rules.sign_rule_error(*law).error) for law in laws]
    exponents = -np.diff(np.log(errors)) / np.log(2)
    return {"C": C, "m": m, "D": [D for D, _, _ in laws], "error": errors,
            "uniform_error": uniform, "exponents": exponents.tolist()}  # fmt: skip


def _additions(law: Size, degree: int) -> float:
    """Of the convolution over the sets: their number, of values, of sums."""
    D, C, _ = law
    return (D / C) ** 2 * (2 * C + 1) * 2.0 * C**degree


def where_it_attends(size: Size, degree: int, seed: int) -> dict[str, Any]:
    """Errors and Top_C of the shifted construction, and of pairs where the sets can be paired.

    Parameters
    ----------
    size : (D, C, q)
    degree : int
        p.
    seed : int
        Of the samples.

    Returns
    -------
    dict
        Overlaps are [fewest, most] members of the own set among the C largest of the worst row.
    """
    D, C, q = size
    partition = Partition.contiguous([C] * (D // C))
    shift, block = (constructions.set_logits(partition, 4.0, k) for k in (1, 0))
    head = constructions.Head(p=degree)
    positions = constructions.encodings(constructions.neighbour_gram(partition))
    rebuilt = positions.T @ constructions.query_key(positions, shift) @ positions
    values = draw(size, int(min(DRAWS, LARGEST_SAMPLE / D**2)) + 1, seed)
    few = values[:1000]
    shifted, own = (constructions.margins(logits, few, head) for logits in (shift, block))
    row: dict[str, Any] = {
        "error": float(constructions.sharp_error(size, degree).error),
        "uniform_error": float(linear_rules.sign_rule_error(*size).error),
        "bayes_error": bayes_error(SetLaw(C, q), D // C),
        "largest_change_by_shift": float(np.max(np.abs(shifted - own)) / np.max(np.abs(own))),
        "logits": _overlaps(shift, partition),
        "gram": _overlaps(positions.T @ positions, partition),
        "logits_from_encodings": float(np.max(np.abs(rebuilt - shift))),
    }
    if (D // C) % 2 == 0:
        gram = constructions.paired_logits(partition)
        row["pairs"] = sampled_error(gram, values, head) | {
            "sharp_error": float(constructions.sharp_error(size, degree, 2).error),
            "gram": _overlaps(gram, partition),
            "least_eigenvalue": float(np.linalg.eigvalsh(gram)[0]),
        }
    return row


def _overlaps(scores: Any, partition: Partition) -> dict[str, list[int]]:
    return {
        "with_diagonal": list(constructions.overlap(scores, partition, True)),
        "off_diagonal": list(constructions.overlap(scores, partition, False)),
    }


def draw(size: Size, count: int, seed: int) -> Any:
    """Values x_j of samples with y = +1, from ``numpy``'s default generator.

    Parameters
    ----------
    size : (D, C, q)
    count, seed : int

    Returns
    -------
    float array, shape (count, D)
    """
    D, C, q = size
    random = np.random.default_rng(seed)
    uniform = random.random((count, D))
    values = (uniform < q / 2).astype(float) - (uniform > 1 - q / 2)
    signal = random.integers(D // C, size=count)
    values.reshape(count, D // C, C)[np.arange(count), signal] = 1.0
    return values


def sampled_error(logits: Any, values: Any, head: constructions.Head) -> dict[str, Any]:
    """Error on samples with its standard error, ties counting half.

    Parameters
    ----------
    logits : float array, shape (D, D)
    values : float array, shape (samples, D)
    head : Head
    """
    margins = constructions.margins(logits, values, head)
    wrong = (margins < 0) + 0.5 * (margins == 0)
    spread = float(wrong.std() / np.sqrt(wrong.size))
    return {"error": float(wrong.mean()), "standard_error": spread, "samples": int(wrong.size)}


def _size(parameters: Any) -> Size:
    return int(parameters.D), int(parameters.C), float(parameters.q)
