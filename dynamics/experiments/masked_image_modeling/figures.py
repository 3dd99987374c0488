r"""Figures of masked image modelling.

- ``phases``: correlations, their rates and the attention of a local patch, phases shaded;
- ``gap``: two-phase against one-phase learning over (kappa_c, kappa_s);
- ``diversity``: attention diversity and total variation of the maps along training;
- ``scaling``: times of the events in units of :math:`K P / C_s` against P.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.figure import Drawing, Figure, FigureRequest
from dynamics.experiments.masked_image_modeling import maps
from dynamics.experiments.masked_image_modeling.pictures.correlations import Group, correlations
from dynamics.experiments.masked_image_modeling.pictures.gap import gap_plane
from dynamics.experiments.masked_image_modeling.pictures.spread import spread
from dynamics.experiments.masked_image_modeling.pictures.times import times
from dynamics.experiments.masked_image_modeling.plane import Plane, plane
from dynamics.experiments.masked_image_modeling.runs import (
    EXPONENTS,
    MORE_SIZES,
    POSITIVE,
    along,
    compared,
    trained,
)
from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.reduced.attention import grid_of
from dynamics.training.gradient_descent import descend
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.systems.masked_image_modeling.information_gap import leading_motion, rho0

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory

LARGE = 1e12
"""A ratio of rates at which its limit is reached."""
LEAST_MAPS = 3
"""Of the start, after one step, and of the end."""
LEAST_PLANE = 64
"""Patches below which the plane has hardly any sizes."""
MOST_SIZES = 200
"""Sizes on an axis of the plane."""
LEAST_SIZE = 16
"""Patches below which areas hardly have sizes of their own."""
GRID = {"local": 9, "core": 20}
FINE_GRID = {"local": 21, "core": 56}
EVENTS = {
    "E1": r"$E_1$, end of stage 1", "E2": r"$E_2$, switch", "E4": r"$E_4$, end of rapid growth",
}  # fmt: skip


def phases(system: System, request: FigureRequest) -> Drawing:
    """A run of one cluster. Options: ``eta``, ``steps``."""
    options = request.settled({"eta": 1.0, "steps": 20_000}, {})
    law = _one_cluster(request.law(system, **_usual(request, POSITIVE)))
    problem = system.ReducedPopulation(law)
    run = descend(problem, options["eta"], options["steps"])
    groups = (
        Group("correlation", _present(run, {
            "local_Phi_target": r"$\Phi_m$, own area", "local_Phi_global": r"$\Phi_0$, global area",
            "local_Phi_other": r"$\Phi_i$, other area", "local_Ups_own": r"$\Upsilon$, own area",
        })),
        Group("size of its rate", [(label, np.abs(rate)) for label, rate in _present(run, {
            "alpha_m": r"$\alpha_m$", "alpha_0": r"$|\alpha_0|$",
            "d_local_Phi_other": r"$|\alpha_i|$, other", "d_local_Ups_own": r"$|\beta|$, own area",
        })], True),
        Group("attention", _present(run, {
            "local_A_target": r"own area $A_m$", "local_A_global": r"global area $A_0$",
            "local_A_other": "other areas", "local_masked": "masked patches",
        })),
    )  # fmt: skip
    held = (
        f"a local patch, $P = {law.P}$, $C_{{\\mathrm{{global}}}} = {law.C_global}$, "
        f"$C_{{\\mathrm{{local}}}} = {law.C_local}$, {law.masked} masked, "
        f"$\\Delta = {law.Delta:.3f}$, $|\\alpha_0| / \\alpha_m = {problem.rho0:.4g}$ at $Q = 0$"
    )
    seen = {name: event and event.time for name, event in run.events.items()}
    data = {"time": run.time, "events": seen}
    data |= {label: values for group in groups for label, values in group.curves}
    told = ", ".join(f"{name} {'none' if at is None else f'{at:g}'}" for name, at in seen.items())
    caption = (
        f"Correlations of a masked local patch with features and positions, their rates, and its "
        f"attention to unmasked patches (P={law.P}, C_global={law.C_global}, "
        f"C_local={law.C_local}, {law.masked} masked, eta={options['eta']:g}). Events: {told}. "
        f"{_values(problem, run)}"
    )
    return Drawing(correlations(run, groups, held), data, caption)


def _present(run: Trajectory, table: Mapping[str, str]) -> list[tuple[str, FloatArray]]:
    """Label and values of the series that a run has: one local area has no other one."""
    known = (*run.layout.names, *run.observables)
    return [(label, run[name]) for name, label in table.items() if name in known]


def _values(problem: Any, run: Trajectory) -> str:
    """Correlations at the events and at the end, and the loss above its floor, in words."""

    def shown(values: Mapping[str, float], names: Mapping[str, str]) -> str:
        return ", ".join(
            f"{label} {values[name]:.4g}" for name, label in names.items() if name in values
        )

    parts = {
        "local_Phi_target": "Phi_m", "local_Phi_global": "Phi_0", "local_Phi_other": "Phi_other",
        "local_Ups_own": "Ups_own",
    }  # fmt: skip
    places = [("at the end", run.final_state)]
    for name in ("E4", "E2"):
        event = run.events[name]
        if event is not None and event.time > 0:
            places.insert(0, (f"at {name}", event.state))
    told = [
        f"{place} {shown(dict(zip(run.layout.names, state, strict=True)), parts)}"
        for place, state in places
    ]
    last = problem.observables(run.final_state)
    told.append(shown(last, {"A_m": "own attention", "gap": "loss above its floor"}))
    return f"rho(0) = {problem.rho0:.5g}; " + "; ".join(told) + "."


def gap(system: System, request: FigureRequest) -> Drawing:
    """The phase diagram. Options: ``local``, ``core``, the sizes on each axis."""
    options = request.settled(GRID, FINE_GRID)
    local, core = (integer(n, options[n], at_least=2, at_most=MOST_SIZES) for n in GRID)
    patches = integer("P", request.given.get("P", POSITIVE["P"]), at_least=LEAST_PLANE)
    usual: dict[str, Any] = {"P": patches, "C_global": patches // 2, "C_local": 1}
    law = request.law(system, axes=("family", "C_global", "C_local"), **usual)
    _one_family(law)
    found = plane(system, law, local, core)
    held = (
        f"one cluster, $P = {law.P}$, {law.masked} masked; two phases where the global feature "
        "moves faster at first"
    )
    data = {
        "rows": [(k, c.tolist(), rho.tolist()) for k, c, rho in found.rows],
        "boundary": found.boundary, "trained": found.trained,
    }  # fmt: skip
    caption = (
        f"Ratio of the rates of Phi_0 and Phi_m at Q = 0 over the exponents of both sizes at "
        f"P={law.P}. {_boundary(found)}"
    )
    return Drawing(gap_plane(found.rows, found.boundary, found.trained, held), data, caption)


def _boundary(found: Plane) -> str:
    """Where the rates are equal, and what training on either side of it shows, in words."""
    if not len(found.boundary):
        ratios = np.concatenate([row[2] for row in found.rows])
        side = "below 1: one phase" if ratios.max() < 1 else "above 1: two phases"
        if ratios.min() < 1 < ratios.max():
            side = "on one side of 1 along every row, not the same of all"
        return (
            f"It goes from {ratios.min():.3g} to {ratios.max():.3g}, everywhere {side}, and no row "
            "passes equal rates."
        )
    off = 2 * found.boundary[:, 0] - (1 + found.boundary[:, 1])
    agree = int((found.trained[:, 2] == found.trained[:, 3]).sum())
    return (
        f"Phase I exists to the right of the measured line, which is at Delta = {off.min():.2g} to "
        f"{off.max():.2g}. Training on either side of it, {agree} of {len(found.trained)} runs "
        "have as many phases as the start says."
    )


def diversity(system: System, request: FigureRequest) -> Drawing:
    """Both measures along a run. Options: ``eta``, ``maps``, ``keys``."""
    options = request.settled({"eta": maps.ETA, "maps": 48, "keys": (10, 8)}, {"maps": 120})
    count = integer("maps", options["maps"], at_least=LEAST_MAPS)
    keys = [integer("keys", k, at_least=1) for k in options["keys"]]
    eta = real("eta", options["eta"], above=0.0)
    law = request.law(system, **_usual(request, maps.USUAL))
    problem, run = maps.trained_maps(system, law, eta)
    wanted = [min(k, law.P) for k in keys]
    found = {k: maps.measured(problem.rows, run, k, count) for k in wanted}
    first = found[wanted[0]]
    events = {
        label: event.time
        for label, name in (("$E_2$", "E2"), ("$E_4$", "E4"))
        if (event := run.events[name]) is not None and event.time > 0
    }
    measures = {k: values["diversity"] for k, values in found.items()}
    high, wide = grid_of(law.P)
    image = "cluster image" if law.K == 1 else f"image of the first of {law.K} clusters"
    held = (
        f"{high} × {wide} patches, {image} with nothing masked, $P = {law.P}$, "
        f"$C_{{\\mathrm{{global}}}} = {law.C_global}$, $C_{{\\mathrm{{local}}}} = {law.C_local}$"
    )
    data = {"time": first["time"], "diversity": measures, "variation": first["total_variation"]}
    values = measures[wanted[0]]
    caption = (
        f"Attention diversity (top {wanted[0]}) is {values[0]:.4g} at the start, {values[1]:.5g} "
        f"after one step and {values[-1]:.5g} at time {first['time'][-1]:g}: it sees the order of "
        f"the weights only. Total variation grows from {first['total_variation'][1]:.2g} to "
        f"{first['total_variation'][-1]:.3g}."
    )
    axes = spread(first["time"], (measures, first["total_variation"]), events, held)
    return Drawing(axes, data, caption)


def scaling(system: System, request: FigureRequest) -> Drawing:
    """Times of events along P. Options: ``sizes``, ``kappa_c``, ``kappa_s``."""
    usual: dict[str, Any] = {"kappa_c": EXPONENTS[0], "kappa_s": EXPONENTS[1]}
    options = request.settled(usual | {"sizes": MORE_SIZES[:6]}, {"sizes": MORE_SIZES})
    for name in request.given or ["parameters"] * (request.parameters is not None):
        raise InvalidRequest(
            f"{name} cannot be set: sizes and exponents give every law of this figure"
        )
    exponents = tuple(real(n, options[n], above=0.0, at_most=1.0) for n in usual)
    patches = sorted({integer("sizes", P, at_least=LEAST_SIZE) for P in options["sizes"]})
    cases = [trained(system, along(system, P, exponents)) for P in patches]
    sizes = np.array([case.parameters.P for case in cases], dtype=np.float64)
    found = {
        label: np.array([case.time(name) / case.unit for case in cases])
        for name, label in EVENTS.items()
    }
    limit = _switch(cases[-1].parameters.gamma) if any(c.two_phases for c in cases) else None
    lines = {} if limit is None else {f"switch at a large gap, {limit:.3g}": limit}
    held = (
        rf"one cluster, half masked, $\kappa_c = {exponents[0]:g}$, $\kappa_s = {exponents[1]:g}$ "
        rf"($\Delta = {(1 - exponents[1]) - 2 * (1 - exponents[0]):.3g}$), $z = 1$"
    )
    told = "; ".join(_along(name, v) for name, v in zip(EVENTS, found.values(), strict=True))
    caption = (
        f"Times of the events in units of K P / C_s at P={', '.join(f'{P:g}' for P in sizes)}: "
        f"{told}."
    )
    powers = compared(
        sizes.tolist(), {n: v.tolist() for n, v in zip(EVENTS, found.values(), strict=True)}
    )
    caption += f" {powers[0].upper()}{powers[1:]}." if powers else ""
    data = {"P": sizes, **found, "limit": limit}
    return Drawing(times(sizes, found, lines, held), data, caption)


def _switch(gamma: float) -> float:
    """Time of the switch in units of K P / C_s where rho starts far above 1."""
    # alpha_m starts at gamma (1 - gamma) C_s / (K P), as C_s grows.
    return float(leading_motion().switch.subs(rho0, LARGE)) / (gamma * (1 - gamma))


def _along(name: str, values: FloatArray) -> str:
    """Times of an event along P, in words."""
    if np.isnan(values).all():
        return f"{name} not reached"
    if not values.any():
        return f"{name} at the start, there is no phase before it"
    shown = ["not reached" if np.isnan(value) else f"{value:.3g}" for value in values]
    return f"{name} {', '.join(shown)}"


def _usual(request: FigureRequest, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Usual sizes of one cluster; another family that the user names has its own."""
    return dict(sizes) if request.given.get("family", "one_cluster") == "one_cluster" else {}


def _one_family(law: Any) -> None:
    if law.family != "one_cluster":
        refuse(
            "family", law.family, "is not what this figure is about", "one_cluster", "one_cluster"
        )


def _one_cluster(law: Any) -> Any:
    """The law, if it is of one cluster whose local areas have mates and are not like the global."""
    _one_family(law)
    problem = ""
    if law.C_local < 2:
        problem = "makes no local patch with a mate"
    elif law.C_local == law.C_global:
        problem = f"makes local areas like the global one, C_global={law.C_global}"
    if problem:
        left = law.P - law.C_global
        sizes = [c for c in range(2, left + 1) if left % c == 0 and c != law.C_global]
        allowed = ", ".join(map(str, sizes)) or "2 or more, with a smaller C_global"
        near = min(sizes, key=lambda c: (abs(c - law.C_local), c), default="a smaller C_global")
        refuse("C_local", law.C_local, problem, allowed, near)
    return law


FIGURES: Mapping[str, Figure] = {
    "phases": phases,
    "gap": gap,
    "diversity": diversity,
    "scaling": scaling,
}
