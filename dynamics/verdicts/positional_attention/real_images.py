r"""Section 6 on real images: accuracy, patch association, and both after the pixels are permuted.

Three networks (`dynamics.images.networks`): a transformer with vanilla and one with positional
attention, which differ in nothing else, and a convolutional control. Each is trained by Adam at one
rate, on original images and on images whose blocks of s x s pixels were moved, the same way in all
(the paper's grid shuffle size s), from several seeds, and is looked at at two lengths at least.
There is no augmentation: shifts and flips would mean other things after the permutation.

Positions start as :math:`N(0, s_P^2)`. At the usual 0.02 they must be learned before vanilla
attention can tell patches apart; at 1 they tell patches apart from the start, and hardly move. Both
starts are trained: association is measured from the first, and vanilla attention is at its best
within the steps of the protocol from the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.images import datasets, protocol
from dynamics.images.datasets import Images
from dynamics.images.networks import CONTROL, POSITIONAL, VANILLA, Convolution, Transformer
from dynamics.images.protocol import Estimate, Trained, Trial, estimate
from dynamics.system import System
from dynamics.training.progress import bar
from dynamics.verdicts.figure import Drawing, FigureRequest, with_flags
from dynamics.verdicts.images import ascending, request_on_images
from dynamics.verdicts.positional_attention import image_pictures
from dynamics.verdicts.wording import counted

PATCHES = {8: 1, 28: 4, 32: 4}
"""Side of an image -> side of its patches, where it is not said."""
EARLY = (0, 20, 50, 100, 200)
"""Steps at which association is looked at, beside the lengths of the runs."""
WHICH = {"gram": "<p,p>", "scores": "A"}
"""What association is measured of -> its letter."""
STEPS, SPREADS, SEEDS = (500, 2000), (0.02, 1.0), 5


@dataclass(frozen=True)
class Plan:
    """Choice of the runs behind a figure or a claim.

    Attributes
    ----------
    data : str
        As of `datasets.load`.
    patch, shuffle : int
        Sides in pixels; 0 for the patch of `PATCHES`, and for one patch.
    steps : tuple of int
        Lengths of the runs, ascending.
    spreads : tuple of float
        Of the positions at the start.
    seeds : tuple of int
    pixels : tuple of bool
        Whether they are shuffled: False, True or both.
    kinds : tuple of str
        Of networks.
    samples, tests : int
        Images; 0 for all up to a bound (`datasets.split`).
    """

    data: str = "digits"
    patch: int = 0
    shuffle: int = 0
    steps: tuple[int, ...] = STEPS
    spreads: tuple[float, ...] = SPREADS
    seeds: tuple[int, ...] = tuple(range(SEEDS))
    pixels: tuple[bool, ...] = (False, True)
    kinds: tuple[str, ...] = (VANILLA, POSITIONAL, CONTROL)
    samples: int = 0
    tests: int = 0

    @property
    def records(self) -> tuple[int, ...]:
        """Steps at which a network is looked at."""
        return tuple(sorted({*(n for n in EARLY if n < self.steps[-1]), *self.steps}))

    def networks(self, patch: int) -> dict[str, Transformer | Convolution]:
        """Name -> network."""
        found: dict[str, Transformer | Convolution] = {
            name_of(kind, spread): Transformer(kind, patch, spread=spread)
            for spread in self.spreads
            for kind in self.kinds
            if kind != CONTROL
        }
        return found | ({CONTROL: Convolution()} if CONTROL in self.kinds else {})


def name_of(kind: str, spread: float) -> str:
    """Name of a transformer.

    Parameters
    ----------
    kind : str
    spread : float
        Of the positions at the start.

    Examples
    --------
    >>> name_of("vanilla", 0.02)
    'vanilla, start 0.02'
    """
    return f"{kind}, start {spread:g}"


@dataclass(frozen=True)
class Trials:
    """All runs of a plan.

    Attributes
    ----------
    plan : Plan
    patch, shuffle : int
        Those that were used.
    images : Images
    runs : mapping
        (name of the network, whether shuffled) -> one run a seed.
    """

    plan: Plan
    patch: int
    shuffle: int
    images: Images
    runs: Mapping[tuple[str, bool], Sequence[Trained]]

    @property
    def names(self) -> list[str]:
        """The networks."""
        return list(dict.fromkeys(name for name, _ in self.runs))

    def accuracies(self, name: str, moved: bool, steps: int) -> list[float]:
        """Accuracy of every seed after a number of steps."""
        at = self.plan.records.index(steps)
        return [float(run.accuracy[at]) for run in self.runs[name, moved]]

    def difference(self, first: tuple[str, bool], second: tuple[str, bool], steps: int) -> Estimate:
        """Accuracy of the first minus that of the second, in pairs of one seed."""
        pairs = (np.array(self.accuracies(*one, steps)) for one in (first, second))
        return estimate(next(pairs) - next(pairs))

    @cached_property
    def corrected(self) -> Mapping[tuple[Any, ...], float]:
        """P-values of all seeds together, by Holm's correction over all of the protocol.

        (network, whether shuffled, matrices, record, neighbours as shown) -> p-value, at the start
        and at each length.
        """
        records = [self.plan.records.index(steps) for steps in (0, *self.plan.steps)]
        keys = [
            (name, moved, which, record, as_shuffled)
            for name, moved in self.runs if name != CONTROL
            for which in list(WHICH)[: 1 + name.startswith(POSITIONAL)]
            for as_shuffled in ((False, True) if moved else (False,)) for record in records
        ]  # fmt: skip
        every = [protocol.combined_p_value(self.p_values(*key)) for key in keys]
        return dict(zip(keys, protocol.holm(every).tolist(), strict=True))

    def p_values(
        self, name: str, moved: bool, which: str, record: int = -1, as_shuffled: bool = False
    ) -> list[float]:
        """P-values of association of every seed: of the scores for either sign."""
        results = [run.association(which, record, as_shuffled) for run in self.runs[name, moved]]
        return [each.p_value if which == "gram" else each.either for each in results]


def train_all(plan: Plan, folder: Path | None = None) -> Trials:
    """Train all networks of a plan.

    Parameters
    ----------
    plan : Plan
    folder : Path, optional
        Of the checkpoints of the runs; those that have one go on, or are done.
    """
    images = datasets.load(plan.data)
    patch = plan.patch or PATCHES.get(images.side, 1)
    shuffle = plan.shuffle or patch
    protocol.check_shuffle(images, Transformer(patch=patch), shuffle)
    networks = plan.networks(patch)
    total = len(networks) * len(plan.pixels) * len(plan.seeds) * plan.steps[-1]
    runs: dict[tuple[str, bool], list[Trained]] = {}
    with bar(f"networks on {Path(images.name).name}", total) as progress:
        # Seed by seed, so that a protocol that is interrupted has whole seeds.
        for seed in plan.seeds:
            for name, network in networks.items():
                for moved in plan.pixels:
                    trial = Trial(
                        network, seed, shuffle if moved else 0, plan.records, plan.samples,
                        plan.tests,
                    )  # fmt: skip
                    run = protocol.train_trial(images, trial, folder, progress.update)
                    runs.setdefault((name, moved), []).append(run)
    return Trials(plan, patch, shuffle, images, runs)


train_once = lru_cache(maxsize=16)(train_all)
"""The same, with the runs that claims share."""


def rows(trials: Trials) -> Iterator[dict[str, Any]]:
    """Yield the table of accuracies at each length, and that of patch association.

    Parameters
    ----------
    trials : Trials
    """
    for name in trials.names:
        for steps in trials.plan.steps:
            yield {"network": name, "steps": steps} | _accuracies(trials, name, steps)
    for name in trials.names:
        for moved in trials.plan.pixels if name != CONTROL else ():
            for as_shuffled in (False, True) if moved else (False,):
                yield _associations(trials, name, moved, as_shuffled)


def _accuracies(trials: Trials, name: str, steps: int) -> dict[str, Any]:
    """Accuracies, the drop by shuffling, and the gap to vanilla attention from the same start."""
    pixels, row = trials.plan.pixels, dict[str, Any]()
    for moved in pixels:
        row[_word(moved)] = str(estimate(trials.accuracies(name, moved, steps)))
    if len(pixels) == 2:
        drop = trials.difference((name, False), (name, True), steps)
        row |= {"drop": str(drop), "drop / error": drop.errors}
    if name.startswith(POSITIONAL):
        vanilla = name.replace(POSITIONAL, VANILLA)
        gap = trials.difference((vanilla, pixels[0]), (name, pixels[0]), steps)
        row["vanilla - positional"] = str(gap)
    return row


def _associations(trials: Trials, name: str, moved: bool, as_shuffled: bool) -> dict[str, Any]:
    """P-values over all seeds, before training beside those at each length."""
    row: dict[str, Any] = {
        "network": name, "pixels": _word(moved),
        "neighbours in": "shown" if as_shuffled else "original",
    }  # fmt: skip
    for which, letter in list(WHICH.items())[: 1 + name.startswith(POSITIONAL)]:
        for steps in (0, *trials.plan.steps):
            record = trials.plan.records.index(steps)
            p_value = trials.corrected[name, moved, which, record, as_shuffled]
            row[f"p {letter} at {steps}"] = p_value
    return row


def _word(moved: bool) -> str:
    return "shuffled" if moved else "original"


@with_flags(
    {"permuted": "train on images with permuted blocks alone", "resume": "go on after a break"},
    data="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def images_figure(system: System, request: FigureRequest) -> Drawing:
    """Section 6 on real images. Options beside the flags: see `Plan`, and ``seeds`` their number.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    quick = {
        "data": "digits", "permuted": 0, "patch": 0, "shuffle": 0, "steps": STEPS,
        "spreads": SPREADS, "seeds": SEEDS, "samples": 0, "tests": 0,
    }  # fmt: skip
    thorough = {"steps": (500, 2000, 8000)}
    options, folder = request_on_images(system, request, "images", quick, thorough)
    pixels = (True,) if options.pop("permuted") else (False, True)
    options |= {name: ascending(options[name]) for name in ("steps", "spreads")}
    plan = Plan(**options, pixels=pixels)
    trials = train_all(plan, folder)
    table = list(rows(trials))
    return Drawing(
        image_pictures.draw(trials), {"plan": vars(plan), **data_of(trials)}, caption(trials), table
    )


