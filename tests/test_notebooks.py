"""Every notebook runs at small sizes: its cells in one namespace, its sizes replaced by those here.

The whole notebooks, whose stored outputs are of the committed code, run in `make validate`.
"""

import ast
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import dynamics
import theory

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
SMALL = {
    "01_three_events": {"steps": 100, "proved": ("Lemma 4.3",)},
    "02_rare_events": {
        "size": {"D": 12, "C": 4, "q": 0.25, "nu": 1e-2}, "horizon": 1e4, "draws": 300,
    },
    "03_realistic": {
        "few_samples": 100, "many_samples": 200, "most_samples": 400, "most_steps": 20,
        "seeds": 2, "steps": 30,
        "deviation": {"samples": (50, 100, 200), "seeds": 2},
        "phase": {"samples": (50, 100), "time": 1.0},
        "claims": ["Lemma 4.2"],
    },
    "04_transfer": {"seeds": 1, "pairs": (12, 16), "counts": (1, 2), "verified": (64, 4)},
    "05_phase_diagrams": {
        "grid": {"D": 12, "C": "2,3,5", "q": "0.3:0.7:3", "nu": "1e-3:1e-1:3:log", "time": 300},
        "coarse": 3, "cells": 4,
        "growing": {"D": "12,16", "C": 4, "m": "2,3", "q": "m/(D-C)", "time": 1e4},
        "plane": {"D": 8, "C": 2},
        "plane_options": {"plane": "gamma-rho", "time": 1e3, "starts": 1, "grid": 6},
    },
    "06_masked_image_modeling": {
        "steps": 100, "images": {"P": 256, "C_global": 32, "C_local": 16}, "plane": {"P": 64},
        "sizes": (64, 128), "cells": {"local": 3, "core": 4}, "looks": {"maps": 3},
        "claims": ["Theorem F.3, frozen"],
    },
    "07_shallow_vit": {
        "neurons": 20, "steps": 20, "trials": 2, "alphas": (0.3, 0.4), "samples": (2, 4),
        "claims": ["Lemma 3", "Section 4.1, initialization"],
        "run_options": {"seeds": 1, "samples": 3, "steps": 40},
        "curve_options": {
            "families": ("rest", "constant"), "seeds": 1, "steps": 2000, "workers": 0,
        },
    },
    "08_your_own_model": {"steps": 100, "times": 50.0, "etas": [0.04, 0.02], "head_time": 5.0},
    "09_real_images": {
        "shuffled": {"seeds": 1, "steps": (1, 2), "samples": 32, "tests": 10},
        "textured": {"seeds": 2, "samples": (32, 64), "tests": 20, "steps": 2},
        "masked": {"seeds": 2, "steps": 2, "shown": 2, "layers": 1},
    },
}  # fmt: skip
"""Notebook -> name in its cell of sizes -> a smaller one."""
PACKAGES = {"09_real_images": ("sklearn", "skimage")}
"""Notebook -> packages of an extra without which it is left out."""
PUBLIC = {
    "dynamics": {*dynamics.__all__, "plotting", "phase_diagrams"},
    "theory": {*theory.__all__},
}
"""Package -> names that a notebook may import from it, as `docs/python.md` says."""


def read(name):
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def cells(name):
    for number, cell in enumerate(read(name)):
        if cell["cell_type"] == "code":
            lines = [line for line in cell["source"] if not line.startswith("%")]
            yield number, "".join(lines), cell["metadata"].get("tags", [])


def numbers(text):
    """Numbers of a text in Markdown or as printed, without indices and those of theorems."""
    text = re.sub(r"Theorem \d+\.\d+", "", text)
    text = re.sub(r"\s*\\cdot\s*10\^\{?(-?\d+)\}?", r"e\1", text)
    text = re.sub(r"\b10\^\{?(-?\d+)\}?", r"1e\1", text)
    text = re.sub(r"\^\{(-?\d+\.\d+)\}", r" \1 ", text)
    text = re.sub(r"[_^](\{[^}]*\}|\w)", "", text)
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return {float(number.replace(",", "")) for number in found}


def test_every_notebook_has_small_sizes():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(SMALL)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_stored_outputs_are_of_one_run_that_went_to_its_end(name):
    code = [cell for cell in read(name) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream", "display_data", "execute_result",
    }  # fmt: skip
    assert "stderr" not in {output.get("name") for output in outputs}
    last = ast.parse("".join(line for line in code[-1]["source"] if not line.startswith("%")))
    assert code[-1]["outputs"] or not isinstance(last.body[-1], ast.Expr)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_notebook_ends_with_a_question_its_computation_and_the_answer(name):
    question, computation, answer = read(name)[-3:]
    heading = "".join(question["source"]).splitlines()[-1]
    assert heading.startswith("## ")
    assert heading.endswith("?")
    printed = [line for output in computation["outputs"] for line in output.get("text", [])]
    for data in (output.get("data", {}) for output in computation["outputs"]):
        printed += [*data.get("text/latex", []), *data.get("text/markdown", [])]
    assert answer["cell_type"] == "markdown"
    said = numbers("".join(answer["source"]))
    assert said
    assert said <= numbers("".join(printed))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_notebook_asserts_nothing_and_takes_public_names(name):
    for _, text, _ in cells(name):
        for node in ast.walk(ast.parse(text)):
            assert not isinstance(node, ast.Assert)
            if isinstance(node, ast.Import):
                ours = [each.name for each in node.names if each.name.split(".")[0] in PUBLIC]
                assert {*ours} <= {"dynamics"}
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in PUBLIC:
                assert {each.name for each in node.names} <= PUBLIC.get(node.module, set())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_notebook_runs_at_small_sizes(name, tmp_path, monkeypatch):
    for package in PACKAGES.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for number, text, tags in cells(name):
        if "whole" in tags:
            continue
        exec(compile(text, f"{name}[{number}]", "exec"), namespace)
        if "parameters" in tags:
            assigned = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
            assert set(SMALL[name]) <= assigned
            namespace |= SMALL[name]
    plt.close("all")
