"""The measured figures of the published models, each against code of its own or a closed form."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.library import deep_linear, induction_head, linear_icl

MODELS = Path(__file__).parents[2] / "support/models"


def problem(name, kind="ReducedPopulation", **constants):
    system = dynamics.load_system(name)
    return getattr(system, kind)(system.Parameters(**constants))


def test_linear_attention_ends_at_the_least_risk():
    """The product u s is 1/g = 31/36 and R = D/2 (1 - 1/g) at D = 4, N = 31."""
    run = dynamics.descend(problem("linear_icl"), eta=0.02, steps=4000)
    assert run["s"][-1] * run["u"][-1] == pytest.approx(31 / 36, abs=1e-12)
    assert run["risk"][-1] == pytest.approx(0.2777778, abs=5e-8)


def test_linear_attention_follows_its_sigmoid():
    times = np.array([2.0, 3.0, 4.0])
    run = dynamics.flow(problem("linear_icl"), time=4.0, rtol=1e-11, record=times)
    np.testing.assert_allclose(run["s"] * run["u"], [0.0014879, 0.0743511, 0.7213131], atol=5e-8)
    law = dynamics.load_system("linear_icl").Parameters()
    np.testing.assert_allclose(linear_icl.sigmoid(times, law), run["s"] * run["u"], rtol=1e-9)


def test_the_risk_of_linear_attention_is_that_of_prompts():
    """Against 2e5 prompts at merged weights of no symmetry, within 4 standard errors."""
    D, N, draws = 3, 5, 200_000
    full = problem("linear_icl", "FullPopulation", D=D, N=N, least=0.3, slope=0.4)
    random = np.random.default_rng(0)
    state = 0.5 * random.standard_normal(D * D + 1)
    U, u = state[:-1].reshape(D, D), state[-1]
    scale = np.sqrt(0.3 + 0.4 * np.arange(D)[::-1])
    x = random.standard_normal((draws, N, D)) * scale
    query = random.standard_normal((draws, D)) * scale
    w = random.standard_normal((draws, D))
    beta = np.einsum("nid,nie,ne->nd", x, x, w) / N
    answer = u * np.einsum("nd,de,ne->n", beta, U, query)
    losses = ((query * w).sum(axis=1) - answer) ** 2 / 2
    error = losses.std() / np.sqrt(draws)
    assert abs(losses.mean() - full.risk(state)) < 4 * error


@pytest.mark.parametrize(("slope", "scalars"), [(0.0, 2), (0.3, 5)])
def test_linear_attention_has_a_scalar_for_each_eigenvalue(slope, scalars):
    """u, and one s for each: 5 at D = 4."""
    reduced = problem("linear_icl", slope=slope, ratio=2.0)
    assert reduced.closure.scalars == scalars
    (law,) = reduced.closure.conserved
    assert law.count("**2") == scalars
    assert law.endswith(" - u**2")


def test_plateaus_of_linear_attention():
    law = dynamics.load_system("linear_icl").Parameters(**linear_icl.SEPARATE)
    expected = [1, 0.640580, 0.377372, 0.209805, 0.135995]
    np.testing.assert_allclose(linear_icl.plateaus(law), expected, atol=5e-7)


@pytest.mark.long
@pytest.mark.parametrize(("rank", "drops"), [(1, 4), (2, 2), (4, 1)])
def test_heads_of_more_rank_have_fewer_drops(rank, drops):
    constants = {"heads": 4, "least": 0.25, "w0": 1e-2, "rank": rank}
    law = dynamics.load_system("linear_icl").Parameters(**constants)
    records = np.geomspace(100.0, 6e4, 4000)
    run = dynamics.flow(problem("linear_icl", **constants), time=6e4, record=records)
    loss, levels = 2 * run["risk"], linear_icl.plateaus(law)
    rested = [np.sum(np.abs(loss / level - 1) < 1e-3) > 20 for level in levels]
    assert sum(rested) - 1 == drops
    assert rested[0]
    assert rested[-1]


# Models, as files and in the library, that others computed with code of their own.
def test_softmax_in_context():
    run = dynamics.descend(problem("softmax_icl"), 1.0, 3000, record=[10, 100, 1000])
    risks = [0.2408657114, 0.0791820009, 0.0700993821, 0.0696854318]
    np.testing.assert_allclose(run["risk"][-4:], risks, atol=5e-11)
    np.testing.assert_allclose(run["A1"][-4:][[0, 1, 3]], [0.575398, 2.051799, 3.477458], atol=5e-7)
    np.testing.assert_allclose(run["B12"], -run["A1"] / 2, atol=1e-12)
    dominant = problem(MODELS / "softmax_icl.py", p1=0.8, N=12)
    run = dynamics.descend(dominant, 1.0, 1000, record=1000)
    assert run["risk"][-1] == pytest.approx(0.0472364944, abs=5e-11)
    rows = dominant.lift(run.final_state).reshape(3, 3)[:2]
    expected = [[2.010545, -1.005273, -1.005273], [-2.402477, 2.910201, -0.507724]]
    np.testing.assert_allclose(rows, expected, atol=5e-7)


@pytest.mark.parametrize(
    ("name", "eta", "ends", "risks"),
    [
        ("single_location", 0.1, [3.52326715, 1.05727298], [0.5, 0.0009]),
        (MODELS / "linear_attention.py", 0.02, [0.56545302, 0.88424676], [1.2543, 0.75]),
    ],
    ids=["single location", "linear attention"],
)
def test_models_of_two_scalars(name, eta, ends, risks):
    run = dynamics.descend(problem(name), eta, 3000)
    np.testing.assert_allclose(sorted(run.final_state), sorted(ends), atol=5e-9)
    assert run["risk"][[0, -1]] == pytest.approx(risks, abs=5e-5)


def test_modes_of_deep_linear_networks_follow_the_closed_form():
    reduced = problem("deep_linear")
    law = dynamics.load_system("deep_linear").Parameters()
    run = dynamics.flow(reduced, time=6.0, rtol=1e-11)
    for k, s in enumerate(deep_linear.singular_values(law)):
        exact = deep_linear.sigmoid(run.time, s, law.a0)
        np.testing.assert_allclose(run[f"w{k + 1}"] ** 2, exact, atol=1e-8)


def test_the_model_file_has_the_gradient_of_the_scalars():
    file, system = problem("induction_head"), induction_head.scalar_model(3)
    scalars = system.ReducedPopulation(system.Parameters(), coordinates="classes")
    assert set(scalars.state_names) == set(file.state_names)
    state = np.random.default_rng(2).standard_normal(len(file.state_names))
    order = [file.state_names.index(name) for name in scalars.state_names]
    slope = scalars.gradient(state[order])
    np.testing.assert_allclose(8 * file.gradient(state)[order], slope, rtol=1e-11, atol=1e-14)
    assert file.risk(state) == pytest.approx(scalars.risk(state[order]), rel=1e-12)


def test_the_symmetry_leaves_19_scalars_of_which_17_move():
    file = problem("induction_head")
    shapes = {"W1": (16, 16), "W2": (32, 32), "W3": (8, 64)}
    assert induction_head.fixed_space(3, shapes) == 19
    assert file.closure.scalars == 17
    assert not {"c1", "c2"} & set(file.state_names)


def test_sequences_approach_the_scalars_as_their_inverse_root():
    system = dynamics.load_system("induction_head")
    full = system.FullPopulation(system.Parameters())
    exact, state = full.gradient(full.initial_state), full.initial_state
    off = {}
    for samples, seed in itertools.product((1000, 10_000), range(4)):
        drawn = system.FullEmpirical(system.Parameters(), samples=samples, seed=seed, omega=0.0)
        error = np.linalg.norm(drawn.gradient(state) - exact) / np.linalg.norm(exact)
        off.setdefault(samples, []).append(error)
    ratio = np.mean(off[1000]) / np.mean(off[10_000])
    assert ratio == pytest.approx(np.sqrt(10), rel=0.15)


@pytest.mark.long
@pytest.mark.parametrize(
    ("N", "alone", "copied", "gamma"),
    [
        (4, True, 165.288, 6.9474), (8, True, 252.996, 12.4334), (32, True, 1650.040, 45.6687),
        (4, False, 88.1299, None), (8, False, 227.360, None), (32, False, 2114.52, None),
    ],
)  # fmt: skip
def test_when_the_induction_head_emerges(N, alone, copied, gamma):
    """The flow of three scalars and of all, by roots; on a grid of records 165.4 and 88.5."""
    run = induction_head.emergence(N, induction_head.THREE if alone else ())
    assert run.events["T_copy"].time == pytest.approx(copied, rel=5e-6)
    if gamma is not None:
        assert run.events["T_gamma"].time == pytest.approx(gamma, rel=1e-5)