def data_of(trials: Trials) -> dict[str, Any]:
    """Plain values of the picture: network, pixels -> every seed along the steps.

    Parameters
    ----------
    trials : Trials
    """
    content: dict[str, Any] = {"records": list(trials.plan.records)}
    for (name, moved), runs in trials.runs.items():
        entry: dict[str, Any] = {"accuracy": [run.accuracy.tolist() for run in runs]}
        views = [] if name == CONTROL else [("gram", False), ("gram", True)][: 1 + moved]
        for which, as_shuffled in [*views, *[("scores", False)] * name.startswith(POSITIONAL)]:
            entry[which + " as shown" * as_shuffled] = _series(runs, which, as_shuffled)
        content[f"{name}, {_word(moved)}"] = entry
    return content


def _series(runs: Sequence[Trained], which: str, as_shuffled: bool) -> list[dict[str, list[Any]]]:
    """Contrast of each head and p-values at every record, a seed each."""
    found = []
    for run in runs:
        records = range(len(run.run.steps))
        along = [run.association(which, record, as_shuffled) for record in records]
        names = ("contrast", "p_value", "either")
        found.append({n: [np.asarray(getattr(e, n)).tolist() for e in along] for n in names})
    return found


def caption(trials: Trials) -> str:
    """How the figure was made and what it shows.

    Parameters
    ----------
    trials : Trials
    """
    plan, images = trials.plan, trials.images
    last, moved = plan.steps[-1], plan.pixels[-1]
    words = [
        f"Section 6 on {images.name}: {images.side} x {images.side} pixels, patches of "
        f"{trials.patch}, shuffled in blocks of {trials.shuffle}; two layers of width 32, Adam, "
        f"{counted(len(plan.seeds), 'seed')}; mean and standard error over seeds, in pairs."
    ]
    if len(plan.pixels) == 2:
        pairs = [((name, False), (name, True)) for name in trials.names]
        drops = ((pair[0][0], trials.difference(*pair, last)) for pair in pairs)
        listed = "; ".join(f"{name} {drop} ({drop.errors:.1f})" for name, drop in drops)
        words.append(f"Drop by shuffling after {last:,} steps (in standard errors): {listed}.")
    parts = []
    for name in trials.names:
        for which in WHICH if name != CONTROL else ():
            if which == "gram" or name.startswith(POSITIONAL):
                ends = (0, plan.records.index(last))
                before, after = (trials.corrected[name, moved, which, n, False] for n in ends)
                parts.append(
                    f"{name} {WHICH[which]} {before:.2g} before training, {after:.2g} after"
                )
    words.append(f"P-values over all seeds of {_word(moved)} pixels (Holm), that neighbours "
                 f"of the original image are associated: {'; '.join(parts)}.")  # fmt: skip
    return " ".join(words)
