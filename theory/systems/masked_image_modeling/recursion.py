r"""The reduction: gradient descent on every row of Q as a recursion on a few correlations.

Fix p, a cluster and a mask that holds p; m is p's area. Key q of area a has the weight
:math:`w_q = e^{\Upsilon_q + 1\{q \notin M\} z_a \Phi_a}`, the attention :math:`u_q = w_q/\sum w`,
and :math:`A_a` is the attention to the unmasked patches of a. The loss is

.. math:: \ell = \tfrac12\big[z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2\big]

(Lemma A.8). `key_increment` differentiates it by the score of one key: an arbitrary key, whatever
the sizes of areas, because all the other keys enter through a few totals. Summing over the keys
that share a Phi or an Ups gives Lemmas 5.1 and 5.2. With b_q what `key_increment` has beside
:math:`r = \sum_q u_q b_q = z_m^2 A_m (1 - A_m) - \sum_{a \neq m} z_a^2 A_a^2`, and per entry of Q,

    Phi_a <- Phi_a + eta alpha_a,    Ups_q <- Ups_q + eta beta_q,

each the mean over clusters, masks and latents. Rows of different p never interact: every row type
is a `ReducedSystem` of its own (`derive`; `family` with letters for the sizes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import sympy

from theory.reduction import ReducedSystem
from theory.systems.masked_image_modeling import model
from theory.systems.masked_image_modeling.notation import NOTATION
from theory.systems.masked_image_modeling.symmetry import RowType

P, C_global, C_local, gamma = NOTATION.symbols("P C_global C_local gamma")
A_m, A_i, Sigma, u, z_m, z_i, r = NOTATION.symbols("A_m A_i Sigma u z_m z_i r")

OWN, OTHER, MASKED = "own", "other", "masked"
"""Where a key can be: unmasked in p's area, unmasked in another, masked (p itself is)."""
KINDS = ("Ups", "Phi")
"""Entries of a row, in the order of the state."""


@cache
def key_increment(kind: str) -> sympy.Expr:
    r"""Minus the derivative of the loss by the score of one key.

    With w the weight of the key, all others enter through the sum R of their weights, the part of
    it in p's area, the part in area i, and :math:`\sum z^2 (\text{weight})^2` of the rest.

    Parameters
    ----------
    kind : str
        ``"own"``, ``"masked"``, or ``"other"``, which is the area i.

    Returns
    -------
    sympy.Expr
        In u (attention to the key), A_m, A_i, z_m, z_i, and Sigma, the sum of z^2 A^2 over all
        areas but m and i.
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
    """Minus the derivative of the loss by Phi of p's own area (``"own"``) or of area i.

    Phi of an area enters the scores of its unmasked keys, times z; their attention sums to A.
    """
    latent, share = (z_m, A_m) if kind == OWN else (z_i, A_i)
    return sympy.factor(latent * key_increment(kind).subs(u, share))


def balanced(increment: sympy.Expr) -> sympy.Expr:
    """An increment with r in place of the areas it does not name: u (b - r), or z A (b - r)."""
    rest = z_m**2 * A_m * (1 - A_m) - z_i**2 * A_i**2 - r
    return sympy.factor(sympy.expand(increment.subs(Sigma, rest)))


AREA = sympy.Symbol("i", integer=True, positive=True)
"""Number of an area among those that are alike."""


@dataclass(frozen=True)
class Slot:
    """A class of areas of a cluster: the Phi, how many are alike, and patches of each Ups in each.

    Attributes
    ----------
    phi : str
    multiplicity : int or sympy.Expr
    cells : tuple of (str, size)
    cluster : str
        End of the names of latents, where there are several clusters.
    """

    phi: str
    multiplicity: sympy.Expr
    cells: tuple[tuple[str, sympy.Expr], ...]
    cluster: str = ""

    @property
    def latents(self) -> dict[str, sympy.Expr]:
        """Z, and h_<class>: unmasked patches of each cell but p, which is masked.

        Symbols of a single area, indexed ones of several.
        """
        names = ["z", *(_count_name(ups) for ups, _ in self.cells if ups != "self")]
        whole = {name: f"{name}__{self.phi}{self.cluster}" for name in names}
        if self.multiplicity == 1:
            return {name: sympy.Symbol(text, nonnegative=True) for name, text in whole.items()}
        bases = {name: sympy.IndexedBase(text, nonnegative=True) for name, text in whole.items()}
        return {name: base[AREA] for name, base in bases.items()}

    def summed(self, expression: sympy.Expr) -> sympy.Expr:
        """Sum over the areas of the class."""
        if self.multiplicity == 1:
            return expression
        return sympy.Sum(expression, (AREA, 1, self.multiplicity))


def _count_name(ups: str) -> str:
    return f"h_{ups.replace('-', '_')}"


def entry_of(row: str, kind: str, name: str) -> sympy.Symbol:
    """The scalar of a class of a row.

    Parameters
    ----------
    row : str
    kind : str
        ``"Ups"`` or ``"Phi"``.
    name : str
        Of the class.
    """
    return sympy.Symbol(f"{row}_{kind}_{name.replace('-', '_')}", real=True)


Clusters = Sequence[Sequence[Slot]]
"""For each cluster its classes of areas, p's own first."""


