"""Wrong calls raise what their documentation says, in one line that says what to do."""

import inspect
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from faulty_models import BASE

import dynamics
import theory
from dynamics import plotting, registry
from dynamics.library import built_in_names
from dynamics.validation import BRIEF, InvalidRequest, brief, learning_rate, unknown


@pytest.fixture(scope="module")
def square():
    system = dynamics.load_system("positional_attention")
    law = system.Parameters(D=4, C=2)
    return system, law, system.ReducedPopulation(law), system.FullPopulation(law)


@pytest.mark.parametrize("problem", ["ReducedPopulation", "FullPopulation", "FullEmpirical"])
@pytest.mark.parametrize("name", [*built_in_names(), "linear_icl"])
def test_a_problem_is_of_the_parameters_of_its_system(name, problem):
    system, others = dynamics.load_system(name), set(dynamics.system_names()) - {name}
    foreign = dynamics.load_system(min(others)).Parameters()
    for wrong in (3, None, "x", foreign):
        with pytest.raises(InvalidRequest, match=r"are not parameters of .*system\.Parameters\("):
            getattr(system, problem)(wrong)


PARAMETERS = "is a Parameters"
CALLS = {
    "descend": [
        (lambda s, p, r, f: dynamics.descend(p, 0.1, 3), "system.ReducedPopulation("),
        (lambda s, p, r, f: dynamics.descend(r, (0.1, 0.1, 0.1), 3), "has 3 entries"),
        (lambda s, p, r, f: dynamics.descend(s, 0.1, 3), "is a System"),
        (lambda s, p, r, f: dynamics.descend(r, "x", 3), "eta='x'"),
        (lambda s, p, r, f: dynamics.descend(r, [[1], [1, 2]], 3), "ragged"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, float("nan")), "steps=nan"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 10**5000), "steps=int is too large"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, initial="abc"), "3 numbers"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, initial=np.array([1j, 0, 0])), "3 numbers"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, record=[[1]]), "list of steps"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, checkpoint=5), "checkpoint=5"),
        (lambda s, p, r, f: dynamics.descend(r, 0.0, 3), "eta=0.0 is too small"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 0), "steps=0 is too small"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 1.5), "steps=1.5 is not a whole number"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 9, schedule="1-step"), "is -1"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, lambda gradient: 0), "step must begin"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, "gd", "often"), "record='often'"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, record=[4]), "record=4 is after the last"),
        (lambda s, p, r, f: dynamics.descend(r, 0.1, 3, initial=[np.nan, 0, 0]), "is not finite"),
    ],
    "rule": [
        (lambda s, p, r, f: dynamics.rule("adamm"), "nearest: adam"),
        (lambda s, p, r, f: dynamics.rule("adam", b1="x"), "b1='x'"),
        (lambda s, p, r, f: dynamics.rule(5), "rule=5"),
    ],
    "flows": [
        (lambda s, p, r, f: dynamics.flows([r, 7], 1.0), "not a problem"),
        (lambda s, p, r, f: dynamics.flows([r], -1.0), "time=-1.0 is too small"),
    ],
    "flow": [
        (lambda s, p, r, f: dynamics.flow(p, 1.0), PARAMETERS),
        (lambda s, p, r, f: dynamics.flow(r, "x"), "time='x'"),
        (lambda s, p, r, f: dynamics.flow(r, 0.0), "time=0.0 is too small"),
        (lambda s, p, r, f: dynamics.flow(r, 1.0, 1e-20), "rtol=1e-20 is too small"),
        (lambda s, p, r, f: dynamics.flow(r, 1.0, record=[0, 99.0]), "record=99.0 is too large"),
        (lambda s, p, r, f: dynamics.flow(r, 1.0, record=[]), "record="),
        (lambda s, p, r, f: dynamics.flow(r, 1.0, initial={}), "state="),
    ],
    "overlay": [
        (lambda s, p, r, f: dynamics.overlay(p, [0.1], time=1.0), PARAMETERS),
        (lambda s, p, r, f: dynamics.overlay(r, [1e-300], time=1.0), "eta=1e-300 is too small"),
        (lambda s, p, r, f: dynamics.overlay(r, "x", time=1.0), "eta='x'"),
        (lambda s, p, r, f: dynamics.overlay(r, [0.1], rule="adam", time=1.0), "or time"),
        (lambda s, p, r, f: dynamics.overlay(r, [0.1]), "steps, or a time"),
        (lambda s, p, r, f: dynamics.overlay(r, [0.1, 0.2], 3, ["gd"] * 3), "2 rates for 3 rules"),
    ],
    "load_system": [
        (lambda s, p, r, f: dynamics.load_system(None), "system=None is not a system"),
        (lambda s, p, r, f: dynamics.load_system(""), "system='' is unknown"),
        (lambda s, p, r, f: dynamics.load_system("no_such"), "system='no_such' is unknown"),
        (lambda s, p, r, f: dynamics.load_system("no/folder/x.py"), "x.py' is missing"),
        (lambda s, p, r, f: dynamics.load_system(SimpleNamespace(start=1)), "is not a system"),
        (lambda s, p, r, f: dynamics.load_system("x" * 1000), "system='xxx"),
        (lambda s, p, r, f: dynamics.load_system("a\0.py"), "system="),
    ],
    "compare": [
        (lambda s, p, r, f: dynamics.compare(p, p, 0.1, 3), "reduced problem first"),
        (lambda s, p, r, f: dynamics.compare(r, f), "eta and steps, or a time"),
    ],
    "verify": [
        (lambda s, p, r, f: dynamics.verify("positional"), "nearest: positional_attention"),
        (lambda s, p, r, f: dynamics.verify(s, claims="Theorem 99"), "claim 'Theorem 99'"),
        (lambda s, p, r, f: dynamics.verify(s, claims=5), "claims=5"),
        (lambda s, p, r, f: dynamics.verify(s, seed="x"), "seed='x'"),
        (lambda s, p, r, f: dynamics.verify(s, 5), "parameters=5"),
    ],
    "draw": [
        (lambda s, p, r, f: dynamics.draw(s, "99"), "figure '99'"),
        (lambda s, p, r, f: dynamics.draw(s, "1b", 5), "parameters=5"),
        (lambda s, p, r, f: dynamics.draw(s, "1b", seed="x"), "seed='x'"),
        (lambda s, p, r, f: dynamics.draw(s, "1b", options={"x": 1}), "option 'x'"),
    ],
    "rows_with_overlaps": [
        (lambda s, p, r, f: dynamics.rows_with_overlaps([[1.0, 2.0], [3.0, 4.0]]), "gram"),
    ],
    "stability_limit": [
        (lambda s, p, r, f: dynamics.stability_limit(p, [0.0]), PARAMETERS),
        (lambda s, p, r, f: dynamics.stability_limit(r, "x"), "state='x'"),
        (lambda s, p, r, f: dynamics.stability_limit(r, [1, 2]), "3 entries"),
    ],
    "onsets": [
        (lambda s, p, r, f: dynamics.onsets(p, [0.0]), PARAMETERS),
        (lambda s, p, r, f: dynamics.onsets(r, "x"), "state='x'"),
        (lambda s, p, r, f: dynamics.onsets(r, r.initial_state), "no stability limit"),
    ],
    "branches": [
        (lambda s, p, r, f: dynamics.branches(p, [0.0], "alpha"), PARAMETERS),
        (lambda s, p, r, f: dynamics.branches(r, r.initial_state, "x"), "name='x'"),
        (lambda s, p, r, f: dynamics.branches(r, r.initial_state, "alpha", 0), "count=0"),
    ],
    "save": [
        (lambda s, p, r, f: dynamics.save(3, "x"), "result=3"),
        (lambda s, p, r, f: dynamics.save(dynamics.descend(r, 0.1, 1), 3), "out=3"),
        (lambda s, p, r, f: dynamics.save(dynamics.descend(r, 0.1, 1), "/proc/x"), "out="),
    ],
    "load": [
        (lambda s, p, r, f: dynamics.load("nowhere"), "path='nowhere'"),
        (lambda s, p, r, f: dynamics.load("a\0b"), "path="),
        (lambda s, p, r, f: dynamics.load("~nobody_here/x"), "path='~nobody_here/x' begins with"),
    ],
    "sweep": [
        (lambda s, p, r, f: dynamics.sweep(s, {"D": "x"}), "D='x'"),
        (lambda s, p, r, f: dynamics.sweep(s, 5), "given=5"),
        (lambda s, p, r, f: dynamics.sweep(s, {"D": 4, "C": 2}, 5), "out=5"),
        (lambda s, p, r, f: dynamics.sweep(s, {"D": 4, "C": 2}, workers="x"), "workers='x'"),
    ],
    "diversity": [
        (lambda s, p, r, f: dynamics.diversity("x"), "attention="),
        (lambda s, p, r, f: dynamics.diversity(np.full((4, 4), 0.25), k="x"), "k='x'"),
    ],
    "total_variation": [
        (lambda s, p, r, f: dynamics.total_variation(None), "attention="),
    ],
    "multinomial": [
        (lambda s, p, r, f: dynamics.multinomial(3, 0.5), "probabilities=0.5"),
        (lambda s, p, r, f: dynamics.multinomial(3, (0.5, np.nan)), "do not sum to 1"),
    ],
    "multisets": [
        (lambda s, p, r, f: dynamics.multisets([0.5, 0.5], 2), "types=[0.5, 0.5]"),
        (lambda s, p, r, f: dynamics.multisets([(1.0, "a")], -1), "n=-1"),
    ],
    "Model": [
        (lambda s, p, r, f: dynamics.Model(), "start"),
        (lambda s, p, r, f: dynamics.Model(start=3), "start is int"),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_raise_what_is_documented(square, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call, part in CALLS[name]:
        with pytest.raises(InvalidRequest) as caught:
            call(*square)
        message = str(caught.value)
        assert part in message
        assert "\n" not in message
        assert len(message) <= 290
    assert raised(getattr(dynamics, name)) == {"InvalidRequest"} | OTHERS.get(name, set())
    assert not list(tmp_path.iterdir())


OTHERS = {
    "sweep": {"dynamics.sweep.store.StoreError", "dynamics.sweep.cluster.SchedulerGone"},
    "verify": {"KeyboardInterrupt"},
}
NEVER = {"dynamics": {"system_names"}, "theory": set(), "dynamics.plotting": set()}


def raised(function):
    """Exceptions that the Raises section of a function names."""
    text = inspect.getdoc(function) or ""
    if "Raises\n------\n" not in text:
        return set()
    section = text.split("Raises\n------\n")[1].split("\n\n")[0].splitlines()
    return {word for line in section if line[:1].strip() for word in line.split(", ")}


@pytest.mark.parametrize("package", NEVER)
def test_every_exported_function_says_what_it_raises(package):
    module = import_module(package)
    functions = [n for n in module.__all__ if inspect.isfunction(getattr(module, n))]
    assert functions
    silent = {name for name in functions if not raised(getattr(module, name))}
    assert silent == NEVER[package]


def test_every_exported_function_of_dynamics_has_a_wrong_call():
    functions = {n for n in dynamics.__all__ if inspect.isfunction(getattr(dynamics, n))}
    assert functions - NEVER["dynamics"] == set(CALLS)


@pytest.mark.parametrize("name", [name for name in plotting.__all__ if name != "look"])
@pytest.mark.parametrize("wrong", [3, [], {}])
def test_pictures_of_something_else_are_refused(name, wrong):
    draw = getattr(plotting, name)
    needed = [p for p in inspect.signature(draw).parameters.values() if p.default is p.empty]
    with pytest.raises(TypeError, match=r"^plotting\.\w+ (draws|writes) .*, not ") as caught:
        draw(wrong, *(["x"] * (len(needed) - 1)))
    assert "TypeError" in raised(draw)
    assert len(str(caught.value)) < 120


def test_a_run_without_a_matrix_has_no_picture_of_attention(square):
    with pytest.raises(InvalidRequest, match="reduced population problem has no attention matrix"):
        plotting.attention(dynamics.descend(square[2], 0.1, 2))


def test_wrong_calls_of_theory():
    with pytest.raises(TypeError, match="no symmetry of a str is known"):
        theory.classes("x")
    for path, part in (("nowhere.py", "cannot be read"), (3, "is not a path")):
        with pytest.raises(theory.ModelError, match=part):
            theory.read_model(path)


@pytest.mark.parametrize(
    ("system", "entries", "part"),
    [
        ("positional_attention", {"random_sets": "mix"}, "nearest: mixed( |$)"),
        ("shallow_vit", {"output_weights": "per_pos"}, "nearest: per_position( |$)"),
        ("shallow_vit", {"frozen": "value"}, "nearest: values( |$)"),
        ("positional_attention", {"prob": 0.5}, "parameter 'prob' is unknown.*nearest: q"),
        ("positional_attention", {"D": "x"}, "^D='x' is not a number"),
        ("positional_attention", {"D": 5}, "^D=5 has no divisor"),
        ("positional_attention", {"random_sets": 3}, "^random_sets=3 is unknown"),
        ("shallow_vit", {"xii": 1.0}, "parameter 'xii' is unknown.*nearest: xi"),
        ("masked_image_modeling", {"p": 4}, "parameter 'p' is unknown.*nearest: P"),
    ],
)
def test_wrong_parameters_are_one_line(system, entries, part):
    with pytest.raises(InvalidRequest, match=part) as caught:
        dynamics.load_system(system).Parameters(**entries)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_other_requests_of_a_system_are_one_line(square):
    system, law = square[:2]
    larger = system.Parameters(D=16, C=4)
    for call, part in (
        (lambda: system.Parameters(4, 2), "parameters are given by name; names are D, C"),
        (lambda: system.ReducedPopulation(law, "spectral", 0), "tolerance=0 is too small"),
        *((lambda wrong=wrong: system.FullEmpirical(larger, samples=4, **wrong), part)
          for wrong, part in (
              ({"seed": -1}, "seed="), ({"seed": "x"}, "seed="), ({"seed": None}, "seed="),
              ({"start": "symetric"}, "nearest: symmetric( |$)"),
              ({"dtype": "float"}, "nearest: float64( |$)"),
              ({"partition": "rand"}, "nearest: random( |$)"),
              ({"partition": "grids"}, "nearest: grid( |$)"),
          )),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=part):
            call()


def test_long_texts_are_cut_in_messages():
    assert {len(brief("x" * count)) for count in (BRIEF, BRIEF + 1, 10_000)} == {BRIEF}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my.py"
    path.write_text(BASE, encoding="utf-8")
    return path


def test_a_system_is_found_by_name_and_returned_as_it_is(system):
    assert dynamics.load_system(system) is system
    assert dynamics.load_system(system.reference) is system
    assert (system.origin, dict(system.digests)) == (None, {})
    assert set(dynamics.system_names()) >= {"positional_attention", "shallow_vit"}


def test_a_missing_file_names_the_nearest(mine):
    with pytest.raises(InvalidRequest, match=r"nearest: my\.py"):
        dynamics.load_system("mi.py")
    with pytest.raises(InvalidRequest, match=r"nearest: the path of a file$"):
        dynamics.load_system("nofile_at_all.py")


def test_a_file_is_loaded_once_until_it_changes(mine):
    first = dynamics.load_system("my.py")
    assert dynamics.load_system(str(mine)) is first
    assert dynamics.load_system(mine) is first
    assert first.reference == str(mine)
    assert first.presentation.origin == first.origin
    assert registry.can_be_loaded_again(first)
    mine.write_text(f"{BASE}\n", encoding="utf-8")
    assert dynamics.load_system("my.py") is not first
    mine.rename(mine.with_name("model"))
    assert dynamics.load_system("model").name == "model"


def test_what_is_in_memory_alone_cannot_be_loaded_again(system):
    model = dynamics.Model(start=lambda: {"w": 0.1}, risk=lambda theta, xp: theta["w"] ** 2)
    made = dynamics.load_system(model)
    assert made.reference == "model"
    assert not registry.can_be_loaded_again(made)
    assert registry.can_be_loaded_again(system)
    assert not registry.can_be_loaded_again(replace(system, claims=()))


def test_a_changed_model_is_refused_by_its_parts(mine):
    digests = dict(dynamics.load_system("my.py").digests)
    assert registry.load_unchanged(str(mine), digests).name == "my"
    mine.write_text(BASE.replace("** 2", "** 4").replace("q=0.5", "q=0.4"), encoding="utf-8")
    expected = "model 'my.py' was changed since the sweep began: .*law.*loss"
    with pytest.raises(InvalidRequest, match=f"^{expected}"):
        registry.load_unchanged(str(mine), digests)


def test_an_unknown_flag_has_the_nearest_only_if_it_is_near():
    flags = ["--omega", "--eta", "--seed"]
    assert str(unknown("flag", "--omgea", flags)).endswith("; nearest: --omega")
    assert str(unknown("flag", "--learning_rate", flags)).endswith("; nearest: --eta")
    assert str(unknown("flag", "--momentum", flags)).endswith("known are --omega, --eta, --seed")


def test_groups_may_rest_but_not_all():
    assert learning_rate([1, 0], ("a", "b")) == (1.0, 0.0)
    assert learning_rate([0, 1], ("a", "b")) == (0.0, 1.0)
    for refused in ([1, -0.1], 0.0, [0, 0], []):
        with pytest.raises(InvalidRequest, match="is too small"):
            learning_rate(refused, None)
