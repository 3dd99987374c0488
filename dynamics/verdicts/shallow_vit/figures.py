"""Figures 2, 4, 5, 7 and 8: iterations over alpha_*, attention along training, sparsification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from dynamics.plotting.labels import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from dynamics.process_settings import cores
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.shallow_vit import tokens
from dynamics.verdicts.shallow_vit.attention import KINDS, PATTERNS, limit
from dynamics.verdicts.shallow_vit.iterations import ETA, FAMILIES, laws_of, line_words
from dynamics.verdicts.shallow_vit.runs import FEWEST, SAMPLES, alphas, gaps, step_of_rest
from dynamics.verdicts.shallow_vit.stores import folder, stored_sweep, values
from dynamics.verdicts.wording import counted, listed
from theory.papers.shallow_vit.data_law import rounded

ENDS = {"one": 110, "root": 210}
"""Steps that show each margin to its end."""
RECORDS = 5
LOOKS = ((VERMILION, "o"), (BLUE, "s"), (GREEN, "^"), (PURPLE, "D"))
DASHED = ((GREEN, "--"), (PURPLE, "-."), (ORANGE, ":"))
RULES = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))
NAMES = (
    "L",
    "d",
    "m",
    "alpha_star",
    "alpha_confusion",
    "sigma",
    "delta",
    "noise",
    "data",
    "output",
)
MEANS = ("relevant", *(f"relevant_by_{kind}" for kind in KINDS))
SMALL_TITLE: dict[str, Any] = {"fontsize": 9, "loc": "left"}


def figure_2(system: System, request: FigureRequest) -> Drawing:
    """Steps to zero training loss over alpha_*.

    Options: ``families`` (``rest``, ``constant``, ``proportion``, ``none``), ``eta``, ``steps``,
    ``seeds``, ``workers``, ``store``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    default = {"families": tuple(FAMILIES), "eta": ETA, "steps": 6000, "seeds": 3,
               "workers": cores(), "store": ""}  # fmt: skip
    options = request.options(default, {"seeds": 20}, workers=0)
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), L=100)
    eta, many, data, words = options["eta"], options["seeds"], {}, []
    with folder("2", request, options) as where:
        for name in options["families"]:
            if name not in FAMILIES:
                refuse("families", name, "is unknown", ", ".join(FAMILIES), "rest")
            laws = laws_of(law, name)
            if len(laws) < FEWEST:
                words.append(f"too few points with L={law.L}: {name}")
                continue
            axes = {
                "alpha_star": alphas(laws).tolist(), "alpha_confusion": FAMILIES[name].confusion,
                "eta": eta, "steps": options["steps"], "seed": list(request.seeds(many)),
            }  # fmt: skip
            done = stored_sweep(system, law, axes, where / f"{name}.zarr", options["workers"])
            steps = values(done, "time_t_zero", ("alpha_star", "seed")) / eta
            data[name] = {"alpha_star": alphas(laws), "gap": gaps(laws), "steps": steps}
            words.append(line_words(name, laws, steps.mean(axis=1))[0])
    if not data:
        refuse("L", law.L, "leaves fewer than three points in every family", "larger", 100)
    names = ("L", "M", "m", "sigma", "delta", "margin", "output")
    held = f"the law itself ({law.data}), {title(system, law, *names, eta=eta)}, no noise; " + (
        f"mean of {many} starts, bars from least to greatest" if many > 1 else "one start"
    )
    caption = (
        f"Steps to zero training loss against 1/alpha_* and 1/(alpha_* - alpha_#) "
        f"({stated(law, 'L', 'm', eta=eta)}, {many} start(s)). {'; '.join(words)}."
    )
    return Drawing(_iterations(data, held), data, caption)


