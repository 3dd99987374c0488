"""Results of checks, stored in the cache on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from dynamics.cache.folder import cache_directory, replace_file

FORMAT = 1
"""Version of the checks; it is increased when stored results become invalid."""

_FOUND: dict[str, Any] = {}


def kept(key: tuple[Any, ...], find: Callable[[], Any]) -> Any:
    """Result of `find` for a key; it is computed at the first call and stored on disk.

    The result consists of JSON types, and may depend only on the ``repr`` of the key and on the
    version of JAX.
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
