r"""The realistic problem beside the idealised one: how it depends on N.

*Deviation*: noise-free samples from the symmetric start differ from the population only by their
number, so orbit means leave the reduced run by :math:`N^{-1/2}`. *Phase*: the share of associated
rows over N and q from a random start; too few samples are memorised, with no association.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.analysis.comparison import compare
from dynamics.plotting import style
from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.system import System
from dynamics.verdicts.claim import Case
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.positional_attention.samples import RATE, train
from dynamics.verdicts.wording import counted
from theory.papers.positional_attention.linear_rules import sign_rule_error

COUNTS = (1000, 3162, 10_000, 31_623, 100_000)
CELLS = {
    "samples": (250, 1000, 4000, 16_000),
    "chances": (0.15, 0.25, 0.4, 0.6),
    "seeds": 1,
    "time": 200.0,
}
ALL_CELLS = {"samples": (250, 500, 1000, 2000, 4000, 8000, 16_000), "seeds": 3, "time": 400.0}
LOOKS = (
    (style.BLUE, "o", r"$\alpha$"), (style.VERMILION, "s", r"$\gamma$"),
    (style.GREEN, "^", r"$\rho$"),
)  # fmt: skip
SMALL: Any = {"fontsize": 9, "loc": "left"}


def deviation(
    system: System, parameters: Any, counts: Sequence[int], seeds: Sequence[int]
) -> dict[str, FloatArray]:
    """Noise-free samples from the symmetric start against 200 steps at 0.02 of the reduced run.

    Parameters
    ----------
    system : System
    parameters : Parameters
        With d = 1 and sigma = 0.
    counts : sequence of int
        N.
    seeds : sequence of int

    Returns
    -------
    dict
        Reduced state -> signed distance of its orbit's mean, shape (counts, seeds).
    """
    reduced, steps = system.ReducedPopulation(parameters), 200
    distances: dict[str, list[list[float]]] = {name: [] for name in reduced.state_names}
    for count in counts:
        problems = [
            system.FullEmpirical(parameters, count, seed, start="symmetric", test_samples=1)
            for seed in seeds
        ]
        runs = compare(reduced, problems, RATE, steps, record=[steps])
        ends = [
            problem.orbit_values(run.states[-1:])
            for problem, run in zip(problems, runs.fulls, strict=True)
        ]
        for name, rows in distances.items():
            rows.append([float(end[name].mean() - runs.reduced[name][-1]) for end in ends])
    return {name: np.array(rows) for name, rows in distances.items()}


def root_mean_square(distances: FloatArray) -> FloatArray:
    """Over the seeds, of distances of shape (counts, seeds)."""
    return np.asarray(np.sqrt((distances**2).mean(axis=1)))


def deviation_figure(system: System, request: FigureRequest) -> Drawing:
    """Deviation against N. Options: ``samples`` (the N), ``seeds``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"samples": COUNTS, "seeds": 16}, {"seeds": 64})
    law = request.make_parameters(system, D=8, C=2, d=1, sigma=0.0)
    counts, seeds = options["samples"], request.seeds(options["seeds"])
    distances = deviation(system, law, counts, seeds)
    means = {name: root_mean_square(part) for name, part in distances.items()}
    slopes = {name: exponent(counts, mean) for name, mean in means.items()}
    data = {"samples": list(counts), "exponents": slopes, **means}
    exponents = ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items())
    caption = (
        f"Orbit means of gradient descent on N samples from the symmetric start, distance from the "
        f"reduced run after 200 steps ({stated(law, 'D', 'C', 'q', 'd', 'sigma')}). Exponents of "
        f"N: {exponents}."
    )
    axes = state(_deviation_picture(data, distances), system, law, *SHOWN)
    return Drawing(axes, data, caption)


