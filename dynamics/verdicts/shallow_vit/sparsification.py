r"""Token sparsification: Remark 2, Figures 5 and 8.

A fifth of the tokens have noise of standard deviation 1 per coordinate. Training and test samples
lose the same share of their tokens: at random, those of no discriminative pattern first, or those
farthest from their pattern first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, VERMILION
from dynamics.problem import FloatArray
from dynamics.process_settings import cores
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.findings import Check, Finding
from dynamics.verdicts.shallow_vit.hypothesis import all_trained
from dynamics.verdicts.shallow_vit.runs import PATTERNS, folder, stored_sweep, values
from dynamics.verdicts.study import LINEAR, Study, computed_once, measures
from dynamics.verdicts.wording import counted, listed
from theory.papers.shallow_vit.data_law import SPARSIFIERS, rounded

FIGURE_5: dict[str, Any] = {
    "alpha_star": 0.6, "alpha_confusion": 0.05, "delta": 0.5, "m": 300, "data": "fixed_disc",
}  # fmt: skip
"""Shares and delta that are recalled of Figure 5, as are its 80 samples."""
FIGURE_5_SAMPLES = 80
LAW: dict[str, Any] = {"alpha_star": 0.3, "alpha_confusion": 0.1, "m": 300, "data": "fixed_disc"}
TRAINING: dict[str, Any] = {"samples": 20, "noisy_share": 0.2, "noisy_std": 1.0}
ETA, STEPS = 0.2, 400
REMOVED = (0.0, 0.2, 0.5)
ALL_REMOVED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SHARE = 0.2
"""Share of tokens removed where the order of the sparsifiers is compared: all noisy ones can go."""
SEEDS, MORE_SEEDS = 5, 10
FEW_SEEDS = 3
"""Where only the order of the rules matters."""
WORDS = {"random": "at random", "irrelevant": "irrelevant first", "noisiest": "noisiest first"}
NARROW = 4.5
"""Width of a line above one panel, in inches."""
LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))


def _losses(
    study: Study,
    law: Any,
    rule: str,
    removed: Sequence[float],
    seeds: Sequence[int],
    **changed: Any,
) -> FloatArray:
    """Test loss at the end, shape (removed, seeds)."""
    training = tuple((TRAINING | changed).items())
    rate, steps = study.rate(ETA), study.horizon(STEPS)
    rows = [[_loss(study.system, law, rule, share, seed, training, rate, steps) for seed in seeds]
            for share in removed]  # fmt: skip
    return np.array(rows)


@computed_once(512, "FullEmpirical")
def _loss(
    make: Any, law: Any, rule: str, share: float, seed: int, training: Any, eta: float, steps: int
) -> float:
    problem = make(law, seed=seed, sparsify=rule, removed=share, **dict(training))
    return float(descend(problem, eta, steps, record=[steps])["test_loss"][-1])


def mean_losses(study: Study, law: Any = None, **changed: Any) -> dict[str, float]:
    """Mean test loss with nothing removed (``"none"``) and with `SHARE` removed by each rule.

    Parameters
    ----------
    study : Study
    law : Parameters, optional
        `LAW` by default, with what is ``changed`` of it.
    **changed
        Parameters by their names.
    """
    law = law or study.system.Parameters(**(LAW | changed))
    seeds = study.seeds(FEW_SEEDS, FEW_SEEDS)
    losses = {"none": _losses(study, law, "random", (0.0,), seeds)}
    losses |= {rule: _losses(study, law, rule, (SHARE,), seeds) for rule in SPARSIFIERS}
    return {rule: float(loss.mean()) for rule, loss in losses.items()}


def _removal_check(default: Mapping[str, Any], samples: int) -> Check:
    """A check that tokens removed by a rule lower the test loss, and at random do not as much."""

    @measures(
        "test loss with irrelevant tokens removed, over that with none removed", "<", 1.0,
        all_trained, ("step size", "time"), again=True,
    )  # fmt: skip
    def check(study: Study) -> Finding:
        law, seeds = study.law(**default), study.seeds(SEEDS, MORE_SEEDS)
        shares = ALL_REMOVED if study.thorough else REMOVED
        losses = {
            rule: _losses(study, law, rule, shares, seeds, samples=samples) for rule in SPARSIFIERS
        }
        means = {rule: loss.mean(axis=1) for rule, loss in losses.items()}
        start, ratio, holds = float(means["random"][0]), float("nan"), None
        reason = "nothing is left to gain: the test loss is 0 with all tokens"
        if start != 0:
            ratio = float(means["irrelevant"][-1]) / start
            best = {rule: float(mean[1:].min()) for rule, mean in means.items()}
            helps = [best[rule] < min(start, best["random"]) for rule in ("irrelevant", "noisiest")]
            holds = bool(all(helps) and means["random"][-1] >= means["irrelevant"][-1])
            words = "; ".join(f"{WORDS[rule]}: {listed(mean, 2)}" for rule, mean in means.items())
            taken = [rounded(share, law.L) / law.L for share in shares]
            removed = ", ".join(f"{share:.0%}" for share in taken)
            reason = f"test loss with {removed} removed, {words}"
        for rule, mean in means.items():
            study.curve(WORDS[rule], [rounded(share, law.L) / law.L for share in shares], mean)
        y_label = f"test loss, mean of {counted(len(seeds), 'seed')}"
        study.draw("share of tokens removed", y_label, None, *LINEAR)
        table = {rule: loss.tolist() for rule, loss in losses.items()}
        return study.conclude(ratio, reason, holds=holds, parameters=asdict(law), table=table)

    return check


remark_2 = _removal_check(LAW, TRAINING["samples"])
figure_5_check = _removal_check(FIGURE_5, FIGURE_5_SAMPLES)


def figure_5(system: System, request: FigureRequest) -> Drawing:
    """Test loss and error against the share of tokens removed, by three rules.

    Options: ``removed``, ``seeds``, ``samples``, ``eta``, ``steps``, ``noisy_share``,
    ``noisy_std``, ``workers``, ``store``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    return _figure(system, request, "5", {"": request.make_parameters(system, (), **LAW)}, 10)


