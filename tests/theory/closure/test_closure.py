"""Closures of gradients in the field, and first integrals beside quadrature and flows."""

import numpy as np
import pytest
import sympy

import dynamics
from dynamics.cli import main
from dynamics.models.engine.first_integrals import first_integrals
from theory.closure import refinement
from theory.closure.first_integrals import first_integral, separating_pairs
from theory.closure.linear import closed_span, exact_basis, numeric_basis
from theory.closure.refinement import leaving, refine
from theory.program import field


def chain(x):
    """Each entry is pulled by the cube of the one before it: classes part one a round."""
    before = np.roll(x, 1, axis=0)
    before[0] = field.residues(1)
    return field.add(field.power(before, 3), field.negative(x))


def test_a_refinement_that_stops_early_is_refuted(monkeypatch):
    start, random = np.full(5, 0.5), np.random.default_rng(0)
    triples = field.data_triples(start)
    monkeypatch.setattr(refinement, "QUIET", 0)
    classes = refine(chain, start, triples, np.zeros(5, dtype=int), random)
    monkeypatch.undo()
    assert leaving(chain, classes, triples, random).size


def closure(start, risk=None, **others):
    model = dynamics.Model(start=lambda: {"w": np.array(start)}, risk=risk, **others)
    return dynamics.load_system(model).closure()


@pytest.mark.parametrize(
    ("start", "risk", "labels", "signs"),
    [
        ([0.5, -0.5, 0.5], lambda theta, xp: xp.sum(xp.log(xp.cosh(theta["w"]))),
         [0, 0, 0], [1, -1, 1]),
        ([0.0, 0.0, 0.0], lambda theta, xp: xp.sum(theta["w"] ** 2) / 2 - theta["w"][0]
         + theta["w"][1], [0, 0, -1], [1, -1, 0]),
    ],
)  # fmt: skip
def test_opposite_entries_are_one_class_with_signs(start, risk, labels, signs):
    classes = closure(start, risk).classes
    assert (classes.labels.tolist(), classes.signs.tolist()) == (labels, signs)


def test_a_space_holds_the_start():
    """Of (w_0 - 1)^2 w_1^2 from (1, 1) nothing moves."""
    risk = lambda theta, xp: (theta["w"][0] - 1) ** 2 * theta["w"][1] ** 2  # noqa: E731
    assert closure([1.0, 1.0], risk).scalars == 0
    assert closure([0.5, 1.0], risk).scalars == 2


def test_parameter_groups_are_closed_each_for_itself():
    def gradient(x):
        """Of (x_0 + 3 x_1)^2 / 2."""
        total = field.add(x[0], field.multiply(three, x[1]))
        return np.stack([total, field.multiply(three, total)])

    three, start = field.residues(3), field.data_triples(np.array([0.1, 0.2]))
    for groups, basis in (([0, 0], [[1], [3]]), ([0, 1], [[1, 0], [0, 1]])):
        span = closed_span(gradient, start, np.array(groups), np.random.default_rng(0))
        np.testing.assert_allclose(exact_basis(span), basis, rtol=1e-15)


def test_a_space_in_floats():
    w = np.sqrt([2.0, 3.0, 5.0])
    rates = lambda z: (np.tanh(z @ w) - 1) * w  # noqa: E731
    basis, clear = numeric_basis(rates, np.zeros(3), np.zeros(3, int), np.random.default_rng(0))
    assert (basis.shape, clear) == ((3, 1), True)
    np.testing.assert_allclose(basis[:, 0] / basis[0, 0], w / w[0], rtol=1e-14)


def test_weights_that_differ_in_a_thousandth_are_two_unknowns():
    law = lambda: zip((0.5005, 0.4995), np.eye(2), strict=True)  # noqa: E731
    loss = lambda theta, sample, xp: (sample @ theta["w"] - 1) ** 2  # noqa: E731
    assert closure([0.1, 0.1], law=law, loss=loss).scalars == 2


x, y, z = sympy.symbols("x y z", real=True)


def of(risk, start=(0.5, 0.7)):
    """First integrals of a model of some scalars u_0, u_1, ..., of its flow."""
    system = dynamics.load_system(dynamics.Model(start=lambda: {"u": np.array(start)}, risk=risk))
    return system, first_integrals(system.derivation.expressions())


