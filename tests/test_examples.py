"""Worked examples in docstrings print what they say."""

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import dynamics

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("contour", "shares", "spectral")
"""Modules of kernels among the expectations."""


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


def test_functions_of_several_arguments_say_what_they_are():
    """Every public function of two or more arguments has a Parameters section.

    Model files are written as users write them; a kernel has one line.
    """
    silent, models = [], [ROOT / f"dynamics/models/{name}.py" for name in dynamics.system_names()]
    kernels = {*ROOT.glob("dynamics/**/kernels/**/*.py")}
    kernels |= {ROOT / f"dynamics/expectations/{name}.py" for name in COMPILED}
    paths = {*ROOT.glob("theory/**/*.py"), *ROOT.glob("dynamics/**/*.py")}
    for path in sorted(paths - kernels - set(models)):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                arguments = [*node.args.args, *node.args.kwonlyargs]
                if len(arguments) > 1 and "Parameters" not in (ast.get_docstring(node) or ""):
                    silent.append(f"{path.name}: {node.name}")
    assert silent == []
