"""An associative memory: the published runs, its margins, and verdicts where the law is broken."""

import warnings

import numpy as np
import pytest

import dynamics


def by_hand(eta, steps, p=0.75, alpha=0.95):
    """Risks and memories of gradient descent, by arrays alone."""
    E, W, records = np.array([[1.0, 0.0], [alpha, np.sqrt(1 - alpha**2)]]), np.zeros((2, 2)), []
    for _ in range(steps + 1):
        logits = E @ W
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        records.append((-np.array([p, 1 - p]) @ np.log(np.diag(shares)), W))
        W = W - eta * E.T @ (np.array([[p], [1 - p]]) * (shares - np.eye(2)))
    return zip(*records, strict=True)


def descended(eta):
    system = dynamics.load_system("memory_spikes")
    problem = system.ReducedPopulation(system.Parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dynamics.TrainingWarning)
        return problem, dynamics.descend(problem, eta, 34, record=1)


@pytest.mark.parametrize(
    ("eta", "rises", "peak", "at", "end"),
    [(10.0, 8, 1.3487, 5, 0.05424), (1.0, 0, np.log(2), 0, 0.37220)],
)
def test_the_published_runs(eta, rises, peak, at, end):
    problem, run = descended(eta)
    risk = run["risk"]
    assert (risk.size, (np.diff(risk) > 0).sum(), risk.argmax()) == (35, rises, at)
    assert risk.max() == pytest.approx(peak, abs=5e-5)
    assert risk[-1] == pytest.approx(end, abs=5e-6)
    risks, memories = by_hand(eta, 34)
    np.testing.assert_allclose(risk, risks, rtol=1e-12)
    np.testing.assert_allclose(run.states, np.array(memories)[:, :, 0], rtol=1e-11, atol=1e-13)


def test_the_stability_limit_is_passed_at_once():
    problem, run = descended(10.0)
    limits = [dynamics.stability_limit(problem, state) for state in run.states]
    assert limits[0] == pytest.approx(4.08, abs=5e-3)
    assert limits[2] == pytest.approx(4.29, abs=5e-3)
    assert run.remarks == ("eta=10 at step 2, where the stability limit is 4.294: it is passed",)


def test_margins_follow_their_equations():
    system = dynamics.load_system("memory_spikes")
    run = dynamics.flow(
        system.ReducedPopulation(system.Parameters()), 50.0, record=np.linspace(0.0, 50.0, 5001)
    )
    m_1, m_2, p, alpha = run["m_1"], run["m_2"], 0.75, 0.95
    first, second = p / (1 + np.exp(m_1)), (1 - p) / (1 + np.exp(m_2))
    rates = np.gradient(np.stack([m_1, m_2]), run.time, axis=1)[:, 1:-1]
    expected = np.stack([2 * (first - alpha * second), 2 * (second - alpha * first)])[:, 1:-1]
    np.testing.assert_allclose(rates, expected, atol=1e-4)
    risk = p * np.logaddexp(0, -m_1) + (1 - p) * np.logaddexp(0, -m_2)
    np.testing.assert_allclose(run["risk"], risk, rtol=1e-12)
    np.testing.assert_allclose(run["error"], p * (m_1 <= 0) + (1 - p) * (m_2 <= 0), atol=1e-15)
