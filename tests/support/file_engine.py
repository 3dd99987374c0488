"""Stands for what turns model files into systems: a built-in system, with hashes of a file's parts.

A model file is lines ``start = 1``, ``law = 2``, ``loss = 3``. Other processes find this module
where `sitecustomize` is on their path; see `elsewhere`.
"""

import hashlib
import os
from dataclasses import replace
from multiprocessing import current_process
from pathlib import Path

TEXT = "start = 1\nlaw = 2\nloss = 3\n"
PRETEND = "ATTDYN_TEST_LOSS_OF_WORKERS"
"""Environment: hash of the loss as workers see it."""


def stand_in(put=setattr):
    """Let the engine make systems as this module does, in this process.

    Returns
    -------
    module
        `dynamics.models.engine.system`.
    """
    from dynamics.models.engine import system

    put(system, "read_model", Path)
    put(system, "system_of", system_of)
    put(system, "imports_are_unchanged", lambda _: True)
    put(system, "_FILES", {})
    return system


def load(path):
    """The system of a model file."""
    text = Path(path).read_text(encoding="utf-8")
    pairs = (line.split("=") for line in text.splitlines() if "=" in line)
    digests = {k.strip(): hashlib.sha256(v.encode()).hexdigest()[:12] for k, v in pairs}
    if PRETEND in os.environ and current_process().name.startswith("LokyProcess"):
        digests["loss"] = os.environ[PRETEND]
    return from_file(replace(system_of(None), name=Path(path).stem), str(path), digests)


def from_file(system, path, digests):
    """A system as of a model file, with hashes of its parts."""
    from dynamics.presentation import Origin

    shown = replace(system.presentation, origin=Origin(path, digests))
    return replace(system, presentation=shown)


def system_of(model):
    """The system of a model in memory, or of the path of a file."""
    import dynamics

    if isinstance(model, Path):
        return load(model)
    built_in = dynamics.load_system("positional_attention")
    shown = replace(built_in.presentation, title="A model of mine")
    return replace(built_in, name="model", presentation=shown, model=model, claims=())


def elsewhere(folder):
    """Environment of other processes that are to use this module, by a folder of their own."""
    here = Path(__file__).parent
    lines = ["import sys", f"sys.path.append({str(here)!r})"]
    lines += ["import file_engine", "file_engine.stand_in()"]
    (folder / "sitecustomize.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    paths = [str(folder), str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
