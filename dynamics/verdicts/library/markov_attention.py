r"""A transformer on a binary Markov chain: two final risks, separatrix, energy; a figure.

The risk depends on :math:`z = e^2 (1 + 2 w |w|)` alone, where e is the embedding and w the weight
of attention and feed-forward layer. Along the flow :math:`\dot e / \dot w = (1 + 2 w |w|) / (2 |w|
e)`, so the energy :math:`E = e^2 - w^2 - \mathrm{sgn}(w) \ln |w|` is conserved. At the saddle
:math:`w = -1 / \sqrt 2, e = 0` the energy is :math:`-(\ln 2 + 1) / 2`, so the separatrix is
:math:`e^2 = w^2 + \mathrm{sgn}(w) \ln |w| - (\ln 2 + 1) / 2`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.analysis.phase_portrait.basins import Ends, basins, bisected, ends_of
from dynamics.plotting import style
from dynamics.plotting.basins import draw_basins
from dynamics.problem import FloatArray
from dynamics.verdicts.cases import Case, descent, flow_to
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.system import System

SADDLE = -1 / np.sqrt(2)
"""The weight w at the saddle of the risk; the embedding e is 0 there."""
LONG, SETTLED = 1e8, 1e3
"""Final times of flows from starts near the separatrix (first) and far from it (second)."""
NEAR = 1e-6
KEPT, RTOL = 1e-7, 1e-11
WINDOW = ((-3.0, 3.0), (-3.0, 3.0))
STARTS = 16
"""Number of starts along each side of `WINDOW`."""
BOTH: tuple[dict[str, float], ...] = ({}, {"p": 0.9, "q": 0.9}, {"p": 0.2, "q": 0.5})
ARROWS = 16
"""Number of arrows that show the flow along each side of `WINDOW`."""
GOOD, BAD = style.GREEN, style.VERMILION


def entropy(chance: float) -> float:
    """Entropy in nats of a binary variable that is 1 with probability `chance`."""
    return float(-sum(x * np.log(x) for x in (chance, 1 - chance)))


def levels(law: Any) -> tuple[float, float]:
    """Entropy of a symbol given the previous one, and entropy of a symbol alone."""
    known = (law.q * entropy(law.p) + law.p * entropy(law.q)) / (law.p + law.q)
    return known, entropy(law.p / (law.p + law.q))


def energy(e: Any, w: Any) -> Any:
    """Conserved energy of the flow, e^2 - w^2 - sgn(w) log|w|."""
    return e**2 - w**2 - np.sign(w) * np.log(np.abs(w))


def separatrix(w: FloatArray) -> FloatArray:
    """Positive embedding e on the separatrix at negative weights w."""
    return np.sqrt(np.maximum(energy(0.0, SADDLE) - energy(0.0, w), 0.0))


def is_good(w: FloatArray, e: FloatArray, law: Any) -> Any:
    """Whether starts (w, e) are on the side of the separatrix with the global minima."""
    repels = w < SADDLE if law.p + law.q < 1 else w > SADDLE
    above = (w < 0) & (energy(np.abs(e), w) > energy(0.0, SADDLE))
    return ~repels | above


def dependent(law: Any) -> None:
    """Raise Undecided if successive symbols are independent."""
    if abs(law.p + law.q - 1) < 1e-3:
        raise Undecided("with p + q = 1 symbols are independent and both levels are equal", "law")


def _on(side: bool) -> Any:
    """Function that raises Undecided unless `is_good` equals `side` at the start of a law."""

    def require(law: Any) -> None:
        dependent(law)
        if bool(is_good(np.array(law.w0), np.array(law.e0), law)) != side:
            raise Undecided("the start is on the other side of the separatrix", "law")

    return require


def _ends(system: System, law: Any, time: float = LONG) -> tuple[Any, Ends]:
    """Reduced problem, and a function from starts (w, e) to the ends of its flow."""
    problem = system.ReducedPopulation(law)
    order = [problem.state_names.index(name) for name in ("w", "e")]

    def state(w: float, e: float) -> FloatArray:
        return np.array([w, e])[np.argsort(order)]

    return problem, ends_of(problem, state, time)


@claim(
    "Two ends", "starts of the grid that end at the other level of the risk", "<=", 0.0, laws=BOTH,
    require=dependent, words="of {starts} starts {good} end at {bigram:.6f}, the others at "
    "{unigram:.6f}",
)  # fmt: skip
def two_ends(case: Case) -> dict[str, Any]:
    """Number of starts whose flow ends at the risk of starts on the separatrix's other side."""
    law = case.parameters
    problem, ends = _ends(case.system, law)
    axes = [np.linspace(*side, STARTS) for side in WINDOW]
    starts = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    risks = np.array([problem.risk(end) for end in ends(starts)])
    known, frequent = levels(law)
    ended = np.abs(risks - known) < np.abs(risks - frequent)
    wrong = ended != is_good(starts[:, 0], starts[:, 1], law)
    return {
        "value": int(wrong.sum()), "starts": len(starts), "good": int(ended.sum()),
        "bigram": known, "unigram": frequent,
    }  # fmt: skip


