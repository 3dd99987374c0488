"""Figure 2 at its own size, and its two lines.

The bounds are those of the project's measurements at D = 16, C = 4, d = 16, N = 16,000.
"""

import numpy as np
import pytest

import dynamics
from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.results.outcome import HORIZON
from dynamics.verdicts.positional_attention import convolution
from dynamics.verdicts.positional_attention.convolution import QUICK
from dynamics.verdicts.positional_attention.figures import localised
from theory.papers.positional_attention.samples import Convolution

SYSTEM = dynamics.load_system("positional_attention")
PARAMETERS = SYSTEM.Parameters(omega=1e-3)
PARTITION = localised(PARAMETERS)[0]


def made(kind, seed):
    law = Convolution(PARTITION)
    return kind(PARAMETERS, QUICK["samples"], seed, law=law, dtype="float32", feature="random")


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
@pytest.mark.parametrize(
    ("kind", "seed", "errors", "shares"),
    [
        *((SYSTEM.FullEmpirical, seed, (0, 0.03), (0, 0.4)) for seed in range(3)),
        *((GramEmpirical, seed, (0, 0.03), (0.9, 1)) for seed in (2, 3, 4)),
        *((GramEmpirical, seed, (0.085, 0.105), (0, 0)) for seed in (6, 7)),  # the linear rule
    ],
)
def test_what_adam_fits_and_associates(kind, seed, errors, shares):
    problem = made(kind, seed)
    run = dynamics.descend(problem, 3e-3, 10_000, "adam", record=[10_000])
    error, share = run["test_error"][-1], run["patch_association"][-1]
    print(f"{kind.__name__}, Adam, seed {seed}: error {error:.4f}, association {share:.2f}")
    assert run.outcome.kind == HORIZON
    assert errors[0] <= error <= errors[1]
    assert shares[0] <= share <= shares[1]
    value = problem.layout.part(run.final_state, "v")
    matrix = problem.matrices(run.final_state[None])[0]
    again = error_on_new_data(value, matrix, problem.feature)
    assert again == pytest.approx(error, abs=5 * np.sqrt(error / 10_000))


@pytest.mark.long
@pytest.mark.parametrize("eta", [0.02, 0.005])
def test_free_attention_stays_with_the_linear_rule_under_descent(eta):
    run = dynamics.descend(made(SYSTEM.FullEmpirical, 0), eta, round(900 / eta), record=1)
    error, share = run["test_error"][-1], run["patch_association"][-1]
    print(f"(T), descent, eta {eta:g}: error {error:.4f}, association {share:.2f}")
    assert 0.085 <= error <= 0.105
    assert share == 0


def test_the_verdict_reads_a_free_and_says_what_the_gram_matrix_does(monkeypatch):
    """Literal words ask for a Gram matrix that fits and does not associate."""
    ends = {"T_adam": (0.01, 0.25), "gram_adam": (0.01, 1.0)}

    def fitted(system, name, parameters, seed, options):
        error, share = ends[name]
        return {
            "seed": seed, "steps": [0, 1], "test_error": [0.5, error], "diverged": False,
            "patch_association": [0.0, share], "associated": share == 1.0,
        }  # fmt: skip

    monkeypatch.setattr(convolution, "fit", fitted)
    monkeypatch.setattr(convolution, "linear_error", lambda *_: 0.1)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 2"])
    literal = verdict.finding.literal
    assert (verdict.word, verdict.finding.single) == ("holds, as read here", ("seed",))
    assert (literal.holds, literal.measured) == (False, 0.0)
    ends["gram_adam"] = (0.01, 0.5)  # fits, and does not associate
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 2"])
    assert verdict.finding.literal.holds is True
    ends["T_adam"] = (0.06, 0.25)  # does not fit, at one seed
    assert dynamics.verify(SYSTEM, None, ["Figure 2"])[0].holds is None
    assert dynamics.verify(SYSTEM, SYSTEM.Parameters(), ["Figure 2"])[0].holds is None
