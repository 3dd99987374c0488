"""What may import what beside the contracts of `setup.cfg`: no circle, nothing upwards by name."""

import ast
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LATER = "dynamics.verdicts"
"""The room whose circles are left."""


def name_of(file):
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(f): f for top in ("theory", "dynamics") for f in (ROOT / top).rglob("*.py")}


def imported(file):
    """Modules of ours that a file imports anywhere: in functions, for types, and by name."""
    text, statements, by_name = file.read_text(encoding="utf-8"), set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            statements |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            statements |= {name if name in FILES else node.module for name in names}
        elif isinstance(node, ast.Constant) and "import_module" in text:
            start = str(node.value).partition("{")[0]
            if start.startswith(("theory.", "dynamics.")):
                by_name |= {name for name in FILES if name.startswith(start)}
    return statements & FILES.keys(), by_name


@pytest.fixture(scope="module")
def imports():
    return {name: imported(file) for name, file in FILES.items()}


def test_no_circle_even_of_imports_in_functions_and_for_types(imports):
    graph = {
        name: set() if name.startswith(LATER) else statements - {name}
        for name, (statements, _) in imports.items()
    }
    TopologicalSorter(graph).prepare()


def test_nothing_of_a_room_above_is_imported_by_name(imports):
    contracts = ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    layers = contracts["importlinter:contract:rooms"]["layers"].split("\n")
    heights = {room: -k for k, line in enumerate(layers) for room in line.split(" : ")}

    def height(module):
        return next(heights[room] for room in heights if f"{module}.".startswith(f"{room}."))

    upwards = {
        (name, target)
        for name, (_, by_name) in imports.items()
        for target in by_name
        if height(target) > height(name)
    }
    assert upwards == set()
