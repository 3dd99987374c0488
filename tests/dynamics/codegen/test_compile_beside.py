"""What a second process compiles before the first run of all is found by the first one."""

import json
import os
import subprocess
import sys
import threading
from typing import NamedTuple

import numba
import numpy as np
import pytest

import dynamics
from dynamics import cli, codegen, load_system
from dynamics.codegen import compile_beside as beside
from dynamics.codegen import compile_lock
from dynamics.codegen.kernels.program import List, ProgramData
from dynamics.codegen.machine_code import on_disk
from dynamics.process_settings import cores
from dynamics.validation import InvalidRequest

FUNCTIONS = """
@kernel
def gradient(state, data, out):
    out[0] = {factor} * state[0] * data[1][0]


@kernel
def hessian(state, data, out):
    out[0, 0] = {factor} * data[1][0]


@kernel
def order_parameters(state, slope, data, out):
    out[0] = state[0]
"""
FIRST_RUN = f"""
import json
import numpy as np
from dynamics import codegen
from dynamics.codegen import compile_beside as beside
from dynamics.codegen import loops
from dynamics.codegen.kernels.program import List, ProgramData
from dynamics.codegen.machine_code import on_disk
functions = {FUNCTIONS!r}
data = (2, np.array([3.0]))
first, second = (
    codegen.build("A first run.", ("x",), [functions.format(factor=factor)]).addressed(data)
    for factor in (1, 2)
)
names = "gradient", "along"
begun = [beside.compile_beside([None, first, second], names) for _ in range(2)]
code = begun[0].wait(100)
made = [on_disk(loops.loop_source(name)) for name in names]
for model in (first, second):
    for name in ("gradient", "hessian", "order_parameters"):
        made.append(on_disk(getattr(model.entries.functions, name + "_entry")))
value = loops.gradient(second, np.array([5.0]))[0]
hits = second.entries.compiled["gradient_entry"].cache_hits
print(json.dumps([[each is not None for each in begun], code, made, value, hits]))
"""


class Foreign(NamedTuple):
    table: np.ndarray


def frozen(values):
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 3)),
        np.asfortranarray(np.zeros((2, 3))),
        np.zeros((4, 4, 4))[::2, ::2, ::2],
        frozen(np.zeros(3, dtype=np.float32)),
        np.zeros((0, 2), dtype=np.int64),
        np.array([True]),
        np.array(1.0),
        np.zeros(2, dtype=[("row", float), ("areas", np.int64)]),
    ],
    ids=lambda table: f"{table.dtype} {table.shape}",
)
def test_types_of_data_survive_as_text(table):
    inner = List(table, True, 1.0, 2, table, 3)
    data = ProgramData(3, inner, (np.float64(2.0), 1.0, ()))
    like = beside.data_like(json.loads(json.dumps(beside.data_text(data))))
    assert numba.typeof(like) == numba.typeof(data)
    assert (type(like), type(like.order)) == (ProgramData, List)


def test_data_without_a_text_are_refused():
    for data in ("word", np.array(["a"]), np.float32(1.0), {}):
        with pytest.raises(TypeError):
            beside.data_text((data,))


def test_no_file_of_a_user_is_imported_by_the_second_process():
    """A type of a user's file, which may train when it is imported, has no text; so no task."""
    foreign = Foreign(np.ones(1))
    for data in (foreign, (2, (foreign,))):
        with pytest.raises(TypeError, match=f"Foreign is a type of {__name__}"):
            beside.data_text(data)
    functions = FUNCTIONS.format(factor=5).replace("data[1][0]", "data.table[0]")
    model = codegen.build("A user's.", ("x",), [functions]).addressed(foreign)
    assert beside._task(model, "hessian") is None


def problems():
    """One of each kind that the papers' systems compile."""
    attention, images = map(load_system, ("positional_attention", "masked_image_modeling"))
    law = attention.Parameters(D=4, C=2)
    yield attention.ReducedPopulation(law)
    yield attention.ReducedPopulation(law, expectation="spectral")
    yield attention.FullPopulation(law)
    yield images.ReducedPopulation(images.Parameters())


def test_the_data_of_problems_have_a_text():
    for problem in problems():
        data = problem.addressed.data
        like = beside.data_like(json.loads(json.dumps(beside.data_text(data))))
        assert numba.typeof(like) == numba.typeof(data), problem.view


