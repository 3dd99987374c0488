r"""Section 6 on small images: attention diversity along masked and along supervised training.

Of the paper's networks, trained by others on ImageNet, here are small ones on digits: one
transformer (`dynamics.images.networks`) with one layer and with two, trained to reconstruct masked
patches (`dynamics.images.reconstruction`), and the same from the same start trained to classify.
Attention diversity (`dynamics.attention_maps`) is that of the last layer on whole test images, a
mean over heads and images; beside it stands the mean total variation between queries.

Both measures are not zero at the start: queries of a random network differ. What training does is
measured against that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.attention_maps import diversity, total_variation
from dynamics.images import datasets
from dynamics.images.datasets import Images, Split
from dynamics.images.networks import Transformer
from dynamics.images.protocol import Estimate, estimate
from dynamics.images.reconstruction import Reconstruction, attention
from dynamics.images.training import Classification, Run, train
from dynamics.plotting.style import BLUE, GREY, VERMILION, legend
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.progress import bar
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, with_flags
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.images import (
    ERRORS,
    ascending,
    error_bars,
    measured_on_images,
    request_on_images,
    steps_axis,
)
from dynamics.verdicts.study import Study, measures
from dynamics.verdicts.wording import counted

MASKED, SUPERVISED = "masked", "supervised"
LAYERS = (1, 2)
RECORDS = (0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
STEPS, SEEDS, KEYS, SHOWN = 2000, 5, 10, 20
QUICK_STEPS, QUICK_SEEDS = 500, 3
SPREAD = 1.0
"""Of the positions at the start: with 0.02 patches are alike for a thousand steps."""
LOOKS = {MASKED: (BLUE, "o", "-"), SUPERVISED: (VERMILION, "s", "--")}
MEASURES = ("attention diversity (patches)", "mean total variation")


@dataclass(frozen=True)
class Plan:
    """Which networks are trained.

    Attributes
    ----------
    data : str
        As of `datasets.load`.
    patch, keys, shown : int
        Side of a patch in pixels; keys of a query that the metric uses; number of test images.
    layers : tuple of int
    steps : int
    seeds : tuple of int
    spread : float
        Of the positions at the start.
    """

    data: str = "digits"
    patch: int = 1
    keys: int = KEYS
    shown: int = SHOWN
    layers: tuple[int, ...] = LAYERS
    steps: int = STEPS
    seeds: tuple[int, ...] = tuple(range(SEEDS))
    spread: float = SPREAD

    @property
    def records(self) -> tuple[int, ...]:
        """Steps at which attention is looked at."""
        return (*(step for step in RECORDS if step < self.steps), self.steps)


@dataclass(frozen=True)
class Measures:
    """Both measures of all networks.

    Attributes
    ----------
    plan : Plan
    values : mapping
        (masked or supervised, layers) -> float array, shape (seeds, records, 2).
    """

    plan: Plan
    values: Mapping[tuple[str, int], FloatArray]

    def difference(self, layers: int, record: int = -1, measure: int = 0) -> Estimate:
        """Masked minus supervised, in pairs of one seed."""
        pair = (self.values[task, layers][:, record, measure] for task in (MASKED, SUPERVISED))
        return estimate(next(pair) - next(pair))


def train_network(
    plan: Plan, network: Transformer, task: str, images: Images, seed: int, folder: Path | None,
    progress: Callable[[int], Any],
) -> tuple[Run, Split]:  # fmt: skip
    """A network along its training, and the images.

    Parameters
    ----------
    plan : Plan
    network : Transformer
    task : str
        ``"masked"`` or ``"supervised"``.
    images : Images
    seed : int
    folder : Path or None
        Of the checkpoint of the run.
    progress : function
        Called with the number of steps that were made.
    """
    split = datasets.split(images, seed=seed)
    name = f"{task}-layers-{network.layers}-seed-{seed}.checkpoint"
    checkpoint = Checkpoint(folder / name, keep=True) if folder else None
    request = {"task": task, "network": asdict(network), "data": images.digest()}
    more: dict[str, Any] = {"checkpoint": checkpoint, "request": request, "progress": progress}
    if task == MASKED:
        one = Reconstruction(network)
        start = one.start(images.side, images.channels, seed)
        return train(one, start, (split.pixels,), plan.records, seed, **more), split
    start = network.start(images.side, images.channels, images.classes, seed)
    data = (split.pixels, split.labels)
    return train(Classification(network), start, data, plan.records, seed, **more), split


def measure(plan: Plan, folder: Path | None = None) -> Measures:
    """Train all networks and measure their attention at every record.

    Parameters
    ----------
    plan : Plan
    folder : Path, optional
        Of the checkpoints of the runs.
    """
    images = datasets.load(plan.data)
    patches = Transformer(patch=plan.patch).grid(images.side) ** 2
    if plan.keys > patches:
        problem = f"is more than there are patches of {plan.patch} x {plan.patch} pixels"
        refuse("keys", plan.keys, problem, f"1 to {patches}", patches)
    values: dict[tuple[str, int], list[FloatArray]] = {}
    total = 2 * len(plan.layers) * len(plan.seeds) * plan.steps
    with bar(f"networks on {Path(images.name).name}", total) as progress:
        for seed in plan.seeds:
            for layers in plan.layers:
                network = Transformer(patch=plan.patch, layers=layers, spread=plan.spread)
                grid = (network.grid(images.side),) * 2
                for task in (MASKED, SUPERVISED):
                    run, split = train_network(
                        plan, network, task, images, seed, folder, progress.update
                    )
                    pixels = split.test_pixels[: plan.shown]
                    maps = [
                        attention(network, run.theta(record), pixels, -1)
                        for record in range(len(run.steps))
                    ]
                    rows = [
                        (float(diversity(one, grid, plan.keys).mean()),
                         float(total_variation(one).mean()))
                        for one in maps
                    ]  # fmt: skip
                    values.setdefault((task, layers), []).append(np.array(rows))
    return Measures(plan, {key: np.array(entry) for key, entry in values.items()})


def table(measures: Measures) -> list[dict[str, Any]]:
    """Rows of both measures at the start and at the end.

    Parameters
    ----------
    measures : Measures
    """
    rows = []
    for (task, layers), values in measures.values.items():
        for record, steps in ((0, 0), (-1, measures.plan.steps)):
            entries = {name: str(estimate(values[:, record, k])) for k, name in enumerate(MEASURES)}
            rows.append({"training": task, "layers": layers, "steps": steps} | entries)
    return rows


def _draw(measures: Measures) -> Any:
    """Both measures along training, a column for each depth."""
    plan = measures.plan
    steps = np.array(plan.records)
    text = (
        f"{plan.data.rpartition('/')[2]}, patches of {plan.patch} x {plan.patch}, top {plan.keys} "
        f"keys, last layer, 4 heads, {counted(plan.shown, 'test image')}, "
        f"{counted(len(plan.seeds), 'seed')}; bars: "
        "standard error, line: start"
    )
    width = 4.0 * len(plan.layers)
    with page(width, 5.0, text, nrows=2, ncols=len(plan.layers), squeeze=False,
              sharex=True, sharey="row") as (_, axes):  # fmt: skip
        for (task, layers), values in measures.values.items():
            colour, marker, dash = LOOKS[task]
            for k, name in enumerate(MEASURES):
                panel = axes[k, plan.layers.index(layers)]
                look = {"color": colour, "marker": marker, "ls": dash, "label": task}
                error_bars(panel, steps, values[:, :, k].T, **look)
                panel.axhline(values[:, 0, k].mean(), color=GREY, lw=0.6, zorder=0)
                if layers == plan.layers[0]:
                    panel.set_ylabel(name)
        for layers, panel in zip(plan.layers, axes[0], strict=True):
            panel.set_title(f"{layers} layer{'s' if layers > 1 else ''}", fontsize=9)
        for panel in axes[1]:
            steps_axis(panel, steps)
        legend(axes[0, 0])
    return axes


def _words(measures: Measures) -> str:
    plan = measures.plan
    parts = []
    for layers in plan.layers:
        start = measures.values[MASKED, layers][:, 0, 0].mean()
        ends = [measures.values[task, layers][:, -1, 0].mean() for task in (MASKED, SUPERVISED)]
        parts.append(
            f"{layers} layer{'s' if layers > 1 else ''}: {start:.2f} at the start, {ends[0]:.2f} "
            f"masked and {ends[1]:.2f} supervised after {counted(plan.steps, 'step')}, difference "
            f"{measures.difference(layers)}"
        )
    return "; ".join(parts)


@with_flags(
    {"resume": "go on after a break"},
    images="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def digits_figure(system: System, request: FigureRequest) -> Drawing:
    """Attention diversity along masked and supervised training. Options: those of `Plan`.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    quick = {
        "images": "digits", "patch": 1, "keys": KEYS, "shown": SHOWN, "layers": LAYERS,
        "steps": STEPS, "seeds": SEEDS, "spread": SPREAD,
    }  # fmt: skip
    options, folder = request_on_images(system, request, "digits", quick, {"steps": 10_000})
    options["layers"] = ascending(options["layers"])
    plan = Plan(options.pop("images"), **options)
    measures = measure(plan, folder)
    caption = (
        f"Section 6 on {plan.data}: attention diversity (top {plan.keys} keys, in patches) of the "
        f"last layer, {counted(len(plan.seeds), 'seed')}. {_words(measures)}."
    )
    data: dict[str, Any] = {"records": list(plan.records)}
    data |= {f"{task}, {n}": entry.tolist() for (task, n), entry in measures.values.items()}
    return Drawing(_draw(measures), data, caption, table(measures))


measure_once = lru_cache(maxsize=2)(measure)


@measures(
    "least diversity of masked minus that of supervised training, in standard errors",
    ">", ERRORS, single=("step size", "time"),
)  # fmt: skip
def figure_3(study: Study) -> Finding:
    """Attention diversity at the end of masked and of supervised training, at both depths."""
    steps = STEPS if study.thorough else QUICK_STEPS
    plan = Plan(steps=steps, seeds=tuple(study.seeds(QUICK_SEEDS, SEEDS)))
    results = measured_on_images(study, measure_once, plan)
    for (task, layers), values in results.values.items():
        study.curve(f"{task}, {layers}", plan.records[1:], values[:, 1:, 0].mean(axis=0))
        study.row({"training": task, "layers": layers}, start=values[:, 0, 0].mean(),
                  end=values[:, -1, 0].mean(), variation=values[:, -1, 1].mean())  # fmt: skip
    study.draw("steps", "attention diversity (patches)", y_scale="linear")
    least = min(results.difference(layers).errors for layers in plan.layers)
    reason = (
        f"digits, {counted(len(plan.seeds), 'seed')}, last layer, top {plan.keys} keys: "
        f"{_words(results)}"
    )
    return study.conclude(least, reason)
