"""What a second process compiles before the first run of all is found by the first one."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from dynamics import codegen, load_system
from dynamics.codegen import compile_beside as beside
from dynamics.codegen import compile_lock
from dynamics.codegen.machine_code import is_free, on_disk
from dynamics.process_settings import cores

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
from dynamics.codegen.machine_code import on_disk
functions = {FUNCTIONS!r}
data = (2, np.array([3.0]))
first, second = (
    codegen.build("A first run.", ("x",), [functions.format(factor=factor)]).addressed(data)
    for factor in (1, 2)
)
names = "gradient", "along"
begun = [beside.compile_beside([None, first, second], names) for _ in range(2)]
code = beside._second[0].wait(100)
made = [on_disk(loops.loop_source(name)) for name in names]
for model in (first, second):
    for name in ("gradient", "hessian", "order_parameters"):
        made.append(on_disk(getattr(model.entries.functions, name + "_entry")))
value = loops.gradient(second, np.array([5.0]))[0]
print(json.dumps([begun, code, made, value, second.entries.compiled["gradient_entry"].cache_hits]))
"""


class Inner(NamedTuple):
    flag: bool
    table: np.ndarray


class Data(NamedTuple):
    count: int
    nothing: None
    inner: Inner
    plain: tuple


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
    data = Data(3, None, Inner(True, table), (np.float64(2.0), 1.0, ()))
    like = beside.data_like(json.loads(json.dumps(beside.data_text(data))))
    assert numba.typeof(like) == numba.typeof(data)
    assert type(like.inner) is Inner


def test_data_without_a_text_are_refused():
    for data in ("word", np.array(["a"]), np.float32(1.0), {}):
        with pytest.raises(TypeError):
            beside.data_text((data,))


def problems():
    """One of each kind that the papers' systems compile."""
    attention, images, vit = map(
        load_system, ("positional_attention", "masked_image_modeling", "shallow_vit")
    )
    law = attention.Parameters(D=4, C=2)
    yield attention.ReducedPopulation(law)
    yield attention.ReducedPopulation(law, expectation="spectral")
    yield attention.FullPopulation(law)
    yield attention.FullEmpirical(attention.Parameters(D=4, C=2, d=4), 8)
    yield images.ReducedPopulation(images.Parameters())
    yield vit.FullEmpirical(vit.Parameters(), 4)


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
    monkeypatch.setattr(compile_lock, "is_taken", lambda folder, function: True)
    beside.work([line])
    assert not is_free(entry)
    assert not on_disk(entry)
    monkeypatch.undo()
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    beside.work([line, "{}", line])
    assert on_disk(entry)
    assert beside._task(model, "summary") is None


def test_no_second_process_where_it_cannot_help(tmp_path, monkeypatch):
    def started(*args, **options):
        raise AssertionError("a process was started")

    monkeypatch.setattr(beside, "_second", [])
    monkeypatch.setattr(subprocess, "Popen", started)
    for number, there in ((1, False), (2, True)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=number: range(n), raising=False)
        monkeypatch.setattr("dynamics.codegen.machine_code.on_disk", lambda _, t=there: t)
        beside._first_of_all.cache_clear()
        assert not beside.compile_beside([], ("along",))
    beside._first_of_all.cache_clear()


def test_a_process_that_cannot_be_started_is_done_without(monkeypatch):
    def refused(*args, **options):
        raise OSError("no more processes")

    monkeypatch.setattr(beside, "_second", [])
    monkeypatch.setattr(beside, "_first_of_all", lambda loop: True)
    monkeypatch.setattr(subprocess, "Popen", refused)
    assert not beside.compile_beside([], ("along",))
