"""Worked examples in docstrings print what they say."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules():
    for path in sorted([*ROOT.glob("theory/**/*.py"), *ROOT.glob("dynamics/**/*.py")]):
        if ">>> " in path.read_text(encoding="utf-8") and path.name != "__main__.py":
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules()))
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("package", ["dynamics", "dynamics.plotting", "theory"])
def test_everything_exported_has_an_example_and_says_its_parameters(package):
    module = import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert ">>> " in (thing.__doc__ or ""), name
        if inspect.isfunction(thing) and len(inspect.signature(thing).parameters) > 1:
            assert "Parameters\n" in inspect.getdoc(thing), name
