"""Versions of the programs that a result depends on."""

from __future__ import annotations

from importlib import metadata

VERSIONS = ("attdyn", "numpy", "numba", "sympy")


def versions() -> dict[str, str]:
    """Program -> version."""
    return {name: metadata.version(name) for name in VERSIONS}
