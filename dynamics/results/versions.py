"""What a stored result belongs to: versions of the programs, and how two requests differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

VERSIONS = ("attdyn", "numpy", "scipy", "numba", "sympy")


def versions() -> dict[str, str]:
    """Program -> version."""
    return {name: metadata.version(name) for name in VERSIONS}


def differences(
    stored: Mapping[str, Any], requested: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Entries in which two requests differ.

    Parameters
    ----------
    stored : mapping
        Read from a JSON text; may be nested.
    requested : mapping

    Returns
    -------
    list of (name, stored value, requested value)
        Names of nested entries are joined by points; None stands for an entry that is not there.

    Examples
    --------
    >>> differences({"eta": 0.1, "versions": {"numpy": "2.0"}}, {"versions": {"numpy": "2.1"}})
    [('eta', 0.1, None), ('versions.numpy', '2.0', '2.1')]
    """
    before, now = _flat(stored), _flat(json.loads(json.dumps(requested)))
    return [
        (name, before.get(name), now.get(name))
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, entry in tree.items():
        nested = isinstance(entry, Mapping)
        flat |= _flat(entry, f"{prefix}{name}.") if nested else {f"{prefix}{name}": entry}
    return flat
