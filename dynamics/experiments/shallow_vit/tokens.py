"""Figures 5 and 8: test loss against the share of tokens that a sparsifier removes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.shallow_vit.cached_sweeps import folder, plain, swept, values
from dynamics.experiments.shallow_vit.pictures.sparsified import Column, sparsified
from dynamics.experiments.shallow_vit.runs import PATTERNS
from dynamics.experiments.shallow_vit.sparsification import (
    ALL_REMOVED,
    ETA,
    LAW,
    STEPS,
    TRAINING,
    WORDS,
)
from dynamics.sweep.worker_pool import cores
from dynamics.validation import integer

if TYPE_CHECKING:
    from dynamics.registry import System


def figure_5(system: System, request: FigureRequest) -> Drawing:
    """Three sparsifiers.

    Options: ``removed``, ``seeds``, ``samples``, ``eta``, ``steps``, ``noisy_share``,
    ``noisy_std``, ``workers``, ``store``.
    """
    return _figure(system, request, "5", [("", request.law(system, **LAW))], 10)


def figure_8(system: System, request: FigureRequest) -> Drawing:
    """The same for several M. Options: those of Figure 5."""
    law = request.law(system, ("M",), **(LAW | {"d": 20}))
    return _figure(system, request, "8", [(f"M = {M}", replace(law, M=M)) for M in PATTERNS], 4)


def _figure(
    system: System, request: FigureRequest, name: str, laws: list[tuple[str, Any]], seeds: int
) -> Drawing:
    usual = TRAINING | {
        "removed": ALL_REMOVED, "seeds": seeds, "eta": ETA, "steps": STEPS, "workers": cores(),
        "store": "",
    }  # fmt: skip
    options = request.settled(usual, {"seeds": 20})
    many = integer("seeds", options["seeds"], at_least=1)
    shares, told, columns = np.array(sorted(set(options["removed"])), dtype=float), [], []
    with folder(name, request, options) as where:
        for word, law in laws:
            given = plain(law) | {
                "full": "empirical", "removed": shares.tolist(),
                "seed": list(range(request.seed, request.seed + many)),
                **{key: options[key] for key in ("eta", "steps", *TRAINING)},
            }  # fmt: skip
            loss: dict[str, Any] = {}
            error: dict[str, Any] = {}
            for rule, label in WORDS.items():
                path = where / f"{rule}-{law.M}.zarr"
                found = swept(system, given | {"sparsify": rule}, path, int(options["workers"]))
                for part, quantity in ((loss, "test_loss"), (error, "test_error")):
                    part[label] = values(found, quantity, ("removed", "seed"))
            columns.append(Column(f"${word}$" if word else "", loss, error))
            means = {label: part.mean(axis=1) for label, part in loss.items()}
            ends = {label: part.mean(axis=1) for label, part in error.items()}
            told.append(
                f"{word}: " * bool(word)
                + "; ".join(
                    f"{label} {_row(part)}, error {_row(ends[label])}"
                    for label, part in means.items()
                )
            )
    law = laws[0][1]
    held = (
        rf"$N = {options['samples']}$, $L = {law.L}$, $d = {law.d}$, $m = {law.m}$, "
        rf"$\alpha_* = {law.alpha_star:g}$, $\alpha_\# = {law.alpha_confusion:g}$, "
        rf"$\sigma = {law.sigma:g}$, $\delta = {law.delta:g}$, {law.data}, $\eta = "
        rf"{options['eta']:g}$, at most {options['steps']:g} steps;" + "\n"
        f"noise {law.noise:g}, {options['noisy_std']:g} for a share {options['noisy_share']:g} of "
        f"the tokens; mean of {many} seeds, bars: standard error of the mean"
    )
    caption = (
        f"Test loss against the share of tokens removed ({', '.join(f'{s:g}' for s in shares)}), "
        f"training and test samples alike (N={options['samples']}, L={law.L}, m={law.m}, alpha_*="
        f"{law.alpha_star:g}, alpha_#={law.alpha_confusion:g}, eta={options['eta']:g}, {many} "
        f"seeds). {'. '.join(told)}."
    )
    data = {
        "removed": shares, "loss": [column.loss for column in columns],
        "error": [column.error for column in columns],
    }  # fmt: skip
    return Drawing(sparsified(shares, columns, held), data, caption)


def _row(values: Any) -> str:
    return ", ".join(f"{value:.2g}" for value in values)
