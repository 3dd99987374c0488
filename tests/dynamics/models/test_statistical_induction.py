"""Statistical induction heads against loops over places, the published steps, broken claims."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.cases import Case
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.library import statistical_induction as experiments
from dynamics.verdicts.library import statistical_induction_drawn as drawn

SYSTEM = dynamics.load_system("statistical_induction")
DRAWN = dynamics.load_system("statistical_induction_drawn")


def probability(x, balanced):
    """Of a sequence; the square of transition probabilities is cut along its diagonal."""
    z, w = np.polynomial.legendre.leggauss(16)
    z, w, total = (z + 1) / 2, w / 2, 0.0
    for (r, p), (t, q) in itertools.product(zip(z, w, strict=True), repeat=2):
        pairs = [(1.0, r, r)] if balanced else [(r, r, r * t), (r, r * t, r)]
        for density, up, down in pairs:
            chance = (up if x[0] else down) / (up + down)
            for a, b in itertools.pairwise(x):
                move = down if a else up
                chance *= move if a != b else 1 - move
            total += p * q * density * chance
    return total


def loss(W, v, x):
    """Mean loss of a sequence, place by place."""
    L, losses = len(x) - 1, []
    h = []
    for j in range(L):
        weights = np.exp(v[: j + 1][::-1])
        h.append(weights @ np.eye(2)[list(x[: j + 1])] / weights.sum())
    for i in range(L):
        logits = np.zeros(2)
        for j in range(i + 1):
            logits[x[j]] += W[x[i]] @ h[j]
        losses.append(np.log(np.exp(logits).sum()) - logits[x[i + 1]])
    return np.mean(losses)


@pytest.mark.parametrize("chains", ["free", "balanced"])
def test_the_risk_is_that_of_loops_over_places(chains):
    L, random = 4, np.random.default_rng(0)
    full = SYSTEM.FullPopulation(SYSTEM.Parameters(L=L, chains=chains))
    every = list(itertools.product((0, 1), repeat=L + 1))
    p = [probability(x, chains == "balanced") for x in every]
    assert sum(p) == pytest.approx(1.0, abs=1e-12)
    for scale in (0.3, 2.0):
        W, v = scale * random.standard_normal((2, 2)), scale * random.standard_normal(L)
        expected = sum(q * loss(W, v, x) for q, x in zip(p, every, strict=True))
        state = np.concatenate([W.ravel(), v])
        assert full.risk(state) == pytest.approx(expected, rel=1e-9)
        weights = np.exp(v)
        previous = full.observables(state)["previous"]
        assert previous == pytest.approx(weights[1] / weights.sum(), rel=1e-12)


def test_the_second_layer_is_half_way_at_step_2_and_the_first_at_step_356():
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    run = dynamics.descend(problem, SYSTEM.model.eta, SYSTEM.model.steps, record=1)
    contrast = run["contrast"]
    assert np.argmax(contrast >= contrast[-1] / 2) == 2
    assert run.events["T_previous"].step == 356
    level = experiments.unigram_level(problem, 7)
    assert level == pytest.approx(0.6253, abs=1e-4)
    assert (np.abs(run["risk"][20:150] - level) < 0.002).all()  # of a fall of .063
    assert run["risk"][0] - level > 0.06


def test_the_bayes_risk_is_that_of_posterior_means():
    """By free chains, two places: P(next = 1 | x_0) and so on, from sequences of three."""
    law = SYSTEM.Parameters(L=2)
    total = 0.0
    for n in (2, 3):
        for x in itertools.product((0, 1), repeat=n):
            p, before = probability(x, False), sum(probability((*x[:-1], y), False) for y in (0, 1))
            total -= p * np.log(p / before) / 2
    assert experiments.bayes_risk(SYSTEM, law) == pytest.approx(total, rel=1e-9)


def measured(measure, **how):
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    run = dynamics.descend(problem, 1.0, 500, record=1, **how)
    return measure(Case(SYSTEM, SYSTEM.Parameters(), problem=problem, run=run))["value"]


def test_other_orders_of_training_have_other_phases():
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    start = problem.initial_state.copy()
    start[problem.state_names.index("v_1")] = 3.0
    for check in (experiments.three_phases, experiments.second_first):
        assert measured(check.measure, initial=start) < 1.0
    assert np.isnan(measured(experiments.phases, stages=[("W", 500)]))


def test_the_same_chains_do_not_delay(monkeypatch):
    monkeypatch.setattr(experiments, "WITHOUT_UNIGRAMS", {})
    finding = experiments.delayed(SYSTEM, Protocol())
    assert (finding.measured, bool(finding.holds)) == (1.0, False)


def test_draws_have_the_risk_of_all_sequences():
    """L = 7: risk and gradient within 4 standard errors of eight seeds."""
    exact = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    state = np.array([0.3, -0.1, 0.2, 0.8, -0.1, 0.1, -0.4, 0.2, 0.0])
    found = []
    for seed in range(8):
        problem = DRAWN.ReducedPopulation(DRAWN.Parameters(L=7), samples=2000, seed=seed)
        assert problem.state_names == exact.state_names
        found.append([problem.risk(state), *problem.gradient(state)])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(8)
    expected = np.array([exact.risk(state), *exact.gradient(state)])
    assert (np.abs(np.mean(found, axis=0) - expected) < 4 * error).all()
    assert (error < 0.01).all()


@pytest.mark.long
def test_draws_have_the_time_of_all_sequences(monkeypatch):
    """L = 10, where both are known: the bigram solution over three seeds, to 4 standard errors."""
    monkeypatch.setattr(drawn, "DRAWS", 24_000)
    exact = SYSTEM.ReducedPopulation(SYSTEM.Parameters(L=10))
    time = dynamics.flow(exact, drawn.LONG, rtol=1e-6).events["T_previous"].time
    finding = drawn.three_phases(DRAWN, Protocol(DRAWN.Parameters(L=10)))
    times = [row["bigram"] for row in finding.evidence["table"]]
    error = np.std(times, ddof=1) / np.sqrt(3)
    assert abs(np.mean(times) - time) < 4 * error < 0.2 * time
    assert f"{np.mean(times):.0f} +- {error:.0f} at L = 10, 2400 draws a seed" in finding.reason
