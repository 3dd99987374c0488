"""A system comes from a name, a model file, a Model or a System; everything else is refused."""

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from faulty_models import BASE

import dynamics
from dynamics import registry
from dynamics.validation import InvalidRequest


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


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "system=None is not a system"),
        ("no_such", "system='no_such' is unknown"),
        ("no_such.py", "system='no_such.py' is missing"),
        ("", "system='' is unknown"),
        (os.path.join("no", "folder", "x.py"), "is missing"),
        (SimpleNamespace(start=1), "is not a system"),
    ],
)
def test_what_is_no_system_is_refused_in_one_line(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match="nearest") as caught:
        dynamics.load_system(source)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