@claim(
    "Separatrix", "largest distance of the boundary by bisection from the curve, over e", "<=",
    NEAR, laws=BOTH, require=dependent, words="e = {found} at w = {places}",
    picture=Picture("w", "e of the boundary", scales=("linear", "linear")),
)  # fmt: skip
def boundary(case: Case) -> dict[str, Any]:
    """Relative distance of the basins' boundary, by bisection in e at some w, from `separatrix`."""
    law = case.parameters
    w = np.array([-2.5, -2.0, -1.5, -1.0] if law.p + law.q < 1 else [-0.5, -0.3, -0.2, -0.1])
    pairs = np.stack([np.stack([w, np.full(w.size, e)], axis=1) for e in (0.01, 4.0)], axis=1)
    problem, ends = _ends(case.system, law)

    def risks(points: FloatArray) -> FloatArray:
        return np.array([[problem.risk(end)] for end in ends(points)])

    known, level = risks(pairs.reshape(-1, 2)).reshape(w.size, 2, 1), np.ptp(levels(law))
    e = bisected(risks, pairs, known, np.array([level]), 0.5)[0][:, 1]
    pairs_of = {"bisection": (w, e), "formula": (w, separatrix(w))}
    return {
        "value": float(np.abs(e / separatrix(w) - 1).max()),
        "found": listed(e, 6), "places": listed(w),
        "curves": {f"{name}, {case.label}": pair for name, pair in pairs_of.items()},
    }  # fmt: skip


@claim(
    "Energy", "largest change of the energy along the flow, over its largest term", "<=", KEPT,
    laws=({}, {"w0": 0.3, "e0": 0.2}, {"p": 0.2, "q": 0.5}), run=flow_to(300.0, RTOL),
    words="gradient descent to the same time breaks it: {order}",
    picture=Picture(r"learning rate $\eta$", "largest change of the energy"),
)  # fmt: skip
def kept(case: Case) -> dict[str, Any]:
    """Change of the energy along the flow, and exponent in eta of its change by descent."""
    run, rates = case.run, [0.1, 0.05, 0.025, 0.0125]
    along = energy(run["e"], run["w"])
    broken = []
    for eta in rates:
        steps = descent(eta, round(300.0 / eta))(case)[1]
        broken.append(float(np.abs(energy(steps["e"], steps["w"]) - along[0]).max()))
    terms = run["e"] ** 2, run["w"] ** 2, np.log(np.abs(run["w"]))
    largest = max(np.abs(term).max() for term in terms)
    return {
        "value": np.abs(along - along[0]).max() / largest,
        "order": str(growth(rates, broken, 1.0)),
        "curves": {case.label or "gradient descent": (rates, broken)},
    }  # fmt: skip


@claim(
    "Global minima", "distance of z at the end from that of the global minima, over it", "<=", NEAR,
    laws=({}, {"p": 0.9, "q": 0.9, "w0": -0.8, "e0": 0.3}), require=_on(True), run=flow_to(SETTLED),
    also=(Also("off", "<=", NEAR, "distance of the risk from the entropy"),),
    words="e = {e:.6g}, w = {w:.6g}, z = {z:.7g}, R = {R:.7g}",
    picture=Picture(TIME, "risk", scales=("log", "linear")),
)  # fmt: skip
def global_minima(case: Case) -> dict[str, Any]:
    """End of the flow from starts on the side of the separatrix with the global minima."""
    law, run = case.parameters, case.run
    z = np.log((1 - law.p) * (1 - law.q) / (law.p * law.q))
    return {
        "value": abs(run["z"][-1] / z - 1), "off": abs(run["risk"][-1] / levels(law)[0] - 1),
        "e": run["e"][-1], "w": run["w"][-1], "z": run["z"][-1], "R": run["risk"][-1],
        "open": "time", "curves": {case.label or "risk": (run.time, run["risk"])},
    }  # fmt: skip


