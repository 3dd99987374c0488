"""Wrong calls raise what their documentation says, in one line that says what to do."""

import inspect
from dataclasses import replace
from functools import partial
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


CALLS = {
    "descend(p, 0.1, 3)": "system.ReducedPopulation(",
    "descend(r, (0.1, 0.1, 0.1), 3)": "has 3 entries",
    "descend(s, 0.1, 3)": "is a System",
    'descend(r, "x", 3)': "eta='x'",
    "descend(r, [[1], [1, 2]], 3)": "ragged",
    'descend(r, 0.1, float("nan"))': "steps=nan",
    "descend(r, 0.1, 10**5000)": "steps=int is too large",
    'descend(r, 0.1, 3, initial="abc")': "3 numbers",
    "descend(r, 0.1, 3, initial=np.array([1j, 0, 0]))": "3 numbers",
    "descend(r, 0.1, 3, record=[[1]])": "list of steps",
    "descend(r, 0.1, 3, checkpoint=5)": "checkpoint=5",
    "descend(r, 0.0, 3)": "eta=0.0 is too small",
    "descend(r, 0.1, 0)": "steps=0 is too small",
    "descend(r, 0.1, 1.5)": "steps=1.5 is not a whole number",
    'descend(r, 0.1, 9, schedule="1-step")': "is -1",
    "descend(r, 0.1, 3, lambda gradient: 0)": "step must begin",
    'descend(r, 0.1, 3, "gd", "often")': "record='often'",
    "descend(r, 0.1, 3, record=[4])": "record=4 is after the last",
    "descend(r, 0.1, 3, initial=[np.nan, 0, 0])": "is not finite",
    'rule("adamm")': "nearest: adam",
    'rule("adam", b1="x")': "b1='x'",
    "rule(5)": "rule=5",
    "flows([r, 7], 1.0)": "not a problem",
    "flows([r], -1.0)": "time=-1.0 is too small",
    "flow(p, 1.0)": "is a Parameters",
    'flow(r, "x")': "time='x'",
    "flow(r, 0.0)": "time=0.0 is too small",
    "flow(r, 1.0, 1e-20)": "rtol=1e-20 is too small",
    "flow(r, 1.0, record=[0, 99.0])": "record=99.0 is too large",
    "flow(r, 1.0, record=[])": "record=",
    "flow(r, 1.0, initial={})": "state=",
    "overlay(p, [0.1], time=1.0)": "is a Parameters",
    "overlay(r, [1e-300], time=1.0)": "eta=1e-300 is too small",
    'overlay(r, "x", time=1.0)': "eta='x'",
    'overlay(r, [0.1], rule="adam", time=1.0)': "or time",
    "overlay(r, [0.1])": "steps, or a time",
    'overlay(r, [0.1, 0.2], 3, ["gd"] * 3)': "2 rates for 3 rules",
    "load_system(None)": "system=None is not a system",
    'load_system("")': "system='' is unknown",
    'load_system("no_such")': "system='no_such' is unknown",
    'load_system("no/folder/x.py")': "x.py' is missing",
    "load_system(SimpleNamespace(start=1))": "is not a system",
    'load_system("x" * 1000)': "system='xxx",
    'load_system("a\\0.py")': "system=",
    "compare(p, p, 0.1, 3)": "reduced problem first",
    "compare(r, f)": "eta and steps, or a time",
    'verify("positional")': "nearest: positional_attention",
    'verify(s, claims="Theorem 99")': "claim 'Theorem 99'",
    "verify(s, claims=5)": "claims=5",
    'verify(s, seed="x")': "seed='x'",
    "verify(s, 5)": "parameters=5",
    'draw(s, "99")': "figure '99'",
    'draw(s, "1b", 5)': "parameters=5",
    'draw(s, "1b", seed="x")': "seed='x'",
    'draw(s, "1b", options={"x": 1})': "option 'x'",
    "rows_with_overlaps([[1.0, 2.0], [3.0, 4.0]])": "gram",
    "stability_limit(p, [0.0])": "is a Parameters",
    'stability_limit(r, "x")': "state='x'",
    "stability_limit(r, [1, 2])": "3 entries",
    "onsets(p, [0.0])": "is a Parameters",
    'onsets(r, "x")': "state='x'",
    "onsets(r, r.initial_state)": "no stability limit",
    'branches(p, [0.0], "alpha")': "is a Parameters",
    'branches(r, r.initial_state, "x")': "name='x'",
    'branches(r, r.initial_state, "alpha", 0)': "count=0",
    'save(3, "x")': "result=3",
    "save(descend(r, 0.1, 1), 3)": "out=3",
    'save(descend(r, 0.1, 1), "/proc/x")': "out=",
    'load("nowhere")': "path='nowhere'",
    'load("a\\0b")': "path=",
    'load("~nobody_here/x")': "path='~nobody_here/x' begins with",
    'sweep(s, {"D": "x"})': "D='x'",
    "sweep(s, 5)": "given=5",
    'sweep(s, {"D": 4, "C": 2}, 5)': "out=5",
    'sweep(s, {"D": 4, "C": 2}, workers="x")': "workers='x'",
    'diversity("x")': "attention=",
    'diversity(np.full((4, 4), 0.25), k="x")': "k='x'",
    "total_variation(None)": "attention=",
    "multinomial(3, 0.5)": "probabilities=0.5",
    "multinomial(3, (0.5, np.nan))": "do not sum to 1",
    "multisets([0.5, 0.5], 2)": "types=[0.5, 0.5]",
    'multisets([(1.0, "a")], -1)': "n=-1",
    "Model()": "start",
    "Model(start=3)": "start is int",
}
"""Call -> words of its refusal; s is a system, p its parameters, r and f are its problems."""