def family_slots() -> dict[str, Clusters]:
    """Rows of the one-cluster family, sizes left as letters."""
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
    """Classes of areas as the rows of one type see them."""
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


@cache
def family() -> dict[str, ReducedSystem]:
    """The two rows of the one-cluster family, sizes left as letters."""
    return {name: _reduced(name, clusters) for name, clusters in family_slots().items()}


def derive(row: RowType, name: str) -> ReducedSystem:
    """The exact recursion of the rows of one type.

    Parameters
    ----------
    row : RowType
    name : str
        Name of the type, the first part of the names of the state.

    Returns
    -------
    ReducedSystem
        Its risk is the loss L_p of one patch of the type. Latents of an area are the numbers h of
        unmasked patches in each of its cells and z, those of areas alike being indexed; blocks are
        the rates of every correlation, before the mean (Lemmas 5.1 and 5.2).
    """
    return _reduced(name, slots_of(row), (row.ups_names, row.phi_names))


def _reduced(
    row: str,
    clusters: Clusters,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
) -> ReducedSystem:
    """The recursion of one row; the state in the order of names, or in which the slots name it."""
    sizes = class_sizes(row, clusters)
    if names is None:
        state = sorted(sizes, key=lambda theta: "_Phi_" in theta.name)
    else:
        state = [
            entry_of(row, k, name) for k, part in zip(KINDS, names, strict=True) for name in part
        ]
    definitions: dict[sympy.Symbol, sympy.Expr] = {}
    functions: dict[str, sympy.Lambda] = {}
    losses: list[sympy.Expr] = []
    rates: dict[sympy.Symbol, list[sympy.Expr]] = {theta: [] for theta in state}
    for slots in clusters:
        total, own, mean, shares = _attention(row, slots, definitions, functions)
        z = slots[0].latents["z"]
        others = zip(slots[1:], shares[1:], strict=True)
        energy = sympy.Add(*[slot.summed(slot.latents["z"] ** 2 * A**2) for slot, A in others])
        definitions[mean] = z**2 * own * (1 - own) - energy
        losses.append((z**2 * (1 - own) ** 2 + energy) / 2)
        for theta, rate in _rates(row, slots, shares, (total, own, mean)).items():
            rates[theta].append(rate)
    share = gamma / len(clusters)
    symbolic = any(not sympy.sympify(size).is_number for size in sizes.values())
    ups = tuple(theta for theta in state if "_Ups_" in theta.name)
    return ReducedSystem(
        title=f"Gradient descent on the loss of one patch, reduced: {row} rows",
        notation=NOTATION,
        state=tuple(state),
        parameters=(P, C_global, C_local, gamma) if symbolic else (gamma,),
        latents=tuple(
            latent.base.label if isinstance(latent, sympy.Indexed) else latent
            for slots in clusters
            for slot in slots
            for latent in slot.latents.values()
        ),
        multiplicity={theta: sizes[theta] for theta in state},
        definitions=definitions,
        blocks={
            f"d_{theta.name}": share * sympy.Add(*rates[theta]) / sizes[theta] for theta in state
        },
        functions=functions,
        risk_integrand=share * sympy.Add(*losses),
        order_parameters={},
        observables={},
        shift_invariant=ups,
        invariants=(
            sympy.Add(
                *[sizes[theta] * sympy.Symbol(f"d_{theta.name}", real=True) for theta in ups]
            ),
        ),
    )


