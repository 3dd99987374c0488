"""Figures 4 and 7: attention to label-relevant tokens along training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.shallow_vit.attention import KINDS, limit
from dynamics.verdicts.shallow_vit.runs import PATTERNS, SAMPLES, proofs_margin
from dynamics.verdicts.wording import counted

ENDS = {"one": 110, "root": 210}
"""Steps that show each margin to its end."""
RECORDS = 5
LOOKS = ((GREEN, "--"), (PURPLE, "-."), (ORANGE, ":"))
MARKS = 14
"""Markers of a line, about."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel.

    Attributes
    ----------
    title : str
    runs : sequence of Trajectory
        Seeds, all of the same records.
    ceiling : float or None
        What the mean attention cannot pass without noise, if there is such a bound; of the samples
        of all seeds.
    law : Parameters
    """

    title: str
    runs: Sequence[Trajectory]
    ceiling: float | None
    law: Any

    def mean(self, name: str) -> Any:
        """A series, mean over the seeds."""
        return np.mean([run[name] for run in self.runs], axis=0)

    @property
    def stops(self) -> list[int]:
        """Steps at which the training loss is zero, which one that is linear never is."""
        if self.law.loss == "linear":
            return []
        events = [run.events["t_zero"] for run in self.runs]
        return [event.step for event in events if event.step is not None]

    def words(self) -> str:
        """Where attention starts and ends, and when training stops."""
        relevant = self.mean("relevant")
        kinds = ", ".join(f"{self.mean(f'relevant_by_{kind}')[-1]:.3f}" for kind in KINDS)
        words = (
            f"from {relevant[0]:.3f} to {relevant[-1]:.3f} (queries relevant, confusion, other: "
            f"{kinds})"
        )
        if self.law.loss == "linear":
            return f"{words}, linear loss"
        return f"{words}, zero training loss at step {', '.join(map(str, self.stops)) or 'none'}"


def figure_4(system: System, request: FigureRequest) -> Drawing:
    """Attention along training. Options: ``samples``, ``eta``, ``steps``, ``seeds``, ``margins``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    return _attention(system, request, {"": request.make_parameters(system)}, 3)


