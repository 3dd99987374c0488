"""Figures behind the verdicts: what N, q, and the spread of a random start decide.

- ``deviation``: distance of the realistic orbit means from the reduced run against N;
- ``phase``: share of associated rows and test error over (N, q);
- ``transverse``: curvatures across the symmetric manifold, and what deviations become;
- ``omega``: association over the spread of a random start and time, in the exact dynamics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.positional_attention import realistic
from dynamics.experiments.positional_attention.pictures.omega import against_spread
from dynamics.experiments.positional_attention.pictures.samples import (
    against_samples,
    association_phase,
)
from dynamics.experiments.positional_attention.pictures.transverse import (
    transverse as draw_transverse,
)
from dynamics.experiments.positional_attention.transverse import perturbed, spectrum

if TYPE_CHECKING:
    from dynamics.registry import System

COUNTS = (1000, 3162, 10_000, 31_623, 100_000)
CELLS = {
    "samples": (250, 1000, 4000, 16_000),
    "chances": (0.15, 0.25, 0.4, 0.6),
    "seeds": 1,
    "time": 200.0,
}
ALL_CELLS = {
    "samples": (250, 500, 1000, 2000, 4000, 8000, 16_000),
    "chances": (0.15, 0.25, 0.4, 0.6),
    "seeds": 3,
    "time": 400.0,
}
HORIZON = 1e5


def deviation(system: System, request: FigureRequest) -> Drawing:
    """Deviation against N. Options: ``samples`` (the N), ``seeds``."""
    options = request.settled({"samples": COUNTS, "seeds": 16}, {"seeds": 64})
    parameters = request.law(system, D=8, C=2, d=1, sigma=0.0)
    seeds = range(request.seed, request.seed + int(options["seeds"]))
    found = realistic.deviation(system, parameters, options["samples"], seeds)
    slopes = {name: found.slope(name) for name in found.distances}
    data = {"samples": list(found.samples), "exponents": slopes}
    data |= {name: found.rms(name) for name in found.distances}
    shown = ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items())
    caption = (
        f"Orbit means of gradient descent on N samples from the symmetric start, distance from the "
        f"reduced run after 200 steps (D={parameters.D}, C={parameters.C}, q={parameters.q:g}, "
        f"d={parameters.d}, sigma={parameters.sigma:g}). Exponents of N: {shown}."
    )
    return Drawing(against_samples(found), data, caption)


def phase(system: System, request: FigureRequest) -> Drawing:
    """Association over (N, q). Options: ``samples``, ``chances``, ``seeds``, ``time``."""
    options = request.settled(CELLS, ALL_CELLS)
    how = realistic.Run(time=float(options["time"]))
    seeds = range(request.seed, request.seed + int(options["seeds"]))
    law = request.law(system, ("q",), D=16, C=4)
    found = realistic.phase(system, law, options["samples"], options["chances"], seeds, how)
    data = {
        "samples": list(found.samples), "chances": list(found.chances),
        "association": found.association, "test_error": found.error, "linear_error": found.linear,
    }  # fmt: skip
    caption = (
        f"Full-batch gradient descent on N noisy samples from a random start (D={law.D}, "
        f"C={law.C}, d={law.d}, eta={how.eta:g}, time {how.time:g}, {len(seeds)} seed(s)). Left: "
        "share of rows whose C largest entries of A are their set. Right: test error in units of "
        "the error of sign(Z), the best model without association; small without association "
        "means that the model has memorised."
    )
    return Drawing(association_phase(found), data, caption)


def transverse(system: System, request: FigureRequest) -> Drawing:
    """Transverse stability along the reduced flow. Options: ``time``."""
    options = request.settled({"time": HORIZON}, {})
    parameters = request.law(system, D=8, C=2, q=0.5)
    found = spectrum(system, parameters, float(options["time"]))
    data = {
        "time": found.time, "eigenvalues": found.eigenvalues, "amplification": found.amplification,
        "peak": found.peak, "attracting_from": found.attracting_from,
    }  # fmt: skip
    caption = (
        f"Curvature of the population risk across the symmetric manifold along the reduced flow "
        f"(D={parameters.D}, C={parameters.C}, q={parameters.q:g}): negative is repelling. A "
        f"deviation grows up to {found.peak:.4g}-fold, against 1/omega = "
        f"{1 / max(parameters.omega, 1e-300):.4g}."
    )
    return Drawing(draw_transverse(found, parameters.omega), data, caption)


def spread(system: System, request: FigureRequest) -> Drawing:
    """Association over omega and time. Options: ``omegas``, ``seeds``."""
    parameters = request.law(system, ("omega",), D=8, C=2, q=0.5)
    few, many = np.geomspace(1e-3, 0.1, 7), np.geomspace(1e-3, 0.1, 13)
    options = request.settled({"omegas": few, "seeds": 2}, {"omegas": many, "seeds": 5})
    peak = spectrum(system, parameters).peak
    rows: list[Any] = []
    for omega in options["omegas"]:
        start = replace(parameters, omega=float(omega))
        runs = [perturbed(system, start, request.seed + k) for k in range(int(options["seeds"]))]
        kept = runs[0].time >= 1e-1
        rows.append(np.mean([run["patch_association"][kept] for run in runs], axis=0))
    time, shares = runs[0].time[kept], np.array(rows)
    data = {"omega": np.asarray(options["omegas"]), "time": time, "association": shares,
            "amplification": peak}  # fmt: skip
    caption = (
        f"Exact population flow from A_ij ~ N(0, omega^2) (D={parameters.D}, C={parameters.C}, "
        f"q={parameters.q:g}, mean of {options['seeds']} seeds): the share of rows that are "
        f"associated. The dashed line is 1/Phi_max = {1 / peak:.3g}."
    )
    axes = against_spread(np.asarray(options["omegas"]), time, shares, 1 / peak)
    return Drawing(axes, data, caption)
