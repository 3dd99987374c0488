"""Section 6: diversity of attention along training, on an image of a cluster and on digits.

The figure ``diversity`` and the claim of Section 6 use attention maps of the reduced problem, on an
image whose latents all equal the mean latent of the law. The figure ``digits`` replaces the paper's
ImageNet networks by small transformers with one or two layers. Each network is trained to
reconstruct masked patches (`dynamics.images.reconstruction`) and, from the same start, to classify.
Attention diversity (`dynamics.attention_maps`) and total variation of a network are means over the
last layer's heads and the test images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamics.attention_maps import diversity, total_variation
from dynamics.images import datasets
from dynamics.images.networks import Transformer
from dynamics.images.protocol import Estimate, estimate
from dynamics.images.reconstruction import Reconstruction, attention
from dynamics.images.training import Classification, train
from dynamics.plotting.style import BLUE, GREEN, GREY, VERMILION, legend, note
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.descent import descend
from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest, refuse
from dynamics.verdicts import images as shared
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Picture, Row
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title, with_flags
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.figures import one_cluster
from dynamics.verdicts.rules import Repeat
from dynamics.verdicts.wording import counted
from theory.papers.masked_image_modeling.model import latent_moment

SIZES = {"P": 1024, "C_global": 512, "C_local": 8}
ETA = 1.0
UNITS = 47.0
"""Final time of a run, as a multiple of `grid.unit(law)`."""
KEYS, FEW = 10, 12
LEAST_MAPS = 3
"""Minimum number of measured maps: one at the start, one after one step, one at the end."""
SAME = 0.9
"""Minimum ratio at which two values of diversity or of total variation count as equal."""
KEYED = ((BLUE, "o-"), (GREEN, "s--"), (VERMILION, "^-."))
"""Colour, and marker with line style, of the curves for successive numbers of keys."""
MASKED, SUPERVISED = "masked", "supervised"
RECORDS = (0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
QUICK_STEPS, QUICK_SEEDS = 500, 3
LOOKS = {MASKED: (BLUE, "o", "-"), SUPERVISED: (VERMILION, "s", "--")}
MEASURES = ("attention diversity (patches)", "mean total variation")


def grid_of(P: int) -> tuple[int, int]:
    """Rows and columns of a grid of P patches, as close to a square as possible."""
    high = max(h for h in range(1, isqrt(P) + 1) if P % h == 0)
    return high, P // high


def _trained(make: Any, law: Any, eta: float, units: float = UNITS) -> tuple[Any, Trajectory]:
    """Reduced problem, and gradient descent on it up to the time `units` times `grid.unit(law)`."""
    problem = make(law)
    return problem, descend(problem, eta, int(np.ceil(units * grid.unit(law) / eta)))


def measured_maps(
    rows: Any, run: Trajectory, keys: Sequence[int] = (KEYS,), count: int = FEW
) -> dict[str, FloatArray]:
    """Diversity and total variation of attention maps at the start, after one step, and later.

    `rows`: reduced rows of the problem; `run`: run of the reduced problem; `keys`: numbers of keys
    of a query, each with its own diversity; `count`: number of maps, evenly spaced in log time.
    ``time`` and ``total_variation`` have shape (maps,); ``diversity`` has shape (keys, maps) and is
    measured in patches.
    """
    times, law = np.geomspace(run.time[1], run.time[-1], count - 1), rows.parameters
    records = np.unique([0, *np.abs(run.time[None, :] - times[:, None]).argmin(axis=1)])
    z, size = float(latent_moment(law.z, law.odds, 1)), grid_of(law.P)
    maps = [rows.attention_map(run.states[record], z=z) for record in records]
    metrics = [[float(diversity(one, grid=size, k=k)) for one in maps] for k in keys]
    variation = [float(total_variation(one)) for one in maps]
    found = {"time": run.time[records], "diversity": metrics, "total_variation": variation}
    return {name: np.array(values) for name, values in found.items()}


def _run(case: Case) -> tuple[Any, Any]:
    eta = case.rate(ETA) / grid.speed(case.parameters)
    return _trained(case.system.ReducedPopulation, case.parameters, eta, case.time(UNITS))


@grid.claim(
    "Section 6", "diversity of the nearly uniform maps after one step over that at the end", "<",
    SAME, laws=(SIZES,), run=_run, require=grid.requires(), varies=("step size", "time"),
    words="the metric is {start:.4g} at the start, {step:.5g} after one step and {end:.5g} at the "
    "end; the total variation of rows goes from {uniform:.2g} to {local:.3g}",
    picture=Picture(TIME, "share of the value at the end"),
)  # fmt: skip
def section_6(case: Case) -> Row:
    """Attention diversity, and total variation, after one step and at the end of training."""
    k = min(KEYS, case.parameters.P)
    # The repeated measurement of a contradiction needs only the maps after one step and at the end.
    few = FEW * (1 + case.thorough) if case.repeat == Repeat() else LEAST_MAPS
    values = measured_maps(case.problem.rows, case.run, (k,), few)
    (metric,), variation, time = values["diversity"], values["total_variation"], values["time"]
    row = {"start": metric[0], "step": metric[1], "end": metric[-1], "uniform": variation[1]}
    row |= {"local": variation[-1], "value": metric[1] / metric[-1] if metric[-1] > 0 else np.nan}
    shares = {f"diversity, top {k}": metric, "total variation": variation}
    row |= {"curves": {name: (time[1:], part[1:] / part[-1]) for name, part in shares.items()}}
    # Undecided unless the map after one step has less total variation than the map at the end.
    return row | ({} if variation[1] < SAME * variation[-1] else {"holds": None})


def diversity_figure(system: System, request: FigureRequest) -> Drawing:
    """Attention diversity and total variation; options ``eta``, numbers ``maps`` and ``keys``."""
    law = one_cluster(system, request, SIZES)
    quick: dict[str, Any] = {"eta": ETA / grid.speed(law), "maps": 48, "keys": (10, 8)}
    options = request.options(quick, {"maps": 120}, maps=LEAST_MAPS)
    problem, run = _trained(system.ReducedPopulation, law, options["eta"])
    keys = [min(k, law.P) for k in options["keys"]]
    values = measured_maps(problem.rows, run, keys, options["maps"])
    time, variation, metric = values["time"], values["total_variation"], values["diversity"][0]
    high, wide = grid_of(law.P)
    image = "cluster image" if law.K == 1 else f"image of the first of {law.K} clusters"
    sizes = title(system, law, "P", "C_global", "C_local")
    held = f"{high} × {wide} patches, {image} with nothing masked, {sizes}"
    caption = (
        f"Attention diversity (top {keys[0]}) is {metric[0]:.4g} at the start, {metric[1]:.5g} "
        f"after one step and {metric[-1]:.5g} at time {time[-1]:g}. Total variation grows from "
        f"{variation[1]:.2g} to {variation[-1]:.3g}."
    )
    metrics = dict(zip(keys, values["diversity"], strict=True))
    data = {"time": time, "diversity": metrics, "variation": variation}
    return Drawing(_panels(data, run, held), data, caption)


def _panels(data: Mapping[str, Any], run: Trajectory, held: str) -> Any:
    """Draw two panels: attention diversity for each number of keys, and total variation below."""
    time = data["time"]
    with page(6.4, 4.4, held, nrows=2, sharex=True) as (_, axes):
        style: dict[str, Any] = {"ms": 4.5, "mfc": "white", "mew": 1.1}
        for (keys, values), (colour, look) in zip(data["diversity"].items(), KEYED, strict=False):
            axes[0].plot(time, values, look, color=colour, label=f"top {keys} keys", **style)
        axes[1].plot(time, data["variation"], "o-", color=BLUE, **style)
        axes[0].legend(loc="lower right")
        # The axis is linear up to the second recorded time, so that it includes the start.
        axes[1].set_xscale("symlog", linthresh=float(time[1]), linscale=0.4)
        axes[1].set_xlim(-0.1 * time[1], time[-1] * 1.2)
        axes[1].set_xlabel(r"time $\tau = \eta \times$ steps (linear up to the first step)")
        words = ("attention diversity\n(patches)", "mean pairwise\ntotal variation")
        for panel, label in zip(axes, words, strict=True):
            for name in ("E2", "E4"):
                if (at := run.events[name].time) > 0:
                    panel.axvline(at, color=GREY, lw=0.8, zorder=0)
                    above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center"}
                    note(axes[0], f"$E_{name[1]}$", (at, 1.0), (0, 2), **above)
            panel.margins(y=0.08)
            panel.set(ylabel=label)
            panel.set_ylim(bottom=0.0)
    return axes


@dataclass(frozen=True)
class Plan:
    """Settings of the networks to train.

    `data`: name as in `datasets.load`; `patch`: side of a patch in pixels; `keys`: number of keys
    of a query in the diversity; `shown`: number of test images; `spread`: standard deviation of the
    positions at the start (with 0.02, patches stay alike for a thousand steps).
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
        """Steps at which attention is measured."""
        return (*(step for step in RECORDS if step < self.steps), self.steps)