def _deviation_picture(data: Mapping[str, Any], distances: Mapping[str, FloatArray]) -> Axes:
    """Deviation of each orbit's mean from the reduced run against N, with its exponent."""
    counts = np.asarray(data["samples"], dtype=float)
    with page(6.6, 3.6) as (_, axes):
        for (colour, marker, letter), (name, part) in zip(LOOKS, distances.items(), strict=False):
            every = np.repeat(counts, part.shape[1]), np.abs(part).ravel()
            axes.plot(*every, ".", color=colour, ms=2.5, alpha=0.5, zorder=1)
            label = f"{letter}: exponent ${data['exponents'][name]:.2f}$"
            axes.plot(counts, data[name], marker=marker, color=colour, mfc="white", label=label)
            half = data[name][0] * np.sqrt(counts[0] / counts)
            axes.plot(counts, half, ":", color=style.GREY, lw=0.9, zorder=0)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="samples $N$", ylabel="|orbit mean $-$ reduced run|")
        handles, _ = axes.get_legend_handles_labels()
        handles.append(Line2D([], [], color=style.GREY, ls=":", lw=0.9, label="$N^{-1/2}$"))
        style.legend_on_the_right(axes, handles=handles, fontsize=8)
        axes.set_title(f"root mean square of {counted(part.shape[1], 'seed')} (dots)", **SMALL)
    return axes


def phase_figure(system: System, request: FigureRequest) -> Drawing:
    """Association over (N, q). Options: ``samples``, ``chances``, ``seeds``, ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(CELLS, ALL_CELLS)
    counts, chances, time = (options[name] for name in ("samples", "chances", "time"))
    law, seeds = request.make_parameters(system, ("q",), D=16, C=4), request.seeds(options["seeds"])
    found = np.array([
        [[_ends(Case(system, replace(law, q=float(q)), seed), count, time) for seed in seeds]
         for count in counts]
        for q in chances
    ])  # fmt: skip
    linear = np.array([float(sign_rule_error(law.D, law.C, q).error) for q in chances])
    data = {"samples": list(counts), "chances": list(chances), "association": found[..., 0]}
    data |= {"test_error": found[..., 1], "linear_error": linear}
    caption = (
        f"Full-batch gradient descent on N noisy samples from a random start "
        f"({stated(law, 'D', 'C', 'd')}, time {time:g}, {counted(len(seeds), 'seed')}). Left: "
        "share of rows whose C largest entries of A are their set. Right: test error over that of "
        "sign(Z); small without association: the samples are memorised."
    )
    names = [name for name in SHOWN if name != "q"]
    axes = state(_phase_picture(data), system, law, *names, time=time, seeds=len(seeds))
    return Drawing(axes, data, caption)


def _ends(case: Case, count: int, time: float) -> tuple[float, float]:
    """Share of associated rows and test error at the end of a run."""
    run = train(case, count, time)
    if run.outcome.failed or run.interrupted:
        return np.nan, np.nan
    return float(run["patch_association"][-1]), float(run["test_error"][-1])


def _phase_picture(data: Mapping[str, Any]) -> Any:
    """Share of associated rows over N and q, and test error against the linear rule's."""
    association = data["association"].mean(axis=2)
    error = data["test_error"].mean(axis=2) / data["linear_error"][:, None]
    with page(9.2, 3.4, rc=style.RC | style.BOXED, ncols=2) as (_, axes):
        _heat(axes[0], data, association, "share of associated rows", "viridis", 1.0)
        largest = max(1.0, float(np.nanmax(error)))
        _heat(axes[1], data, error, "test error / error of sign$(Z)$", "viridis_r", largest)
        axes[0].set_title("patch association", **SMALL)
        axes[1].set_title("generalisation", **SMALL)
    return axes


def _heat(
    panel: Axes, data: Mapping[str, Any], values: FloatArray, label: str, colours: str,
    largest: float,
) -> None:  # fmt: skip
    image = panel.imshow(
        np.ma.masked_invalid(values), origin="lower", aspect="auto", vmin=0.0, vmax=largest,
        cmap=mpl.colormaps[colours].with_extremes(bad=style.GREY),
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(values):
        dark = (value / largest < 0.5) == (colours == "viridis")
        panel.text(
            column, row, f"{value:.2f}", ha="center", va="center", fontsize=7,
            color="white" if dark else "black",
        )  # fmt: skip
    panel.set_xticks(range(len(data["samples"])), [f"{n:,}" for n in data["samples"]], fontsize=7)
    panel.set_yticks(range(len(data["chances"])), [f"{q:g}" for q in data["chances"]])
    panel.set(xlabel="samples $N$", ylabel="$q$")
    panel.figure.colorbar(image, ax=panel, label=label)
