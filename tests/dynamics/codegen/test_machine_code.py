"""Machine code that is damaged on disk is never run: it is removed and compiled again."""

import os
import pickle
import sys

import pytest

from dynamics import codegen
from dynamics.cache import folder
from dynamics.codegen.machine_code import is_whole

PARTS = [
    "@kernel\ndef half(x):\n    return 0.5 * x\n",
    "@kernel\ndef f(x):\n    return half(x) + 1.0\n",
]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Build and call the functions as a new process does: result, hits, misses, module."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))

    def called():
        monkeypatch.setattr(folder, "_reported", set())
        module = codegen.build("Damaged.", ("x",), PARTS)
        del sys.modules[module.functions.__name__]
        values = module.f(3.0), module.half(3.0)
        stats = module.f.stats, module.half.stats
        hits, misses = ([sum(s[k].values()) for s in stats] for k in (1, 2))
        return values, hits, misses

    assert called() == ((2.5, 1.5), [0, 0], [1, 1])
    return called


def test_a_first_use_says_on_a_terminal_that_it_compiles(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = []
    for _ in range(2):
        monkeypatch.setattr(folder, "_reported", set())
        module = codegen.build("Compiled once.", ("x",), PARTS)
        del sys.modules[module.functions.__name__]
        assert module.f(3.0) == 2.5
        told.append(capsys.readouterr().err)
    assert told == ["attdyn: compiling, once; later commands find what was compiled\n", ""]


def damaged(content, how):
    if how == "emptied":
        return b""
    if how == "cut":
        return content[: len(content) // 2]
    changed = bytearray(content)
    changed[{"first": 0, "middle": len(content) // 2, "last": -1}[how]] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("how", ["emptied", "cut", "first", "middle", "last"])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_is_removed_and_compiled_again(compiled, tmp_path, capsys, kind, how):
    paths = sorted(tmp_path.rglob(f"*.{kind}"))
    assert len(paths) == 2
    for path in paths:
        path.write_bytes(damaged(path.read_bytes(), how))
    assert compiled() == ((2.5, 1.5), [0, 0], [1, 1])
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "is damaged; it is compiled again" in told
    assert all(is_whole(path) for path in tmp_path.rglob("*.nb[ic]"))
    assert compiled() == ((2.5, 1.5), [1, 1], [0, 0])
    assert capsys.readouterr().err == ""


def test_every_flipped_bit_is_seen(tmp_path, compiled):
    for path in tmp_path.rglob("*.nb[ic]"):
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), 997):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            assert not is_whole(path)


def test_a_file_that_is_whole_and_no_machine_code_is_compiled_again(compiled, tmp_path, capsys):
    """As when a class that was pickled is there no longer."""
    from dynamics.codegen.machine_code import _hash

    for path in tmp_path.rglob("*.nbc"):
        content = pickle.dumps(("no", "machine", "code"))
        path.write_bytes(content + _hash(content))
    assert compiled() == ((2.5, 1.5), [0, 0], [1, 1])
    assert "compiled again" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"import os; os.abort()"])
def test_a_damaged_source_is_written_again(compiled, tmp_path, content):
    path = next(tmp_path.glob("*.py"))
    before = path.read_bytes()
    path.write_bytes(content)
    assert compiled() == ((2.5, 1.5), [1, 1], [0, 0])
    assert path.read_bytes() == before
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_full_disk_costs_only_the_cache(compiled, tmp_path, monkeypatch, capsys):
    for path in tmp_path.rglob("*.nb[ic]"):
        path.unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert compiled() == ((2.5, 1.5), [0, 0], [1, 1])
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "No space left on device" in told
