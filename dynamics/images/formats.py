"""Files of data sets: IDX, as of MNIST, and the batches of CIFAR, read without running any code.

An IDX file is one array, plain or compressed by gzip: two zero bytes, a byte for the type of the
numbers, a byte for the number of axes, the length of each axis as a big-endian whole number of four
bytes, and the numbers, big-endian, row by row.

A batch of CIFAR in the "python version" is a pickle, that is, a program that can call whatever it
can name. Here it can name what makes arrays of numbers, and nothing else.
"""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from typing import Any
from zlib import error as BadStream  # noqa: N812 (a class, as its use shows)

import numpy as np
from numpy.typing import NDArray

from dynamics.validation import InvalidRequest, one_line

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
LONGEST = 120
"""Letters of a reason that are printed."""


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.generic]:
    """The array of an IDX file, of the type and the shape that the file says.

    `path`: its content decides whether it is compressed. Raises InvalidRequest if it cannot be
    read, is not an IDX file, or is shorter or longer than it says.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
        content = gzip.decompress(content) if content.startswith(GZIP) else content
        zero, kind, axes = struct.unpack_from(">HBB", content)
        if zero or kind not in TYPES:
            raise ValueError(f"it begins with {content[:4].hex(' ')}")
        shape = struct.unpack_from(f">{axes}I", content, 4)
        return np.frombuffer(content, TYPES[kind], offset=4 + 4 * axes).reshape(shape)
    except (OSError, EOFError, BadStream, struct.error, ValueError) as error:
        reason = one_line(str(getattr(error, "strerror", None) or error).lower(), LONGEST)
    raise InvalidRequest(f"file={os.fspath(path)!r} is not a whole IDX file: {reason}")


def _kind(name: Any, *_: Any) -> np.dtype[Any]:
    """The type of an array's numbers; other types are refused."""
    kind = np.dtype(_text(name))
    if kind.kind not in "iuf":
        raise pickle.UnpicklingError(f"an array of {kind}, which are not numbers")
    return kind


def _encode(text: str, _: Any) -> bytes:
    """Bytes as Python 3 pickles them in protocol 2."""
    return text.encode("latin1")


def _empty(*_: Any) -> NDArray[Any]:
    """An array that gets its shape and its numbers next."""
    return np.empty(0, np.uint8)


def _buffer(content: Any, kind: np.dtype[Any], shape: Any, *_: Any) -> NDArray[Any]:
    """An array as numpy pickles it in protocol 5."""
    return np.frombuffer(content, kind).reshape(shape)


CORES = ("numpy.core", "numpy._core")
NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _kind,
    ("_codecs", "encode"): _encode,
    **{(f"{core}.multiarray", "_reconstruct"): _empty for core in CORES},
    **{(f"{core}.numeric", "_frombuffer"): _buffer for core in CORES},
}
"""All that a pickle may name."""


class _Reader(pickle.Unpickler):
    """Reads pickles that name nothing but what is in `NAMES`."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not run")
        return NAMES[module, name]


def read_cifar(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The entries of a batch by name: ``data``, and ``labels`` or ``fine_labels``.

    Raises InvalidRequest if it cannot be read, is no such pickle, or names anything but arrays of
    numpy.
    """
    try:
        with open(path, "rb") as file:
            content = _Reader(file, encoding="bytes").load()
        return {_text(key): entry for key, entry in content.items()}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except Exception as error:  # what a hostile or damaged pickle leads to is not bounded
        reason = one_line(str(error) or type(error).__name__, LONGEST)
    raise InvalidRequest(f"file={os.fspath(path)!r} is not a batch of CIFAR: {reason}")


def _text(key: Any) -> str:
    """A key as text: Python 2 wrote bytes."""
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
