"""Models of pages: their lists give in node what Python gives, as constants move."""

import dataclasses
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from node import needs_node, problem_of, run_script

import dynamics
from dynamics.explorer import own_model, own_points, own_programs, papers, shallow_vit
from dynamics.explorer.driver import worker_script
from dynamics.explorer.own_model import page_model
from dynamics.explorer.own_points import center_of, reduced_problem
from dynamics.validation import InvalidRequest

SMALL = {
    "committee": {"n": 1, "d": 3},
    "deep_linear": {"D": 2, "layers": 3},
    "single_location_gaussian": {"d": 3, "L": 2},
    "softmax_icl": {"K": 3, "N": 2},
}
ODD = '''
"""A model of parts that are rare together: running sums, indices, extremes, words."""

import numpy as np

limits = ("q > 0", "q + r < 1", "K >= 2", "kind in plain, rounded")
events = {"half": "a >= g/2", "late": "b >= a while risk > 0"}
names = {"a": ("w", 0), "b": ("w", 1)}


def start(K=3, g=0.4):
    M = 0.1 * np.eye(2)[None] * np.ones((2, 1, 1))
    return {"w": np.append(np.full(K - 1, g), g**2), "M": M}


def law(K, q=0.2, r=0.3):
    for k in range(K):
        weight = (q if k == 0 else r if k == 1 else (1 - q - r) / (K - 2)) if K > 2 else 0.5
        yield weight, {"k": k, "x": np.cos(np.arange(K) + k), "flag": k % 2 == 0}


def fixed(g):
    return {"scale": np.array([1.0, g])}


def loss(theta, sample, xp, K, kind="plain", g=0.4):
    w = theta["w"][sample["k"]] * xp.cumsum(theta["w"] * sample["x"])
    w = xp.round(8 * w) * w if kind == "rounded" else w
    picked = xp.take(w, 1) + xp.logsumexp(w) + xp.max(w) + xp.tanh(w[0]) ** 3
    turned = xp.einsum("hij,hjk->ik", theta["M"], theta["M"]) * theta["scale"]
    far = xp.where(sample["flag"], xp.erf(picked), xp.logaddexp(picked, g))
    return (far - 1) ** 2 + xp.sum(xp.clip(turned, -3, 0.5) ** 2) + xp.hypot(picked, 1.0)


def observables(theta, xp):
    return {"largest": xp.max(theta["w"]), "trace": xp.trace(theta["M"][0])}
'''


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 0)
    monkeypatch.setattr(own_points, "NUMBERS_OF_DRAWS", 1000)


@pytest.fixture(scope="module")
def odd_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "odd.py"
    path.write_text(ODD)
    return path


def moved(parameters):
    """Every real constant elsewhere."""
    values = dataclasses.asdict(parameters)
    reals = {name: 0.9 * x + 0.003 for name, x in values.items() if isinstance(x, float)}
    return dataclasses.replace(parameters, **reals)


def near(result, wanted, tolerance=1e-12):
    wanted = np.asarray(wanted, dtype=float).reshape(-1)
    size = np.abs(wanted).max(initial=1e-300)
    return np.abs(np.array(result, dtype=float) - wanted).max(initial=0.0) <= tolerance * size


def check_against_python(system, parameters, script=None):
    """Everything that the page computes, at 200 states, with its real constants elsewhere."""
    center = center_of(system, parameters)
    if script is None:
        with mock.patch.object(own_model, "center_of", return_value=center):
            script = page_model(system, parameters).script
    there = moved(parameters)
    problem = reduced_problem(system, there, center.draws)
    assert problem.layout.names == center.problem.layout.names
    states = np.random.default_rng(5).normal(size=(200, problem.layout.size))
    result = problem_of(script, dataclasses.asdict(there), states, jacobians=20)
    assert near(result["start"], problem.initial_state)
    reported = problem.observables_along(states)
    for k, (slope, row, observed, derivative) in enumerate(result["values"]):
        own = problem.gradient(states[k])
        assert near(slope, own)
        assert near(row, problem.order_parameters(states[k], own))
        assert near(observed, [reported[name][k] for name in center.observable_names])
        if k < 20:
            assert near(derivative, problem.jacobian(states[k]))


@needs_node
@pytest.mark.parametrize("name", [*SMALL, "odd"])
def test_all_that_a_page_computes_is_that_of_python(odd_path, name):
    system = dynamics.load_system(odd_path if name == "odd" else name)
    check_against_python(system, system.Parameters(**SMALL.get(name, {})))


@needs_node
@pytest.mark.parametrize(("text", "one_by_one"), [("ROWS", True), ("ODD", False)])
def test_long_lists_are_of_one_sample_unless_it_is_an_index(
    tmp_path, monkeypatch, text, one_by_one
):
    monkeypatch.setattr(own_programs, "LONG", 0)
    path = tmp_path / "long.py"
    path.write_text(globals()[text])
    system = dynamics.load_system(path)
    script = page_model(system, system.Parameters()).script
    assert (f'"one_by_one": {str(one_by_one).lower()}') in script
    check_against_python(system, system.Parameters(), script)


