"""Results of checks, kept in the cache on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from dynamics.cache.folder import cache_directory, replace_file

FORMAT = 1
"""Counts changes of the checks that make what is kept out of date."""

_FOUND: dict[str, Any] = {}


def kept(key: tuple[Any, ...], find: Callable[[], Any]) -> Any:
    """Return what was found for a key before, else find it and keep it.

    `key`: its ``repr`` names everything that decides the result, but the version of JAX; `find`: ()
    -> numbers, texts, lists and dicts of them.
    """
    digest = hashlib.sha256(repr((key, FORMAT, version("jax"))).encode()).hexdigest()[:32]
    if digest not in _FOUND:
        _FOUND[digest] = _on_disk(digest, find)
    return _FOUND[digest]


def _on_disk(digest: str, find: Callable[[], Any]) -> Any:
    folder = cache_directory() / "checks"
    file = folder / f"{digest}.json"
    with suppress(OSError, ValueError):
        return json.loads(file.read_text())
    found = find()
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(file, json.dumps(found))
    return found
