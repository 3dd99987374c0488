"""Theorem 4.2 and Figure 4 by descent on samples from a random start; effects of their number.

Association and test error are measured with many and with few samples. At a small size, training is
long enough to test the words "any T". The figure ``deviation`` shows the distance, about N^(-1/2),
of orbit means from the reduced run, on noise-free samples from the symmetric start. The figure
``phase`` shows the share of associated rows over (N, q).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.analysis.comparison import compare
from dynamics.plotting import style
from dynamics.plotting.evidence import chart
from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.stability_limit import limits_along
from dynamics.verdicts.cases import Case, descent, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN, claim
from dynamics.verdicts.wording import counted
from theory.papers.positional_attention.linear_rules import sign_rule_error

DURATION, RATE = 400.0, 0.02
BELOW_LIMIT = 0.6
"""Maximum learning rate, divided by the stability limit of the reduced run."""
WORK = 8.5e11
"""Maximum number of multiplications and additions of a run, half a minute on two cores."""
SAMPLES, FEW, LEAST = 16_000, 16, 200
"""Number N of samples, divisor of N for a run with few samples, and minimum N of a run."""
SMALL, SMALL_SAMPLES, LONG = 9, 6000, 1600.0
"""A long run: its maximum D, its number N of samples, and its final time."""
LEARNED = 0.6
"""Maximum ratio of the error to the linear rule's error at which association is learned."""
OF_SAMPLES: dict[str, Any] = {
    "shown": (*SHOWN, "d", "omega"), "varies": ("seed", "time"), "again": False
}  # fmt: skip
COUNTS = (1000, 3162, 10_000, 31_623, 100_000)
CELLS = {
    "samples": (250, 1000, 4000, 16_000), "chances": (0.15, 0.25, 0.4, 0.6), "seeds": 1,
    "time": 200.0,
}  # fmt: skip
ALL_CELLS = {"samples": (250, 500, 1000, 2000, 4000, 8000, 16_000), "seeds": 3, "time": 400.0}


def stable_rate(system: System, parameters: Any) -> float:
    """Learning rate `RATE`, or a smaller one if the reduced run would be unstable."""
    problem, run = reduced_flow(system.ReducedPopulation, parameters, DURATION)
    return min(RATE, float(f"{BELOW_LIMIT * np.nanmin(limits_along(problem, run)):.1g}"))


def train(case: Case, samples: int, time: float = DURATION) -> Trajectory:
    """Gradient descent on N noisy samples from a random start, shared by claims and figures."""
    eta = stable_rate(case.system, case.parameters)
    steps = round(time / eta)
    record = tuple(np.unique(np.rint(np.geomspace(1, steps, 60)).astype(int)).tolist())
    options = {"samples": samples, "dtype": "float32", "record": record}
    run: Trajectory = descent(eta, steps, "FullEmpirical", **options)(case)[1]
    return run


def affordable(case: Case, time: float) -> int:
    """Number N of samples for at most `WORK` operations in a run; undecided if below `LEAST`."""
    law = case.parameters
    most = int(WORK * RATE / time / (law.D * (4 * law.d + 6 * law.D)))
    if most < LEAST:
        raise Undecided(f"fewer than {LEAST} samples can be afforded at D={law.D}, d={law.d}")
    return min(SAMPLES, most)


