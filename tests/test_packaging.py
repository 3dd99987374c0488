"""What is installed, and what documents say of it."""

import configparser
import inspect
import re
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import dynamics

ROOT = Path(__file__).resolve().parents[1]


def requirements(text):
    return {re.split(r"\W", line.strip())[0] for line in text.splitlines() if line.strip()}


def test_make_run_installs_only_what_the_product_needs():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    needed = requirements(config["options"]["install_requires"])
    extras = {name: requirements(text) for name, text in config["options.extras_require"].items()}
    assert not needed & set.union(*extras.values())
    assert {name for name, packages in extras.items() if "jax" in packages} == {
        "test", "models", "images", "compare", "docs",
    }  # fmt: skip
    recipe = (ROOT / "Makefile").read_text().split(".venv/run.stamp:")[1].split("@touch")[0]
    assert recipe.rstrip().endswith("--editable .")


def test_the_recipe_for_slurm_is_a_sweep(monkeypatch):
    text = (ROOT / "docs" / "cluster.md").read_text()
    recipe = re.search(r"(    from dask_jobqueue.*?)\n\n", text, re.DOTALL)[1]
    assert len(recipe.splitlines()) == 6
    scaled, waited, swept = [], [], []
    cluster = SimpleNamespace(
        scale=lambda jobs: scaled.append(jobs), scheduler_address="tcp://login:8786"
    )
    client = SimpleNamespace(wait_for_workers=waited.append)
    modules = {
        "dask_jobqueue": SimpleNamespace(SLURMCluster=lambda **options: cluster),
        "distributed": SimpleNamespace(Client=lambda made: client if made is cluster else None),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    signature = inspect.signature(dynamics.sweep)

    def sweep(*words, **options):
        swept.append(signature.bind(*words, **options).arguments)

    exec(textwrap.dedent(recipe), {"dynamics": SimpleNamespace(sweep=sweep), "system": None})
    assert (scaled, waited) == ([50], [1])
    assert swept[0]["scheduler"] == "tcp://login:8786"
