"""Figures 2, 4, 5, 7 and 8: iterations against alpha_*, attention in training, sparsification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from dynamics.plotting.labels import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, legend_below
from dynamics.problem import FloatArray
from dynamics.sweep.run import cores
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.images import error_bars
from dynamics.verdicts.shallow_vit import tokens
from dynamics.verdicts.shallow_vit.attention import KINDS, PATTERNS, limit
from dynamics.verdicts.shallow_vit.iterations import ETA, FAMILIES, laws_of, line_words
from dynamics.verdicts.shallow_vit.runs import FEWEST, SAMPLES, alphas, gaps, step_of_rest
from dynamics.verdicts.shallow_vit.stores import folder, stored_sweep, values
from dynamics.verdicts.wording import counted, listed
from theory.papers.shallow_vit.data_law import rounded

ENDS = {"one": 110, "root": 210}
"""Margin, 1 (one) or sqrt(m) (root) -> number of steps that shows training to its end."""
RECORDS = 5
LOOKS = ((VERMILION, "o"), (BLUE, "s"), (GREEN, "^"), (PURPLE, "D"))
DASHED = ((GREEN, "--"), (PURPLE, "-."), (ORANGE, ":"))
RULES = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))
NAMES = (
    "L", "d", "m", "alpha_star", "alpha_confusion", "sigma", "delta", "noise", "data", "output",
)  # fmt: skip
SMALL_TITLE: dict[str, Any] = {"fontsize": 9, "loc": "left"}
BARS: dict[str, Any] = {"mfc": "white", "capsize": 2, "elinewidth": 1.0}


def figure_2(system: System, request: FigureRequest) -> Drawing:
    """Figure 2: steps to zero training loss against alpha_*.

    Options: ``families`` (of alpha_#: ``rest``, ``constant``, ``proportion``, ``none``), ``eta``,
    ``steps``, ``seeds``, ``workers``, ``store``.
    """
    default = {"families": tuple(FAMILIES), "eta": ETA, "steps": 6000, "seeds": 3,
               "workers": cores(), "store": ""}  # fmt: skip
    options = request.options(default, {"seeds": 20}, workers=0)
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), L=100)
    eta, many, data, words = options["eta"], options["seeds"], {}, []
    axes = {"eta": eta, "steps": options["steps"], "seed": list(request.seeds(many))}
    with folder("2", request, options) as where:
        for name in options["families"]:
            if name not in FAMILIES:
                refuse("families", name, "is unknown", ", ".join(FAMILIES), "rest")
            laws = laws_of(law, name)
            if len(laws) < FEWEST:
                words.append(f"too few points with L={law.L}: {name}")
                continue
            shares, formula = alphas(laws), FAMILIES[name].confusion
            along = {"alpha_star": shares.tolist(), "alpha_confusion": formula, **axes}
            done = stored_sweep(system, law, along, where / f"{name}.zarr", options["workers"])
            steps = values(done, "time_t_zero", ("alpha_star", "seed")) / eta
            data[name] = {"alpha_star": shares, "gap": gaps(laws), "steps": steps}
            words.append(line_words(name, laws, steps.mean(axis=1))[0])
    if not data:
        refuse("L", law.L, "leaves fewer than three points in every family", "larger", 100)
    names = ("L", "M", "m", "sigma", "delta", "margin", "output")
    held = f"trained on the law ({law.data}), {title(system, law, *names, eta=eta)}, no noise; " + (
        f"mean of {many} starts, bars from least to greatest" if many > 1 else "one start"
    )
    caption = (
        f"Steps to zero training loss against 1/alpha_* and 1/(alpha_* - alpha_#) "
        f"({stated(law, 'L', 'm', eta=eta)}, {many} start(s)). {'; '.join(words)}."
    )
    return Drawing(_iterations(data, held), data, caption)


def _iterations(data: Mapping[str, Mapping[str, Any]], held: str) -> Any:
    """Draw steps to zero loss over 1/alpha_*, and over 1/(alpha_* - alpha_#) with a fitted line."""
    with page(8.4, 4.0, held, ncols=2, sharey=True) as (figure, axes):
        for (name, family), (colour, marker) in zip(data.items(), LOOKS, strict=False):
            steps, mean = family["steps"], family["steps"].mean(axis=1)
            bars = np.stack([mean - steps.min(axis=1), steps.max(axis=1) - mean])
            look = {"color": colour, "marker": marker, "ls": "", "ms": 5.5, **BARS}
            for panel, of in zip(axes, ("alpha_star", "gap"), strict=True):
                panel.errorbar(1 / family[of], mean, bars, label=FAMILIES[name].label, **look)
        # The line through the origin in 1/(alpha_* - alpha_#) is fitted to the logarithms.
        x = np.concatenate([1 / family["gap"] for family in data.values()])
        y = np.concatenate([family["steps"].mean(axis=1) for family in data.values()])
        factor, ends = float(np.exp(np.nanmean(np.log(y / x)))), np.array([x.min(), x.max()])
        label = rf"${factor:.3g} / (\alpha_* - \alpha_\#)$"
        axes[1].plot(ends, factor * ends, "--", color=GREY, lw=1.1, zorder=0, label=label)
        axes[0].set(xlabel=r"$1/\alpha_*$", ylabel="steps to zero training loss")
        axes[1].set_xlabel(r"$1/(\alpha_* - \alpha_\#)$")
        axes[0].set_title("the paper's variable", **SMALL_TITLE)
        axes[1].set_title("gap of the shares", **SMALL_TITLE)
        for panel in axes:
            panel.set(xscale="log", yscale="log")
            logarithmic(panel.xaxis, panel.get_xlim()[1] / panel.get_xlim()[0])
        legend_below(figure, axes[1].get_legend_handles_labels()[0], 5)
    return axes


class Trained(NamedTuple):
    """Runs of one law with several seeds."""

    margin: float
    name: str
    runs: Sequence[Any]
    ceiling: float | None
    """Upper limit, without noise, of the mean attention to relevant tokens; None if unknown."""
    stops: Sequence[int]
    """Step at which each run reaches zero training loss."""

    def mean(self, name: str) -> FloatArray:
        """Mean of an observable over the seeds."""
        return np.asarray(np.mean([run[name] for run in self.runs], axis=0))

    def words(self, label: str, hinge: bool) -> str:
        """Text with the attention to relevant tokens at the start and the end, by kind of query."""
        kinds = ", ".join(f"{self.mean(f'relevant_by_{kind}')[-1]:.3f}" for kind in KINDS)
        relevant, stops = self.mean("relevant"), ", ".join(map(str, self.stops)) or "none"
        end = f"zero training loss at step {stops}" if hinge else "linear loss"
        return (
            f"{label}: from {relevant[0]:.3f} to {relevant[-1]:.3f} (queries relevant, confusion, "
            f"other: {kinds}), {end}"
        )


def figure_4(system: System, request: FigureRequest) -> Drawing:
    """Figure 4: attention; options ``samples``, ``eta``, ``steps``, ``seeds``, ``margins``."""
    return _attention(system, request, {"": request.make_parameters(system)}, 3)


def figure_7(system: System, request: FigureRequest) -> Drawing:
    """Figure 7: attention for several numbers M of patterns; options as for Figure 4."""
    law = request.make_parameters(system, ("M",), d=20)
    return _attention(system, request, {f"M = {M}": replace(law, M=M) for M in PATTERNS}, 1)


def _attention(
    system: System, request: FigureRequest, laws: Mapping[str, Any], seeds: int
) -> Drawing:
    default = {"samples": SAMPLES, "eta": 0.1, "steps": 0, "seeds": seeds, "margins": tuple(ENDS)}
    options = request.options(default, {"seeds": 10})
    eta, many, law = options["eta"], options["seeds"], next(iter(laws.values()))
    panels, words, data = [], [], {}
    for margin, (name, one) in product(options["margins"], laws.items()):
        if margin not in ENDS:
            refuse("margins", margin, "is unknown", ", ".join(ENDS), "one")
        each = one if margin == "one" else replace(one, margin=sqrt(one.m) * one.margin)
        make, steps = system.FullEmpirical, options["steps"] or ENDS[margin]
        problems = [make(each, options["samples"], s, test_samples=1) for s in request.seeds(many)]
        runs = [descend(problem, eta, steps, record=RECORDS) for problem in problems]
        ceilings = [limit(each, problem.reader) for problem in problems]
        rests = map(step_of_rest, problems, runs)
        stops = [step for step in rests if step is not None]
        top = max(filter(None, ceilings), default=None)
        panel = Trained(each.margin, name, runs, top, stops)
        key = f"{name}, " * bool(name) + f"margin {each.margin:.4g}"
        data[key] = {"steps": runs[0].steps, "relevant": [run["relevant"] for run in runs]}
        words.append(panel.words(key, law.loss == "hinge"))
        panels.append(panel)
    of_seeds = f"mean of {many} seeds, bands from least to greatest" if many > 1 else "one seed"
    shown = title(system, law, *NAMES, samples=options["samples"], eta=eta)
    caption = (
        f"Attention to label-relevant tokens, mean over all queries of the training samples, on "
        f"{'noisy tokens' if law.noise else 'tokens without noise'} (N={options['samples']}, "
        f"{stated(law, 'L', 'm', eta=eta)}, {counted(many, 'seed')}). {'; '.join(words)}."
    )
    if tops := {f"{panel.ceiling:.3f}" for panel in panels if panel.ceiling}:
        it = "Without noise it" if law.noise else "It"
        caption += f" {it} cannot exceed {' or '.join(sorted(tops))}."
    columns = len(laws) if len(laws) > 1 else len(panels)
    axes = _panels(panels, columns, f"{shown},\ngradient descent; {of_seeds}", bool(law.noise))
    return Drawing(axes, data, caption)


def _panels(panels: Sequence[Trained], columns: int, held: str, noisy: bool) -> Any:
    rows = len(panels) // columns
    shape: dict[str, Any] = {"nrows": rows, "ncols": columns, "squeeze": False, "sharey": True}
    with page(1.2 + 2.9 * columns, 1.2 + 2.5 * rows, held, **shape) as (figure, axes):
        for panel, one in zip(axes.flat, panels, strict=True):
            steps, every = one.runs[0].steps, np.stack([run["relevant"] for run in one.runs])
            few = max(1, len(steps) // 14)
            for part, whose, colour, marker in (
                (every, "relevant", VERMILION, "*"), (1 - every, "other", BLUE, "s"),
            ):  # fmt: skip
                look = {"color": colour, "marker": marker, "ms": 5.5, "mec": "white", "mew": 0.4}
                label = f"to {whose} tokens, all queries"
                panel.plot(steps, part.mean(axis=0), markevery=few, label=label, **look)
                ends = part.min(axis=0), part.max(axis=0)
                panel.fill_between(steps, *ends, color=colour, alpha=0.2, lw=0)
            for kind, (colour, dash) in zip(KINDS, DASHED, strict=True):
                mean, label = one.mean(f"relevant_by_{kind}"), f"to relevant, {kind} queries"
                if np.isfinite(mean).all():
                    panel.plot(steps, mean, dash, color=colour, lw=1.2, label=label)
            if one.ceiling is not None:
                label = f"ceiling of the mean{', without noise' * noisy}"
                look = {"color": GREY, "lw": 0.9, "ls": (0, (1, 1)), "zorder": 0}
                panel.axhline(one.ceiling, label=label, **look)
            if one.stops:
                look = {"color": "#EEEEEE", "zorder": -1, "label": "training loss is zero"}
                panel.axvspan(max(one.stops), steps[-1], **look)
            panel.set(xlim=(0, steps[-1]), ylim=(0.0, 1.0), xlabel="steps")
            name = f"${one.name}$, " * bool(one.name)
            panel.set_title(f"{name}margin {one.margin:.4g}", **SMALL_TITLE)
        for row in axes:
            row[0].set_ylabel("attention, mean over queries")
        handles = axes[0, 0].get_legend_handles_labels()[0]
        legend_below(figure, handles, 3 if columns > 1 else 2)
    return axes


def figure_5(system: System, request: FigureRequest) -> Drawing:
    """Figure 5: test loss and error against the share of removed tokens, for each removal rule.

    Options: ``removed``, ``seeds``, ``samples``, ``eta``, ``steps``, ``noisy_share``,
    ``noisy_std``, ``workers``, ``store``.
    """
    return _removal(system, request, "5", {"": request.make_parameters(system, (), **tokens.LAW)})


def figure_8(system: System, request: FigureRequest) -> Drawing:
    """Figure 8: Figure 5 for several numbers M of patterns, with the same options."""
    law = request.make_parameters(system, ("M",), **(tokens.LAW | {"d": 20}))
    return _removal(system, request, "8", {f"M = {M}": replace(law, M=M) for M in PATTERNS})


def _removal(system: System, request: FigureRequest, name: str, laws: Mapping[str, Any]) -> Drawing:
    training = {"samples": tokens.SAMPLES, **tokens.NOISY}
    default = training | {
        "removed": tokens.ALL_REMOVED, "seeds": 10 if len(laws) == 1 else 4, "eta": tokens.ETA,
        "steps": tokens.STEPS, "workers": cores(), "store": "",
    }  # fmt: skip
    options = request.options(default, {"seeds": 20}, workers=0)
    many, length = options["seeds"], next(iter(laws.values())).L
    # Of several shares that remove the same number of whole tokens, the first is kept.
    asked = {rounded(share, length): share for share in sorted(set(options["removed"]))[::-1]}
    shares = sorted(asked.values())
    taken = [rounded(share, length) / length for share in shares]
    axes = {
        "full": "empirical", "removed": shares, "seed": list(request.seeds(many)),
        **{key: options[key] for key in ("eta", "steps", *training)},
    }  # fmt: skip
    words, data = [], {"removed": np.array(taken), "loss": [], "error": []}
    with folder(name, request, options) as where:
        for panel, law in laws.items():
            done = {
                label: stored_sweep(system, law, axes | {"sparsify": rule},
                                    where / f"{rule}-{law.M}.zarr", options["workers"])
                for rule, label in tokens.WORDS.items()
            }  # fmt: skip
            loss, error = (
                {label: values(one, kind, ("removed", "seed")) for label, one in done.items()}
                for kind in ("test_loss", "test_error")
            )
            data["loss"].append(loss)  # type: ignore[attr-defined]
            data["error"].append(error)  # type: ignore[attr-defined]
            means = {
                label: [listed(part[label].mean(axis=1), 2) for part in (loss, error)]
                for label in done
            }
            told = "; ".join(f"{label} {one}, error {two}" for label, (one, two) in means.items())
            words.append(f"{panel}: " * bool(panel) + told)
    numbers = {"samples": options["samples"], "eta": options["eta"]}
    noisy = rounded(options["noisy_share"], length) / length
    held = (
        f"{title(system, law, *NAMES, width=4.5, **numbers)}, at most {options['steps']:g} steps;\n"
        f"noise {options['noisy_std']:g} for a share {noisy:.3g} of the tokens; mean of "
        f"{counted(many, 'seed')}, bars: standard error of the mean"
    )
    sizes = stated(law, "L", "m", "alpha_star", "alpha_confusion", eta=options["eta"])
    caption = (
        f"Test loss against the share of tokens removed ({', '.join(f'{s:.3g}' for s in taken)}), "
        f"training and test samples alike (N={options['samples']}, {sizes}, "
        f"{counted(many, 'seed')}). {'. '.join(words)}."
    )
    return Drawing(_by_rule(data, list(laws), held), data, caption)


def _by_rule(data: Mapping[str, Any], titles: list[str], held: str) -> Any:
    many, shares = len(titles), data["removed"]
    grid: dict[str, Any] = {"nrows": 2, "ncols": many, "squeeze": False}
    wide = 1.5 + 2.7 * many + 1.6 * (many == 1)
    with page(wide, 5.2, held, sharex=True, sharey="row", **grid) as (figure, axes):
        for (row, k), panel in np.ndenumerate(axes):
            by_rule = data["error" if row else "loss"][k]
            for (label, part), (colour, marker, dash) in zip(by_rule.items(), RULES, strict=True):
                look = {"color": colour, "marker": marker, "ls": dash, "ms": 5, "lw": 1.6, **BARS}
                error_bars(panel, shares, part, label=label, **look)
            # The axis starts slightly below zero, so that markers at zero are not cut.
            panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])
        for panel, word in zip(axes[0], titles, strict=True):
            panel.set_title(f"${word}$" if word else "", **SMALL_TITLE)
        for panel in axes[1]:
            panel.set_xlabel("share of tokens removed")
        axes[0, 0].set_ylabel("test loss over the margin")
        axes[1, 0].set_ylabel("test error")
        legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    return axes