@pytest.mark.skipif(cores() < 2, reason="one core")
def test_a_second_process_compiles_what_the_first_one_needs_later(tmp_path):
    environment = os.environ | {"ATTDYN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FIRST_RUN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    begun, code, made, value, hits = json.loads(done.stdout)
    assert begun == [True, False]
    assert code == 0
    loops, first, second = made[:2], made[2:5], made[5:]
    assert loops == [True, True]
    assert first == [False, True, True]  # its gradient is for the first process
    assert second == [True, False, True]
    assert value == 30.0
    assert hits == 1


def test_what_another_process_compiles_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    model = codegen.build("Left.", ("x",), [FUNCTIONS.format(factor=3)]).addressed((1, np.ones(1)))
    entry = model.entries.functions.hessian_entry
    line = json.dumps(beside._task(model, "hessian"))
    monkeypatch.setattr(compile_lock, "acquire_at_once", lambda folder, function: False)
    beside.work([line])
    assert not on_disk(entry)
    monkeypatch.undo()
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getppid", iter(range(9)).__next__)
    beside.work([line])  # the first process has ended
    assert not on_disk(entry)
    monkeypatch.setattr(os, "getppid", lambda: 1)
    beside.work([line, "{}", line])
    assert on_disk(entry)
    assert beside._task(model, "summary") is None


EARLY = f"""
import json
import sys
import numpy as np
from dynamics import codegen
from dynamics.codegen import compile_beside as beside
from dynamics.codegen import loops
from dynamics.codegen.kernels.program import List, ProgramData
from dynamics.codegen.machine_code import on_disk
model = codegen.build("An early one.", ("x",), [{FUNCTIONS.format(factor=6)!r}])
model = model.addressed((2, np.array([3.0])))
beside.compile_loop_beside("gradient")
(process,) = beside._waiting
if sys.argv[1] == "alone":
    beside.expect_no_more()
else:
    assert beside.compile_beside([model], ("along",)) is process
print(json.dumps([process.wait(100), len(beside._waiting), *(
    on_disk(each) for each in (loops.loop_source("gradient"), loops.loop_source("along"),
                               model.entries.functions.hessian_entry)
)]))
"""


@pytest.mark.skipif(cores() < 2, reason="one core")
@pytest.mark.parametrize(("how", "later"), [("alone", False), ("models", True)])
def test_a_process_begun_before_the_models_takes_their_tasks_later(tmp_path, how, later):
    environment = os.environ | {"ATTDYN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", EARLY, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [0, 0, True, later, later]


@pytest.fixture
def attempts(monkeypatch):
    """What a call of `compile_beside` starts, where everything speaks for a second process."""
    started = []

    def refused(*args, **options):
        started.append(args)
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2), raising=False)
    monkeypatch.setattr(beside, "_once", threading.Lock())
    monkeypatch.setattr(compile_lock, "acquire_at_once", lambda folder, function: True)
    monkeypatch.setattr("dynamics.codegen.machine_code.on_disk", lambda _: False)
    monkeypatch.setattr(beside, "_first_of_all", beside._first_of_all.__wrapped__)
    return started


@pytest.fixture
def model():
    return codegen.build("A model.", ("x",), [FUNCTIONS.format(factor=4)]).addressed(
        (1, np.ones(1))
    )


def test_a_process_that_cannot_be_started_is_tried_once(attempts, model):
    assert [beside.compile_beside([model], ("along",)) for _ in range(3)] == [None] * 3
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (os, "sched_getaffinity", lambda _: range(1)),
        ("dynamics.codegen.machine_code", "on_disk", lambda _: True),
        (compile_lock, "acquire_at_once", lambda folder, function: False),
        (sys, "executable", None),
        (sys, "executable", ""),
        (sys, "executable", "/opt/drawing/application"),
    ],
)
def test_no_second_process_where_it_cannot_help(attempts, model, monkeypatch, place, name, value):
    if isinstance(place, str):
        place = sys.modules[place]
    monkeypatch.setattr(place, name, value, raising=False)
    assert beside.compile_beside([model], ("along",)) is None
    assert not attempts


@pytest.mark.parametrize(
    ("words", "loop"),
    [
        (["run", "positional_attention", "--time", "5"], "integrate"),
        (["compare", "positional_attention"], "advance"),
        (["compare", "positional_attention", "--time=5"], None),
        (["run", "shallow_vit", "--seed", "2"], "advance"),
        (["sweep", "positional_attention", "--D", "8", "--time", "5"], "integrate"),
        (["run", "positional_attention", "--full", "empirical", "--time", "5"], None),
        (["sweep", "positional_attention", "--steps=9"], "advance"),
        (["sweep", "positional_attention", "--D", "8"], None),
        (["run", "positional_attention", "--config", "mine.toml"], None),
        (["run", "positional_attention", "--time", "5", "--help"], None),
        (["run", "softmax_icl", "--time", "5"], None),
        (["verify", "positional_attention"], None),
    ],
)
def test_a_command_begins_with_its_loop_before_it_loads_the_system(words, loop, monkeypatch):
    class Loaded(Exception):
        pass

    def load(name):
        raise Loaded

    begun = []
    monkeypatch.setattr(beside, "compile_loop_beside", begun.append)
    monkeypatch.setattr(cli, "load_system", load)
    with pytest.raises(Loaded):
        cli._dispatch(list(words))
    assert begun == ([] if loop is None else [loop])


def test_no_second_process_for_what_a_run_does_not_call(attempts):
    assert beside.compile_beside([None], ("along",)) is None
    system = load_system("positional_attention")
    law = system.Parameters(D=8, C=2)
    large = system.FullPopulation(law)  # of more entries than collocation takes
    result = dynamics.compare(system.ReducedPopulation(law), large, time=0.1)
    assert result.full.settings["integrator"] == "LSODA"
    for wrong in ({"eta": -1.0, "steps": 1}, {"time": -1.0}):
        with pytest.raises(InvalidRequest):
            dynamics.compare(system.ReducedPopulation(law), large, **wrong)
    assert not attempts