PUBLIC = {name: getattr(dynamics, name) for name in dynamics.__all__}


@pytest.mark.parametrize("call", CALLS)
def test_wrong_calls_raise_what_is_documented(square, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    system, law, reduced, full = square
    given = {"s": system, "p": law, "r": reduced, "f": full}
    with pytest.raises(InvalidRequest) as caught:
        eval(call, {"np": np, "SimpleNamespace": SimpleNamespace} | PUBLIC | given)
    message = str(caught.value)
    assert CALLS[call] in message
    assert "\n" not in message
    assert len(message) <= 290
    name = call.partition("(")[0]
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
    assert functions - NEVER["dynamics"] == {call.partition("(")[0] for call in CALLS}


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
    with pytest.raises(theory.ModelError, match="is not a path"):
        theory.read_model(3)


REQUESTS = {
    "ATTENTION(random_sets='mix')": "nearest: mixed( |$)",
    "ATTENTION(prob=0.5)": "parameter 'prob' is unknown.*nearest: q",
    "ATTENTION(D='x')": "^D='x' is not a number",
    "ATTENTION(D=5)": "^D=5 has no divisor",
    "ATTENTION(random_sets=3)": "^random_sets=3 is unknown",
    "ATTENTION(4, 2)": "parameters are given by name; names are D, C",
    "VIT(output_weights='per_pos')": "nearest: per_position( |$)",
    "VIT(frozen='value')": "nearest: values( |$)",
    "VIT(xii=1.0)": "parameter 'xii' is unknown.*nearest: xi",
    "IMAGES(p=4)": "parameter 'p' is unknown.*nearest: P",
    "s.ReducedPopulation(p, 'spectral', 0)": "tolerance=0 is too small",
    "samples(seed=-1)": "seed=",
    "samples(seed='x')": "seed=",
    "samples(seed=None)": "seed=",
    "samples(start='symetric')": "nearest: symmetric( |$)",
    "samples(dtype='float')": "nearest: float64( |$)",
    "samples(partition='rand')": "nearest: random( |$)",
    "samples(partition='grids')": "nearest: grid( |$)",
}


@pytest.mark.parametrize("call", REQUESTS)
def test_wrong_parameters_and_samples_are_one_line(square, call):
    names = {"ATTENTION": "positional_attention", "VIT": "shallow_vit"}
    names |= {"IMAGES": "masked_image_modeling"}
    given = {name: dynamics.load_system(system).Parameters for name, system in names.items()}
    system, law = square[:2]
    samples = partial(system.FullEmpirical, system.Parameters(D=16, C=4), samples=4)
    with pytest.raises(InvalidRequest, match=REQUESTS[call]) as caught:
        eval(call, given | {"s": system, "p": law, "samples": samples})
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


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
