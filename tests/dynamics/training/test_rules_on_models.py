"""Reduced against full training by every update rule: a table of models and rules."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.loops import Updates
from dynamics.training.rules import under
from dynamics.validation import InvalidRequest

STEPS, ETA = 1000, 0.01
LOOKS, SEARCHED = 40, 200
"""Steps taken by themselves, and those searched for a gradient below its rounding."""
EXACT = 1e-11
"""Deviation, over the scale of the states, that needs no explanation."""
GROWN = 100.0
"""Times the distance of full runs from starts that are a rounding apart."""
EPS = float(np.finfo(float).eps)
RULES = {
    "gd": dynamics.rule("gd"),
    "momentum": dynamics.rule("momentum"),
    "nesterov": dynamics.rule("momentum", nesterov=True),
    "sign": dynamics.rule("sign"),
    "adam": dynamics.rule("adam"),
    "adamw": dynamics.rule("adamw", weight_decay=0.01),
    "normalized": dynamics.rule("normalized"),
    "adam with decay": dynamics.rule("adam", weight_decay=0.01),
}
ODD = {"momentum": (True,), "adam": (True, False), "adamw": (True, False)}
"""Whether each memory of a rule turns with the gradient."""
LIBRARY = Path(dynamics.models.__file__).parent
SUPPORT = Path(__file__).resolve().parents[2] / "support" / "models"
PAPERS = {
    "positional_attention": {"D": 9, "C": 3},
    "masked_image_modeling": {"areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4},
    "shallow_vit": {"M": 4, "m": 12},
}
DRAWN = {"single_location_gaussian"}
"""Models whose law is drawn: its symmetry holds up to sampling errors."""
WITH_A_DIAGONAL = {"positional_attention (file)"}
"""Models whose declared scalars leave out entries that only decay moves."""


def signed():
    """Opposite entries, one that never moves, and one that decay alone moves."""

    def start(u=0.3):
        return {"A": [[u, -u], [-u, u]], "b": [0.0, 0.7], "c": [0.0, -1.0, 1.0]}

    def risk(theta, xp):
        a, b, c = theta["A"].ravel(), theta["b"], theta["c"]
        still = xp.array([1.0, 0.0]) @ b + 0.0 * b[1]
        return (a[0] * a[1] * a[2] * a[3] - 1.0) ** 2 + (still + c[1] * c[2] + 2.0) ** 2 + c[0]

    return dynamics.load_system(dynamics.Model(start=start, risk=risk))


LOADED = {
    **{
        name: (lambda name=name: dynamics.load_system(name), {})
        for name in dynamics.system_names()
        if name not in {*PAPERS, *DRAWN}
    },
    "README": (lambda: dynamics.load_system(SUPPORT / "positional.py"), {}),
    **{
        f"{name} (file)": (lambda name=name: dynamics.load_system(LIBRARY / f"{name}.py"), law)
        for name, law in PAPERS.items()
    },
    "signed": (signed, {}),
}


@dataclass
class Side:
    """One of two problems with its rule: states with their memory, by steps."""

    problem: object
    rule: object

    def __post_init__(self):
        problem = self.problem
        self.size = problem.layout.size
        self.moving = problem.moving(problem.initial_state)
        rates = np.full(self.size, ETA)
        self.updates = Updates(rates, self.rule, problem.multiplicities, self.moving)

    def states(self, state, first, last):
        """States at first, ..., last, shape (steps + 1, n (1 + memory)); state is at first."""
        state = state.copy()
        records = np.empty((last - first, state.size))
        rows = np.empty((last - first, len(self.problem.order_names)))
        steps = np.arange(first, last)
        reached = self.problem.advance(state, self.updates, first, last, (rows, steps, records))
        assert reached == last
        return np.concatenate([records, state[None]])


class Pair:
    """A model's reduced and full problem under a rule."""

    def __init__(self, system, law, name):
        parameters, self.rule = system.Parameters(**law), RULES[name]
        self.name = name
        problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
        self.reduced, self.full = (Side(under(each, self.rule), self.rule) for each in problems)
        self.classes = self.full.problem.closure.classes
        names = self.full.problem.closure.names
        # A declared reduction has an order of its own.
        given = self.reduced.problem.layout.names
        self.order = [given.index(name) for name in names if name in given]

    def entries(self, states):
        """Every entry, of reduced states with their memory."""
        states = states[..., : self.reduced.size]
        if self.reduced.problem.coordinates == "linear":
            return self.reduced.problem.lift(states)
        return self.classes.lift(states[..., self.order])

    def tangent(self, vectors):
        """Vectors of every entry, of coordinates."""
        return self.entries(vectors) - self.entries(np.zeros(self.reduced.size))

    def lifted(self, states):
        """States of every entry with their memory, of reduced ones."""
        size, labels = self.reduced.size, self.classes.labels
        parts = [self.entries(states)]
        for k in range(self.rule.memory):
            memory = states[..., size * (1 + k) : size * (2 + k)]
            if ODD[self.rule.name][k]:
                parts.append(self.tangent(memory))
            else:
                alike = memory[..., self.order][..., labels]
                parts.append(np.where(labels >= 0, alike, 0.0))
        return np.concatenate(parts, axis=-1)

    def rounding(self, state):
        """Gradient of every entry at a reduced state, and its rounding."""
        reduced, full = self.reduced.problem, self.full.problem
        slope = self.tangent(reduced.gradient(state))
        off = np.abs(full.gradient(self.entries(state)) - slope)
        if reduced.coordinates == "linear":
            return slope, np.full(off.size, off.max(initial=0.0))
        labels, each = self.classes.labels, np.zeros(self.classes.count)
        np.maximum.at(each, labels[labels >= 0], off[labels >= 0])
        return slope, np.where(labels >= 0, each[labels], 0.0)

    def of_a_step(self, states, step):
        """How far a full step from the lifted state ends from the lifted reduced one.

        Returns the distance of every number and what rounding of the gradient explains.
        """
        size, full = self.full.size, self.full
        begin, expected = self.lifted(states[step]), self.lifted(states[step + 1])
        found = full.states(begin, step, step + 1)[1]
        slope, off = self.rounding(states[step][: self.reduced.size])
        entries, memory = begin[:size], list(begin[size:].reshape(-1, size))
        decay = self.rule.weight_decay * entries
        terms = np.abs(slope) + np.abs(decay)
        slope, off = slope + decay, 16 * off + 4 * EPS * terms + EPS * terms.max()
        norm = np.linalg.norm(slope[full.moving])
        least, most = norm - np.linalg.norm(off), norm + np.linalg.norm(off)

        def after(gradient, norm):
            change, kept = self.rule.apply(gradient, memory, entries, step + 1, ETA, np, norm)
            return np.concatenate([change, *kept])

        with np.errstate(invalid="ignore", divide="ignore"):
            here = after(slope, norm)
            beside = [
                np.abs(after(slope + sign * off, other) - here)
                for sign in (-1, 1)
                for other in (max(least, 0.0), most)
            ]
        allowed = np.max(beside, axis=0) + 8 * EPS * (np.abs(begin) + np.abs(here))
        still = np.tile(~full.moving, 1 + self.rule.memory)
        return np.where(still, 0.0, np.abs(found - expected)), allowed

    def below(self, states):
        """First of some steps where a moving entry's gradient is below its rounding, or None."""
        moving = self.full.moving
        for step in np.unique(np.geomspace(1, STEPS, SEARCHED).astype(int)) - 1:
            slope, off = self.rounding(states[step][: self.reduced.size])
            decay = self.rule.weight_decay * self.entries(states[step])
            slope, off = slope + decay, off + EPS * np.abs(decay)
            if ((np.abs(slope) <= off) & moving & (off > 0)).any():
                return step
        return None