def figure_8(system: System, request: FigureRequest) -> Drawing:
    """The same for several M. Options: those of Figure 5.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = request.make_parameters(system, ("M",), **(LAW | {"d": 20}))
    return _figure(system, request, "8", {f"M = {M}": replace(law, M=M) for M in PATTERNS}, 4)


def _figure(
    system: System, request: FigureRequest, name: str, laws: Mapping[str, Any], seeds: int
) -> Drawing:
    default = TRAINING | {
        "removed": ALL_REMOVED, "seeds": seeds, "eta": ETA, "steps": STEPS, "workers": cores(),
        "store": "",
    }  # fmt: skip
    options = request.options(default, {"seeds": 20}, workers=0)
    many, tokens = options["seeds"], next(iter(laws.values())).L
    # Of shares that are the same whole tokens, the first.
    asked = {rounded(share, tokens): share for share in sorted(set(options["removed"]))[::-1]}
    shares, noisy = sorted(asked.values()), rounded(options["noisy_share"], tokens) / tokens
    taken = [rounded(share, tokens) / tokens for share in shares]
    axes = {
        "full": "empirical", "removed": shares, "seed": list(request.seeds(many)),
        **{key: options[key] for key in ("eta", "steps", *TRAINING)},
    }  # fmt: skip
    words: list[str] = []
    data: dict[str, Any] = {"removed": np.array(taken), "loss": [], "error": []}
    with folder(name, request, options) as where:
        for panel, law in laws.items():
            loss: dict[str, FloatArray] = {}
            error: dict[str, FloatArray] = {}
            for rule, label in WORDS.items():
                rules, path = axes | {"sparsify": rule}, where / f"{rule}-{law.M}.zarr"
                done = stored_sweep(system, law, rules, path, options["workers"])
                loss[label] = values(done, "test_loss", ("removed", "seed"))
                error[label] = values(done, "test_error", ("removed", "seed"))
            means = (
                f"{label} {listed(loss[label].mean(axis=1), 2)}, error "
                f"{listed(error[label].mean(axis=1), 2)}"
                for label in WORDS.values()
            )
            words.append(f"{panel}: " * bool(panel) + "; ".join(means))
            data["loss"].append(loss)
            data["error"].append(error)
    names = ("L", "d", "m", "alpha_star", "alpha_confusion", "sigma", "delta", "data", "noise")
    numbers = {"samples": options["samples"], "eta": options["eta"]}
    held = (
        f"{title(system, law, *names, width=NARROW, **numbers)}, at most {options['steps']:g} "
        f"steps;\nnoise {options['noisy_std']:g} for a share {noisy:.3g} of "
        f"the tokens; mean of {counted(many, 'seed')}, bars: standard error of the mean"
    )
    sizes = stated(law, "L", "m", "alpha_star", "alpha_confusion", eta=options["eta"])
    caption = (
        f"Test loss against the share of tokens removed ({', '.join(f'{s:.3g}' for s in taken)}), "
        f"training and test samples alike (N={options['samples']}, {sizes}, "
        f"{counted(many, 'seed')}). {'. '.join(words)}."
    )
    return Drawing(_picture(data, list(laws), held), data, caption)


def _picture(data: Mapping[str, Any], titles: Sequence[str], held: str) -> Any:
    """Mean over the seeds, with its standard error; test loss above, test error below."""
    many, shares = len(titles), data["removed"]
    grid: dict[str, Any] = {"nrows": 2, "ncols": many, "squeeze": False}
    wide = 1.5 + 2.7 * many + 1.6 * (many == 1)
    with page(wide, 5.2, held, sharex=True, sharey="row", **grid) as (figure, axes):
        for (row, k), panel in np.ndenumerate(axes):
            by_rule = data["error" if row else "loss"][k]
            for (label, part), (colour, marker, dash) in zip(by_rule.items(), LOOKS, strict=True):
                seeds = part.shape[1]
                bars = part.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else None
                panel.errorbar(
                    shares, part.mean(axis=1), yerr=bars, color=colour, marker=marker, ls=dash,
                    ms=5, mfc="white", capsize=2, elinewidth=1.0, label=label,
                )  # fmt: skip
            # A little below zero, so that marks on the axis are whole.
            panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])
        for panel, word in zip(axes[0], titles, strict=True):
            panel.set_title(f"${word}$" if word else "", fontsize=9, loc="left")
        for panel in axes[1]:
            panel.set_xlabel("share of tokens removed")
        axes[0, 0].set_ylabel("test loss over the margin")
        axes[1, 0].set_ylabel("test error")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return axes
