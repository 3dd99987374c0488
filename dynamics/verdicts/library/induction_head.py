r"""Induction heads with N pairs: the 19 scalars, times of emergence, and three trained alone.

While entries of a class are equal, attention scores and answer are sums of inner products of tokens
and positions. Such an inner product is 0 or 1, and 0, 1 or -1 if the matrix M is between its two
vectors. The loss therefore depends on the 19 scalars and the number N of pairs only, and costs
:math:`O(N^3)`. `scalar_model` is a model of the scalars. Times are those of the scalars' flow; in
the model file they are D times longer, because a scalar of D entries has D times the derivative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dynamics.models import Model
from dynamics.models.induction_head import frames
from dynamics.plotting.style import BLUE, ORANGE, legend
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case, descent
from dynamics.verdicts.claim import Also, Experiment, Growth, Picture, Row, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.rules import growth
from dynamics.verdicts.stability import Trained
from theory.closure.orbits import generators_of, orbit_classes

ROUNDING = 1e-12
SIZES = (4, 8, 16, 32)
LONG = (200.0, 2.2)
"""Coefficients a, b; at time a + b N^2 the head with N pairs has emerged."""
SHAPES = {"alpha": 3, "beta": 4, "b": 4, "c": 4, "gamma": 4}
EVENTS = {"T_gamma": "gamma3 >= 1/2", "T_copy": "risk <= 1/10"}
THREE = ("alpha3", "beta2", "gamma3")
RECONSTRUCTED = "the model is reconstructed, so the paper is not contradicted"


def scalar_model(N: int, alone: tuple[str, ...] = ()) -> System:
    """Model of the scalars for N pairs; if `alone` names scalars, all others are held at 0."""
    length, pairs = 2 * N + 1, range(N)
    tokens = np.array([[*range(2 * N), 2 * pair] for pair in pairs])
    same = (tokens[:, :, None] == tokens[:, None, :]).astype(float)
    label = (tokens == 2 * np.arange(N)[:, None] + 1).astype(float)
    here, turned = np.eye(length), np.zeros((length, length))
    for k in pairs:  # M maps the position of an item to that of its label
        turned[2 * k + 1, 2 * k], turned[2 * k, 2 * k + 1] = 1.0, -1.0
    names = [f"{array}{k + 1}" for array, size in SHAPES.items() for k in range(size)]
    trained = [name for name in names if name in alone or not alone]

    def start() -> dict[str, Any]:
        return {name: np.zeros(1) for name in trained}

    def risk(theta: Any, xp: Any) -> Any:
        value = {name: theta[name][0] if name in trained else 0.0 for name in names}
        scores = value["alpha1"] * same + value["alpha2"] * here + value["alpha3"] * turned
        weights = xp.exp(scores) * np.tri(length)
        first = weights / xp.sum(weights, axis=-1, keepdims=True)
        of_query = np.zeros(label.shape)
        for letter, table in (("beta", same), ("b", here), ("c", turned)):
            # Scores of the query with all tokens, from its own token z and first-layer output o.
            products = np.broadcast_to(table, same.shape)
            z, o = products[:, -1], xp.einsum("ns,nst->nt", first[:, -1], products)
            masses = (z, xp.einsum("ns,nts->nt", z, first), o, xp.einsum("ns,nts->nt", o, first))
            of_query = of_query + sum(value[f"{letter}{k + 1}"] * masses[k] for k in range(4))
        second = xp.exp(of_query) / xp.sum(xp.exp(of_query), axis=-1, keepdims=True)
        parts = (here[-1], first[:, -1], second, xp.einsum("ns,nst->nt", second, first))
        answer = sum(value[f"gamma{k + 1}"] * part for k, part in enumerate(parts))
        return xp.einsum("ns,nst,nt->", answer - label, same, answer - label) / (2 * N)

    entries = {name: (name, 0) for name in trained}
    return Model(start=start, risk=risk, names=entries, events=EVENTS)


@lru_cache(maxsize=16)
def emergence(N: int, alone: tuple[str, ...] = ()) -> Trajectory:
    """Flow until the head has emerged: of the scalars in `alone`, or of all if it is empty."""
    system = scalar_model(N, alone)
    problem = system.ReducedPopulation(system.Parameters(), coordinates="classes")
    return flow(problem, LONG[0] + LONG[1] * N**2)


def fixed_space(N: int, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Dimension of the space of arrays of given `shapes`, invariant under the law's symmetries."""
    axes = {"W1": ("z", "z"), "W2": ("h", "h"), "W3": ("token", "out")}
    turns = []
    for tokens, planes in frames(N):
        one = [tokens, planes]
        parts = {"token": [tokens], "z": one, "h": 2 * one, "out": 4 * one}
        turns.append({name: _signed(blocks) for name, blocks in parts.items()})
    entries = sum(int(np.prod(shape)) for shape in shapes.values())
    return orbit_classes(np.zeros(entries), generators_of(turns, axes, shapes)).count