class Measures(NamedTuple):
    """Attention diversity and total variation of all networks.

    `values`: (``"masked"`` or ``"supervised"``, number of layers) -> array (seeds, records, 2) with
    the diversity and the total variation.
    """

    plan: Plan
    values: Mapping[tuple[str, int], FloatArray]

    def difference(self, layers: int) -> Estimate:
        """Final diversity of masked training minus that of supervised training, paired by seed."""
        return estimate(np.subtract(*(self.values[task, layers][:, -1, 0] for task in LOOKS)))

    @property
    def words(self) -> str:
        """Text with the diversity at the start, and after masked and after supervised training."""
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
    """Train all networks, with checkpoints in `folder`; measure their attention at every record."""
    images = datasets.load(plan.data)
    patches = Transformer(patch=plan.patch).grid(images.side) ** 2
    if plan.keys > patches:
        problem = f"is more than there are patches of {plan.patch} x {plan.patch} pixels"
        refuse("keys", plan.keys, problem, f"1 to {patches}", patches)
    values: dict[tuple[str, int], list[Any]] = {}
    cases = [*product(plan.seeds, plan.layers, LOOKS)]
    with bar(f"networks on {Path(images.name).name}", len(cases) * plan.steps) as progress:
        for case in cases:
            one = _measured(plan, images, case, folder, progress.update)
            values.setdefault((case[2], case[1]), []).append(one)
    return Measures(plan, {key: np.array(entry) for key, entry in values.items()})


