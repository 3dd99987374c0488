r"""Section 6 on small images: attention diversity along masked and along supervised training.

Of the paper's networks, trained by others on ImageNet, here are small ones on digits: one
transformer (`dynamics.images.networks`) with one layer and with two, trained to reconstruct masked
patches (`dynamics.images.reconstruction`), and the same from the same start trained to classify.
Attention diversity (`dynamics.attention_maps`) is that of the last layer on whole test images, a
mean over heads and images; beside it stands the mean total variation between queries.

Both measures are not zero at the start: queries of a random network differ. What training does is
measured against that. Errors are over starts and splits of one data set, and hold for it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamics.attention_maps import diversity, total_variation
from dynamics.images import datasets
from dynamics.images.networks import Transformer
from dynamics.images.protocol import Estimate, estimate
from dynamics.images.reconstruction import Reconstruction, attention
from dynamics.images.training import Classification, train
from dynamics.plotting.style import BLUE, GREY, VERMILION, legend
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest, refuse
from dynamics.verdicts import images as shared
from dynamics.verdicts.claim import Case, Picture, Row, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, with_flags
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.wording import counted

MASKED, SUPERVISED = "masked", "supervised"
RECORDS = (0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
QUICK_STEPS, QUICK_SEEDS = 500, 3
LOOKS = {MASKED: (BLUE, "o", "-"), SUPERVISED: (VERMILION, "s", "--")}
MEASURES = ("attention diversity (patches)", "mean total variation")


@dataclass(frozen=True)
class Plan:
    """Choice of the networks to train.

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
        Of the positions at the start: with 0.02 patches are alike for a thousand steps.
    """

    data: str = "digits"
    patch: int = 1
    keys: int = 10
    shown: int = 20
    layers: tuple[int, ...] = (1, 2)
    steps: int = 2000
    seeds: tuple[int, ...] = tuple(range(5))
    spread: float = 1.0

    @property
    def records(self) -> tuple[int, ...]:
        """Steps at which attention is looked at."""
        return (*(step for step in RECORDS if step < self.steps), self.steps)


class Measures(NamedTuple):
    """Both measures of all networks.

    Attributes
    ----------
    plan : Plan
    values : mapping
        (masked or supervised, layers) -> float array, shape (seeds, records, 2).
    """

    plan: Plan
    values: Mapping[tuple[str, int], FloatArray]

    def difference(self, layers: int) -> Estimate:
        """Diversity at the end, masked minus supervised, in pairs of one seed."""
        return estimate(np.subtract(*(self.values[task, layers][:, -1, 0] for task in LOOKS)))

    @property
    def words(self) -> str:
        """Diversity at the start and at the end of both trainings."""
        parts = []
        for layers in self.plan.layers:
            start = self.values[MASKED, layers][:, 0, 0].mean()
            ends = (f"{self.values[t, layers][:, -1, 0].mean():.2f} {t}" for t in LOOKS)
            parts.append(
                f"{counted(layers, 'layer')}: {start:.2f} at the start, {' and '.join(ends)} after "
                f"{counted(self.plan.steps, 'step')}, difference {self.difference(layers)}"
            )
        return "; ".join(parts)


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
    values: dict[tuple[str, int], list[Any]] = {}
    total = 2 * len(plan.layers) * len(plan.seeds) * plan.steps
    cases = [
        (seed, layers, task) for seed in plan.seeds for layers in plan.layers for task in LOOKS
    ]
    with bar(f"networks on {Path(images.name).name}", total) as progress:
        for seed, layers, task in cases:
            one = _measured(plan, images, (seed, layers, task), folder, progress.update)
            values.setdefault((task, layers), []).append(one)
    return Measures(plan, {key: np.array(entry) for key, entry in values.items()})


def _measured(
    plan: Plan, images: datasets.Images, case: tuple[int, int, str], folder: Path | None,
    progress: Callable[[int], Any],
) -> list[tuple[float, float]]:  # fmt: skip
    """Both measures of a network at the records of its training."""
    seed, layers, task = case
    network = Transformer(patch=plan.patch, layers=layers, spread=plan.spread)
    split, grid = datasets.split(images, seed=seed), (network.grid(images.side),) * 2
    name = f"{task}-layers-{layers}-seed-{seed}.checkpoint"
    request = {"task": task, "network": asdict(network), "data": images.digest()}
    more: dict[str, Any] = {"request": request, "progress": progress}
    more["checkpoint"] = Checkpoint(folder / name, keep=True) if folder else None
    size, whole = (images.side, images.channels), (split.pixels, split.labels)
    if task == MASKED:
        hiding = Reconstruction(network)
        start = hiding.start(*size, seed)
        run = train(hiding, start, whole[:1], plan.records, seed, **more)
    else:
        start = network.start(*size, images.classes, seed)
        run = train(Classification(network), start, whole, plan.records, seed, **more)
    shown = split.test_pixels[: plan.shown]
    maps = (attention(network, run.theta(record), shown, -1) for record in range(len(run.steps)))
    return [
        (float(diversity(one, grid, plan.keys).mean()), float(total_variation(one).mean()))
        for one in maps
    ]


def _draw(measures: Measures) -> Any:
    """Both measures along training, a column for each depth."""
    plan, steps = measures.plan, np.array(measures.plan.records)
    text = (
        f"{plan.data.rpartition('/')[2]}, patches of {plan.patch} x {plan.patch}, top {plan.keys} "
        f"keys, last layer, 4 heads, {counted(plan.shown, 'test image')}, "
        f"{counted(len(plan.seeds), 'seed')}; bars: standard error, line: start"
    )
    columns = len(plan.layers)
    with page(4.0 * columns, 5.0, text, nrows=2, ncols=columns, squeeze=False,
              sharex=True, sharey="row") as (_, axes):  # fmt: skip
        for (task, layers), values in measures.values.items():
            colour, marker, dash = LOOKS[task]
            for k, name in enumerate(MEASURES):
                panel = axes[k, plan.layers.index(layers)]
                look = {"color": colour, "marker": marker, "ls": dash, "label": task}
                shared.error_bars(panel, steps, values[:, :, k].T, **look)
                panel.axhline(values[:, 0, k].mean(), color=GREY, lw=0.6, zorder=0)
                axes[k, 0].set_ylabel(name)
        for layers, panel in zip(plan.layers, axes[0], strict=True):
            panel.set_title(counted(layers, "layer"), fontsize=9)
        for panel in axes[1]:
            shared.steps_axis(panel, steps)
        legend(axes[0, 0])
    return axes


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
    quick = asdict(Plan()) | {"seeds": len(Plan().seeds)}
    quick["images"] = quick.pop("data")
    options, folder = shared.request_on_images(system, request, "digits", quick, {"steps": 10_000})
    options["layers"] = shared.ascending(options["layers"])
    plan = Plan(options.pop("images"), **options)
    measures = measure(plan, folder)
    caption = (
        f"Section 6 on {plan.data}: attention diversity (top {plan.keys} keys, in patches) of the "
        f"last layer, {counted(len(plan.seeds), 'seed')}. {measures.words}."
    )
    data: dict[str, Any] = {"records": list(plan.records)}
    data |= {f"{task}, {n}": entry.tolist() for (task, n), entry in measures.values.items()}
    table = [
        {"training": task, "layers": layers, "steps": steps}
        | {name: str(estimate(values[:, record, k])) for k, name in enumerate(MEASURES)}
        for (task, layers), values in measures.values.items()
        for record, steps in ((0, 0), (-1, plan.steps))
    ]
    return Drawing(_draw(measures), data, caption, table)


measure_once = lru_cache(maxsize=2)(measure)


@claim(
    "Figure 3", "least diversity of masked minus that of supervised training, in standard errors "
    "over seeds, given the data set", ">", shared.ERRORS, laws=None, varies=("step size", "time"),
    again=False, words="digits, {seeds} seeds, last layer, top 10 keys: {told}",
    picture=Picture("steps", "attention diversity (patches)", {}, ("log", "linear")),
)  # fmt: skip
def figure_3(case: Case) -> Row:
    """Attention diversity at the end of masked and of supervised training, at both depths."""
    steps, count = (2000, 5) if case.thorough else (QUICK_STEPS, QUICK_SEEDS)
    plan = Plan(steps=steps, seeds=tuple(range(case.seed, case.seed + count)))
    try:
        results = measure_once(plan)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), "measurement") from refusal
    curves = {
        f"{task}, {layers}": (plan.records[1:], values[:, 1:, 0].mean(axis=0))
        for (task, layers), values in results.values.items()
    }
    least = min(results.difference(layers).errors for layers in plan.layers)
    return {"value": least, "seeds": count, "told": results.words, "curves": curves}