def _signed(blocks: Sequence[FloatArray]) -> tuple[Any, FloatArray]:
    """Permutation and signs of the signed permutation matrix with these diagonal blocks."""
    columns = [np.abs(block).argmax(axis=0) for block in blocks]
    size = len(blocks[0])
    images = np.concatenate([size * k + column for k, column in enumerate(columns)])
    return images, np.concatenate([b[c, range(size)] for b, c in zip(blocks, columns, strict=True)])


@claim(
    "Theorem 1", "scalars in the space that the group of the law leaves fixed", "==", 19.0,
    also=(Also("off", "<=", ROUNDING, "largest difference of reduced and full"),),
    words="of {entries:,} entries; the closure, which is told of no group, finds the {moving} of "
    "them that move (M between the query's position and itself has no gradient); reduced and full "
    "differ by {off:.1e} in 300 steps; the model is reconstructed, so another number would decide "
    "nothing",
)  # fmt: skip
def subspace(case: Case) -> dict[str, Any]:
    """Dimension of the space fixed by the law's symmetries; difference of reduced and full runs."""
    problem, run = descent(1.0, 300)(case)
    full, other = descent(1.0, 300, "FullPopulation")(case)
    shapes = dict(zip(full.layout.names, full.layout.shapes, strict=True))
    return {
        "value": float(fixed_space(case.parameters.N, shapes)), "entries": full.layout.size,
        "off": float(np.abs(problem.lift(run.states) - other.states).max()), "open": "model",
        "moving": problem.closure.scalars, "trained": [Trained.of(case.parameters, run)],
    }  # fmt: skip


@dataclass(frozen=True)
class Pairs:
    """Parameters of the flow of the scalars: the number of pairs."""

    N: int


PAIRS = Picture("pairs $N$", "time of the scalars' flow")
SCALARS: Any = {"family": lambda _: [Pairs(N) for N in SIZES]}
"""Keywords of `claim`: the numbers of pairs are `SIZES`, whichever parameters are requested."""


def _own_size(case: Case) -> list[Trained]:
    """Run at the model file's size, whose final time is D times that of the scalars' flow."""
    law = case.system.Parameters()
    D = 2 ** (2 * law.N + 1).bit_length()
    where = f"at N={law.N}, the size of the model file"
    return [Trained(law, D * float(emergence(law.N).time[-1]), where=where)]


def _emerges(case: Case, event: str) -> dict[str, Any]:
    """Times of an event if all scalars are trained, and if only three are."""
    N = case.parameters.N
    times = [emergence(N, alone).events[event].time for alone in ((), THREE)]
    curves = {"all scalars": ([N], times[:1]), "three alone": ([N], times[1:])}
    return {"value": times[0], "alone": times[1], "curves": curves, "trained": _own_size(case)}


def _three_too(rows: list[Row], finding: Finding) -> Finding:
    """Add the exponent in N if only `THREE` are trained; turn a contradiction into undecided."""
    three = growth(SIZES, [row["alone"] for row in rows], finding.bound)
    reason, missing = f"{finding.reason}; of three alone: {three}", finding.missing
    if finding.holds is False:
        reason, missing = f"{reason}; {RECONSTRUCTED}", ("model",)
    return replace(finding, holds=finding.holds or None, reason=reason, missing=missing)


def _emerging(source: str, quantity: str, exponent: float, event: str) -> Experiment:
    """Claim on the growth of an event's time with N, measured on the flow of the scalars."""
    decorate = claim(
        source, quantity, "==", exponent, growth=Growth("N", exponent), words="time {value:.4g}",
        conclude=_three_too, picture=PAIRS, **SCALARS,
    )  # fmt: skip
    return decorate(lambda case: _emerges(case, event))


gamma_emerges = _emerging(
    "Emergence, gamma", "exponent in N of the time of gamma_3 = 1/2, all scalars", 1.0, "T_gamma"
)
head_emerges = _emerging(
    "Emergence, all", "exponent in N of the time of risk = .1, all scalars", 2.0, "T_copy"
)


