"""Figures 1b, 3 and 4 of Jelassi, Sander, Li (2022), and phase planes of the reduced problem.

The paper draws D = 16 patches on a 4 x 4 grid, numbered row by row from 1, in L = 4 sets of C = 4.
The colour of a square is its set, and a frame follows the sides between a set and other squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_rgb
from numpy.typing import NDArray

from dynamics.analysis.phase_portrait import portrait, sentence, summary
from dynamics.plotting import style
from dynamics.plotting.arrays import matrix_entries, number_patches, true_sets
from dynamics.plotting.portrait import portraits
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.positional_attention.grid import SHOWN
from theory.papers.positional_attention.samples import SignalSets
from theory.symmetry import Partition

TINTS = (
    (style.BLUE, 0.65), (style.ORANGE, 0.6), (style.GREEN, 0.24), (style.PURPLE, 0.75),
    ("#56B4E9", 0.5), ("#F0E442", 0.6), ("#999999", 0.5),
)  # fmt: skip
"""Colours of the sets, with their opacity; they are distinct in grey and keep text readable."""
RED = "#C8102E"
NARROW = 100.0
"""A logarithmic axis has labels at 1, 2 and 5 if the ratio of its limits is at most this."""
DRAWS = 1000
"""Number of draws among which Figure 3 searches for a data point similar to the paper's."""
WORDS = {0: "0", 1: "1", -1: "\N{MINUS SIGN}1"}
EMPIRICAL_RUN = {"samples": 16_000, "eta": 0.02, "steps": 20_000, "dtype": "float32"}
PLANES = {"gamma-rho": ("gamma", "rho"), "alpha-gamma": ("alpha", "gamma")}
BOTH = "both"
GRID, COARSE = 32, 8
"""Cells along a side of the coarsest nullcline grid, for fast (first), slow gradients (second)."""


