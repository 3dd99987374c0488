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
def test_everything_exported_has_an_example(package):
    module = import_module(package)
    exported = {name: getattr(module, name) for name in module.__all__}
    documented = {n: o for n, o in exported.items() if inspect.isfunction(o) or inspect.isclass(o)}
    assert documented
    assert [name for name, o in documented.items() if ">>> " not in (o.__doc__ or "")] == []


def test_public_functions_of_several_arguments_say_what_they_are():
    """What `dynamics`, `dynamics.plotting` and `theory` export has a Parameters section."""
    silent = []
    for package in ("dynamics", "dynamics.plotting", "theory"):
        module = import_module(package)
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function) or len(inspect.signature(function).parameters) < 2:
                continue
            if "Parameters\n" not in inspect.getdoc(function):
                silent.append(f"{package}.{name}")
    assert silent == []
