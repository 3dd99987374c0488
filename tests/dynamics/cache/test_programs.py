"""Programs of JAX: compiled with what XLA has, and stored in the folder of the cache."""

import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from dynamics.cache import compiled_program, programs, programs_kept
from dynamics.validation import InvalidRequest


def test_a_program_is_the_function():
    points = np.linspace(-2, 2, 7, dtype=np.float32)
    made = compiled_program(lambda x, power: jax.numpy.tanh(x) ** power, static_argnums=1)
    np.testing.assert_allclose(made(points, 3), np.tanh(points) ** 3, rtol=1e-5)


SETTINGS = (
    "jax_enable_x64",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_platforms",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of programs, and settings under which every program is kept."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(programs, "WORTH_STORING", 0.0)
    return tmp_path / "jax"


def compiled_anew(factor):
    """A program, compiled or found on disk: JAX does not know the function."""
    return float(jax.jit(lambda x: factor * x + 0.75)(2.0))


def test_programs_are_kept_and_a_damaged_one_is_replaced(folder, capsys):
    def kept():
        with programs_kept():
            assert compiled_anew(3.5) == 7.75
        contents = {path: path.read_bytes() for path in folder.iterdir()}
        assert all(c[-16:] == programs._hash(c[:-16]) for c in contents.values())
        return contents

    first = kept()
    assert first
    for path, content in first.items():
        path.write_bytes(content[:40])
    assert kept().keys() == first.keys()
    assert "is damaged; it is compiled again" in capsys.readouterr().err
    second = kept()
    assert second == kept()  # found
    path = max(second, key=lambda each: len(second[each]))
    path.write_bytes(second[path][:60] + bytes([second[path][60] ^ 1]) + second[path][61:])
    assert kept().keys() == first.keys()
    assert "is damaged; it is compiled again" not in capsys.readouterr().err  # once in a process


def test_settings_of_the_user_are_as_before_and_his_folder_is_used_afterwards(folder, tmp_path):
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    with programs_kept(), programs_kept():
        compiled_anew(1.5)
    assert {name: getattr(jax.config, name) for name in SETTINGS} == before
    ours, own = set(folder.iterdir()), tmp_path / "own"
    jax.config.update("jax_compilation_cache_dir", str(own))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    try:
        with programs_kept():
            compiled_anew(2.5)
        assert list(own.iterdir())
        assert set(folder.iterdir()) == ours
    finally:
        for name in SETTINGS[1:4]:
            jax.config.update(name, before[name])
        reset_cache()


def test_a_platform_without_a_device_is_refused(monkeypatch):
    def devices():
        raise RuntimeError("Unable to initialize backend 'cuda'")

    module = SimpleNamespace(config=SimpleNamespace(jax_platforms="cuda"), devices=devices)
    monkeypatch.setitem(sys.modules, "jax", module)
    with pytest.raises(InvalidRequest, match=r"JAX_PLATFORMS='cuda' has no device.*nearest: cpu"):
        programs._Jax().numpy  # noqa: B018