def test_the_energy_of_a_transformer_on_a_markov_chain(capsys):
    """e^2 - w^2 - sgn(w) log|w|, at any p and q."""
    system = dynamics.load_system("markov_attention")
    ((law, value),) = first_integrals(system.derivation.expressions())
    assert str(law) == "e**2 - w**2 - log(Abs(w))*sign(w)"
    assert value == pytest.approx(1.1**2 - 1.5**2 + np.log(1.5), rel=1e-14)
    other = system.Parameters(p=0.3, q=0.15, w0=0.4)
    ((again, _),) = first_integrals(system.derivation.expressions(other))
    assert again == law
    assert main(["derive", "markov_attention"]) == 0
    assert "e**2 - w**2 - log(Abs(w))*sign(w) = -0.634535" in capsys.readouterr().out
    assert main(["derive", "markov_attention", "--rule", "adam"]) == 0
    assert "first integrals" not in capsys.readouterr().out


@pytest.mark.parametrize("law", [{"w0": 0.5, "e0": 0.2}, {"p": 0.8, "q": 0.7, "w0": -0.5}])
def test_it_is_kept_by_the_flow_and_broken_by_descent(law):
    system = dynamics.load_system("markov_attention")
    parameters = system.Parameters(**law)
    problem = system.ReducedPopulation(parameters)
    ((kept, value),) = first_integrals(system.derivation.expressions(parameters))
    along = sympy.lambdify(sympy.symbols("e w", real=True), kept)
    run = dynamics.flow(problem, 300.0, rtol=1e-11)
    assert np.abs(along(run["e"], run["w"]) - value).max() < 1e-9
    off = []
    for eta in (0.1, 0.05):
        run = dynamics.descend(problem, eta, round(100 / eta))
        off.append(np.abs(along(run["e"], run["w"]) - value).max())
    assert off[1] / off[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("slopes", "text"),
    [
        ((y * sympy.exp(x), sympy.exp(x)), "x - y**2/2"),
        ((x**3 * y, x**4 / 4), "x**2 - 4*y**2"),
        ((x * y, x**2 * (1 + y)), "x**2 - 2*y + 2*log(Abs(y + 1))"),
    ],
)
def test_laws_of_pairs(slopes, text):
    law = first_integral((x, y), slopes, [])
    assert sympy.expand(law - sympy.sympify(text, {"x": x, "y": y})) == 0
    change = sum(sympy.diff(law, v) * s for v, s in zip((x, y), slopes, strict=True))
    for at in ({x: 0.3, y: 1.2}, {x: -0.7, y: 0.4}, {x: 1.1, y: -0.6}):
        assert abs(float(change.subs(at))) < 1e-12


@pytest.mark.parametrize(
    "slopes", [(x + y, sympy.Integer(1)), (x * z, y), (sympy.sin(sympy.cos(x)), y)]
)
def test_no_law_without_a_separation_or_an_integral(slopes):
    assert first_integral((x, y), slopes, []) is None


@pytest.mark.parametrize(
    ("rates", "known", "pairs"),
    [
        (lambda a, b, c: (a * b, a**2 * (1 + b), np.sin(a + c)), [], [(0, 1)]),
        (lambda a, b, c: (a * b, a**2 * (1 + b), np.sin(a + c)), [(0, 1)], []),
        (lambda *state: [-u * (1 + u) for u in state], [], []),  # clocks
    ],
)
def test_pairs_are_those_whose_ratio_separates(rates, known, pairs):
    rates, draw = lambda state, of=rates: np.array(of(*state)), np.random.default_rng(0)
    assert separating_pairs(rates, np.zeros(3), known, draw) == pairs


def test_of_a_model_those_that_no_other_law_implies():
    """R(u_0^2 + log u_1 + u_2), of whose three pairs two laws are independent."""

    def risk(theta, xp):
        u = theta["u"]
        return (u[0] ** 2 + xp.log(u[1]) + u[2] - 1) ** 2 / 2

    system, found = of(risk, (0.5, 0.7, 0.3))
    assert len(found) == 2
    run = dynamics.flow(system.ReducedPopulation(system.Parameters()), 20.0, rtol=1e-11)
    letters = sympy.symbols("u_0:3", real=True)
    for law, value in found:
        along = sympy.lambdify(letters, law)(*(run[f"u_{k}"] for k in range(3)))
        assert np.abs(along - value).max() < 1e-9


def test_a_quadratic_law_is_not_found_twice():
    system, found = of(lambda theta, xp: (theta["u"][0] * theta["u"][1] - 1) ** 2)
    assert system.closure().conserved == ("u_0**2 - u_1**2",)
    assert found == ()
