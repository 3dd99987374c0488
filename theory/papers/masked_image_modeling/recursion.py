r"""Reduced dynamics: gradient descent as a recursion of a few correlations for each row of Q.

Fix a patch p in area m, a cluster and a mask M that hides p. Ups_q and Phi_a are the correlations
of p with position q and the feature of area a. Key q in area a has the weight :math:`w_q =
e^{\Upsilon_q + 1\{q \notin M\} z_a \Phi_a}` and the attention :math:`u_q = w_q/\sum w`. The
attention to the unmasked patches of area a is :math:`A_a`. With latents z, the loss (Lemma A.8) is

.. math:: \ell = \tfrac12\big[z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2\big].

`key_increment` differentiates the loss by the score of one key q. All other keys enter the loss
only through sums, so the result holds for areas of any size: the derivative is :math:`-u_q (b_q -
r)`. For an unmasked key q, :math:`b_q` is :math:`z_m^2 (1 - A_m)` in area m and :math:`-z_a^2 A_a`
in another area a; for a masked key, it is 0. The mean of :math:`b_q`, weighted by the attention, is
:math:`r = z_m^2 A_m (1 - A_m) - \sum_{a \neq m} z_a^2 A_a^2`. Sums of :math:`u_q (b_q - r)` over
keys give the rates beta of Ups (Lemma 5.2) and, with the factor :math:`z_a`, alpha of Phi (Lemma
5.1). A step of gradient descent changes the entries of Q as follows,

    Phi_a <- Phi_a + eta alpha_a,    Ups_q <- Ups_q + eta beta_q,

with alpha and beta averaged over clusters, masks and latents. Rows of different p do not interact,
so each row type has its own recursion, built from `Cluster` objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import sympy

from theory.page import Entries
from theory.papers.masked_image_modeling import model
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.symmetry import RowType

P, C_global, C_local = NOTATION.symbols("P C_global C_local")
A_m, A_i, Sigma, u, z_m, z_i, r = NOTATION.symbols("A_m A_i Sigma u z_m z_i r")

OWN, OTHER, MASKED = "own", "other", "masked"
"""Kinds of keys: unmasked in p's area, unmasked in another area, and masked (such as p itself)."""


@cache
def key_increment(kind: str) -> sympy.Expr:
    r"""Minus the derivative of the loss of patch p by the score of one key.

    The key is unmasked in p's area m (`kind` is ``"own"``), unmasked in another area i
    (``"other"``), or masked (``"masked"``). The result contains the attention u to the key, the
    attention A_m and A_i to areas m and i, and their latents z_m and z_i. The result also contains
    Sigma, the sum of (latent times attention)^2 over all other areas.
    """
    score, total, B = sympy.symbols("s R B", real=True)
    in_own, in_other, in_rest = sympy.symbols("R_m R_i S_R", real=True)
    weight = sympy.exp(score)
    everything = total + weight
    own = (in_own + weight * int(kind == OWN)) / everything
    other = (in_other + weight * int(kind == OTHER)) / everything
    loss = model.area_loss((z_m, own), {z_i: other}) + in_rest / everything**2 / 2
    slope = -sympy.diff(loss, score).subs(
        {
            in_own: A_m * B - u * B * int(kind == OWN),
            in_other: A_i * B - u * B * int(kind == OTHER),
            in_rest: Sigma * B**2,
            total: B - weight,
        },
        simultaneous=True,
    )
    return sympy.factor(sympy.cancel(slope.subs(weight, u * B)))


@cache
def feature_increment(kind: str) -> sympy.Expr:
    """Minus the derivative of the loss by Phi of p's area (``"own"``) or of area i (``"other"``).

    The score of every unmasked key of an area contains Phi times the area's latent z. The attention
    to all unmasked keys of areas m and i is A_m and A_i.
    """
    latent, share = (z_m, A_m) if kind == OWN else (z_i, A_i)
    return sympy.factor(latent * key_increment(kind).subs(u, share))


def balanced(increment: sympy.Expr) -> sympy.Expr:
    """Express Sigma of `key_increment` by the mean r, for the form u (b - r) of Lemma 5.2."""
    rest = z_m**2 * A_m * (1 - A_m) - z_i**2 * A_i**2 - r
    return sympy.factor(sympy.expand(increment.subs(Sigma, rest)))


