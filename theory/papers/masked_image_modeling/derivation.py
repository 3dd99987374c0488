"""Derivation, as a page: from the data law to the recursions of the rows of Q.

Every equation is computed from `model`, `recursion` and `information_gap`. The page treats one
cluster with areas of symbolic sizes, or the row types of given areas. The index m denotes the area
of patch p, and i numbers the areas of a class with several areas. Lemmas A.8, 5.1 and 5.2 are those
of Huang, Wen, Chi, Liang (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sympy

from theory.notation import Notation
from theory.page import Entries, HandWritten, Page, Section, functions, plain
from theory.papers.masked_image_modeling import information_gap, model, recursion
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.recursion import (
    MASKED,
    OTHER,
    OWN,
    Clusters,
)

P, C_global, C_local, masked, gamma, eta = NOTATION.symbols("P C_global C_local masked gamma eta")
A_m, A_i, Sigma, u, z_m, z_i, r = NOTATION.symbols("A_m A_i Sigma u z_m z_i r")
a, q, t, J = sympy.symbols("a q t J", integer=True, positive=True)
c = sympy.Symbol("c", positive=True)
A, s, Ups, Phi, o, z, keys = map(Entries, ["A", "s", "Ups", "Phi", "o", "z", "u"])
loss, K = sympy.symbols("loss K", real=True)
E, W = functions("E W")
IMAGES = {
    "loss": r"\ell",
    "E": r"\mathbb{E}",
    "masked": "M",
    "Ups": r"\Upsilon",
    "R": "R",
    "u": "u",
    "chance": r"\pi",
}
"""LaTeX of the symbols that the notation table does not contain."""


def page(rows: Mapping[str, Clusters] | None = None, notation: Notation = NOTATION) -> Page:
    """Page that derives the training dynamics.

    The mapping `rows` holds the classes of areas of each row type; by default, those of one cluster
    with symbolic sizes. The table `notation` must contain the symbols of all scalars in `rows`.
    """
    clusters = recursion.family_slots() if rows is None else rows
    count = len(next(iter(clusters.values())))
    law, network = _law(count), _network()
    sections = [law, network, _one_key()]
    sections += [_row(name, slots) for name, slots in clusters.items()]
    sections.append(_start())
    return Page(
        "Masked image modeling: gradient descent on the population loss, row by row of Q",
        "Huang, Wen, Chi, Liang (2024), Lemmas A.8, 5.1, 5.2; every equation is derived by "
        "computation.",
        tuple(sections),
        notation.letters() | IMAGES,
        wrapped=True,
        model=(law, network, _risk_and_step()),
    )


def _law(clusters: int) -> Section:
    which = "A cluster"
    if clusters > 1:
        which = (
            f"One of {clusters} clusters is drawn uniformly, and `R` is the mean over them; what "
            "is of one cluster ends with its number, as do ``N``, the total weight of the keys, "
            "and ``W``. A cluster"
        )
    words = (
        f"{which} splits the `P` patches into areas, a global one of `C_global` patches and local "
        "ones of `C_local`. Area ``a`` has the latent ``z_a``, drawn independently with "
        "probability ``chance(z)``, and its patches ``q`` the content ``X_q`` `= z_a*v_a`, where "
        "``v_a`` is the feature of the area. A uniformly drawn subset of `masked` patches is "
        "hidden: ``o_q`` is 0 for them, 1 for the others. Features and the positions ``e_q`` are "
        "orthonormal.",
    )
    letters = NOTATION.meanings("P C_global C_local masked")
    return Section("Data law and masks (Definitions 2.1 and 2.5)", words, (), (), letters)


def _network() -> Section:
    total = sympy.Sum(sympy.exp(s[t]), (t, 1, P))
    rows = (
        (s[q], Ups[q] + o[q] * z[a] * Phi[a]),
        (keys[q], sympy.exp(s[q]) / total),
        (gamma, masked / P),
    )
    words = (
        "`Q` is trained from 0 by gradient descent on the sum of `R` over all patches, a step "
        "``eta`` of which is a prime below. Patch ``p`` queries with its token; a patch counts "
        "in the loss only where it is masked, and then its token is `e_p`. So all that moves is "
        "``Ups_q`` `= e_p*Q*e_q` and ``Phi_a`` `= e_p*Q*v_a`, and rows of `Q` of different `p` "
        "do not interact. We condition on `p` being masked, which has probability `gamma`. With "
        "``m`` the area of `p` and `q` in area `a`, the score, the attention (masked keys hold "
        "attention and add nothing to the output) and the output are `s_q`, `u_q` and the sum of "
        "`o_q*u_q*X_q`. Masks are exchangeable: an entry moves by what its area is to `p` alone, "
        "and all entries of a row whose areas are alike (the patch itself, self; its area, own, "
        "as a feature of a local patch the target; the global area; the other local ones) stay "
        "equal. The gradient by one of them is the derivative by the scalar that they share over "
        "their number.",
    )
    letters = (("Q", "query-key matrix"),)
    return Section("Model (Assumption 2.4)", words, rows, (), letters)


def _one_key() -> Section:
    """Derive Lemmas A.8, 5.1 and 5.2 for an arbitrary key and an arbitrary feature."""
    rows: list[tuple[Any, ...]] = [
        (loss, sympy.factor(model.area_loss((z_m, A_m), {})) + Sigma / 2),
        (r, z_m**2 * A_m * (1 - A_m) - Sigma),
        (sympy.Symbol("R"), gamma * E(loss)),
    ]
    areas = {OWN: (z_m, A_m), OTHER: (z_i, A_i), MASKED: (z_i, A_i)}
    rows += [(sympy.Symbol(f"beta_{k}"), recursion.push(k, u, *areas[k])) for k in areas]
    for kind, rest in ((OWN, {A_i: 0}), (OTHER, {Sigma: Sigma - z_i**2 * A_i**2})):
        front = sympy.Mul(*areas[kind])
        inside = sympy.expand(recursion.feature_increment(kind).subs(rest) / front)
        squares = sympy.collect(inside - Sigma, (z_m, z_i), sympy.factor)
        rows.append((sympy.Symbol(f"alpha_{kind}"), front * (squares + Sigma)))
    everything = HandWritten(
        "sum of W*prod(chance(z))*f over all z and all h >= 0 with sum P - masked",
        r"\sum_{h \geq 0,\ \sum h = P - M}\ \sum_{z} W f \prod \pi(z)",
    )
    rows.append((E(sympy.Symbol("f")), everything))
    words = (
        "``A_a`` is the attention to all unmasked patches of area `a`, and ``Sigma`` the sum of "
        "`z_a**2*A_a**2` over all areas but `m`. Half of the squared distance of the output from "
        "`X_p` is `loss` (Lemma A.8). Minus its derivative by the score of a key of attention "
        "``u`` is `beta_own` for an unmasked key of the own area, `beta_other` for one of area "
        "``i``, `beta_masked` for a masked key (Lemma 5.2); minus that by `Phi` of the own area "
        "and of area `i` is `alpha_own` and `alpha_other` (Lemma 5.1). ``h`` are the numbers of "
        "unmasked patches of the areas, and `W` their probability, which is hypergeometric:",
    )
    return Section("One key, one feature (Lemmas A.8, 5.1, 5.2)", words, tuple(rows))


def _risk_and_step() -> Section:
    """Show the loss, the risk, and a step of gradient descent with the derivative not evaluated."""
    loss_row, _, risk_row, *_ = _one_key().equations
    step = HandWritten(
        "Q - eta*d(sum of R over all patches)/dQ",
        r"Q - \eta \frac{\partial}{\partial Q} \textstyle\sum_p R",
    )
    words = (
        "``A_a`` is the attention to all unmasked patches of area `a`, and ``Sigma`` the sum of "
        "`z_a**2*A_a**2` over all areas but `m`. Half of the squared distance of the output from "
        "`X_p` is `loss` (Lemma A.8). ``R`` is the risk of patch `p`.",
    )
    rows = (loss_row, risk_row, (sympy.Symbol("Q'"), step))
    return Section("Risk and gradient descent", words, rows)


def _row(name: str, clusters: Clusters) -> Section:
    """Show the weights, the attention and the loss of a row type, and the step of each scalar."""
    rows: list[tuple[Any, ...]] = []
    numbered = []
    for slots in clusters:
        alike = [k.multiplicity for k in slots if not k.multiplicity.is_Integer]
        rows += [(J, number) for number in alike]
        numbered.append(
            [k if k.multiplicity.is_Integer else replace(k, multiplicity=J) for k in slots]
        )
    sizes = recursion.class_sizes(name, numbered)
    rates: dict[sympy.Symbol, list[sympy.Expr]] = {theta: [] for theta in sizes}
    for slots in numbered:
        cluster = recursion.Cluster(name, tuple(slots))
        rows += [*cluster.definitions().items(), *_loss_and_law(cluster)]
        for theta, rate in cluster.rates().items():
            minus = rate.could_extract_minus_sign()
            rates[theta].append(-E(-rate) if minus else E(rate))
    share = gamma / len(clusters)
    state = sorted(sizes, key=lambda theta: "_Phi_" in theta.name)
    for theta in state:
        stepped = sympy.Symbol(f"{theta.name}'", real=True)
        moved = [eta * share / sizes[theta] * rate for rate in rates[theta]]
        rows.append((stepped, sympy.Add(theta, *moved)))
    letters = tuple((theta.name, f"`{_kind(theta)}`, {_counted(sizes[theta])}") for theta in state)
    return Section(f"Rows of type {name}", (), tuple(rows), (), letters)


def _loss_and_law(cluster: recursion.Cluster) -> list[tuple[Any, Any]]:
    """Equations of the loss, and of the probability W of the numbers h of unmasked patches."""
    ways = [
        slot.summed(sympy.binomial(size, h)).replace(sympy.Sum, sympy.Product)
        for slot in cluster.slots
        for (_, h, _), (_, size) in zip(cluster.cells(slot), slot.cells, strict=True)
        if h != 0
    ]
    suffix = cluster.slots[0].cluster
    chance = sympy.Mul(*ways) / sympy.binomial(P - 1, masked - 1)
    return [(sympy.Symbol(f"loss{suffix}"), cluster.loss()), (sympy.Symbol(f"W{suffix}"), chance)]


def _counted(number: sympy.Expr) -> str:
    return "1 entry" if number == 1 else f"`{plain(number)}` entries"


def _kind(theta: sympy.Symbol) -> str:
    return "Phi" if "_Phi_" in theta.name else "Ups"


def _start() -> Section:
    """Show the information gap, and Phi of the own and global area at leading order."""
    motion = information_gap.leading_motion()
    ratio = sympy.factor(information_gap.leading_ratio().subs(C_global, c * P / (1 - gamma)))
    unhidden, rest = sympy.symbols("unhidden rest")
    ratio = ratio.xreplace({gamma - 1: -unhidden, c - 1: -rest})
    moved = [(motion.Phi_m, 1), (motion.Phi_0, 2)]
    rows_of_motion = [
        (NOTATION.symbol(name), -sympy.log(sympy.expand(sympy.exp(-power * phi))) / power)
        for name, (phi, power) in zip(("Phi_m", "Phi_0"), moved, strict=True)
    ]
    rows = (
        (c, (1 - gamma) * C_global / P),
        (NOTATION.symbol("rho0"), ratio.xreplace({unhidden: 1 - gamma, rest: 1 - c})),
        (NOTATION.symbol("kappa_c"), sympy.log(C_global) / sympy.log(P)),
        (NOTATION.symbol("kappa_s"), sympy.log(C_local) / sympy.log(P)),
        (NOTATION.symbol("Delta"), information_gap.information_gap()),
        *rows_of_motion,
    )
    words = (
        "`rho0` is the ratio of the rates of `Phi` of the global and of the own area of a local "
        "row, at `z = 1`; dropped is what is smaller by a power of `P`. It is of the order of P "
        "to the power `Delta`, the information gap. While attention to the own area is small, "
        "and `rho0` is large, `Phi` of these areas is `Phi_m` and `Phi_0`, ``a_t`` being the "
        "first rate of `Phi_m` times the time; dropped are higher powers of attention, and that "
        "`N` changes.",
    )
    return Section("Leading order at the start: the gap of equation (4.1)", words, rows)
