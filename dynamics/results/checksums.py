"""Checksums of a stored result, by which a damaged file is refused under its name.

The outermost ``zarr.json`` holds two attributes: ``checksums``, a JSON text of file -> checksum of
its bytes, for every other file of the store, and ``checksum``, that of its own content beside
itself. A store without either is of an earlier version and is read without a check.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

GROUP = "zarr.json"
OTHERS, OWN = "checksums", "checksum"


class DamageError(ValueError):
    """A file that is not what was written; the message is one line that names it."""


def seal(store: Path) -> None:
    """Write the checksums of all files of a store into its outermost group.

    Parameters
    ----------
    store : Path
        Of a result, written to the end.
    """
    group = json.loads((store / GROUP).read_text(encoding="utf-8"))
    files = sorted(path for path in store.rglob("*") if path.is_file())
    names = [path.relative_to(store).as_posix() for path in files]
    digests = {n: _digest((store / n).read_bytes()) for n in names if n != GROUP}
    group["attributes"][OTHERS] = json.dumps(digests)
    group["attributes"][OWN] = _own(group)
    (store / GROUP).write_text(json.dumps(group, indent=2), encoding="utf-8")


def check(store: Path) -> None:
    """Compare all files of a store with its checksums, if it has any.

    Parameters
    ----------
    store : Path
        Of a result.

    Raises
    ------
    DamageError
        At the first file that is damaged or gone.
    """
    try:
        group = json.loads((store / GROUP).read_text(encoding="utf-8"))
        stored = group["attributes"]
        if OWN not in stored and OTHERS not in stored:
            return
        whole = stored.get(OWN) == _own(group)
        digests = json.loads(stored[OTHERS]) if whole else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DamageError(f"its {GROUP} is damaged")
    for name, digest in digests.items():
        path = store / name
        if not path.is_file():
            raise DamageError(f"its {name} is gone")
        if _digest(path.read_bytes()) != digest:
            raise DamageError(f"its {name} is damaged")


def _own(group: dict[str, Any]) -> str:
    """Checksum of the content of a group beside this checksum itself."""
    others = {name: entry for name, entry in group["attributes"].items() if name != OWN}
    return _digest(json.dumps(group | {"attributes": others}, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
