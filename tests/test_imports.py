"""What may import what beside the contracts of `setup.cfg`, and what is installed."""

import ast
import os
import re
import subprocess
import sys
import venv
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dynamics

ROOT = Path(__file__).resolve().parents[1]
SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg")
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
    layers = SETUP["importlinter:contract:rooms"]["layers"].split("\n")
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


def requirements(text):
    return {re.split(r"\W", line.strip())[0] for line in text.splitlines() if line.strip()}


def test_make_run_installs_only_what_the_product_needs():
    needed = requirements(SETUP["options"]["install_requires"])
    extras = {name: requirements(text) for name, text in SETUP["options.extras_require"].items()}
    assert not needed & set.union(*extras.values())
    recipe = (ROOT / "Makefile").read_text().split(".venv/run.stamp:")[1].split("@touch")[0]
    assert recipe.rstrip().endswith("--editable .")


def test_attdyn_is_dynamics_and_shows_public_names_only():
    import attdyn.analysis.period_doubling  # type: ignore[import-not-found]
    from attdyn.results.outcome import TrainingWarning

    import attdyn
    from attdyn import plotting

    assert attdyn is dynamics
    assert plotting is sys.modules["dynamics.plotting"]
    assert dir(attdyn) == sorted(dynamics.__all__)
    assert attdyn.analysis.period_doubling is sys.modules["dynamics.analysis.period_doubling"]
    assert TrainingWarning is dynamics.TrainingWarning
    with pytest.raises(ModuleNotFoundError, match=r"dynamics\.nothing"):
        import attdyn.nothing
    assert SETUP["options"]["py_modules"] == "attdyn"


@pytest.mark.long
def test_an_installed_wheel_needs_no_repository(tmp_path):
    """sdist, a wheel made from it, a clean environment, and a comparison in another folder."""
    dist, clean = tmp_path / "dist", tmp_path / "clean"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words, folder=tmp_path):
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True, text=True, cwd=folder, env=environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    assert {path.suffix for path in dist.iterdir()} == {".gz", ".whl"}
    venv.create(clean, with_pip=True)
    scripts = clean / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "pip", "install", "--quiet", next(dist.glob("*.whl")))
    origin = run(scripts / "python", "-c", "import attdyn, theory; print(attdyn.__file__)")
    assert origin.startswith(str(clean))
    outside = tmp_path / "outside"
    outside.mkdir()
    words = ("--D", 8, "--C", 2, "--eta", 0.02, "--steps", 200)
    printed = run(scripts / "attdyn", "compare", "positional_attention", *words, folder=outside)
    assert "T0" in printed
    assert next(outside.rglob("training.png")).stat().st_size > 10_000
    run(scripts / "attdyn", "explore", "positional_attention", "--out", "p.html", folder=outside)
    assert (outside / "p.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert "softmax" in run(scripts / "attdyn", "describe", "positional_attention", folder=outside)
