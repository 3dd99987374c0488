"""Compiled code is read only from folders into which no other user can write."""

import getpass
import os
import stat
import tempfile
from types import SimpleNamespace

import pytest

from dynamics.cache import folder
from dynamics.cache.folder import cache_directory


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
