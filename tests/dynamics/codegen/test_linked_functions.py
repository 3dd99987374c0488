"""Functions for compiled code alone are linked into their callers and leave nothing on disk."""

import numpy as np
import pytest

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.codegen.linked_functions import is_linked

PARTS = [
    "@kernel\ndef half(x):\n    return 0.5 * x\n",
    "@exact_kernel\ndef lost(x, small):\n    return (x + small) - x\n",
    "@fused_kernel\ndef fused(x, small):\n    return (x + 0.5 * small) - x\n",
    "@kernel\ndef gradient(state, data, out):\n"
    "    for k in range(state.size):\n"
    "        out[k] = half(state[k]) + lost(1.0, data[0]) + fused(1.0, data[0])\n",
]


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    return codegen.build("Linked.", ("x",), PARTS)


def test_only_what_is_called_from_outside_is_on_disk(module, tmp_path):
    model = module.addressed((1e-20,))
    assert loops.gradient(model, np.array([3.0, 5.0])).tolist() == [1.5, 2.5]
    names = {path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert "gradient_entry" in names
    assert not {"half", "lost", "fused"} & names


def test_python_calls_a_function_of_its_own(module):
    assert is_linked(module.functions.half)
    assert not is_linked(module.half)
    assert module.half is module.half
    assert module.half(3.0) == 1.5


def test_flags_of_a_callee_hold_in_its_callers(module):
    # Reordered, (1 + 1e-20) - 1 would be 1e-20.
    model = module.addressed((1e-20,))
    assert loops.gradient(model, np.zeros(1)).tolist() == [0.0]
    assert module.lost(1.0, 1e-20) == module.fused(1.0, 1e-20) == 0.0


def test_an_entry_has_the_value_that_its_callee_has_for_python(module):
    state, out = np.linspace(-2.0, 2.0, 7), np.empty(7)
    module.gradient(state, (0.25,), out)
    assert loops.gradient(module.addressed((0.25,)), state).tolist() == out.tolist()


def test_entries_share_no_code(tmp_path, monkeypatch):
    """Of code that entries share, roundings rest on which of them a process has loaded first."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    lines = [f"    x = sin(x) + cos({k} * x) / ({k} + exp(x))" for k in range(1, 41)]
    series = "\n".join(["@kernel", "def series(x):", *lines, "    return x"])  # too long to inline
    calls = "out[0] = series(state[0])\n    out[1] = series(out[0]) + series(state[1] + out[0])"
    entries = [
        f"@kernel\ndef {name}(state, data, out):\n    {calls}\n" for name in ("gradient", "summary")
    ]
    model = codegen.build("Shared.", ("x",), [series, *entries]).addressed((0.0,))
    model.table("gradient", "summary")
    for compiled in model.entries.compiled.values():
        code = compiled._library.get_defined_functions()
        assert {f.linkage.name for f in code if "series" in f.name} == {"internal"}