AREA = sympy.Symbol("i", integer=True, positive=True)
"""Index i of an area within a class of several areas."""


@dataclass(frozen=True)
class Slot:
    """Class of areas of a cluster that have the same Phi and the same numbers of patches.

    `phi` is the name of Phi, and `multiplicity` the number of areas. Each pair in `cells` holds the
    name of an Ups and the number of patches with it in each area. `cluster` is the suffix of the
    cluster's symbols, empty if there is only one cluster.
    """

    phi: str
    multiplicity: sympy.Expr
    cells: tuple[tuple[str, sympy.Expr], ...]
    cluster: str = ""

    def summed(self, expression: sympy.Expr) -> sympy.Expr:
        """Sum of an expression in the index i over the areas of the class."""
        if self.multiplicity == 1:
            return expression
        return sympy.Sum(expression, (AREA, 1, self.multiplicity))


def entry_of(row: str, kind: str, name: str) -> sympy.Symbol:
    """Symbol of the scalar ``<row>_<kind>_<name>``; `kind` is ``"Ups"`` or ``"Phi"``."""
    return sympy.Symbol(f"{row}_{kind}_{name.replace('-', '_')}", real=True)


Clusters = Sequence[Sequence[Slot]]
"""Classes of areas for each cluster; the first class is the own area of patch p."""


def family_slots() -> dict[str, Clusters]:
    """Classes of areas of a cluster with symbolic sizes, for a local and for a global patch p."""
    one, runs = sympy.Integer(1), (P - C_global) / C_local
    local = [
        Slot("target", one, (("self", one), ("own", C_local - 1))),
        Slot("global", one, (("global", C_global),)),
        Slot("other", runs - 1, (("other", C_local),)),
    ]
    globally = [
        Slot("own", one, (("self", one), ("own", C_global - 1))),
        Slot("local", runs, (("local", C_local),)),
    ]
    return {"local": [local], "global": [globally]}


def slots_of(row: RowType) -> Clusters:
    """Classes of areas of each cluster, relative to the patch p of a row type."""
    return [
        [
            Slot(
                row.phi_names[area.phi],
                sympy.Integer(area.multiplicity),
                tuple((row.ups_names[ups], sympy.Integer(size)) for ups, size in area.cells),
                f"_{k}" if len(row.clusters) > 1 else "",
            )
            for area in areas
        ]
        for k, areas in enumerate(row.clusters, start=1)
    ]


def class_sizes(row: str, clusters: Clusters) -> dict[sympy.Symbol, sympy.Expr]:
    """Mapping from each scalar of a row type to the number of entries of one row with its value."""
    sizes: dict[sympy.Symbol, sympy.Expr] = {}
    for k, slots in enumerate(clusters):
        for slot in slots:
            counted = [(entry_of(row, "Phi", slot.phi), sympy.Integer(1))]
            if k == 0:
                counted += [(entry_of(row, "Ups", name), size) for name, size in slot.cells]
            for theta, size in counted:
                sizes[theta] = sizes.get(theta, 0) + slot.multiplicity * size
    return sizes