def _measured(
    plan: Plan, images: datasets.Images, case: tuple[int, int, str], folder: Path | None,
    progress: Callable[[int], Any],
) -> list[tuple[float, float]]:  # fmt: skip
    seed, layers, task = case
    network = Transformer(patch=plan.patch, layers=layers, spread=plan.spread)
    split, size = datasets.split(images, seed=seed), (images.side, images.channels)
    kept = folder and Checkpoint(folder / f"{task}-layers-{layers}-seed-{seed}.checkpoint", True)
    request = {"task": task, "network": asdict(network), "data": images.digest()}
    more: Any = {"checkpoint": kept, "request": request, "progress": progress}
    if task == MASKED:
        hiding = Reconstruction(network)
        start = hiding.start(*size, seed)
        run = train(hiding, start, (split.pixels,), plan.records, seed, **more)
    else:
        start, whole = network.start(*size, images.classes, seed), (split.pixels, split.labels)
        run = train(Classification(network), start, whole, plan.records, seed, **more)
    shown, cells = split.test_pixels[: plan.shown], (network.grid(images.side),) * 2
    maps = (attention(network, run.theta(record), shown, -1) for record in range(len(run.steps)))
    return [
        (float(diversity(one, cells, plan.keys).mean()), float(total_variation(one).mean()))
        for one in maps
    ]


def _draw(measures: Measures) -> Any:
    plan, steps = measures.plan, np.array(measures.plan.records)
    text = (
        f"{plan.data.rpartition('/')[2]}, patches of {plan.patch} x {plan.patch}, top {plan.keys} "
        f"keys, last layer, 4 heads, {counted(plan.shown, 'test image')}, "
        f"{counted(len(plan.seeds), 'seed')}; bars: standard error, line: start"
    )
    columns = len(plan.layers)
    look: dict[str, Any] = {"squeeze": False, "sharex": True, "sharey": "row"}
    with page(4.0 * columns, 5.0, text, nrows=2, ncols=columns, **look) as (_, axes):
        for (task, layers), values in measures.values.items():
            colour, marker, dash = LOOKS[task]
            for panel, part in zip(axes[:, plan.layers.index(layers)], values.T, strict=True):
                look = {"color": colour, "marker": marker, "ls": dash, "label": task}
                shared.error_bars(panel, steps, part, **look)
                panel.axhline(part[0].mean(), color=GREY, lw=0.6, zorder=0)
        for row, name in zip(axes, MEASURES, strict=True):
            row[0].set_ylabel(name)
        for layers, column in zip(plan.layers, axes.T, strict=True):
            column[0].set_title(counted(layers, "layer"), fontsize=9)
            shared.steps_axis(column[1], steps)
        legend(axes[0, 0])
    return axes


@with_flags(
    {"resume": "resume an interrupted run"},
    images="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def digits_figure(system: System, request: FigureRequest) -> Drawing:
    """Attention diversity along masked and supervised training; the options are `Plan`'s fields."""
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


@grid.claim(
    "Figure 3", "least diversity of masked minus that of supervised training, in standard errors "
    "over seeds, given the data set", ">", shared.ERRORS, laws=None, varies=("step size", "time"),
    again=False, words="digits, {seeds} seeds, last layer, top 10 keys: {told}",
    picture=Picture("steps", "attention diversity (patches)", {}, ("log", "linear")),
)  # fmt: skip
def figure_3(case: Case) -> Row:
    """Final attention diversity of masked and of supervised training, with one and two layers."""
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
