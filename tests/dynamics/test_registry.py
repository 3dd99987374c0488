"""A system comes from a name, a model file, a Model or a System; everything else is refused."""

import os
from dataclasses import replace
from types import SimpleNamespace

import file_engine
import pytest

import dynamics
from dynamics import library, registry
from dynamics.cli import main
from dynamics.validation import InvalidRequest
from theory.claims import Claim


@pytest.fixture
def engine(monkeypatch):
    """What makes systems of model files, without tracing them."""
    return file_engine.stand_in(monkeypatch.setattr)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my.py"
    path.write_text(file_engine.TEXT, encoding="utf-8")
    return path


def test_a_system_is_found_by_name_and_returned_as_it_is(system):
    assert dynamics.load_system(system) is system
    assert dynamics.load_system(system.reference) is system
    assert (system.origin, dict(system.digests)) == (None, {})
    assert set(dynamics.system_names()) >= {"positional_attention", "shallow_vit"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (0, "system=0 is not a system"),
        (None, "system=None is not a system"),
        ("no_such", "system='no_such' is unknown"),
        ("no_such.py", "system='no_such.py' is missing"),
        ("", "system='' is unknown"),
        (os.path.join("no", "folder", "x.py"), "is missing"),
        (SimpleNamespace(start=1), "is not a system"),
        (SimpleNamespace(loss=1), "is not a system"),
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


def test_a_file_is_loaded_once_until_it_changes(engine, mine, monkeypatch):
    loads = []
    monkeypatch.setattr(engine, "read_model", lambda path: loads.append(str(path)) or path)
    first = dynamics.load_system("my.py")
    assert dynamics.load_system(str(mine)) is first
    assert dynamics.load_system(mine) is first
    assert loads == [str(mine)]
    assert first.reference == str(mine)
    assert first.presentation.origin == first.origin
    mine.write_text(file_engine.TEXT + "\n", encoding="utf-8")
    assert dynamics.load_system("my.py") is not first
    assert len(loads) == 2


def test_a_file_without_the_ending_is_a_model_file_too(engine, mine):
    mine.rename(mine.with_name("model"))
    assert dynamics.load_system("model").name == "model"


def test_a_model_in_memory(engine):
    model = SimpleNamespace(start=1, risk=2)
    system = dynamics.load_system(model)
    assert system.model is model
    assert system.reference == "model"
    assert not registry.can_be_loaded_again(system)
    assert not registry.can_be_loaded_again(file_engine.from_file(system, "", {"loss": "1"}))


def test_a_built_in_system_that_was_changed_in_memory_is_in_no_file(system):
    assert registry.can_be_loaded_again(system)
    assert not registry.can_be_loaded_again(replace(system, claims=()))


def test_a_changed_model_is_refused_by_its_parts(engine, mine):
    digests = dict(dynamics.load_system("my.py").digests)
    assert registry.load_unchanged(str(mine), digests).name == "my"
    mine.write_text(file_engine.TEXT.replace("loss = 3", "loss = 33\nextra = 4"), encoding="utf-8")
    expected = "model 'my.py' was changed since the sweep began: loss, extra"
    with pytest.raises(InvalidRequest, match=f"^{expected}$"):
        registry.load_unchanged(str(mine), digests)


def test_what_a_file_imports_may_change_too(engine, mine, monkeypatch):
    """The file is the same, and what was loaded of it before is not taken for granted."""
    digests = dict(dynamics.load_system("my.py").digests)
    imported = lambda path: file_engine.from_file(  # noqa: E731
        file_engine.load(path), str(path), digests | {"law": "new"}
    )
    monkeypatch.setattr(engine, "system_of", imported)
    assert registry.load_unchanged(str(mine), digests | {"law": "new"})
    with pytest.raises(InvalidRequest, match="began: law"):
        registry.load_unchanged(str(mine), digests)


def test_library_models_are_listed(system, engine, tmp_path, monkeypatch, capsys):
    models = tmp_path / "models"
    models.mkdir()
    (models / "wells.py").write_text('"""Two wells (Nobody 2000).\n\nMore."""\n\nstart = 1\n')
    (models / "_hidden.py").write_text("start = 1\n")
    (models / "engine.py").write_text("def load(path):\n    start = 1\n")
    made = lambda path: file_engine.from_file(system, str(path), {})  # noqa: E731
    monkeypatch.setattr(engine, "system_of", made)
    monkeypatch.setattr(library, "HERE", tmp_path)
    assert dynamics.system_names() == ("wells",)
    assert main(["systems"]) == 0
    assert capsys.readouterr().out.split(maxsplit=1) == ["wells", "Two wells (Nobody 2000)\n"]
    loaded = dynamics.load_system("wells")
    assert loaded.origin.path == str(models / "wells.py")
    assert loaded.reference == "wells"
    assert registry.can_be_loaded_again(loaded)


def test_commands_take_a_file(engine, mine, capsys):
    words = ["compare", "my.py", "--D", "4", "--C", "2", "--steps", "20"]
    assert main(words) == 0
    assert (mine.parent / "results" / "compare-my").is_dir()
    assert capsys.readouterr().out.startswith("A model of mine")
    assert main(["verify", "my.py"]) == 2
    assert "my has no claims" in capsys.readouterr().err
    assert main(["figure", "my.py", "4"]) == 2
    assert "my has no figures" in capsys.readouterr().err
    assert main(["run", "other.py"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_claim_may_bring_its_own_check(system):
    from dynamics.verdicts.figure import figures
    from dynamics.verdicts.findings import Finding
    from dynamics.verdicts.verify import checks

    check = lambda system, protocol: Finding(True, "x", 1.0, 1.0, "because")  # noqa: E731
    claim = Claim("mine", "x is 1", "", "", check=check)
    bringing = replace(system, claims=(claim,))
    assert checks(bringing) == {"mine": check}
    assert figures(bringing) == {}
    assert "4" in figures(system)
    assert checks(replace(system, name="another")) == {}
    assert checks(file_engine.from_file(system, "/x.py", {})) == {}