@claim(
    "Theorem 4.2", "share of associated rows at time T", ">=", 1.0,
    laws=({"D": 16, "C": 4, "q": 0.25}, {"D": SMALL, "C": 3, "q": 0.6}),
    seeds=(1, 3), **OF_SAMPLES,
    also=(Also("of_linear", "<", LEARNED, "test error over that of sign(Z)"),),
    words="N={samples:,}: {value:.0%} of the rows associated at time {end:g}, {largest:.0%} at "
    "{when:.3g}, test error {error:.2%} (sign(Z) {linear:.2%}, irreducible {irreducible:.2%})"
    "{few}",
    picture=Picture(TIME, "share of associated rows", {}, ("log", "linear")),
)  # fmt: skip
def theorem_4_2(case: Case) -> dict[str, Any]:
    """Association and test error of a run with many samples, and of one with few."""
    law, long = case.parameters, case.parameters.D <= SMALL
    time = LONG if long else DURATION
    count = SMALL_SAMPLES if long else affordable(case, time)
    run = train(case, count, time)
    shares, error = run["patch_association"], float(run["test_error"][-1])
    top, linear = int(shares.argmax()), float(sign_rule_error(law.D, law.C, law.q).error)
    row = {
        "samples": count, "value": shares[-1], "end": run.time[-1], "largest": shares[top],
        "when": run.time[top], "error": error, "of_linear": error / linear, "linear": linear,
        "irreducible": run["bayes_error"][-1], "cosine": run["cosine"][-1], "few": "",
        "open": "time" if shares[-1] < shares[top] else "size",
        "curves": {f"{case.label}, N={count:,}": (run.time[1:], shares[1:])},
    }  # fmt: skip
    if long:
        return row
    few = train(case, count // FEW, time)
    share, worse = float(few["patch_association"][-1]), float(few["test_error"][-1])
    row["few"] = f"; N={count // FEW:,}: {share:.0%} and {worse:.2%}"
    row["curves"] |= {f"N={count // FEW:,}": (few.time[1:], few["patch_association"][1:])}
    if count == SAMPLES and share >= shares[-1] and worse <= error / 0.9:
        del row["open"]  # more samples would not decide the claim
    return row


@claim(
    "Figure 4", "least entry of A inside the sets less the largest between them, end of the run",
    ">", 0.0, laws=({"D": 16, "C": 4, "q": 0.25},), **OF_SAMPLES,
    also=(
        Also("cosine", ">", 0.9, "cosine of v and w* at the end"),
        Also("falls", "<", 0.5, "test error at the end over that after one step"),
    ),
    words="N={samples:,}, time {end:g}: entries inside the sets from {least:.2g}, between them up "
    "to {most:.2g}; cosine {cosine:.3f}, test error {error:.2%}",
    picture=Picture(TIME, "entry of $A$", {"0": 0.0}, ("log", "linear")),
)  # fmt: skip
def figure_4(case: Case) -> dict[str, Any]:
    """Smallest entry of A inside sets minus the largest entry between sets."""
    if (count := affordable(case, DURATION)) < SAMPLES:
        raise Undecided(f"only {count:,} samples can be afforded at D={case.parameters.D}")
    run = train(case, SAMPLES)
    sets = np.array(run.settings["sets"])
    inside, matrices = sets[:, None] == sets[None, :], run.layout.part(run.states, "A")
    own = matrices[:, inside & ~np.eye(len(sets), dtype=bool)].min(axis=1)
    other, error = matrices[:, ~inside].max(axis=1), run["test_error"]
    return {
        "value": own[-1] - other[-1], "least": own[-1], "most": other[-1], "samples": SAMPLES,
        "end": run.time[-1], "cosine": run["cosine"][-1], "error": error[-1],
        "falls": error[-1] / error[1],
        "curves": {"least inside a set": (run.time[1:], own[1:]),
                   "largest between sets": (run.time[1:], other[1:])},
    }  # fmt: skip


def deviation(
    system: System, parameters: Any, counts: Sequence[int], seeds: Sequence[int]
) -> dict[str, FloatArray]:
    """Difference between orbit means and the reduced run, after 200 steps on noise-free samples.

    The learning rate is 0.02. The law needs d = 1 and sigma = 0; `counts` are the numbers N. For
    each reduced scalar the signed differences have shape (counts, seeds).
    """
    reduced, steps, rows = system.ReducedPopulation(parameters), 200, []
    for count in counts:
        more: dict[str, Any] = {"start": "symmetric", "test_samples": 1}
        problems = [system.FullEmpirical(parameters, count, seed, **more) for seed in seeds]
        runs = compare(reduced, problems, RATE, steps, record=[steps])
        ends = [
            problem.orbit_values(run.states[-1:])
            for problem, run in zip(problems, runs.fulls, strict=True)
        ]
        means = np.array([[end[name].mean() for end in ends] for name in reduced.state_names])
        rows.append(means - runs.reduced.final_state[:, None])
    return dict(zip(reduced.state_names, np.swapaxes(rows, 0, 1), strict=True))


def root_mean_square(distances: FloatArray) -> FloatArray:
    """Root mean square over the seeds of distances, shape (counts, seeds)."""
    return np.asarray(np.sqrt((distances**2).mean(axis=1)))


def deviation_figure(system: System, request: FigureRequest) -> Drawing:
    """Deviation from the reduced run against N; options ``samples`` (the N), ``seeds``."""
    options = request.options({"samples": COUNTS, "seeds": 16}, {"seeds": 64})
    law = request.make_parameters(system, D=8, C=2, d=1, sigma=0.0)
    counts, seeds = np.array(options["samples"]), options["seeds"]
    distances = deviation(system, law, counts.tolist(), request.seeds(seeds))
    means = {name: root_mean_square(part) for name, part in distances.items()}
    slopes = {name: exponent(counts, mean) for name, mean in means.items()}
    curves = [
        {"label": f"{system.notation.label(name)}: exponent ${slopes[name]:.2f}$", "y": mean}
        for name, mean in means.items()
    ]
    curves.append({"label": "$N^{-1/2}$", "y": means["alpha"][0] * np.sqrt(counts[0] / counts)})
    plot = {
        "curves": [{"x": counts, **curve} for curve in curves], "lines": [],
        "x_label": "samples $N$", "x_scale": "log",
        "y_label": "|orbit mean $-$ reduced run|", "y_scale": "log",
    }  # fmt: skip
    with page(6.6, 3.6) as (_, axes):
        chart(axes, plot)
        axes.set_title(f"root mean square of {counted(seeds, 'seed')}", fontsize=9, loc="left")
    exponents = ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items())
    caption = (
        f"Orbit means of gradient descent on N samples from the symmetric start, distance from the "
        f"reduced run after 200 steps ({stated(law, 'D', 'C', 'q', 'd', 'sigma')}). Exponents of "
        f"N: {exponents}."
    )
    data = {"samples": counts.tolist(), "exponents": slopes, **means}
    return Drawing(state(axes, system, law, *SHOWN), data, caption)


