"""Numbers of the three papers that a rewrite must keep, computed through the public API.

`ENTRIES` is name -> what computes it; ``golden.json`` holds what every case is given
(`golden_cases`) and what was found of every entry; `tests/test_golden.py` finds it again.

``python tests/support/golden.py`` writes what is found by the code as it is; what cases are given
stays. Words after it are beginnings of names, and then only those entries are found.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from golden_cases import CASES, MIM, PA, VIT, Case, instead_of_draws

import dynamics

FILE = Path(__file__).with_name("golden.json")
EXACT, OF_DESCENT, OF_FLOW, OF_VERDICT = (1e-10, 1e-14), (1e-10, 1e-12), (1e-8, 1e-12), (1e-6, 0.0)
"""By which a number may differ: as a part of itself, and of the largest beside it."""
ROUNDING = 1e-9
"""Bounds up to this are of rounding: what is measured may be anything below."""
DESCENTS = {
    (PA, "exact"): (0.05, 2000), (PA, "spectral"): (0.05, 200), (PA, "sampled"): (0.05, 500),
    (PA, "full"): (0.1, 300), (PA, "realistic"): (0.02, 200),
    (MIM, "counts"): (1.0, 1000), (MIM, "contour"): (1.0, 40),
    (MIM, "full"): (1.0, 300), (MIM, "realistic"): (1.0, 200),
    (VIT, "exact"): (0.1, 300), (VIT, "sampled"): (0.1, 300), (VIT, "realistic"): (0.1, 100),
}  # fmt: skip
"""Learning rate and steps of the cases of each expectation, or view where there is one."""
FLOWS = {(PA, "exact"): 1000.0, (MIM, "counts"): 500.0}
SHOWN = {"D": 9, "C": 3, "random_sets": "mixed"}
GRID = {"family": "two_cluster_grid", "b11": 2, "b10": 2, "C_local": 2, "T": 1}
SMALL, MASKED = {"D": 8, "C": 2}, {"P": 12, "C_global": 8, "C_local": 2}
FROZEN = {"M": 3, "L": 10, "m": 6, "d": 3, "frozen": "values"}
RUNS = (
    (Case(PA, "reduced", SHOWN), {"eta": 0.02, "steps": 100_000}),
    (Case(PA, "reduced", SMALL), {"eta": (0.0, 0.05), "steps": 500}),
    (Case(PA, "reduced", SMALL, {"expectation": "spectral"}), {"time": 20.0}),
    (Case(PA, "full", {"D": 6, "C": 2}), {"time": 30.0}),
    (Case(MIM, "reduced", MASKED), {"eta": 1.0, "steps": 3000}),
    (Case(MIM, "reduced", GRID), {"eta": 1.0, "steps": 500}),
    (Case(VIT, "reduced", FROZEN), {"eta": 0.1, "steps": 300}),
)
"""Cases of which there is this run alone."""
SWEEPS = (
    (PA, {"C": "2,4", "q": "0.2:0.6:3"}, {"D": 8, "time": 100}),
    (PA, {"q": "0.3,0.6", "nu": "1e-3,1e-1"}, {"D": 9, "C": 3, "eta": 0.05, "steps": 2000}),
    (MIM, {"masked": "2,3"}, {"P": 8, "C_global": 4, "C_local": 2, "eta": 1, "steps": 300}),
    (VIT, {"alpha_star": "0.4,0.6", "margin": "1,3"}, FROZEN | {"eta": 0.1, "steps": 200}),
)
NOT_STORED = {
    PA: ("Figure 1a", "Figure 5a", "Figure 5c", "Figure 7"),
    VIT: ("Figure 6a", "Figure 6b", "Figure 6c", "Figure 6c, initial model"),
}
"""Claims without a number here: networks on images, which train for long."""


class Entry(NamedTuple):
    """What is computed from what is given, of which case if any, and how exactly."""

    compute: Callable[[Any], Any]
    case: Case | None
    tolerance: tuple[float, float]


def kept(observables):
    """Observables but those of fresh samples, which are drawn, and estimates of errors."""
    left_out = ("test", "certificate", "error_estimate")
    return {
        name: float(value)
        for name, value in observables.items()
        if not any(part in name for part in left_out)
    }


def at_states(case, given):
    """The start, and risk, gradient and observables there and at the given states."""
    problem = case.problem(given)
    start = problem.initial_state
    begins = {"start": start.tolist()} if start.size <= 20 else {}
    return begins | {
        f"state {k}": {
            "risk": problem.risk(state),
            "gradient": problem.gradient(state).tolist(),
            "observables": kept(problem.observables(state)),
        }
        for k, state in enumerate([start, *given["states"]])
    }


def run(case, how, given):
    """Final state, observables there, events and outcome; realistic runs start at a given state."""
    problem = case.problem(given)
    initial = given["states"][0] if case.view == "realistic" else None
    drive = dynamics.flow if "time" in how else dynamics.descend
    made = drive(problem, **how, initial=initial)
    return {
        "state": made.final_state.tolist(),
        "observables": kept({name: values[-1] for name, values in made.observables.items()}),
        "events": {
            name: {"time": event.time, "step": event.step, "uncertainty": event.uncertainty}
            for name, event in made.events.items()
            if event.reached
        },
        "outcome": made.outcome.kind,
    }


def sweep(system, axes, fixed, given):
    """Observables and events at every point of a sweep."""
    with instead_of_draws(given):
        found = dynamics.sweep(system, axes | fixed, workers=0).dataset.drop_dims("block")
    table = found.to_dataframe().astype(float)
    parts = ("time_", "uncertainty_")
    return [
        {
            "observables": kept({n: v for n, v in row.items() if not n.startswith(parts)}),
            "events": {
                name.removeprefix("time_"): {
                    "time": value,
                    "uncertainty": row.get(name.replace("time_", "uncertainty_", 1), 0.0),
                }
                for name, value in row.items()
                if name.startswith("time_") and value == value
            },
        }
        for row in table.to_dict("records")
    ]


def verdict(system, claim, given):
    """What `dynamics.verify` says of a claim, with the protocol of its paper."""
    found = dynamics.verify(system, claims=[claim])[0]
    rounding = found.bound if 0 < found.bound <= ROUNDING else 0.0
    return {
        "holds": found.holds,
        "measured": found.measured,
        "bound": found.bound,
        "uncertainty": rounding,
    }


def all_entries():
    """Every entry with its name."""
    for case in CASES:
        yield f"{case.name}: values", Entry(partial(at_states, case), case, EXACT)
    kinds = set()
    for case in CASES:
        kind = case.system, case.options.get("expectation", case.view)
        eta, steps = DESCENTS[kind]
        if kind in FLOWS or case.view == "realistic" or (kind, case.view) not in kinds:
            descent = partial(run, case, {"eta": eta, "steps": steps})
            yield f"{case.name}: descent", Entry(descent, case, OF_DESCENT)
        kinds.add((kind, case.view))
        if kind in FLOWS:
            flow = partial(run, case, {"time": FLOWS[kind]})
            yield f"{case.name}: flow", Entry(flow, case, OF_FLOW)
    for case, how in RUNS:
        words = " ".join(f"{name}={value}" for name, value in how.items())
        tolerance = OF_FLOW if "time" in how else OF_DESCENT
        yield f"{case.name}: run, {words}", Entry(partial(run, case, how), case, tolerance)
    for system, axes, fixed in SWEEPS:
        tolerance = OF_FLOW if "time" in fixed else OF_DESCENT
        compute = partial(sweep, system, axes, fixed)
        case = RUNS[-1][0] if system == VIT else None
        yield f"{system}, sweep of {' and '.join(axes)}", Entry(compute, case, tolerance)
    for system in (PA, MIM, VIT):
        for claim in dynamics.load_system(system).claims:
            if claim.source not in NOT_STORED.get(system, ()):
                compute = partial(verdict, system, claim.source)
                yield f"{system}, claim, {claim.source}", Entry(compute, None, OF_VERDICT)


ENTRIES = dict(all_entries())


def stored():
    """What cases are given, and what was found of entries and whether it takes long.

    Without certificates: bounds of the spectral sum, which has estimates now.
    """
    if not FILE.exists():
        return {"given": {}, "entries": {}}
    return json.loads(FILE.read_text(), object_hook=without_certificates)


def without_certificates(part):
    """A part of the file but for bounds on errors."""
    return {name: value for name, value in part.items() if name != "certificate"}


def found(name, given):
    """What is found of an entry now."""
    case = ENTRIES[name].case
    return ENTRIES[name].compute(given[case.name] if case else {})


def write(beginnings):
    """Find the entries whose names begin so, and write the file, a line for each."""
    before = stored()
    cases = dict.fromkeys(entry.case.name for entry in ENTRIES.values() if entry.case)
    given = {name: before["given"][name] for name in cases}
    entries = {}
    for name in ENTRIES:
        entries[name] = before["entries"].get(name, {})
        if name.startswith(beginnings):
            begun = time.process_time()
            value = found(name, given)
            seconds = time.process_time() - begun
            entries[name] = {"long": entries[name].get("long", seconds > 1.0), "found": value}
            print(f"{seconds:7.2f} s  {name}", flush=True)
    FILE.write_text(f'{{\n"given": {lines(given)},\n"entries": {lines(entries)}\n}}\n')


def lines(content):
    """A JSON object with a line for each of its members."""
    parts = (
        f'"{name}":{json.dumps(part, separators=(",", ":"))}' for name, part in content.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}"


if __name__ == "__main__":
    write(tuple(sys.argv[1:]) or ("",))
