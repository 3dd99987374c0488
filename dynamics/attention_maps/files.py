"""Read attention maps from ``.npy`` (memory-mapped) or ``.npz`` files; pickles are refused."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.lib.format import MAGIC_PREFIX
from numpy.typing import NDArray

from dynamics.validation import InvalidRequest, path_of, refuse

KINDS = "a .npy or .npz file of numpy"


def read(path: str | os.PathLike[str], name: str | None = None) -> NDArray[Any]:
    """Read the attention array of a ``.npy`` file (memory-mapped) or a ``.npz`` file.

    `name` selects an array of a ``.npz`` file; it is required if the file holds several arrays.
    Raises InvalidRequest if the file cannot be read, holds Python objects, or lacks the array.
    """
    path = path_of("file", path)
    try:
        with open(path, "rb") as file:
            mapped = file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX
            if mapped and name is not None:
                refuse("name", name, "needs a .npz file", "left out for .npy", "no name")
            if mapped:
                return np.load(path, mmap_mode="r", allow_pickle=False)
            file.seek(0)
            with np.load(file, allow_pickle=False) as opened:
                return opened[_array_name(opened.files, name, path)]
    except (InvalidRequest, MemoryError):
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"file={os.fspath(path)!r} cannot be read ({reason}); file can be {KINDS}"
        ) from None
    except Exception:  # numpy, zipfile and zlib raise many types for damaged files
        raise InvalidRequest(
            f"file={os.fspath(path)!r} is damaged, holds Python objects or is not a numpy file; "
            f"file can be {KINDS}"
        ) from None


def _array_name(names: list[str], name: str | None, path: str | os.PathLike[str]) -> str:
    """Name of the requested array of a file; without a request, name of its only array."""
    if not names:
        raise InvalidRequest(f"file={os.fspath(path)!r} holds no arrays; file can be {KINDS}")
    choices = ", ".join(names)
    if name is None and len(names) > 1:
        raise InvalidRequest(
            f"name is needed: {os.fspath(path)!r} holds {choices}; nearest: {names[0]}"
        )
    if name is not None and name not in names:
        nearest = get_close_matches(name, names, 1, 0.0)[0]
        refuse("name", name, f"is not in {os.fspath(path)!r}", f"one of {choices}", nearest)
    return names[0] if name is None else name
