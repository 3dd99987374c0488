"""Batches of CIFAR in the "python version", which are pickles: read without running any of them.

A pickle is a program that can call whatever it can name. Here it can name four things of numpy,
and each name leads to a class of this module that holds the arguments: no function of numpy or
of anything else is called while the pickle is read. The array is made afterwards, from bytes whose
number is checked. What is left are dicts, lists, strings, bytes and numbers.
"""

from __future__ import annotations

import math
import os
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.validation import InvalidRequest

TYPES = {"u1": "u1", "i1": "i1", "i4": "<i4", "i8": "<i8", "f4": "<f4", "f8": "<f8"}
ENCODINGS = ("latin1", "latin-1")


class _Type:
    """What a pickle says of the type of an array's numbers."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name = _text(name)

    def __setstate__(self, _: Any) -> None:
        """Byte order and the like: arrays here are little-endian."""


class _Array:
    """What a pickle says of an array."""

    def __init__(self, *_: Any) -> None:
        self.parts: tuple[Any, Any, Any] = (None, None, None)

    def __setstate__(self, state: Any) -> None:
        """Version, shape, type, order, bytes: as numpy pickles arrays in protocols up to 4."""
        _, shape, kind, fortran, content = state
        if fortran:
            raise pickle.UnpicklingError("an array by columns")
        self.parts = shape, kind, content

    def array(self) -> NDArray[np.generic]:
        """The array, of as many bytes as its shape takes."""
        shape, kind, content = self.parts
        name = TYPES.get(kind.name.lstrip("<|=")) if isinstance(kind, _Type) else None
        content = content.encode("latin1") if isinstance(content, str) else content
        whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if name is None or not whole or not isinstance(content, bytes | bytearray):
            raise pickle.UnpicklingError("an array that is none of numbers")
        if math.prod(shape) * np.dtype(name).itemsize != len(content):
            raise pickle.UnpicklingError(f"an array of shape {shape} in {len(content)} bytes")
        return np.frombuffer(bytes(content), dtype=name).reshape(shape)


class _Buffer(_Array):
    """The same, as numpy pickles arrays in protocol 5."""

    def __init__(self, content: Any, kind: Any, shape: Any, order: Any = "C", *_: Any) -> None:
        self.__setstate__((1, shape, kind, order != "C", content))


class _Encoded:
    """Bytes as Python 3 pickles them in protocol 2: text, to be encoded by latin-1."""

    def __new__(cls, text: Any = "", encoding: Any = "") -> Any:
        if not isinstance(text, str) or _text(encoding) not in ENCODINGS:
            raise pickle.UnpicklingError(f"text encoded by {encoding!r}")
        return text.encode("latin1")

    def __setstate__(self, _: Any) -> None:
        """Bytes have no state; without this a pickle could set attributes of the class."""


CORES = ("numpy.core", "numpy._core")
NAMES: dict[tuple[str, str], type] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encoded,
    **{(f"{core}.multiarray", "_reconstruct"): _Array for core in CORES},
    **{(f"{core}.numeric", "_frombuffer"): _Buffer for core in CORES},
}
"""All that a pickle may name, and what stands for it here."""


class _Reader(pickle.Unpickler):
    """Reads pickles that name nothing but what is in `NAMES`."""

    def find_class(self, module: str, name: str) -> type:
        """What stands for a name."""
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not run")
        return NAMES[module, name]


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The entries of a batch: arrays of numbers, lists, strings, numbers.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict
        By name: ``data``, an array of shape (images, 3072), and ``labels`` or ``fine_labels``.

    Raises
    ------
    InvalidRequest
        If it cannot be read, is no such pickle, or names anything but arrays of numpy.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = _Reader(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise pickle.UnpicklingError(f"it holds one {type(content).__name__}")
        return {_text(key): _plain(entry) for key, entry in content.items()}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except MemoryError:
        reason = "it asks for more memory than there is"
    except Exception as error:  # what a hostile or damaged pickle leads to is not bounded
        reason = str(error) or type(error).__name__
    raise InvalidRequest(f"file={name!r} is no batch of CIFAR: {reason}")


def _text(key: Any) -> str:
    """A key as text: Python 2 wrote bytes."""
    return key.decode("latin1") if isinstance(key, bytes) else str(key)


def _plain(entry: Any) -> Any:
    if isinstance(entry, _Array):
        return entry.array()
    if isinstance(entry, str | bytes | int | list):
        return entry
    raise pickle.UnpicklingError(f"it holds a {type(entry).__name__.lstrip('_')}")