@claim(
    "Three scalars", "largest other scalar over the least of the three, when the risk is .1", "<=",
    0.1, **SCALARS,
    words="{other} is {end:.3g} when the head has emerged, alone the three take {ratio:.2f} times "
    "as long; at time {late:.4g} beta1 is {beta1:.3g}",
    conclude=lambda _, finding: replace(finding, reason=f"{finding.reason}; {RECONSTRUCTED}"),
    picture=Picture("pairs $N$", "part of the least of the three"),
)  # fmt: skip
def three_matter(case: Case) -> dict[str, Any]:
    """Largest scalar outside `THREE` when the head has emerged, and times with `THREE` alone."""
    run, alone = (emergence(case.parameters.N, names) for names in ((), THREE))
    event = run.events["T_copy"]
    at = int(np.searchsorted(run.time, event.time)) if event else -1
    ends = {name: float(run[name][at]) for name in run.layout.names}
    three = min(abs(ends.pop(name)) for name in THREE)
    other = max(ends, key=lambda name: abs(ends[name]))
    share = abs(ends[other]) / three
    return {
        "value": share, "other": other, "end": ends[other],
        "curves": {"largest other scalar": ([case.parameters.N], [share])},
        "ratio": alone.events["T_copy"].time / event.time, "beta1": run["beta1"][-1],
        "late": run.time[-1], "open": "model", "trained": _own_size(case),
    }  # fmt: skip


def times(system: System, request: FigureRequest) -> Drawing:
    """Emergence times against N, with all scalars and with three alone; option ``sizes``."""
    request.make_parameters(system, ("N",))
    sizes = sorted(int(N) for N in request.options({"sizes": [*SIZES]})["sizes"])
    data: dict[str, Any] = {"N": np.array(sizes)}
    looks = ((), "all scalars", BLUE, "o-"), (THREE, "three alone", ORANGE, "s-")
    with page(5.6, 3.8) as (_, axes):
        for alone, word, colour, look in looks:
            runs = [emergence(N, alone) for N in sizes]
            events = ("T_copy", "risk .1", colour), ("T_gamma", r"$\gamma_3 = 1/2$", "w")
            for name, label, fill in events:
                values = np.array([run.events[name].time for run in runs])
                data[f"{name}_{'three' if alone else 'all'}"] = values
                axes.plot(sizes, values, look, color=colour, mfc=fill, label=f"{label}, {word}")
        axes.set(xscale="log", yscale="log", xlabel="pairs $N$", ylabel="time of the scalars' flow")
        axes.set_xticks(sizes, [str(N) for N in sizes])
        axes.minorticks_off()
        legend(axes)
    caption = (
        "Times at which the risk falls below .1 and gamma_3 reaches 1/2, by the gradient flow of "
        "all scalars and of alpha_3, beta_2, gamma_3 alone."
    )
    return Drawing(axes, data, caption)


def rounds(system: System, request: FigureRequest) -> Drawing:
    """Number of classes known to move, after each round of the search for equal entries."""
    request.options({})
    closure = system.closure(request.make_parameters(system))
    counts = np.array(closure.classes.rounds)
    places = np.arange(1, len(counts) + 1)
    split = np.diff(counts, prepend=0) > 0
    looks = {
        "classes split, or begin to move": (split, {"color": BLUE}),
        "nothing changes": (~split, {"color": "w", "edgecolor": BLUE, "hatch": "///"}),
    }
    title = f"{closure.entries} entries, {closure.frozen} of which never move"
    with page(5.0, 3.0, title) as (_, axes):
        for label, (chosen, look) in looks.items():
            if chosen.any():
                axes.bar(places[chosen], counts[chosen], 0.7, label=label, **look)
        for at in zip(places, counts, strict=True):
            axes.annotate(f"{at[1]}", at, (0, 2), textcoords="offset points", ha="center")
        axes.set(xlabel="round", ylabel="classes that have moved", ylim=(0, 1.6 * counts.max()))
        axes.set_xticks(places)
        legend(axes, loc="upper left")
    caption = (
        f"Classes of the {closure.entries:,} entries that have moved after each round of the "
        f"refinement: {', '.join(map(str, counts))}. {closure.frozen:,} entries never move."
    )
    return Drawing(axes, {"rounds": counts}, caption)


FIGURES = {"times": times, "rounds": rounds}