def class_sizes(row: str, clusters: Clusters) -> dict[sympy.Symbol, sympy.Expr]:
    """Entries of one row that share each state; positions are the same ones in every cluster.

    Parameters
    ----------
    row : str
        Name of the row.
    clusters : Clusters
    """
    sizes: dict[sympy.Symbol, sympy.Expr] = {}
    for k, slots in enumerate(clusters):
        for slot in slots:
            counted = [(entry_of(row, "Phi", slot.phi), sympy.Integer(1))]
            if k == 0:
                counted += [(entry_of(row, "Ups", name), size) for name, size in slot.cells]
            for theta, size in counted:
                sizes[theta] = sizes.get(theta, 0) + slot.multiplicity * size
    return sizes


def _attention(
    row: str,
    slots: Sequence[Slot],
    definitions: dict[sympy.Symbol, sympy.Expr],
    functions: dict[str, sympy.Lambda],
) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Symbol, list[sympy.Expr]]:
    """Symbols of the total weight, A_m and r of one cluster, and A of every slot, p's own first.

    The total, A_m and what the functions stand for are added to definitions and functions.
    """
    suffix = slots[0].cluster
    total = sympy.Symbol(f"D{suffix}", positive=True)
    own, mean = (sympy.Symbol(f"{name}{suffix}", real=True) for name in (A_m.name, r.name))
    weights, shares = [], []
    for position, slot in enumerate(slots):
        latents, phi = slot.latents, entry_of(row, "Phi", slot.phi)
        unmasked, hidden = [], []
        for name, size in slot.cells:
            y, h = entry_of(row, "Ups", name), latents.get(_count_name(name), 0)
            unmasked.append(h * sympy.exp(y + latents["z"] * phi))
            hidden.append((size - h) * sympy.exp(y))
        weights.append(slot.summed(sympy.Add(*unmasked, *hidden)))
        plain = [sympy.Symbol(name, nonnegative=True) for name in latents]
        named = dict(zip(latents.values(), plain, strict=True))
        content = sympy.Lambda(tuple(plain), (sympy.Add(*unmasked) / total).subs(named))
        if position:
            functions[f"A_{slot.phi}{suffix}"] = content
            shares.append(sympy.Function(f"A_{slot.phi}{suffix}")(*latents.values()))
        else:
            shares.append(own)
            definitions |= {total: total, own: content(*latents.values())}
    definitions[total] = sympy.Add(*weights)
    return total, own, mean, shares


def _rates(
    row: str,
    slots: Sequence[Slot],
    shares: Sequence[sympy.Expr],
    common: tuple[sympy.Symbol, sympy.Symbol, sympy.Symbol],
) -> Mapping[sympy.Symbol, sympy.Expr]:
    """Sum over all entries that share a state of minus the slope of the loss, for one cluster."""
    total, own, mean = common
    result: dict[sympy.Symbol, sympy.Expr] = {}
    for position, (slot, share) in enumerate(zip(slots, shares, strict=True)):
        kind, latents = OTHER if position else OWN, slot.latents
        z = latents["z"]
        here = {z_m: slots[0].latents["z"], A_m: own, r: mean, z_i: z, A_i: share}
        phi = entry_of(row, "Phi", slot.phi)
        moved = [(phi, balanced(feature_increment(kind)))]
        for name, size in slot.cells:
            ups, h = entry_of(row, "Ups", name), latents.get(_count_name(name), 0)
            for where, count, score in ((kind, h, ups + z * phi), (MASKED, size - h, ups)):
                rate = balanced(key_increment(where)).subs(u, sympy.exp(score) / total)
                moved.append((ups, count * rate))
        for theta, rate in moved:
            result[theta] = result.get(theta, 0) + slot.summed(rate.subs(here, simultaneous=True))
    return result