@needs_node
def test_other_words_and_sizes_are_held_and_what_is_not_is_said(odd_path, monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 3)
    system = dynamics.load_system(odd_path)
    model = page_model(system, system.Parameters())
    sliders = {slider.name: slider for slider in model.sliders}
    assert sliders["kind"].values == ("plain", "rounded")
    assert (sliders["q"].minimum, sliders["q"].open_minimum) == (0.0, True)
    check_against_python(system, system.Parameters(kind="rounded"), model.script)
    usual = dataclasses.asdict(system.Parameters())
    wrong = [{"q": 0.9}, {"q": -0.1}, {"kind": "other"}]
    asked = [usual | changes for changes in ({}, {"kind": "rounded"}, {"K": 7}, *wrong)]
    one, two, other, *answers = run_script(model.script, "return given.map(MODEL.check);", asked)
    assert (one["ok"], two["ok"], other["ok"]) == (True, True, False)
    command = f"attdyn explore {Path(system.reference).name}"
    assert other["message"] == f"this page holds K = 3; {command} --K 7 writes another"
    assert other["nearest"] == usual
    for changes, answer in zip(wrong, answers, strict=True):
        with pytest.raises(InvalidRequest) as refused:
            system.Parameters(**changes)
        assert (answer["ok"], answer["message"]) == (False, str(refused.value))


@needs_node
def test_a_constant_that_decides_something_has_some_values(tmp_path, monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 12)
    path = tmp_path / "threshold.py"
    path.write_text(
        "def start(a=0.3):\n    return {'w': [a]}\n\n"
        "def law(q=0.4):\n    for x in (1.0, 2.0):\n"
        "        yield (0.9 if (x > 1) == (q > 0.25) else 0.1), {'x': x * q}\n\n"
        "def loss(theta, sample, xp):\n    return (theta['w'][0] * sample['x'] - 1) ** 2\n"
    )
    system = dynamics.load_system(path)
    model = page_model(system, system.Parameters())
    sliders = {slider.name: slider for slider in model.sliders}
    assert sliders["q"].values == pytest.approx((0.2, 0.3, 0.4, 0.5, 0.6))
    assert sliders["a"].values == ()
    for q in sliders["q"].values:
        there = system.Parameters(q=q, a=0.7)
        result = problem_of(model.script, dataclasses.asdict(there), [[0.9]])
        assert result["start"] == [0.7]
        assert near(result["values"][0][0], system.ReducedPopulation(there).gradient([0.9]))
    answer = run_script(model.script, "return MODEL.check({ q: 0.35, a: 0.7 });")
    assert answer["nearest"]["q"] in (0.3, 0.4)
    assert answer["message"].startswith("this page holds q = 0.4, 0.3")


ROWS = """
limits = ("0 <= q <= 1",)
events = {"learned": "risk <= g/10"}


def start(g=0.3):
    return {"w": [g, g**2]}


def law(q=0.4):
    for sign in (-1, 1):
        yield (q if sign > 0 else 1 - q), {"x": [q, 1 - q], "parts": ([sign, 2 * q], sign)}


def fixed(g):
    return {"scale": [[1.0, g], [g, 1.0]]}


def loss(theta, sample, xp):
    row, sign = sample["parts"]
    return (xp.sum(theta["scale"] @ theta["w"] * sample["x"] * row) - sign) ** 2
"""


@needs_node
def test_a_constant_that_turns_the_linear_space_does_not_move_freely(tmp_path):
    path = tmp_path / "turned.py"
    path.write_text(
        "import numpy as np\n\n\ndef start():\n    return {'w': np.zeros(16)}\n\n\n"
        "def law(q=0.7):\n    j = np.arange(16)\n    for k in range(2):\n"
        "        x = np.cos(j * (k + 1)) + q * np.sin(j * j + k)\n"
        "        yield 0.5, {'x': x, 'y': 1.0 - 3 * k}\n\n\n"
        "def loss(theta, sample, xp):\n"
        "    return (xp.tanh(sample['x'] @ theta['w']) - sample['y']) ** 2\n"
    )
    system = dynamics.load_system(path)
    parameters = system.Parameters()
    center = center_of(system, parameters)
    assert (center.problem.coordinates, center.held) == ("linear", ("q",))
    script, state = page_model(system, parameters).script, [0.3, -0.2]
    result = problem_of(script, {"q": 0.7}, [state])
    assert near(result["values"][0][0], system.ReducedPopulation(parameters).gradient(state))


POSITIONAL = dynamics.load_system("positional_attention")
IMAGES = dynamics.load_system("masked_image_modeling")
VIT = dynamics.load_system("shallow_vit")
POINTS = [
    (POSITIONAL, {"D": 12, "C": 4, "q": 0.3, "beta": 0.4}, {"q": 0.8, "nu": 0.02, "scale": 1.7}),
    (POSITIONAL, {"D": 8, "C": 4, "q": 0.9, "p": 5, "random_sets": "mixed"}, {"q": 0.1}),
    (IMAGES, {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}, {}),
    (IMAGES, {"family": "two_cluster_grid", "b11": 3, "b10": 2, "C_local": 2, "T": 1}, {}),
]


