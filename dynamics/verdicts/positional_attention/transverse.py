r"""Section 4.2: whether a random start falls onto the three scalars or leaves them.

Two measurements of the exact population dynamics: the amplification :math:`\Phi_{max}` of small
deviations from the symmetric manifold (`dynamics.analysis.transverse_stability`), and the full
population flow from :math:`A_{ij} \sim N(0, \omega^2)`, at the omega of the parameters and at
larger ones. N is infinite here, so what is measured is the effect of the random start alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dynamics.analysis.stability import of_growth
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.analysis.transverse_stability import Transverse, split, transverse
from dynamics.papers.positional_attention.configurations import number_of_configurations
from dynamics.papers.positional_attention.manifold import Manifold
from dynamics.results.stability import Stability
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.validation import InvalidRequest
from dynamics.verdicts.claim import Case, Picture
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN, claim

LARGER = (1e-2, 5e-2)
"""Spreads at which the hypothesis is stretched."""
HORIZON, RECORDS = 1e5, 240
AFFORDABLE, FEW_RECORDS = 1e8, 48
"""Multisets times entries of a Hessian up to which every verdict has the growth of departures, and
states at which their least curvature is computed."""
SAFE = 1.0
"""omega * Phi_max up to which deviations stay below the scale on which A acts on the softmax."""


def spectrum(system: System, law: Any, horizon: float) -> Transverse:
    """The transverse spectrum along the reduced flow to a time; cached.

    Parameters
    ----------
    system : System
    law : Parameters
    horizon : float
    """
    make: Any = system.ReducedPopulation
    return _spectrum(make, law, horizon)


@lru_cache(maxsize=16)
def _spectrum(reduced: Any, law: Any, horizon: float) -> Transverse:
    times = [0.0, *np.geomspace(1e-3, horizon, RECORDS).tolist()]
    manifold = Manifold(law)
    return transverse(manifold, flow(reduced(law), horizon, rtol=1e-10, record=times))


def stability(system: System, law: Any, horizon: float) -> Stability:
    """Until when the symmetric states are stable; nothing of sizes with many multisets of types.

    Parameters
    ----------
    system : System
    law : Parameters
    horizon : float
    """
    size = f"at D={law.D}, C={law.C}"
    if number_of_configurations(law.L, law.C) * law.D**4 > AFFORDABLE:
        return Stability(horizon, where=f"{size} there are too many multisets of types")
    reduced: Any = system.ReducedPopulation
    found = of_growth(_growth(reduced, law, horizon), 1 + law.D * (law.D - 1))
    return replace(found, where=f"transverse growth {size}")


@lru_cache(maxsize=8)
def _growth(reduced: Any, law: Any, horizon: float) -> TransverseGrowth:
    """The growth of departures by the least curvature across the symmetric states."""
    manifold = Manifold(law)
    times = [0.0, *np.geomspace(1e-3, horizon, FEW_RECORDS)]
    run, across = flow(reduced(law), horizon, record=times), split(manifold.symmetry)[1]
    hessians = (across.T @ manifold.hessian(state) @ across for state in run.states)
    return TransverseGrowth.of(run.time, np.array([np.linalg.eigvalsh(h)[0] for h in hessians]))


def perturbed(system: System, law: Any, seed: int, horizon: float) -> Trajectory:
    """The full population flow from an attention matrix with a spread of omega; cached.

    Parameters
    ----------
    system : System
    law : Parameters
    seed : int
    horizon : float
    """
    make: Any = system.FullPopulation
    return _perturbed(make, law, seed, horizon)


@lru_cache(maxsize=16)
def _perturbed(full: Any, law: Any, seed: int, horizon: float) -> Trajectory:
    problem = full(law)
    start, noise = problem.initial_state, np.random.default_rng(seed).normal(size=(law.D,) * 2)
    matrix = problem.layout.part(start, "A")  # a view
    matrix += law.omega * noise * ~np.eye(law.D, dtype=bool)
    return flow(problem, horizon, initial=start, record=60)


@claim(
    "Section 4.2", "omega times the largest amplification of a deviation from the three scalars",
    "<", SAFE, laws=({"D": 8, "C": 2, "q": 0.5},), thorough=({"D": 9, "C": 3, "q": 0.6},),
    require=None, shown=(*SHOWN, "omega"), seeds=(1, 3), varies=("seed",),
    words="deviations grow up to {peak:.0f}-fold ({negative} of {directions} directions repel at "
    "T0), so omega becomes {value:.2g}; rows associated in the end: {ends}",
    picture=Picture("time", "amplification"),
)  # fmt: skip
def section_4_2(case: Case) -> dict[str, Any]:
    """Amplification of deviations, and the full flow from random starts.

    It fails where a start at this omega loses association that the symmetric one has.
    """
    law, system, ends = case.parameters, case.system, {}
    try:
        result = spectrum(system, law, HORIZON)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal)) from refusal
    try:
        for omega in (law.omega, *(each for each in LARGER if each > law.omega)):
            start = replace(law, omega=omega)
            run = perturbed(system, start, case.seed, HORIZON)
            ends[omega] = float(run["patch_association"][-1])
    except InvalidRequest as refusal:
        ends_text = str(refusal)
    else:
        ends_text = ", ".join(f"{share:.2f} at omega={omega:g}" for omega, share in ends.items())
    event, value = result.run.events["T0"], law.omega * result.peak
    plateau = result.at(event.time if event else HORIZON)
    share, symmetric = ends.get(law.omega), float(result.run["patch_association"][-1])
    lost = share is not None and share < symmetric
    positive = result.time > 0
    return {
        "value": value, "peak": result.peak, "negative": int(result.negative[plateau]),
        "directions": result.eigenvalues.shape[1], "ends": ends_text, "shares": list(ends.values()),
        "worst_multiplicity": result.multiplets(plateau)[0].multiplicity,
        "holds": False if lost else True if value < SAFE and share == 1.0 else None,
        "missing": "size",
        "curves": {case.label: (result.time[positive], result.amplification[positive])},
    }  # fmt: skip