def table_row(pair, title):
    """A row of the table, and whether it is as it must be."""
    reduced, full = pair.reduced, pair.full
    states = reduced.states(reduced.updates.begun(reduced.problem.initial_state), 0, STEPS)
    start = full.updates.begun(full.problem.initial_state)
    whole = full.states(start, 0, STEPS)[:, : full.size]
    scale = max(1.0, float(np.abs(states[:, : reduced.size]).max()))
    off = np.abs(whole - pair.entries(states)).max(axis=1)
    deviation = np.maximum.accumulate(off) / scale
    first = pair.below(states)
    known = STEPS + 1 if first is None else first + 1
    steps = np.unique(np.geomspace(1, STEPS, LOOKS).astype(int)) - 1
    worst = 0.0
    for step in steps:
        found, allowed = pair.of_a_step(states, step)
        worst = max(worst, float((found / np.maximum(allowed, 1e-300)).max()))
    grown = np.zeros(STEPS + 1)
    if deviation[-1] > EXACT:
        for seed in range(2):
            off = np.random.default_rng(seed).standard_normal(full.size) * full.moving
            twin = start.copy()
            twin[: full.size] += EPS * scale * off
            again = full.states(twin, 0, STEPS)[:, : full.size]
            grown = np.maximum(grown, np.abs(again - whole).max(axis=1) / scale)
        grown = np.maximum.accumulate(grown)
    explained = bool((deviation <= EXACT + GROWN * grown).all())
    verdict = "exact" if deviation[-1] <= EXACT else "rounding" if explained else "PARTS"
    row = (
        f"{title:30s} {pair.name:16s}{full.size:5d}{reduced.size:5d}"
        f"{int((pair.classes.signs < 0).sum()):5d}{int((~full.moving).sum()):5d}"
        f"{deviation[known - 1]:9.1e} {'-' if first is None else first!s:>5s}{deviation[-1]:9.1e}"
        f"{grown[-1]:9.1e}{worst:9.2f}  {verdict}"
    )
    return row, explained and worst <= 1


