"""Figure 2 at its own size: which models fit, which associate.

The bounds are those of the project's measurements at D = 16, C = 4, d = 16, N = 16,000.
"""

import numpy as np
import pytest

import dynamics
from dynamics.experiments.positional_attention.convolution import adam
from dynamics.experiments.positional_attention.pictures import localised
from dynamics.results.outcome import HORIZON
from dynamics.systems.positional_attention.empirical import GramEmpirical
from dynamics.systems.positional_attention.empirical.sampling import Convolution

SYSTEM = dynamics.load_system("positional_attention")
PARAMETERS = SYSTEM.Parameters(omega=1e-3)
PARTITION = localised(PARAMETERS)[0]
SAMPLES, ADAM_STEPS, HORIZON_TIME = 16_000, 10_000, 900


def made(kind, seed):
    return kind(PARAMETERS, SAMPLES, seed, law=Convolution(PARTITION), dtype="float32")


def error_on_new_data(value, matrix, feature, count=40_000):
    """Test error of (T) from whole Gaussian patches, every formula written out once more."""
    patches = np.random.default_rng(99).standard_normal((count, 16, 16))
    inside = np.stack([(patches @ feature)[:, s].sum(axis=1) for s in PARTITION.sets])
    label = np.sign((inside**3).sum(axis=0))
    weights = np.exp(PARAMETERS.scale * (matrix - matrix.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    attended = 16 * (patches @ value) @ weights.T
    return float((label * (attended**3 + PARAMETERS.nu * attended).sum(axis=1) <= 0).mean())


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_free_attention_fits_under_adam_with_one_row_for_each_set(seed):
    problem = made(SYSTEM.FullEmpirical, seed)
    run = adam(problem, 3e-3, ADAM_STEPS)
    error, share = (run.observables[name][-1] for name in ("test_error", "patch_association"))
    print(f"(T), Adam, seed {seed}: error {error:.4f}, association {share:.2f}")
    assert run.outcome.kind == HORIZON
    assert error <= 0.03
    assert share <= 0.4
    value, matrix = (problem.layout.part(run.states[-1], name) for name in ("v", "A"))
    again = error_on_new_data(value, matrix, problem.feature)
    assert again == pytest.approx(error, abs=5 * np.sqrt(error / 10_000))


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_gram_matrix_fits_under_adam_and_associates(seed):
    problem = made(GramEmpirical, seed)
    run = adam(problem, 3e-3, ADAM_STEPS)
    error, share = (run.observables[name][-1] for name in ("test_error", "patch_association"))
    print(f"A = P^T P, Adam, seed {seed}: error {error:.4f}, association {share:.2f}")
    assert run.outcome.kind == HORIZON
    assert error <= 0.03
    assert share >= 0.9
    last = run.states[-1]
    value = problem.layout.part(last, "v")
    again = error_on_new_data(value, problem.matrix(last), problem.inner.feature)
    assert again == pytest.approx(error, abs=5 * np.sqrt(error / 10_000))


@pytest.mark.long
@pytest.mark.parametrize("eta", [0.02, 0.005])
def test_free_attention_stays_with_the_linear_rule_under_descent(eta):
    run = dynamics.descend(made(SYSTEM.FullEmpirical, 0), eta, round(HORIZON_TIME / eta))
    error, share = run["test_error"][-1], run["patch_association"][-1]
    print(f"(T), descent, eta {eta:g}: error {error:.4f}, association {share:.2f}")
    assert run.outcome.kind == HORIZON
    assert 0.085 <= error <= 0.105
    assert share == 0
