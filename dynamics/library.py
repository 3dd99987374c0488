"""Names and files of the papers and of the library models."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
STARTS = re.compile(r"^(def start\b|start\s*=)", re.MULTILINE)
"""Pattern of a definition of ``start``, by which a file is recognized as a library model."""


def library_file(name: str) -> Path:
    """Path of a library model's file."""
    return HERE / "models" / f"{name}.py"


def built_in_names() -> tuple[str, ...]:
    """Names of the built-in systems."""
    folder = HERE.parent / "theory/papers"
    return tuple(sorted(path.parent.name for path in folder.glob("*/claims.py")))


def library_names() -> tuple[str, ...]:
    """Names of the library models; model files of built-in systems are not among them."""
    files = sorted((HERE / "models").glob("[!_]*.py"))
    names = tuple(p.stem for p in files if STARTS.search(p.read_text(encoding="utf-8")))
    return tuple(name for name in names if name not in built_in_names())


def in_library(path: str | os.PathLike[str] | None) -> bool:
    """Whether a model file is a library model, by its path."""
    if path is None or Path(path).stem in built_in_names():
        return False
    return Path(path).parent == HERE / "models"


def system_names() -> tuple[str, ...]:
    """Names of the built-in systems, then of the library models.

    Examples
    --------
    >>> import dynamics
    >>> dynamics.system_names()[:3]
    ('masked_image_modeling', 'positional_attention', 'shallow_vit')
    """
    return (*built_in_names(), *library_names())