@claim(
    "Local minima", "distance of the risk at the end from the entropy of a symbol, over it", "<=",
    NEAR, laws=({"e0": 0.9}, {"p": 0.9, "q": 0.9, "w0": 0.5}, {"p": 0.2, "q": 0.5, "e0": 0.9}),
    require=_on(False), run=flow_to(SETTLED), also=(Also("e", "<=", NEAR, "|e| at the end"),),
    words="w = {w:.6g}, R = {R:.7g}; the entropy is {level:.7g}",
    picture=Picture(TIME, "risk", scales=("log", "linear")),
)  # fmt: skip
def local_minima(case: Case) -> dict[str, Any]:
    """End of the flow from starts on the side of the separatrix with the local minima."""
    law, run = case.parameters, case.run
    level = levels(law)[1]
    return {
        "value": abs(run["risk"][-1] / level - 1), "e": abs(run["e"][-1]), "w": run["w"][-1],
        "R": run["risk"][-1], "level": level, "open": "time",
        "curves": {case.label or "risk": (run.time, run["risk"])},
    }  # fmt: skip


def regions(system: System, request: FigureRequest) -> Drawing:
    """Basins of both kinds of minima, for p + q below and above 1; options ``starts``, ``time``."""
    options = request.options({"starts": 22, "time": LONG}, starts=4)
    base = request.make_parameters(system, ("e0", "w0"))
    both = [base, system.Parameters(p=1 - base.p, q=1 - base.q)]
    data: dict[str, Any] = {}
    with page(9.0, 4.9, ncols=2, sharey=True) as (figure, panels):
        for axes, law in zip(panels, both, strict=True):
            data |= _region(axes, system, law, options)
            axes.set_title(title(system, law, "p", "q"), fontsize=9)
        panels[0].set_ylabel("embedding, $e$")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    caption = (
        "Ends of the gradient flow from the starts of a grid, with the boundary by bisection; "
        "circles: the separatrix of the paper; dashed: the global minima."
    )
    return Drawing(panels, data, caption)


def _region(axes: Axes, system: System, law: Any, options: Any) -> dict[str, Any]:
    problem, ends = _ends(system, law, float(options["time"]))
    places = tuple(problem.state_names.index(name) for name in ("w", "e"))
    found = basins(ends, WINDOW, (places[0], places[1]), options["starts"])
    axes.set(xlim=WINDOW[0], ylim=WINDOW[1], xlabel="attention and feed-forward weight, $w$")
    middle, looks, seen = np.mean(levels(law)), [], set()
    for basin in found:
        good = problem.risk(basin.ends[0]) < middle
        words = f"ends at {'global' if good else 'local'} minima"
        looks.append((GOOD if good else BAD, "" if good in seen else words))
        seen.add(good)
    draw_basins(axes, found, (places[0], places[1]), looks)
    _arrows(axes, problem, places)
    w = np.linspace(*WINDOW[0], 601)
    side = w[(w < SADDLE) if law.p + law.q < 1 else (w > SADDLE) & (w < 0)]
    z = np.log((1 - law.p) * (1 - law.q) / (law.p * law.q))
    with np.errstate(all="ignore"):
        minima = np.sqrt(z / (1 + 2 * w * np.abs(w)))
    for sign, label in ((1, "{}"), (-1, "")):
        axes.plot(side, sign * separatrix(side), "o", color="black", mfc="white", ms=4,
                  markevery=12, label=label.format("separatrix, formula"), zorder=3)  # fmt: skip
        axes.plot(w, sign * minima, color=style.BLUE, ls="--",
                  label=label.format("global minima"), zorder=3)  # fmt: skip
    rests = (WINDOW[0][0], SADDLE) if law.p + law.q < 1 else (SADDLE, WINDOW[0][1])
    axes.plot(rests, (0, 0), color=BAD, lw=2.5, label="local minima", zorder=3)
    axes.plot(SADDLE, 0, "D", color="black", mfc="white", label="saddle", zorder=4)
    name = f"{law.p:g}_{law.q:g}"
    divides = np.concatenate([line for basin in found for line in basin.separatrices])
    return {f"separatrices_{name}": divides, f"basins_{name}": [b.starts for b in found]}


def _arrows(axes: Axes, problem: Any, places: tuple[int, ...]) -> None:
    w, e = np.meshgrid(*(np.linspace(*side, 2 * ARROWS + 1)[1::2] for side in WINDOW))
    points = np.stack([w, e], axis=-1).reshape(-1, 2)
    rates = np.array([-problem.gradient(point[np.argsort(places)]) for point in points])
    along = (rates / np.linalg.norm(rates, axis=1, keepdims=True))[:, list(places)]
    axes.quiver(*points.T, *along.T, color=style.GREY, alpha=0.6, pivot="mid", scale=34.0,
                width=0.0028, zorder=1)  # fmt: skip


FIGURES = {"regions": regions}