def constants(parameters, model):
    return {slider.name: getattr(parameters, slider.name) for slider in model.sliders}


def order_of(problem, scalars):
    """Place in the state of Python of each scalar of a page."""
    if problem.system == "positional_attention":
        return [problem.layout.names.index(name) for name in scalars]
    own, remote, _, _ = map(int, problem.rows.references)
    names = list(problem.layout.names)
    names[own], names[remote] = "Phi_m", "Phi_0"
    return [names.index(name) for name in scalars]


@needs_node
@pytest.mark.parametrize(("system", "first", "moved"), POINTS, ids=str)
def test_gradients_are_those_of_python_at_random_states(system, first, moved):
    parameters = system.Parameters(**first)
    model = papers.page_model(system, parameters)
    there = dataclasses.replace(parameters, **moved, **({"alpha0": None} if "nu" in moved else {}))
    problem = system.ReducedPopulation(there)
    states = np.random.default_rng(3).normal(size=(100, problem.layout.size))
    script = worker_script(model.script, model.problem)
    found = problem_of(script, constants(there, model), states)
    place = order_of(problem, found["scalars"])
    assert found["start"] == pytest.approx(problem.initial_state[place], rel=1e-14)
    for state, (slope, _, observed, _) in zip(states, found["values"], strict=True):
        own = np.empty(state.size)
        own[place] = state
        expected = problem.gradient(own)[place]
        # The net gradient may be far below what it is the sum of, and e^-F has |F| roundings.
        allowed = 1e-12 * np.abs(expected).max()
        if system is POSITIONAL:
            known = problem.error_estimate(own)
            allowed = max(allowed, 1e-12 * known["gross"][:3].max()) + known["estimate"][:3].max()
        assert np.abs(np.array(slope) - expected).max() <= allowed
        values = problem.observables(own)
        for name, value in zip(found["names"], observed, strict=True):
            if name != "error":
                assert value == pytest.approx(values[name], rel=1e-11, abs=1e-13), name


@needs_node
def test_sizes_are_the_given_one_and_its_neighbours(monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 5)
    parameters = POSITIONAL.Parameters(D=6, C=3, random_sets="mixed")
    model = papers.page_model(POSITIONAL, parameters)
    sliders = {slider.name: slider for slider in model.sliders}
    assert sliders["D"].values == (6, 9)
    assert sliders["p"].values == (3, 5, 7)
    assert sliders["random_sets"].values == ("mixed", "any")
    usual = constants(parameters, model)
    script = worker_script(model.script, model.problem)
    asked = [usual | {"D": 9, "q": 0.2}, usual | {"D": 12}]
    held, other = run_script(script, "return given.map((each) => MODEL.check(each));", asked)
    assert held["ok"]
    assert not other["ok"]
    assert other["nearest"]["D"] == 9
    shown = "return MODEL.make(given).matrix('A', Float64Array.of(0.1, 0.7, -0.4));"
    matrix = run_script(script, shown, usual)
    A = np.array([*matrix["values"], np.nan])[np.array(matrix["labels"]).reshape(6, 6)]
    sets = np.arange(6) // 3
    wanted = np.where(sets[:, None] == sets, 0.7, -0.4)
    np.fill_diagonal(wanted, np.nan)  # never trained
    np.testing.assert_array_equal(A, wanted)


@needs_node
@pytest.mark.parametrize("moved", [{}, {"margin": 2.5, "sigma": 0.2, "xi": 0.03}, {"L": 22}])
def test_gradients_of_every_trained_entry_are_those_of_python_along_a_run(moved):
    parameters = VIT.Parameters(m=30, L=20, margin=3.0)
    model, there = shallow_vit.page_model(VIT, parameters), dataclasses.replace(parameters, **moved)
    problem = VIT.ReducedPopulation(there)
    states = dynamics.descend(problem, eta=0.1, steps=60, record=12).states
    script = worker_script(model.script, model.problem)
    found = problem_of(script, constants(there, model), states)
    assert found["start"] == pytest.approx(problem.initial_state, abs=1e-15)
    for state, (slope, row, *_) in zip(states, found["values"], strict=True):
        own = problem.gradient(state)
        assert slope == pytest.approx(own, rel=1e-11, abs=1e-13 * np.abs(own).max())
        assert row == pytest.approx(problem.order_parameters(state, own), rel=1e-12)


def test_a_step_that_takes_too_long_is_refused_with_a_size_that_does_not():
    with pytest.raises(InvalidRequest) as refusal:
        shallow_vit.page_model(VIT, VIT.Parameters(m=1000))
    nearest = int(str(refusal.value).rpartition("m=")[2])
    for m, fits in ((nearest, True), (nearest + 1, False)):
        problem = VIT.ReducedPopulation(VIT.Parameters(m=m))
        assert (problem.layout.size <= shallow_vit.MOST_ENTRIES) is fits