def _iterations(data: Mapping[str, Mapping[str, Any]], held: str) -> Any:
    """Steps against 1/alpha_* and 1/(alpha_* - alpha_#), with one line through the latter."""
    with page(8.4, 4.0, held, ncols=2, sharey=True) as (figure, axes):
        for (name, family), (colour, marker) in zip(data.items(), LOOKS, strict=False):
            steps, mean = family["steps"], family["steps"].mean(axis=1)
            bars = np.stack([mean - steps.min(axis=1), steps.max(axis=1) - mean])
            for panel, x in zip(axes, (1 / family["alpha_star"], 1 / family["gap"]), strict=True):
                panel.errorbar(
                    x, mean, yerr=bars, color=colour, marker=marker, ls="", ms=5.5, mfc="white",
                    capsize=2, elinewidth=1.0, label=FAMILIES[name].label,
                )  # fmt: skip
        # In proportion to 1/(alpha_* - alpha_#), through all points by their logarithms.
        x = np.concatenate([1 / family["gap"] for family in data.values()])
        y = np.concatenate([family["steps"].mean(axis=1) for family in data.values()])
        factor, ends = float(np.exp(np.nanmean(np.log(y / x)))), np.array([x.min(), x.max()])
        label = rf"${factor:.3g} / (\alpha_* - \alpha_\#)$"
        axes[1].plot(ends, factor * ends, "--", color=GREY, lw=1.1, zorder=0, label=label)
        axes[0].set(xlabel=r"$1/\alpha_*$", ylabel="steps to zero training loss")
        axes[1].set_xlabel(r"$1/(\alpha_* - \alpha_\#)$")
        for panel, above in zip(
            axes, ("the paper's variable", "what orders the data"), strict=True
        ):
            panel.set_title(above, **SMALL_TITLE)
            panel.set(xscale="log", yscale="log")
            logarithmic(panel.xaxis, panel.get_xlim()[1] / panel.get_xlim()[0])
        handles, labels = axes[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return axes


def figure_4(system: System, request: FigureRequest) -> Drawing:
    """Attention along training. Options: ``samples``, ``eta``, ``steps``, ``seeds``, ``margins``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    return _attention(system, request, {"": request.make_parameters(system)}, 3)


def figure_7(system: System, request: FigureRequest) -> Drawing:
    """Figure 4 for several M, with its options.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = request.make_parameters(system, ("M",), d=20)
    return _attention(system, request, {f"M = {M}": replace(law, M=M) for M in PATTERNS}, 1)


def _attention(
    system: System, request: FigureRequest, laws: Mapping[str, Any], seeds: int
) -> Drawing:
    default = {"samples": SAMPLES, "eta": 0.1, "steps": 0, "seeds": seeds, "margins": tuple(ENDS)}
    options = request.options(default, {"seeds": 10})
    eta, many, law = options["eta"], options["seeds"], next(iter(laws.values()))
    words, data, panels, tops = [], {}, [], set()
    for margin in options["margins"]:
        if margin not in ENDS:
            refuse("margins", margin, "is unknown", ", ".join(ENDS), "one")
        for name, one in laws.items():
            each = one if margin == "one" else replace(one, margin=sqrt(one.m) * one.margin)
            runs, top, stops = [], None, []
            for seed in request.seeds(many):
                problem = system.FullEmpirical(each, options["samples"], seed, test_samples=1)
                steps = options["steps"] or ENDS[margin]
                runs.append(descend(problem, eta, steps, record=RECORDS))
                ceiling, stop = limit(each, problem.reader), step_of_rest(problem, runs[-1])
                top = top if ceiling is None else max(ceiling, top or 0.0)
                stops += [] if stop is None else [stop]
            mean = {key: np.mean([run[key] for run in runs], axis=0)
                    for key in MEANS}  # fmt: skip
            above = ", ".join(filter(None, [name and f"${name}$", f"margin {each.margin:.4g}"]))
            panels.append((above, runs, mean, top, stops))
            key = ", ".join(filter(None, [name, f"margin {each.margin:.4g}"]))
            data[key] = {"steps": runs[0].steps, "relevant": [run["relevant"] for run in runs]}
            end = "linear loss"
            if law.loss == "hinge":
                end = f"zero training loss at step {', '.join(map(str, stops)) or 'none'}"
            kinds = ", ".join(f"{mean[f'relevant_by_{kind}'][-1]:.3f}" for kind in KINDS)
            words.append(
                f"{key}: from {mean['relevant'][0]:.3f} to {mean['relevant'][-1]:.3f} (queries "
                f"relevant, confusion, other: {kinds}), {end}"
            )
            tops |= set() if top is None else {f"{top:.3f}"}
    of_seeds = f"mean of {many} seeds, bands from least to greatest" if many > 1 else "one seed"
    shown = title(system, law, *NAMES, samples=options["samples"], eta=eta)
    caption = (
        f"Attention to label-relevant tokens, mean over all queries of the training samples, on "
        f"{'noisy tokens' if law.noise else 'tokens without noise'} (N={options['samples']}, "
        f"{stated(law, 'L', 'm', eta=eta)}, {counted(many, 'seed')}). {'; '.join(words)}."
    )
    if tops:
        it = "Without noise it" if law.noise else "It"
        caption += f" {it} cannot pass {' or '.join(sorted(tops))}."
    columns = len(laws) if len(laws) > 1 else len(panels)
    axes = _panels(panels, columns, f"{shown},\ngradient descent; {of_seeds}", bool(law.noise))
    return Drawing(axes, data, caption)


def _panels(panels: list[Any], columns: int, held: str, noisy: bool) -> Any:
    """Attention of all queries to relevant tokens (asterisks) and to the others (squares)."""
    rows = len(panels) // columns
    shape: dict[str, Any] = {"nrows": rows, "ncols": columns, "squeeze": False, "sharey": True}
    with page(1.2 + 2.9 * columns, 1.2 + 2.5 * rows, held, **shape) as (figure, axes):
        for panel, (above, runs, mean, top, stops) in zip(axes.flat, panels, strict=True):
            steps, every = runs[0].steps, np.stack([run["relevant"] for run in runs])
            for part, label, colour, marker in (
                (every, "to relevant tokens, all queries", VERMILION, "*"),
                (1 - every, "to other tokens, all queries", BLUE, "s"),
            ):
                panel.plot(steps, part.mean(axis=0), color=colour, marker=marker, ms=5.5,
                           mec="white", mew=0.4, markevery=max(1, len(steps) // 14),
                           label=label)  # fmt: skip
                panel.fill_between(steps, part.min(axis=0), part.max(axis=0), color=colour,
                                   alpha=0.2, lw=0)  # fmt: skip
            for kind, (colour, dash) in zip(KINDS, DASHED, strict=True):
                if np.isfinite(mean[f"relevant_by_{kind}"]).all():
                    label = f"to relevant, {kind} queries"
                    panel.plot(steps, mean[f"relevant_by_{kind}"], dash, color=colour, lw=1.2,
                               label=label)  # fmt: skip
            if top is not None:
                label = f"ceiling of the mean{', without noise' * noisy}"
                panel.axhline(top, label=label, color=GREY, lw=0.9, ls=(0, (1, 1)), zorder=0)
            if stops:
                panel.axvspan(max(stops), steps[-1], color="#EEEEEE", zorder=-1,
                              label="training loss is zero")  # fmt: skip
            panel.set(xlim=(0, steps[-1]), ylim=(0.0, 1.0), xlabel="steps")
            panel.set_title(above, **SMALL_TITLE)
        for row in axes:
            row[0].set_ylabel("attention, mean over queries")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        ncols = 3 if columns > 1 else 2
        figure.legend(handles, labels, loc="outside lower center", ncols=ncols, fontsize=8)
    return axes


def figure_5(system: System, request: FigureRequest) -> Drawing:
    """Test loss and error against the share of tokens removed, by three rules.

    Options: ``removed``, ``seeds``, ``samples``, ``eta``, ``steps``, ``noisy_share``,
    ``noisy_std``, ``workers``, ``store``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    return _removal(system, request, "5", {"": request.make_parameters(system, (), **tokens.LAW)})


def figure_8(system: System, request: FigureRequest) -> Drawing:
    """Figure 5 for several M, with its options.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
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
    # Of shares that are the same whole tokens, the first.
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
            found: dict[str, dict[str, Any]] = {"loss": {}, "error": {}}
            for rule, label in tokens.WORDS.items():
                rules, path = axes | {"sparsify": rule}, where / f"{rule}-{law.M}.zarr"
                done = stored_sweep(system, law, rules, path, options["workers"])
                for kind, part in found.items():
                    part[label] = values(done, f"test_{kind}", ("removed", "seed"))
            means = "; ".join(
                f"{label} {listed(found['loss'][label].mean(axis=1), 2)}, error "
                f"{listed(found['error'][label].mean(axis=1), 2)}"
                for label in tokens.WORDS.values()
            )
            words.append(f"{panel}: " * bool(panel) + means)
            for kind, part in found.items():
                data[kind].append(part)  # type: ignore[attr-defined]
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
    """Mean over the seeds, with its standard error; test loss above, test error below."""
    many, shares = len(titles), data["removed"]
    grid: dict[str, Any] = {"nrows": 2, "ncols": many, "squeeze": False}
    wide = 1.5 + 2.7 * many + 1.6 * (many == 1)
    with page(wide, 5.2, held, sharex=True, sharey="row", **grid) as (figure, axes):
        for (row, k), panel in np.ndenumerate(axes):
            by_rule = data["error" if row else "loss"][k]
            for (label, part), (colour, marker, dash) in zip(by_rule.items(), RULES, strict=True):
                seeds = part.shape[1]
                bars = part.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else None
                panel.errorbar(
                    shares, part.mean(axis=1), yerr=bars, color=colour, marker=marker, ls=dash,
                    ms=5, mfc="white", capsize=2, elinewidth=1.0, label=label,
                )  # fmt: skip
            # A little below zero, so that marks on the axis are whole.
            panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])
        for panel, word in zip(axes[0], titles, strict=True):
            panel.set_title(f"${word}$" if word else "", **SMALL_TITLE)
        for panel in axes[1]:
            panel.set_xlabel("share of tokens removed")
        axes[0, 0].set_ylabel("test loss over the margin")
        axes[1, 0].set_ylabel("test error")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return axes
