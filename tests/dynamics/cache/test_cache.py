"""Compiled code is read from folders of the user alone; programs of JAX are stored there."""

import getpass
import os
import stat
import sys
import tempfile
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from dynamics.cache import compiled_program, folder, programs, programs_kept
from dynamics.cache.folder import cache_directory
from dynamics.validation import InvalidRequest


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary directory of this test, a preferred one that cannot be made, and what is said."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(folder, "_reported", set())
    return tmp_path / f"attdyn-{getpass.getuser()}"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def owned_by_another(monkeypatch, path):
    """Let a folder look like another user's: only root can give one away."""
    lstat = type(path).lstat

    def seen(self):
        found = lstat(self)
        return SimpleNamespace(st_mode=found.st_mode, st_uid=found.st_uid + (self == path))

    monkeypatch.setattr(type(path), "lstat", seen)


def test_a_directory_that_cannot_be_written_falls_back_to_a_private_one(temporary, capsys):
    before = os.umask(0)
    try:
        assert cache_directory() == temporary
    finally:
        os.umask(before)
    assert mode(temporary) == 0o700
    assert cache_directory() == temporary
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["owner", "group", "readable", "link", "file"])
def test_a_planted_fallback_is_not_used(temporary, how, monkeypatch):
    if how == "link":
        (temporary.parent / "planted").mkdir(mode=0o700)
        temporary.symlink_to(temporary.parent / "planted")
    elif how == "file":
        temporary.write_text("")
    else:
        temporary.mkdir()
        temporary.chmod({"group": 0o770, "readable": 0o755}.get(how, 0o700))
    if how == "owner":
        owned_by_another(monkeypatch, temporary)
    found = cache_directory()
    assert found.name == f"{temporary.name}-1"
    assert mode(found) == 0o700
    assert cache_directory() == found


@pytest.mark.parametrize("how", ["owner", "group", "world"])
def test_a_preferred_directory_that_others_can_write_is_not_used(
    temporary, how, monkeypatch, capsys
):
    chosen = temporary.parent / "chosen"
    chosen.mkdir()
    chosen.chmod({"group": 0o770, "world": 0o777}.get(how, 0o755))
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(chosen))
    if how == "owner":
        owned_by_another(monkeypatch, chosen)
    assert [cache_directory(), cache_directory()] == [temporary, temporary]
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(chosen) in told


def test_no_directory_at_all_is_an_error(temporary, monkeypatch):
    monkeypatch.setattr(folder, "FALLBACKS", 3)
    for number in ("", "-1", "-2"):
        (temporary.parent / f"{temporary.name}{number}").write_text("")
    with pytest.raises(OSError, match="set ATTDYN_CACHE_DIR"):
        cache_directory()


def test_a_user_without_a_name_and_without_a_home_has_a_private_directory(temporary, monkeypatch):
    monkeypatch.chdir(temporary.parent)
    monkeypatch.setenv("ATTDYN_CACHE_DIR", "~nobody-here/cache")
    assert cache_directory() == temporary
    assert not list(temporary.parent.glob("~*"))

    def nobody(*_):
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert cache_directory() == temporary.with_name(f"attdyn-{os.getuid()}")


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
def kept(tmp_path, monkeypatch):
    """The folder of programs, where every program is kept."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(programs, "WORTH_STORING", 0.0)
    return tmp_path / "jax"


def compiled_anew(factor):
    """A program, compiled or found on disk: JAX does not know the function."""
    return float(jax.jit(lambda x: factor * x + 0.75)(2.0))


def test_programs_are_kept_and_a_damaged_one_is_replaced(kept, capsys):
    def contents():
        with programs_kept():
            assert compiled_anew(3.5) == 7.75
        found = {path: path.read_bytes() for path in kept.iterdir()}
        assert all(c[-16:] == programs._hash(c[:-16]) for c in found.values())
        return found

    first = contents()
    assert first
    for path, content in first.items():
        path.write_bytes(content[:40])
    assert contents().keys() == first.keys()
    assert "is damaged; it is compiled again" in capsys.readouterr().err
    second = contents()
    assert second == contents()  # found
    path = max(second, key=lambda each: len(second[each]))
    path.write_bytes(second[path][:60] + bytes([second[path][60] ^ 1]) + second[path][61:])
    assert contents().keys() == first.keys()
    assert "is damaged; it is compiled again" not in capsys.readouterr().err  # once in a process


def test_settings_of_the_user_are_as_before_and_his_folder_is_used_afterwards(kept, tmp_path):
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    with programs_kept(), programs_kept():
        compiled_anew(1.5)
    assert {name: getattr(jax.config, name) for name in SETTINGS} == before
    ours, own = set(kept.iterdir()), tmp_path / "own"
    jax.config.update("jax_compilation_cache_dir", str(own))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    try:
        with programs_kept():
            compiled_anew(2.5)
        assert list(own.iterdir())
        assert set(kept.iterdir()) == ours
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
