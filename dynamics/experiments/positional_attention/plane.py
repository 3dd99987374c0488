"""Phase planes of the reduced problem: (gamma, rho) on alpha's slow manifold, (alpha, gamma).

alpha relaxes in a time of 0.01 to 1, gamma and rho move over 1e2 to 1e7. In (gamma, rho) alpha is
slaved and the plane is all there is; rho is not slaved to anything, so in (alpha, gamma) it is
taken from the run itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamics.analysis.phase_portrait import portrait, sentence, summary
from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.plotting.portrait import portraits
from dynamics.validation import refuse

if TYPE_CHECKING:
    from dynamics.registry import System

PLANES = {"gamma-rho": ("gamma", "rho"), "alpha-gamma": ("alpha", "gamma")}
BOTH = "both"
QUICK = {"plane": BOTH, "time": 1e5, "starts": 4, "grid": 0}
GRID, COARSE = 32, 8
"""Cells at the first look: where a gradient takes microseconds, and where it takes milliseconds."""
SHOWN = ("D", "C", "q", "p", "nu", "beta")


def plane(system: System, request: FigureRequest) -> Drawing:
    """Phase planes. Options: ``plane`` (one of them, or both), ``time``, ``starts``, ``grid``.

    ``grid`` is the number of cells along each side at the first look for nullclines; 0 takes 32, or
    8 where a gradient takes milliseconds.
    """
    options = request.settled(QUICK, {"grid": 48, "starts": 8})
    name = str(options["plane"])
    if name not in (*PLANES, BOTH):
        refuse("plane", name, "is unknown", ", ".join((*PLANES, BOTH)), BOTH)
    parameters = request.law(system, D=16, C=4, q=0.5)
    problem = system.ReducedPopulation(parameters)
    exact = problem.settings["expectation"] == "exact"
    grid = options["grid"] or (GRID if exact else COARSE)
    chosen = list(PLANES.values()) if name == BOTH else [PLANES[name]]
    found = [
        portrait(problem, options["time"], pair, starts=options["starts"], grid=grid)
        for pair in chosen
    ]
    data = {"-".join(one.plane): summary(one) for one in found}
    words = " ".join(sentence(one) for one in found)
    caption = (
        f"Phase planes of the reduced problem (D={parameters.D}, C={parameters.C}, "
        f"q={parameters.q:g}, p={parameters.p}, nu={parameters.nu:g}, beta={parameters.beta:g}), "
        f"runs of the whole problem to time {float(options['time']):g}. {words}"
    )
    return Drawing(portraits(found, SHOWN), data, caption)