def figure_7(system: System, request: FigureRequest) -> Drawing:
    """The same for several M. Options: those of Figure 4.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = request.make_parameters(system, ("M",), d=20)
    return _attention(system, request, {f"M = {M}": replace(law, M=M) for M in PATTERNS}, 1)


def _attention(
    system: System, request: FigureRequest, laws: Mapping[str, Any], default_seeds: int
) -> Drawing:
    default = {
        "samples": SAMPLES, "eta": 0.1, "steps": 0, "seeds": default_seeds, "margins": tuple(ENDS),
    }  # fmt: skip
    options = request.options(default, {"seeds": 10})
    samples, eta, many = options["samples"], options["eta"], options["seeds"]
    law = next(iter(laws.values()))
    for word in options["margins"]:
        if word not in ENDS:
            refuse("margins", word, "is unknown", ", ".join(ENDS), "one")
    grid: list[list[Panel]] = []
    words, data = [], {}
    for margin, end in ENDS.items():
        if margin not in options["margins"]:
            continue
        grid.append([])
        for name, one in laws.items():
            each, words_of_margin = one, f"margin {one.margin:g}"
            if margin == "root":
                each = proofs_margin(one)
                words_of_margin = rf"margin $\sqrt{{m}} = {each.margin:.3g}$"
            runs, tops = [], []
            for seed in request.seeds(many):
                problem = system.FullEmpirical(each, samples, seed, test_samples=1)
                runs.append(descend(problem, eta, options["steps"] or end, record=RECORDS))
                tops.append(limit(each, problem.reader))
            above = f"${name}$, {words_of_margin}" if name else words_of_margin
            known = [top for top in tops if top is not None]
            panel = Panel(above, runs, max(known, default=None), each)
            grid[-1].append(panel)
            key = f"{name}, " * bool(name) + f"margin {each.margin:.4g}"
            words.append(f"{key}: {panel.words()}")
            data[key] = {"steps": runs[0].steps, "relevant": [run["relevant"] for run in runs]}
    if len(laws) == 1:
        grid = [[panel for row in grid for panel in row]]
    names = ("L", "d", "m", "alpha_star", "alpha_confusion", "sigma", "delta", "noise", "data")
    seeds = f"mean of {many} seeds, bands from least to greatest" if many > 1 else "one seed"
    held = f"{title(system, law, *names, samples=samples, eta=eta)},\ngradient descent; {seeds}"
    caption = (
        f"Attention to label-relevant tokens, mean over all queries of the training samples, on "
        f"{'noisy tokens' if law.noise else 'tokens without noise'} (N={samples}, "
        f"{stated(law, 'L', 'm', eta=eta)}, {counted(many, 'seed')}). {'; '.join(words)}."
    )
    ceilings = sorted(
        {f"{one.ceiling:.3f}" for row in grid for one in row if one.ceiling is not None}
    )
    if ceilings:
        caption += (
            f" {'Without noise it' if law.noise else 'It'} cannot pass {' or '.join(ceilings)}."
        )
    return Drawing(_picture(grid, held), data, caption)


def _picture(grid: Sequence[Sequence[Panel]], held: str) -> Any:
    """Attention of all queries to relevant tokens (asterisks) and to the others (squares)."""
    rows, columns = len(grid), max(map(len, grid))
    shape: dict[str, Any] = {"nrows": rows, "ncols": columns, "squeeze": False, "sharey": True}
    with page(1.2 + 2.9 * columns, 1.2 + 2.5 * rows, held, **shape) as (figure, axes):
        for row, panels in zip(axes, grid, strict=True):
            for one, panel in zip(row, panels, strict=True):
                _draw(one, panel)
            row[0].set_ylabel("attention, mean over queries")
        for one in axes[-1]:
            one.set_xlabel("steps")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        ncols = 3 if columns > 1 else 2
        figure.legend(handles, labels, loc="outside lower center", ncols=ncols, fontsize=8)
    return axes


def _draw(axes: Axes, panel: Panel) -> None:
    steps = panel.runs[0].steps
    relevant = np.stack([run["relevant"] for run in panel.runs])
    for values, label, colour, marker, size in (
        (relevant, "to relevant tokens, all queries", VERMILION, "*", 7.0),
        (1 - relevant, "to other tokens, all queries", BLUE, "s", 4.5),
    ):
        axes.plot(
            steps, values.mean(axis=0), color=colour, marker=marker, ms=size, mec="white", mew=0.4,
            markevery=max(1, len(steps) // MARKS), label=label,
        )  # fmt: skip
        band = values.min(axis=0), values.max(axis=0)
        axes.fill_between(steps, *band, color=colour, alpha=0.2, lw=0)
    for kind, (colour, dash) in zip(KINDS, LOOKS, strict=True):
        values, label = panel.mean(f"relevant_by_{kind}"), f"to relevant, {kind} queries"
        if np.isfinite(values).all():
            axes.plot(steps, values, dash, color=colour, lw=1.2, label=label)
    if panel.ceiling is not None:
        style: dict[str, Any] = {"color": GREY, "lw": 0.9, "ls": (0, (1, 1)), "zorder": 0}
        noise = ", without noise" if panel.law.noise else ""
        axes.axhline(panel.ceiling, label=f"ceiling of the mean{noise}", **style)
    if panel.stops:
        shade: dict[str, Any] = {"color": "#EEEEEE", "zorder": -1}
        axes.axvspan(max(panel.stops), steps[-1], label="training loss is zero", **shade)
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(0.0, 1.0)
    axes.set_title(panel.title, fontsize=9, loc="left")
