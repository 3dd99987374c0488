"""Every entry, the declared reduction and both expectations: along runs and at random states."""

import numpy as np
import pytest

import dynamics
from dynamics.models import masked_image_modeling as file
from dynamics.models.engine import declaration


def agree(result):
    assert max(result.deviation.values()) < 1e-12
    for name, event in result.events["reduced"].items():
        assert event.step == result.events["full"][name].step, name
    assert result.full["dead"].max() < 1e-12
    for name in set(result.full.observables) & set(result.reduced.observables):
        one, two = result.full[name], result.reduced[name]
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize(
    ("kind", "given", "risk"),
    [
        ("counts", {"masked": 4}, 0.4586236549702),
        ("contour", {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}, None),
    ],
)
def test_both_expectations_over_3000_steps(system, kind, given, risk):
    """Two clusters that cross without symmetry, in a random basis."""
    areas = "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2"
    parameters = system.Parameters(family="custom", areas=areas, **given)
    reduced, full = system.ReducedPopulation(parameters, kind), system.FullPopulation(parameters)
    assert reduced.layout.size == 44
    result = dynamics.compare(reduced, full, eta=2.0, steps=3000 if risk else 100)
    agree(result)
    if risk:
        assert result.full["risk"][-1] == pytest.approx(risk, abs=5e-13)
        assert result.reduced["risk"][-1] == pytest.approx(risk, abs=5e-13)


def test_full_gradient_descent_sees_the_phases(system):
    """Two phases at (C_global, C_local) = (8, 2), one at (4, 4)."""
    default_run = system.default_runs["compare"]
    parameters = system.Parameters(**default_run.parameters)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(*problems, default_run.eta, default_run.steps)
    agree(result)
    assert result.full["rho0"][0] == pytest.approx(1.99758, abs=5e-6)
    assert result.full.events["E2"].step == 13
    assert result.full["risk"][-1] == pytest.approx(0.0917977, abs=5e-8)
    assert result.full["floor"][-1] == pytest.approx(1 / 11, rel=1e-12)
    one_phase = system.Parameters(P=12, C_global=4, C_local=4, masked=3)
    problems = system.ReducedPopulation(one_phase), system.FullPopulation(one_phase)
    assert problems[1].settings["basis"] == 0
    result = dynamics.compare(*problems, 1.0, 500)
    agree(result)
    assert result.full.events["E2"].step == 0
    assert not result.full.events["E0"]
    assert result.full["rho"].max() < 1


def test_a_wrong_gradient_is_seen(system):
    parameters = system.Parameters(P=8, C_global=4, C_local=2, masked=3)
    wrong = system.ReducedPopulation(system.Parameters(P=8, C_global=4, C_local=2, masked=4))
    wrong.parameters = parameters
    result = dynamics.compare(wrong, system.FullPopulation(parameters), eta=1.0, steps=50)
    assert max(result.deviation.values()) > 1e-3


SIZES = [
    {"P": 9, "C_global": 3, "C_local": 2, "masked": 4},
    {"P": 5, "C_global": 3, "C_local": 2, "masked": 2, "z": "0.5,1.5", "odds": "0.3,0.7"},
    {"areas": "0,0,1,1,2;0,1,0,2,1", "masked": 2},
]
PARTS = (
    "start", "fixed", "law", "loss", "observe", "names", "sizes", "configurations", "reduced",
    "reduced_observe",
)  # fmt: skip


@pytest.fixture(scope="module")
def declared():
    """The model as it runs where its law cannot be listed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declaration, "MAX_LISTED", 0)
        yield dynamics.Model(**{part: getattr(file, part) for part in PARTS})


def lifted(rows, scalars, size):
    """Every entry that scalars of the reduced problem stand for, shape (d, d)."""
    Q = np.zeros((size, size))
    for kind, start in zip(rows.types, rows.starts, strict=False):
        phi = scalars[start + len(kind.ups_names) :]
        Q[kind.patches] = np.hstack([scalars[start:][kind.ups_of], phi[kind.phi_of]])
    return Q


@pytest.mark.parametrize("sizes", SIZES)
def test_value_gradient_and_hessian_at_random_states(system, declared, sizes):
    family = {"family": "custom"} if "areas" in sizes else {}
    parameters = system.Parameters(**sizes, **family)
    counts, contour = (system.ReducedPopulation(parameters, k) for k in ("counts", "contour"))
    entries = system.FullPopulation(parameters, basis=None)
    reduced = declared.ReducedPopulation(declared.Parameters(**sizes))
    assert reduced.closure.grade == "declared"
    given = reduced.parameters
    names = list(file.names(given.P, given.C_global, given.C_local, given.areas))
    order = [names.index(name) for name in reduced.scalars]
    gross = (counts.rows.sizes**-1.0).max() * given.masked / given.P  # attentions sum to 1
    generator, depth = np.random.default_rng(0), parameters.d
    for scale in np.repeat([0.1, 0.5, 1.0, 2.0], 25):
        state = scale * generator.standard_normal(counts.layout.size)
        slope, risk = counts.gradient(state), counts.risk(state)
        allowed = {"rtol": 1e-11, "atol": 1e-11 * np.abs(slope).max()}
        np.testing.assert_allclose(contour.gradient(state), slope, **allowed)
        np.testing.assert_allclose(reduced.gradient(state[order]), slope[order], **allowed)
        Q = lifted(counts.rows, state, depth)
        found = entries.gradient(Q).reshape(Q.shape)
        np.testing.assert_allclose(found, lifted(counts.rows, slope, depth), **allowed)
        hessian = reduced.jacobian(state[order])
        for fast in (counts, contour):
            error = fast.jacobian(state)[np.ix_(order, order)] - hessian
            assert np.abs(error).max() < 1e-9 * gross
        for problem, point in ((contour, state), (reduced, state[order]), (entries, Q)):
            assert problem.risk(point) == pytest.approx(risk, rel=1e-11)


def test_what_a_declaration_observes_is_read_off_the_rows(system, declared):
    given = {"P": 40, "C_global": 16, "C_local": 4, "masked": 30}
    reduced = declared.ReducedPopulation(declared.Parameters(**given))
    counts = system.ReducedPopulation(system.Parameters(**given), "counts")
    runs = [dynamics.descend(problem, eta=2.0, steps=60) for problem in (reduced, counts)]
    for name in ("risk", "Phi_m", "Phi_0", "A_m", "gap", "A_g", "gap_g"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-10, atol=1e-13)
