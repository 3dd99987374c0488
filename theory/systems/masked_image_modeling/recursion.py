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
KINDS = ("Ups", "Phi")
"""Entries of a row, in the order of the state."""
KEY_KINDS = (OWN, OTHER, MASKED)
"""Where a key can be: unmasked in p's area, unmasked in another, masked (p itself is)."""


@cache
def key_increment(kind: str) -> sympy.Expr:
    r"""Minus the derivative of the loss by the score of one key.

    With w the weight of the key, all others enter through the sum R of their weights, the part of
    it in p's area, the part in area i, and :math:`\sum z^2 (\text{weight})^2` of the rest.

    Parameters
    ----------
    kind : str
        One of `KEY_KINDS`; ``"other"`` is the area i.

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


@dataclass(frozen=True)
class Slot:
    """A class of areas of a cluster: the Phi, how many are alike, and patches of each Ups in each.

    Attributes
    ----------
    phi : str
    multiplicity : int or sympy.Expr
    cells : tuple of (str, size)
    """

    phi: str
    multiplicity: sympy.Expr
    cells: tuple[tuple[str, sympy.Expr], ...]


@cache
def family() -> dict[str, ReducedSystem]:
    """The two rows of the one-cluster family, sizes left as letters."""
    runs = (P - C_global) / C_local
    local = [
        Slot("target", sympy.Integer(1), (("self", sympy.Integer(1)), ("own", C_local - 1))),
        Slot("global", sympy.Integer(1), (("global", C_global),)),
        Slot("other", runs - 1, (("other", C_local),)),
    ]
    globally = [
        Slot("own", sympy.Integer(1), (("self", sympy.Integer(1)), ("own", C_global - 1))),
        Slot("local", runs, (("local", C_local),)),
    ]
    words = {
        "local": (("self", "own", "global", "other"), ("target", "global", "other")),
        "global": (("self", "own", "local"), ("own", "local")),
    }
    slots = {"local": local, "global": globally}
    return {row: _reduced(row, words[row], [slots[row]]) for row in words}


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
    clusters = [
        [
            Slot(
                row.phi_names[area.phi],
                sympy.Integer(area.multiplicity),
                tuple((row.ups_names[ups], sympy.Integer(size)) for ups, size in area.cells),
            )
            for area in areas
        ]
        for areas in row.clusters
    ]
    return _reduced(name, (row.ups_names, row.phi_names), clusters)


@dataclass(frozen=True)
class _AreaWithLatents:
    """A class of areas with its latents: symbols of a single area, indexed ones of several."""

    slot: Slot
    z: sympy.Expr
    counts: tuple[sympy.Expr, ...]
    index: sympy.Symbol | None

    @property
    def latents(self) -> tuple[sympy.Expr, ...]:
        """The latent, and the numbers of unmasked patches that can be positive."""
        return (self.z, *[count for count in self.counts if count != 0])

    def summed(self, expression: sympy.Expr) -> sympy.Expr:
        """Sum over the areas of the class."""
        if self.index is None:
            return expression
        return sympy.Sum(expression, (self.index, 1, self.slot.multiplicity))


def _entry(row: str, kind: str, name: str) -> sympy.Symbol:
    return sympy.Symbol(f"{row}_{kind}_{name.replace('-', '_')}", real=True)


def _with_latents(slots: Sequence[Slot], suffix: str) -> list[_AreaWithLatents]:
    result = []
    for slot in slots:
        names = [f"z__{slot.phi}{suffix}"]
        names += [f"h_{ups.replace('-', '_')}__{slot.phi}{suffix}" for ups, _ in slot.cells]
        if slot.multiplicity == 1:
            index, latents = None, [sympy.Symbol(name, nonnegative=True) for name in names]
        else:
            index = sympy.Symbol("i", integer=True, positive=True)
            latents = [sympy.IndexedBase(name, nonnegative=True)[index] for name in names]
        # p itself is masked: its cell has no unmasked patch.
        counts = [
            sympy.Integer(0) if ups == "self" else count
            for (ups, _), count in zip(slot.cells, latents[1:], strict=True)
        ]
        result.append(_AreaWithLatents(slot, latents[0], tuple(counts), index))
    return result


def _reduced(
    row: str,
    names: tuple[Sequence[str], Sequence[str]],
    clusters: Sequence[Sequence[Slot]],
) -> ReducedSystem:
    parts = [
        _cluster(row, slots, f"_{k + 1}" if len(clusters) > 1 else "")
        for k, slots in enumerate(clusters)
    ]
    sizes = _sizes(row, clusters)
    ups, phi = (
        [_entry(row, kind, name) for name in part] for kind, part in zip(KINDS, names, strict=True)
    )
    state = [*ups, *phi]
    share = gamma / len(clusters)
    rates = {
        theta: share * sympy.Add(*[part.rates[theta] for part in parts if theta in part.rates])
        for theta in state
    }
    definitions: dict[sympy.Symbol, sympy.Expr] = {}
    functions: dict[str, sympy.Lambda] = {}
    for part in parts:
        definitions |= part.definitions
        functions |= part.functions
    symbolic = any(not sympy.sympify(size).is_number for size in sizes.values())
    return ReducedSystem(
        title=f"Gradient descent on the loss of one patch, reduced: {row} rows",
        notation=NOTATION,
        state=tuple(state),
        parameters=(P, C_global, C_local, gamma) if symbolic else (gamma,),
        latents=tuple(latent for part in parts for latent in part.latents),
        multiplicity={theta: sizes[theta] for theta in state},
        definitions=definitions,
        blocks={f"d_{theta.name}": rates[theta] / sizes[theta] for theta in state},
        functions=functions,
        risk_integrand=share * sympy.Add(*[part.loss for part in parts]),
        order_parameters={},
        observables={},
        shift_invariant=tuple(ups),
        invariants=(sympy.Add(*[sizes[theta] * _rate_of(theta) for theta in ups]),),
    )


def _rate_of(theta: sympy.Symbol) -> sympy.Symbol:
    return sympy.Symbol(f"d_{theta.name}", real=True)


def _sizes(row: str, clusters: Sequence[Sequence[Slot]]) -> dict[sympy.Symbol, sympy.Expr]:
    """Entries of one row that share each state; positions are the same ones in every cluster."""
    sizes: dict[sympy.Symbol, sympy.Expr] = {}
    for k, slots in enumerate(clusters):
        for slot in slots:
            counted = [(_entry(row, "Phi", slot.phi), sympy.Integer(1))]
            if k == 0:
                counted += [(_entry(row, "Ups", name), size) for name, size in slot.cells]
            for theta, size in counted:
                sizes[theta] = sizes.get(theta, 0) + slot.multiplicity * size
    return sizes


@dataclass(frozen=True)
class _Part:
    """What one cluster adds: the loss given the latents, and rates summed over equal entries."""

    definitions: Mapping[sympy.Symbol, sympy.Expr]
    functions: Mapping[str, sympy.Lambda]
    latents: tuple[sympy.Symbol, ...]
    loss: sympy.Expr
    rates: Mapping[sympy.Symbol, sympy.Expr]


def _cluster(row: str, slots: Sequence[Slot], suffix: str) -> _Part:
    total = sympy.Symbol(f"D{suffix}", positive=True)
    own, mean = (sympy.Symbol(f"{name}{suffix}", real=True) for name in (A_m.name, r.name))
    areas = _with_latents(slots, suffix)
    weights, shares, functions = [], [], {}
    for area in areas:
        phi = _entry(row, "Phi", area.slot.phi)
        cells = [(_entry(row, "Ups", name), size) for name, size in area.slot.cells]
        unmasked = [
            h * sympy.exp(y + area.z * phi) for (y, _), h in zip(cells, area.counts, strict=True)
        ]
        hidden = [(n - h) * sympy.exp(y) for (y, n), h in zip(cells, area.counts, strict=True)]
        weights.append(area.summed(sympy.Add(*unmasked, *hidden)))
        name, arguments = f"A_{area.slot.phi}{suffix}", area.latents
        plain = [_bound(x) for x in arguments]
        content = (sympy.Add(*unmasked) / total).subs(dict(zip(arguments, plain, strict=True)))
        functions[name] = sympy.Lambda(tuple(plain), content)
        shares.append(sympy.Function(name)(*arguments))
    own_share = functions.pop(f"A_{areas[0].slot.phi}{suffix}")(*areas[0].latents)
    z = areas[0].z
    energy = sympy.Add(
        *[a.summed(a.z**2 * s**2) for a, s in zip(areas[1:], shares[1:], strict=True)]
    )
    return _Part(
        definitions={
            total: sympy.Add(*weights),
            own: own_share,
            mean: z**2 * own * (1 - own) - energy,
        },
        functions=functions,
        latents=tuple(_plain(x) for area in areas for x in area.latents),
        loss=(z**2 * (1 - own) ** 2 + energy) / 2,
        rates=_rates(row, areas, shares, (total, own, mean)),
    )


def _bound(latent: sympy.Expr) -> sympy.Symbol:
    """The latent as the variable of a function: z, h_<class of positions>."""
    named = str(_plain(latent)).split("__")[0]
    return sympy.Symbol(named, nonnegative=True)


def _plain(latent: sympy.Expr) -> sympy.Symbol:
    return latent.base.label if isinstance(latent, sympy.Indexed) else latent


def _rates(
    row: str,
    areas: Sequence[_AreaWithLatents],
    shares: Sequence[sympy.Expr],
    common: tuple[sympy.Symbol, sympy.Symbol, sympy.Symbol],
) -> Mapping[sympy.Symbol, sympy.Expr]:
    """Sum over all entries that share a state of minus the slope of the loss, for one cluster."""
    total, own, mean = common
    result: dict[sympy.Symbol, sympy.Expr] = {}
    for position, (area, share) in enumerate(zip(areas, shares, strict=True)):
        kind = OTHER if position else OWN
        here = {z_m: areas[0].z, A_m: own, r: mean, z_i: area.z, A_i: share}
        phi = _entry(row, "Phi", area.slot.phi)
        moved = [(phi, balanced(feature_increment(kind)))]
        for (name, size), h in zip(area.slot.cells, area.counts, strict=True):
            ups = _entry(row, "Ups", name)
            for where, count, score in ((kind, h, ups + area.z * phi), (MASKED, size - h, ups)):
                rate = balanced(key_increment(where)).subs(u, sympy.exp(score) / total)
                moved.append((ups, count * rate))
        for theta, rate in moved:
            result[theta] = result.get(theta, 0) + area.summed(rate.subs(here, simultaneous=True))
    return result
