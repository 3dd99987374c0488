"""Proofs of the paper's lemmas by computation.

Each lemma is typed in this file and compared with expressions that are derived in two ways. For
areas of any size, the loss is differentiated by the score of an arbitrary key
(`recursion.key_increment`). In a small case, every entry of the row e_p^T Q has a symbol, and the
loss is written out and differentiated for every mask that hides p. The small case has P = 5
patches, areas {0, 1}, {2, 3}, {4}, and p = 2. The derivatives are polynomials in the attention u_q
to the keys q; u_p is eliminated, because the attention sums to 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import sympy

from theory.claims import Evidence, Exponential, count_equal, softmax
from theory.papers.masked_image_modeling import model
from theory.papers.masked_image_modeling.model import masks, unavoidable_error
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.recursion import (
    MASKED,
    OTHER,
    OWN,
    balanced,
    feature_increment,
    key_increment,
)

A_m, A_i, Sigma, u, z_m, z_i = NOTATION.symbols("A_m A_i Sigma u z_m z_i")

SMALL = ((0, 0, 1, 1, 2),)
"""Area of each patch in the only cluster of the small case."""
AREAS = SMALL[0]
QUERY = 2
OWN_AREA = AREAS[QUERY]
CASE = "P=5, areas {0,1}, {2,3}, {4}, p=2; z and the row of Q free, every mask"
ANY = "areas of any sizes, all symbols free; " + CASE

Share = Mapping[int, sympy.Expr]
PHI = sympy.symbols(f"Phi_:{max(AREAS) + 1}", real=True)
UPS = sympy.symbols(f"Ups_:{len(AREAS)}", real=True)
LATENTS = sympy.symbols(f"z_:{max(AREAS) + 1}", positive=True)
ATTENTION = sympy.symbols(f"u_:{len(AREAS)}", positive=True)
"""In the small case, PHI and UPS are the trained row of Q, LATENTS the latents of the areas, and
ATTENTION the attention to the keys."""


@dataclass(frozen=True)
class Masked:
    """Small case (`SMALL`, patch p = `QUERY`) with one set of masked patches."""

    hidden: frozenset[int]

    @cached_property
    def scores(self) -> list[sympy.Expr]:
        """Score of every key for the query p, in the symbols of the row e_p^T Q."""
        size, live = model.dimension(SMALL), model.position_index(SMALL, QUERY)
        entries = {model.feature_index(SMALL, 0, a): phi for a, phi in enumerate(PHI)}
        entries |= {model.position_index(SMALL, q): ups for q, ups in enumerate(UPS)}
        matrix = sympy.Matrix(size, size, lambda i, j: entries[j] if i == live else 0)
        patches = model.image(SMALL, 0, LATENTS)
        return model.scores(matrix, model.tokens(SMALL, patches, self.hidden), QUERY)

    def loss(self, weights: Sequence[sympy.Expr]) -> sympy.Expr:
        """Half of the squared distance between the output for p and the content of p."""
        patches = model.image(SMALL, 0, LATENTS)
        output = model.reconstruction(weights, patches, self.hidden)
        return model.squared_error(output, patches[QUERY])

    @cached_property
    def shares(self) -> Share:
        """Mapping from each area to the attention to its unmasked patches, in the symbols u_q."""
        return model.area_attention(ATTENTION, AREAS, self.hidden)

    @cached_property
    def squares(self) -> Share:
        """Mapping from each area to (z A)^2, with its latent z and the attention A to it."""
        return {a: LATENTS[a] ** 2 * share**2 for a, share in self.shares.items()}

    def rate(self, entry: sympy.Symbol) -> sympy.Expr:
        """Minus the derivative of the loss by an entry of Q, as a polynomial in the attention."""
        slope = -sympy.diff(self.loss(softmax(self.scores, Exponential)), entry)
        B = sympy.Symbol("B", positive=True)
        weights = [Exponential(score) for score in self.scores]
        slope = slope.subs(sympy.Add(*weights), B)
        return self.normalised(
            slope.subs({w: B * u_q for w, u_q in zip(weights, ATTENTION, strict=True)})
        )

    def normalised(self, expression: sympy.Expr) -> sympy.Expr:
        """Replace the attention to p by 1 minus the attention to all other keys."""
        rest = [u_q for q, u_q in enumerate(ATTENTION) if q != QUERY]
        return sympy.expand(sympy.expand(expression).subs(ATTENTION[QUERY], 1 - sum(rest)))


def small_cases() -> Iterator[Masked]:
    """Yield the small case for every set of masked patches that contains p."""
    others = [q for q in range(len(AREAS)) if q != QUERY]
    for count in range(len(others) + 1):
        for members in itertools.combinations(others, count):
            yield Masked(frozenset({QUERY, *members}))


def live_entries() -> Evidence:
    """Check for P = 4 that the scores of a masked patch p contain only entries of e_p^T Q."""
    areas = ((0, 0, 1, 1), (0, 1, 0, 1))
    size, p = model.dimension(areas), 1
    matrix = sympy.Matrix(size, size, lambda i, j: sympy.Symbol(f"Q_{i}_{j}", real=True))
    row, count = set(matrix.row(model.position_index(areas, p))), 0
    holds = True
    for k, (hidden, _) in itertools.product(range(2), masks(4, 2)):
        if p in hidden:
            latents = sympy.symbols("z_0 z_1", positive=True)
            inputs = model.tokens(areas, model.image(areas, k, latents), hidden)
            used = set().union(*[score.free_symbols for score in model.scores(matrix, inputs, p)])
            holds &= used & set(matrix) <= row
            count += 1
    return Evidence(
        holds,
        "K=2, P=4, all 64 entries of Q free",
        (f"the scores of a masked patch contain entries of its own row only, {count} cases",),
    )


def key_by_key(case: Masked, token: Callable[[int], sympy.Expr]) -> sympy.Expr:
    """Minus the derivative of the loss by e_p^T Q v, for a unit vector v and one mask (Lemma A.1).

    The result is the sum over keys q of u_q <X_p - F_p, 1{q unmasked} X_q - F_p> token(q). Here u_q
    is the attention to key q, X_q its content, F_p the output, and token(q) the inner product of v
    with the token of q.
    """
    patches = model.image(SMALL, 0, LATENTS)
    output = model.reconstruction(ATTENTION, patches, case.hidden)
    missing = patches[QUERY] - output
    return sympy.Add(
        *[
            u_q
            * token(q)
            * missing.dot((patches[q] if q not in case.hidden else 0 * output) - output)
            for q, u_q in enumerate(ATTENTION)
        ]
    )


def lemma_a_1(statement: Callable[..., sympy.Expr] = key_by_key) -> Evidence:
    """Compare the derivative by every trained entry of Q with Lemma A.1."""
    pairs = []
    for case in small_cases():
        for entry in (*PHI, *UPS):
            stated = statement(case, partial(_component, case, entry))
            pairs.append((case.rate(entry), case.normalised(stated)))
    equal = count_equal(pairs)
    counted = f"equal for {equal} of {len(pairs)} pairs of a mask and an entry"
    return Evidence(equal == len(pairs), CASE, (counted,))


def _component(case: Masked, entry: sympy.Symbol, q: int) -> sympy.Expr:
    """Component of the token of patch q along the feature or position that belongs to `entry`."""
    if entry in UPS:
        return sympy.Integer(UPS.index(entry) == q)
    unmasked = q not in case.hidden and PHI.index(entry) == AREAS[q]
    return LATENTS[AREAS[q]] if unmasked else sympy.Integer(0)


def paper_loss(z: tuple[sympy.Symbol, ...], A: Share, m: int) -> sympy.Expr:
    """Loss of a masked patch in area `m`, from latents and attention `A` of areas (Lemma A.8)."""
    others = sum(z[a] ** 2 * A[a] ** 2 for a in A if a != m)
    return (z[m] ** 2 * (1 - A[m]) ** 2 + others) / 2


def lemma_a_8(statement: Callable[..., sympy.Expr] = paper_loss) -> Evidence:
    """Compare the loss computed from vectors with the formula of Lemma A.8."""
    pairs = [
        (case.loss(ATTENTION), statement(LATENTS, case.shares, OWN_AREA)) for case in small_cases()
    ]
    equal, total = count_equal(pairs), len(pairs)
    return Evidence(
        equal == total,
        CASE,
        (f"loss from the vectors equals Lemma A.8 in {equal} of {total} cases",),
    )


def paper_feature_rate(
    z: tuple[sympy.Expr, ...], A: Share, m: int, i: int, rest: sympy.Expr
) -> sympy.Expr:
    """Rate of Phi of area `i`, for a masked patch in area `m`, by Lemma 5.1.

    The tuple `z` holds the latent of every area; the mapping `A` gives the attention to the
    unmasked patches of every area. The expression `rest` is the sum of z^2 A^2 over all areas
    except m and i.
    """
    if i == m:
        return z[m] * A[m] * (z[m] ** 2 * (1 - A[m]) ** 2 + rest)
    spread = z[i] ** 2 * A[i] * (1 - A[i]) + z[m] ** 2 * A[m] * (1 - A[m]) - rest
    return -z[i] * A[i] * spread


def lemma_5_1(statement: Callable[..., sympy.Expr] = paper_feature_rate) -> Evidence:
    """Compare the rates of Phi, the correlations with features, with Lemma 5.1."""
    z, A = (z_m, z_i), {0: A_m, 1: A_i}
    own = feature_increment(OWN).subs({A_i: 0})
    general = [
        sympy.expand(own - statement(z, A, 0, 0, Sigma)) == 0,
        sympy.expand(feature_increment(OTHER) - statement(z, A, 0, 1, Sigma)) == 0,
    ]
    pairs = []
    for case, i in itertools.product(small_cases(), range(len(PHI))):
        rest = sympy.Add(*[part for a, part in case.squares.items() if a not in (OWN_AREA, i)])
        stated = statement(LATENTS, case.shares, OWN_AREA, i, rest)
        pairs.append((case.rate(PHI[i]), case.normalised(stated)))
    any_sizes = f"any sizes: own area {_equal(general[0])}, other area {_equal(general[1])}"
    written = count_equal(pairs)
    counted = f"written out: equal for {written} of {len(pairs)} pairs of a mask and a feature"
    return Evidence(all(general) and written == len(pairs), ANY, (any_sizes, counted))


def paper_position_rate(
    kind: str, latent: sympy.Expr, share: sympy.Expr, r: sympy.Expr
) -> sympy.Expr:
    """Rate of Ups of a key q divided by the attention to q, which is b_q - r by Lemma 5.2.

    The key is unmasked in the patch's own area (`kind` is ``OWN``), unmasked in another area
    (``OTHER``), or masked (``MASKED``). `latent` and `share` are the latent z of the key's area and
    the attention A to it; `r` is the mean of b_q over all keys, weighted by the attention.
    """
    b = {OWN: latent**2 * (1 - share), OTHER: -(latent**2) * share, MASKED: 0}
    return b[kind] - r


def lemma_5_2(statement: Callable[..., sympy.Expr] = paper_position_rate) -> Evidence:
    """Compare the rates of Ups, the correlations with positions, with Lemma 5.2."""
    r = NOTATION.symbol("r")
    general = {
        kind: sympy.expand(balanced(key_increment(kind)) - u * statement(kind, z, A, r)) == 0
        for kind, z, A in ((OWN, z_m, A_m), (OTHER, z_i, A_i), (MASKED, z_i, A_i))
    }
    pairs = []
    for case in small_cases():
        mean = LATENTS[OWN_AREA] ** 2 * case.shares[OWN_AREA] - sympy.Add(*case.squares.values())
        for q, area in enumerate(AREAS):
            kind = MASKED if q in case.hidden else OWN if area == OWN_AREA else OTHER
            stated = statement(kind, LATENTS[area], case.shares[area], mean)
            pairs.append((case.rate(UPS[q]), case.normalised(ATTENTION[q] * stated)))
    by_kind = ", ".join(f"{kind} {_equal(good)}" for kind, good in general.items())
    written = count_equal(pairs)
    counted = f"written out: equal for {written} of {len(pairs)} pairs of a mask and a key"
    holds = all(general.values()) and written == len(pairs)
    return Evidence(holds, ANY, (f"any sizes: {by_kind}", counted))


def conserved_sum(
    rate: Callable[[Masked, int], sympy.Expr] = lambda case, q: case.rate(UPS[q]),
) -> Evidence:
    """Check for every mask that the sum of the rates of Ups over all positions is zero."""
    cases = list(small_cases())
    zero = count_equal([(sum(rate(case, q) for q in range(len(UPS))), 0) for case in cases])
    return Evidence(
        zero == len(cases),
        CASE,
        (f"sum over q of the rate of Ups vanishes for {zero} of {len(cases)} masks",),
    )


def unavoidable() -> Evidence:
    r"""Check the infimum of the loss of patch p for every mask (Lemma A.9, derived anew).

    Let Phi of p's own area m tend to :math:`+\infty` and Phi of all other areas to :math:`-\infty`.
    In this limit all attention moves to the unmasked patches of area m, or to masked keys if there
    are none. The limit of the loss is compared with 0 if area m has an unmasked patch, else with
    :math:`z_m^2/2`. The mean of the limit over all masks is compared with `unavoidable_error`.
    """
    right, size = 0, len(AREAS)
    z = LATENTS[OWN_AREA]
    floors: dict[int, sympy.Expr] = dict.fromkeys(range(1, size), sympy.Integer(0))
    cases = list(small_cases())
    for case in cases:
        limit = _limit_of_loss(case)
        alone = all(q in case.hidden for q, area in enumerate(AREAS) if area == OWN_AREA)
        right += sympy.expand(limit - (z**2 / 2 if alone else 0)) == 0
        if len(case.hidden) < size:
            floors[len(case.hidden)] += limit / z**2 / sympy.binomial(size, len(case.hidden))
    equal = all(
        sympy.Rational(unavoidable_error(size, count, [AREAS.count(OWN_AREA)])) == floor
        for count, floor in floors.items()
    )
    findings = (
        f"infimum 0, or z_m^2/2 where the own area is masked, for {right} of {len(cases)} masks",
        f"mean over masks of every size against E[z^2]/2 C(P-C, M-C)/C(P, M): {_equal(equal)}",
        "if the own area is masked, masked keys can hold all attention, so the other areas add no "
        "loss; the bound that the paper derives by Cauchy-Schwarz is lost in the available text",
    )
    return Evidence(equal and right == len(cases), CASE, findings)


def _limit_of_loss(case: Masked) -> sympy.Expr:
    """Limit of the loss as Phi of the own area tends to infinity and all other Phi to -infinity."""
    y = sympy.Symbol("y", positive=True)
    weights = [
        w * (1 if q in case.hidden else 1 / y if AREAS[q] == OWN_AREA else y)
        for q, w in enumerate(sympy.symbols(f"w_:{len(AREAS)}", positive=True))
    ]
    total = sympy.Add(*weights)
    loss = case.loss([sympy.cancel(weight / total) for weight in weights])
    return sympy.cancel(sympy.cancel(sympy.together(loss)).subs(y, 0))


def _equal(good: bool) -> str:
    return "equal" if good else "different"
