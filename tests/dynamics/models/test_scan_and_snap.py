"""Scan and snap: what closes at any size, training at 10,000 tokens, and broken laws."""

import time

import numpy as np
import pytest

import dynamics


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("scan_and_snap")


def by_hand(law, eta, steps):
    """Three scalars under gradient descent, by arrays of all tokens."""
    C, D = law.common, law.distinct
    z, Y, x = np.zeros(C + 2 * D), np.zeros((C + 2 * D, 2)), np.zeros((2, C + 2 * D))
    powers = law.ratio ** np.arange(D)
    x[:, :C] = law.share / C
    for n in (0, 1):
        x[n, C + n * D : C + (n + 1) * D] = (1 - law.share) * powers / powers.sum()
    for _ in range(steps):
        dz, dY = np.zeros_like(z), np.zeros_like(Y)
        for n in (0, 1):
            b = x[n] * np.exp(z)
            b /= b.sum()
            f = b / np.linalg.norm(b)
            q = np.exp(Y.T @ f)
            off = (q / q.sum() - np.eye(2)[n]) / 2
            dY += np.outer(f, off)
            of_b = (Y @ off - f * (f @ Y @ off)) / np.linalg.norm(b)
            dz += b * (of_b - b @ of_b)
        z, Y = z - eta * dz, Y - eta * dY
    return z[0], z[C], Y[C, 0]


@pytest.mark.parametrize("more", [{}, {"common": 3, "distinct": 5, "ratio": 0.6, "share": 0.4}])
def test_descent_by_hand(system, more):
    law = system.Parameters(**more)
    expected = by_hand(law, 1.0, 100)
    for view in ("ReducedPopulation", "FullPopulation"):
        run = dynamics.descend(getattr(system, view)(law), 1.0, 100)
        found = [run[name][-1] for name in ("z_c", "z_d", "Y_d")]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("common", "distinct", "kept"),
    [(4, 3, "2*z_c + 3*z_d"), (20, 40, "z_c + 4*z_d"), (200, 400, "z_c + 4*z_d")],
)
def test_three_scalars_in_a_linear_space_of_two(system, common, distinct, kept):
    closure = system.closure(system.Parameters(common=common, distinct=distinct))
    assert (closure.scalars, closure.free, closure.grade) == (3, 2, "proved")
    assert closure.conserved == (kept,)


@pytest.mark.long
def test_closure_and_3000_steps_at_10000_tokens_take_less_than_a_minute(system):
    began = time.process_time()
    law = system.Parameters(common=2000, distinct=4000)
    problem = system.ReducedPopulation(law)
    assert (problem.closure.scalars, problem.closure.free) == (3, 2)
    run = dynamics.descend(problem, 1.0, 3000)
    assert time.process_time() - began < 60
    assert abs(run["z_c"] + 4 * run["z_d"]).max() < 1e-12
