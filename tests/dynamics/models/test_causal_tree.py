"""A causal tree against loops over places, its published numbers, its claims where they break."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.cases import Case
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.library import causal_tree as experiments

SYSTEM = dynamics.load_system("causal_tree")
PARENTS = (None, 0, 0, 1, 2)


def probability(s, y, nodes):
    """Of a sequence and its successor, node by node."""
    z, w = np.polynomial.legendre.leggauss(nodes)
    total = 0.0
    for (a, p), (b, q) in itertools.product(zip((z + 1) / 2, w / 2, strict=True), repeat=2):
        chain = np.array([[1 - a, a], [b, 1 - b]])
        chance = (a if s[0] else b) / (a + b) / 2 * chain[s[5], y]
        for place in range(1, 5):
            chance *= chain[s[PARENTS[place]], s[place]]
        total += p * q * chance
    return total


def attended(rows, A):
    """Rows, each with the average of those up to it behind it."""
    out = []
    for i, row in enumerate(rows):
        weights = np.exp([row @ A @ rows[j] for j in range(i + 1)])
        out.append(np.append(row, weights @ rows[: i + 1] / weights.sum()))
    return np.array(out)


def test_the_risk_is_that_of_loops_over_places():
    random, risk = np.random.default_rng(0), 0.0
    A1, A2, W = (random.standard_normal(shape) for shape in ((8, 8), (16, 16), (2, 32)))
    for *s, y in itertools.product((0, 1), repeat=7):
        rows = np.array([[*np.eye(2)[s[i]], *np.eye(6)[i]] for i in range(6)])
        logits = W @ attended(attended(rows, A1), A2)[-1]
        risk += probability(s, y, 4) * (np.log(np.exp(logits).sum()) - logits[y])
    full = SYSTEM.FullPopulation(SYSTEM.Parameters(nodes=4))
    state = np.concatenate([A1.ravel(), A2.ravel(), W.ravel()])
    assert full.risk(state) == pytest.approx(risk, rel=1e-11)


def test_the_bayes_risk_and_its_limit():
    """.608546 with ten nodes; integrated where 1/(a + b) is smooth, .60854419."""
    bayes = [experiments.bayes_risk(SYSTEM, SYSTEM.Parameters(nodes=n)) for n in (10, 100)]
    assert bayes[0] == pytest.approx(0.608546, abs=5e-7)
    assert bayes[1] == pytest.approx(0.60854419, abs=5e-9)


@pytest.mark.long
def test_the_published_risk_and_the_parents():
    """Rate 2, 8000 steps: risk .608553, A1 largest at (-, 0, 0, 1, 2)."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    run = dynamics.descend(problem, 2.0, 8000)
    scores = experiments.between_places(problem, run.final_state)
    assert run["risk"][-1] == pytest.approx(0.608553, abs=5e-7)
    assert [int(np.argmax(scores[i, :i])) for i in range(1, 5)] == [0, 0, 1, 2]


def test_at_rate_2_a_full_run_leaves_the_classes():
    full = SYSTEM.FullPopulation(SYSTEM.Parameters())
    classes = SYSTEM.closure(SYSTEM.Parameters()).classes
    off = {}
    for eta in (0.5, 2.0):
        run = dynamics.descend(full, eta, 60)
        off[eta] = np.abs(classes.residual(run.final_state - full.initial_state)).max()
    assert off[0.5] < 1e-14
    assert off[2.0] > 1e-3


def test_the_slopes_at_the_start_are_largest_at_the_parents():
    full = SYSTEM.FullPopulation(SYSTEM.Parameters())
    start, step = full.initial_state, 1e-3
    for i, parent in enumerate(PARENTS[2:], 2):
        rise = []
        for j in range(i):
            moved = start.copy()
            moved[8 * (2 + i) + 2 + j] = step
            rise.append(full.risk(moved) - full.risk(2 * start - moved))
        assert np.argmin(rise) == parent
    assert experiments.largest(SYSTEM, Protocol()).word == "holds"


def test_with_other_parents_no_claim_holds(monkeypatch):
    monkeypatch.setattr(experiments, "PARENTS", np.array([-1, 0, 1, 2, 3]))
    monkeypatch.setattr(experiments, "STAGE", 100)
    assert experiments.largest(SYSTEM, Protocol()).word == "does not hold here"
    for check in (experiments.encoded, experiments.by_stages):
        case = Case(SYSTEM, SYSTEM.Parameters(beta=1.0))
        problem, run = experiments.staged(case)
        row = check.measure(Case(SYSTEM, case.parameters, problem=problem, run=run))
        assert row["value"] < 3