HEAD = (
    f"{'model':30s} {'rule':16s}{'n':>5s}{'red.':>5s}{'neg.':>5s}{'held':>5s}"
    f"{'to step':>9s} {'below':>5s}{'to end':>9s}{'grown':>9s}{'a step':>9s}"
)


@pytest.mark.long
@pytest.mark.parametrize("title", LOADED)
def test_a_thousand_steps_of_every_rule(title, capsys):
    """Exact up to rounding that the rule amplifies; each step by itself in any case.

    Columns: entries, scalars, entries of negative sign, held entries; the largest deviation over
    the scale up to the first step at which a gradient is below its rounding, that step, and the
    deviation up to the end; that of full runs from starts a rounding apart; the largest distance of
    one step over what the rounding of the gradient explains.
    """
    load, law = LOADED[title]
    system, bad = load(), []
    with capsys.disabled():
        print(f"\n{HEAD}")
    for name, rule in RULES.items():
        if title in WITH_A_DIAGONAL and rule.decays:
            with pytest.raises(InvalidRequest, match=r"no scalar stands for A\[0, 0\]"):
                Pair(system, law, name)
            continue
        row, right = table_row(Pair(system, law, name), title)
        with capsys.disabled():
            print(row, flush=True)
        if not right:
            bad.append(row)
    assert not bad, "\n".join(bad)


BUILT_IN = {
    "positional_attention": ({"D": 8, "C": 2}, {}),
    "masked_image_modeling": ({"family": "custom", **PAPERS["masked_image_modeling"]}, {}),
    "shallow_vit": (
        {
            "M": 4, "m": 12, "d": 4, "L": 43, "alpha_star": 25 / 43, "alpha_confusion": 4 / 43,
            "sigma": 0.0, "delta": 0.0, "noise": 0.0,
        },
        {"start": "symmetric"},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("title", BUILT_IN)
def test_the_optimised_systems_under_every_rule(title, capsys):
    """300 steps of their own kernels beside their own full problems."""
    law, options = BUILT_IN[title]
    system = dynamics.load_system(title)
    parameters = system.Parameters(**law)
    reduced = system.ReducedPopulation(parameters, **options)
    full = system.FullPopulation(parameters, **options)
    for name, rule in RULES.items():
        found = dynamics.compare(reduced, full, eta=ETA, steps=300, rule=rule)
        with capsys.disabled():
            print(f"\n{title:24s}{name:18s}{found.largest_deviation:9.1e}", end="", flush=True)
        assert found.largest_deviation < EXACT