def phase_figure(system: System, request: FigureRequest) -> Drawing:
    """Association over (N, q); options ``samples``, ``chances``, ``seeds``, ``time``."""
    options = request.options(CELLS, ALL_CELLS)
    counts, chances, time = (options[name] for name in ("samples", "chances", "time"))
    law, seeds = request.make_parameters(system, ("q",), D=16, C=4), request.seeds(options["seeds"])
    found = np.array([
        [[_ends(Case(system, replace(law, q=float(q)), seed), count, time) for seed in seeds]
         for count in counts]
        for q in chances
    ])  # fmt: skip
    linear = np.array([float(sign_rule_error(law.D, law.C, q).error) for q in chances])
    shares, errors = found[..., 0], found[..., 1]
    data = {"samples": list(counts), "chances": list(chances), "association": shares}
    data |= {"test_error": errors, "linear_error": linear}
    caption = (
        f"Full-batch gradient descent on N noisy samples from a random start "
        f"({stated(law, 'D', 'C', 'd')}, time {time:g}, {counted(len(seeds), 'seed')}). Left: "
        "share of rows whose C largest entries of A are their set. Right: test error over that of "
        "sign(Z); small without association: the samples are memorised."
    )
    with page(9.2, 3.4, rc=style.RC | style.BOXED, ncols=2) as (_, axes):
        over = errors.mean(axis=2) / linear[:, None]
        largest = max(1.0, float(np.nanmax(over)))
        _heat(axes[0], data, shares.mean(axis=2), "share of associated rows", "viridis", 1.0)
        _heat(axes[1], data, over, "test error / error of sign$(Z)$", "viridis_r", largest)
        axes[0].set_title("patch association", fontsize=9, loc="left")
        axes[1].set_title("generalisation", fontsize=9, loc="left")
    names = [name for name in SHOWN if name != "q"]
    state(axes, system, law, *names, time=time, seeds=len(seeds))
    return Drawing(axes, data, caption)


def _ends(case: Case, count: int, time: float) -> tuple[float, float]:
    run = train(case, count, time)
    if run.outcome.failed or run.interrupted:
        return np.nan, np.nan
    return float(run["patch_association"][-1]), float(run["test_error"][-1])


def _heat(
    panel: Axes, data: Mapping[str, Any], values: FloatArray, label: str, colours: str, top: float
) -> None:
    cmap = mpl.colormaps[colours].with_extremes(bad=style.GREY)
    look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "vmin": 0.0, "vmax": top}
    image = panel.imshow(np.ma.masked_invalid(values), cmap=cmap, **look)
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if (value / top < 0.5) == (colours == "viridis") else "black"
        panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)
    panel.set_xticks(range(len(data["samples"])), [f"{n:,}" for n in data["samples"]], fontsize=7)
    panel.set_yticks(range(len(data["chances"])), [f"{q:g}" for q in data["chances"]])
    panel.set(xlabel="samples $N$", ylabel="$q$")
    panel.figure.colorbar(image, ax=panel, label=label)
