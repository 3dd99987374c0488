"""Every entry, the declared reduction of the model file, and both expectations, held together."""

import numpy as np
import pytest

import dynamics
from dynamics.models import masked_image_modeling as file
from dynamics.models.engine import declaration

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