def localised(parameters: Any) -> tuple[Partition, int]:
    """Spatially localised sets of C patches, and the number of columns of the grid of patches.

    The grid of D squares and its blocks of C squares are as close to squares as possible. Some
    height h of a block divides the rows while C/h divides the columns, so blocks tile the grid.
    """
    size, members = parameters.D, parameters.C
    rows = max(k for k in range(1, int(size**0.5) + 1) if size % k == 0)
    columns = size // rows
    heights = [h for h in range(1, members + 1) if members % h == rows % h == 0]
    heights = [h for h in heights if columns % (members // h) == 0]
    height = min(heights, key=lambda h: (abs(h - members / h), h))
    return Partition.grid(rows, columns, height, members // height), columns


def patches(
    panel: Axes,
    labels: NDArray[np.int64],
    columns: int,
    words: Sequence[str] | None = None,
    framed: NDArray[np.bool_] | None = None,
) -> None:
    """Draw the patches of one data point, row by row.

    `labels`, shape (D,): set of each patch (from the eighth set on, lighter tints of the same hues
    are used); `columns`: columns of the grid, a divisor of D; `words`: text in each square, by
    default numbers from 1; `framed`, shape (D,): whether a patch has a red frame.
    """
    rows = len(labels) // columns
    shades = ListedColormap([_tinted(k) for k in range(int(labels.max()) + 1)])
    panel.imshow(labels.reshape(rows, columns), cmap=shades, vmin=-0.5, vmax=shades.N - 0.5)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    inner = [[(k - 0.5, -0.5), (k - 0.5, rows - 0.5)] for k in range(1, columns)]
    inner += [[(-0.5, k - 0.5), (columns - 0.5, k - 0.5)] for k in range(1, rows)]
    panel.add_collection(LineCollection(inner, colors="white", linewidths=2))
    for k, word in enumerate(words or [str(k + 1) for k in range(len(labels))]):
        panel.text(k % columns, k // columns, word, ha="center", va="center", fontsize=11)
    if framed is not None:
        look: dict[str, Any] = {"colors": RED, "linewidths": 3, "capstyle": "projecting"}
        sides = LineCollection(border(framed.reshape(rows, columns)), label="frame", **look)
        sides.set(clip_on=False, zorder=3)
        panel.add_collection(sides)


def border(inside: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
    """Sides, as segments of points (x, y), between squares with `inside` True and with False."""
    padded = np.pad(inside, 1)
    sides = []
    for y, x in np.argwhere(padded[1:] != padded[:-1]) - 0.5:
        sides.append([(float(x - 1), float(y)), (float(x), float(y))])
    for y, x in np.argwhere(padded[:, 1:] != padded[:, :-1]) - 0.5:
        sides.append([(float(x), float(y - 1)), (float(x), float(y))])
    return sides


def _tinted(index: int) -> tuple[float, float, float]:
    hue, share = TINTS[index % len(TINTS)]
    share /= 1 + index // len(TINTS)
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(hue))
    return red, green, blue


def partitions(system: System, request: FigureRequest) -> Drawing:
    """Figure 1b: spatially localised sets, and sets of the same sizes drawn at random."""
    request.options({})
    parameters = request.make_parameters(system)
    near, columns = localised(parameters)
    far = near.shuffled(np.random.default_rng(request.seed))
    drawn = {"(1) spatially localised sets": near, "(2) sets drawn at random": far}
    with page(5.6, 2.9 * max(0.6, near.size / columns**2), ncols=2) as (figure, axes):
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
        for panel, (title, partition) in zip(axes, drawn.items(), strict=True):
            patches(panel, partition.labels, columns)
            panel.set_title(title)
    caption = (
        f"Figure 1b. Partitions of D = {parameters.D} patches, numbered row by row, into sets of "
        f"C = {parameters.C}, a colour each: (1) spatially localised, (2) drawn at random (seed "
        f"{request.seed}). Definition 2.1 covers both."
    )
    state(axes, system, parameters, "D", "C", seed=request.seed)
    labels = {"localised": near.labels.tolist(), "random": far.labels.tolist()}
    return Drawing(axes, labels | {"columns": columns}, caption)


def data_point(system: System, request: FigureRequest) -> Drawing:
    """Figure 3: the values of one data point under Assumption 1 with localised sets.

    The data point is the seed's first draw with label +1 and more values -1 than +1; if none of the
    first `DRAWS` draws has both, it is the first draw with label +1. The data are ``values``,
    ``sets``, ``signal`` (patches of the signal set), ``label``, ``draw`` (its number), ``columns``.
    """
    request.options({})
    parameters = request.make_parameters(system)
    partition, columns = localised(parameters)
    law = SignalSets(partition, parameters.q, parameters.sigma)
    values, labels, signals = law.draw(DRAWS, np.random.default_rng(request.seed))
    minus, plus = (values == -1).sum(axis=1), (values == 1).sum(axis=1)
    misleading = (labels > 0) & (minus > plus)
    number = int(np.argmax(misleading if misleading.any() else labels > 0))
    point, signal = values[number].astype(int), partition.sets[signals[number]]
    framed = np.isin(np.arange(parameters.D), signal)
    with page(2.9, 3.2 * max(0.6, partition.size / columns**2)) as (figure, panel):
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        patches(panel, partition.labels, columns, [WORDS[x] for x in point], framed)
        panel.set_title("label $y = +1$")
    which = "with label +1 and more -1 than +1" if misleading.any() else "with label +1"
    caption = (
        f"Figure 3. A data point X under Assumption 1 ({stated(parameters, 'D', 'C', 'q')}): the "
        f"first draw of seed {request.seed} {which} (number {number + 1}). Colours are sets; 1 and "
        f"-1 stand for w* and -w*; the red frame is the signal set. {minus[number]} patches have "
        f"-1 and {plus[number]} have 1."
    )
    data = {
        "values": point.tolist(), "sets": partition.labels.tolist(), "signal": signal.tolist(),
        "label": int(labels[number]), "draw": number + 1, "columns": columns,
    }  # fmt: skip
    state(panel, system, parameters, "D", "C", "q", seed=request.seed)
    return Drawing(panel, data, caption)


def association(system: System, request: FigureRequest) -> Drawing:
    """Figure 4: sets, learned A, test error and cosine by step, for one run on noisy samples.

    With the default sizes every row associates at D = 16; fewer samples are memorised (Theorem
    4.2). A is drawn without its diagonal, which is fixed at sigma_A. Options: ``samples``, ``eta``,
    ``steps``, ``dtype``. The data are ``steps``, ``test_error``, ``cosine``, ``patch_association``
    along the run, ``sets``, ``A`` at the end, ``bayes_error``, ``outcome``.
    """
    options = request.options(EMPIRICAL_RUN)
    parameters = request.make_parameters(system, q=0.25, omega=1e-3)
    partition, _ = localised(parameters)
    problem = system.FullEmpirical(
        parameters, options["samples"], request.seed, partition, dtype=options["dtype"]
    )
    run = descend(problem, options["eta"], options["steps"], record="log")
    series = {name: run[name] for name in ("test_error", "cosine", "patch_association")}
    data = {name: values.tolist() for name, values in series.items()} | {
        "steps": run.steps.tolist(), "sets": partition.labels.tolist(),
        "A": run["A"][-1].tolist(), "bayes_error": float(run["bayes_error"][-1]),
        "outcome": str(run.outcome),
    }  # fmt: skip
    steps, (error, cosine, share) = run.steps[1:], (values[1:] for values in series.values())
    failure = f" The run: {run.outcome}." if run.outcome.failed else ""
    law = stated(parameters, "D", "C", "d", "q", "omega")
    caption = (
        f"Figure 4. The realistic problem (E), one run: {law}, N={run.settings['samples']:,}, "
        f"gradient descent with eta={run.settings['eta']}, {run.steps[-1]:,} steps (time "
        f"{run.time[-1]:g}), seed {request.seed}. At the end: test error on "
        f"{run.settings['test_samples']:,} fresh samples {error[-1]:.4f}, cosine of v and w* "
        f"{cosine[-1]:.3f}. Patch association: {share[-1]:.0%} of the rows.{failure}"
    )
    with page(11.0, 2.7, ncols=4, width_ratios=(1.06, 1.2, 1.3, 1.3)) as (figure, axes):
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05)
        true_sets(axes[0], partition.labels)
        number_patches(axes[0], parameters.D)
        matrix_entries(figure, axes[1:2], [run["A"][-1]])
        axes[1].set_title(f"learned $A$, step {steps[-1]:,}", fontsize=9)
        _test_error(axes[2], steps, error, data["bayes_error"])
        axes[3].plot(steps, cosine, color=style.VERMILION, label="cosine of $v$ and $w^\\star$")
        axes[3].plot(steps, share, "--", color=style.PURPLE, label="rows of $A$ associated")
        axes[3].set(ylim=(min(0.0, *cosine) - 0.04, 1.04), ylabel="cosine; share of rows")
        axes[3].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)
        for panel in axes[2:]:
            panel.set(xscale="log", xlabel="steps")
    more = {"samples": options["samples"], "eta": options["eta"], "seed": request.seed}
    state(axes, system, parameters, *SHOWN, "sigma", "omega", **more)
    return Drawing(axes, data, caption)


def _test_error(panel: Axes, steps: Any, error: Any, least: float) -> None:
    """Draw the test error on a logarithmic axis, without errors that are zero."""
    positive = error > 0
    panel.plot(steps[positive], error[positive], color=style.BLUE)
    panel.set(yscale="log", ylabel="test error, share of samples")
    if error[positive].max(initial=0.0) < NARROW * min([*error[positive], least or 1.0]):
        style.logarithmic(panel)
    if least > 0:
        panel.axhline(least, color=style.GREY, lw=0.9, ls=":")
        words = f"Bayes error {least:.2g}"
        style.note(panel, words, (steps[0], least), (3, 3), color=style.GREY)


def plane(system: System, request: FigureRequest) -> Drawing:
    """Phase planes: (gamma, rho) on alpha's slow manifold, and (alpha, gamma).

    The scalar alpha relaxes in a time of 0.01 to 1, while gamma and rho move over 1e2 to 1e7. In
    the plane (gamma, rho), alpha is a function of both; in (alpha, gamma), rho follows the run.
    Options: ``plane`` (one or both), ``time``, ``starts``, ``grid``: cells along each side of the
    coarsest nullcline grid, where 0 selects 32, or 8 if a gradient takes milliseconds.
    """
    quick = {"plane": BOTH, "time": 1e5, "starts": 4, "grid": 0}
    options = request.options(quick, {"grid": 48, "starts": 8})
    name = str(options["plane"])
    if name not in (*PLANES, BOTH):
        refuse("plane", name, "is unknown", ", ".join((*PLANES, BOTH)), BOTH)
    parameters = request.make_parameters(system, D=16, C=4, q=0.5)
    problem = system.ReducedPopulation(parameters)
    exact = problem.settings["expectation"] == "exact"
    grid = options["grid"] or (GRID if exact else COARSE)
    results = [
        portrait(problem, options["time"], pair, starts=options["starts"], grid=grid)
        for pair in (PLANES.values() if name == BOTH else [PLANES[name]])
    ]
    caption = (
        f"Phase planes of the reduced problem ({stated(parameters, *SHOWN)}), "
        f"runs of the whole problem to time {options['time']:g}. "
        f"{' '.join(map(sentence, results))}"
    )
    data = {"-".join(each.plane): summary(each) for each in results}
    return Drawing(portraits(results, SHOWN), data, caption)
