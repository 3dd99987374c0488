"""Versions of the programs that a result depends on."""

from __future__ import annotations

from importlib import metadata

VERSIONS = ("attdyn", "numpy", "scipy", "numba", "sympy")


def versions() -> dict[str, str]:
    """Program -> version."""
    return {name: metadata.version(name) for name in VERSIONS}