@dataclass(frozen=True)
class Cluster:
    """Classes of areas of one cluster, as seen from the patch p of a row type, own area first."""

    row: str
    slots: tuple[Slot, ...]

    def named(self, letter: str, slot: Slot) -> sympy.Expr:
        """Symbol of a letter such as A, whose index m, i or class name stands for `slot`."""
        if slot is self.slots[0]:
            return sympy.Symbol(f"{letter}_m{slot.cluster}", real=True)
        whole = f"{letter}_{slot.phi}{slot.cluster}"
        if slot.multiplicity == 1:
            return sympy.Symbol(whole, real=True)
        alike = [other for other in self.slots[1:] if other.multiplicity != 1]
        return Entries(letter if len(alike) == 1 and not slot.cluster else whole)[AREA]

    @property
    def total(self) -> sympy.Symbol:
        """Symbol N of the sum of the weights of all keys in this cluster."""
        return sympy.Symbol(f"N{self.slots[0].cluster}", positive=True)

    @property
    def mean(self) -> sympy.Symbol:
        """Symbol of r, the attention-weighted mean of b_q (Lemma 5.2) over the cluster's keys q."""
        return sympy.Symbol(f"{r.name}{self.slots[0].cluster}", real=True)

    def cells(self, slot: Slot) -> list[tuple[sympy.Symbol, sympy.Expr, sympy.Expr]]:
        """Symbol of each Ups in an area, with its numbers of unmasked and of masked patches."""
        several = len([name for name, _ in slot.cells if name != "self"]) > 1
        cells = []
        for name, size in slot.cells:
            word = f"h_{name.replace('-', '_')}" if several else "h"
            h = sympy.Integer(0) if name == "self" else self.named(word, slot)
            cells.append((entry_of(self.row, "Ups", name), h, size - h))
        return cells

    def weight(self, slot: Slot, ups: sympy.Symbol, h: sympy.Expr) -> sympy.Expr:
        """Sum of the weights of `h` unmasked patches with the correlation `ups` in one area."""
        phi = entry_of(self.row, "Phi", slot.phi)
        return h * sympy.exp(ups + self.named("z", slot) * phi)

    def definitions(self) -> dict[sympy.Expr, sympy.Expr]:
        """Definitions of the total weight N, of the attention A to each area, and of r (`mean`)."""
        weights, shares = [], {}
        for slot in self.slots:
            cells = self.cells(slot)
            unmasked = sympy.Add(*[self.weight(slot, ups, h) for ups, h, _ in cells])
            hidden = [count * sympy.exp(ups) for ups, _, count in cells]
            weights.append(slot.summed(unmasked + sympy.Add(*hidden)))
            shares[self.named("A", slot)] = unmasked / self.total
        z, own = self.own
        mean = z**2 * own * (1 - own) - self.others()
        return {self.total: sympy.Add(*weights), **shares, self.mean: mean}

    @property
    def own(self) -> tuple[sympy.Expr, sympy.Expr]:
        """Latent of the own area of patch p, and attention to this area."""
        return self.named("z", self.slots[0]), self.named("A", self.slots[0])

    def others(self) -> sympy.Expr:
        """Sum of z^2 A^2 (latent z, attention A) over all areas except p's own."""
        parts = [(k, self.named("z", k) ** 2 * self.named("A", k) ** 2) for k in self.slots[1:]]
        return sympy.Add(*[slot.summed(part) for slot, part in parts])

    def loss(self) -> sympy.Expr:
        """Loss of a masked patch of this row type, by Lemma A.8."""
        return sympy.factor(model.area_loss(self.own, {})) + self.others() / 2

    def rates(self) -> dict[sympy.Symbol, sympy.Expr]:
        """Minus the derivative of the loss by each scalar, for one mask and given latents."""
        rates: dict[sympy.Symbol, sympy.Expr] = {}
        for position, slot in enumerate(self.slots):
            kind, here = OTHER if position else OWN, (self.named("z", slot), self.named("A", slot))
            cells = self.cells(slot)
            moved = [(entry_of(self.row, "Phi", slot.phi), here[0] * push(kind, here[1], *here))]
            alone = len([h for _, h, _ in cells if h != 0]) == 1
            for ups, h, hidden in cells:
                share = here[1] if alone else self.weight(slot, ups, h) / self.total
                pushed = push(kind, share, *here) if h != 0 else 0
                pushed += hidden * push(MASKED, sympy.exp(ups) / self.total, *here)
                moved.append((ups, pushed))
            for theta, rate in moved:
                rate = sympy.sympify(rate).subs(r, self.mean)
                minus = -1 if rate.could_extract_minus_sign() else 1
                rates[theta] = rates.get(theta, 0) + minus * slot.summed(minus * rate)
        return rates


def push(kind: str, attention: sympy.Expr, latent: sympy.Expr, area: sympy.Expr) -> sympy.Expr:
    """Minus the derivative of the loss by the score of one key, as u (b - r) of Lemma 5.2.

    `kind` is ``"own"``, ``"other"`` or ``"masked"``. `attention` is u, the attention to the key, or
    the attention to all keys of its area. `latent` is the latent of this area, and `area` the
    attention to its unmasked patches.
    """
    inside = sympy.expand(balanced(key_increment(kind)) / u)
    names = {z_m: latent, A_m: area} if kind == OWN else {z_i: latent, A_i: area}
    b = sympy.collect(sympy.expand(inside + r), (z_m, z_i)).subs(names)
    return attention * (b - r) if kind == OWN else -attention * (r - b)
