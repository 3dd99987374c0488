"""IDX files, as of MNIST and Fashion-MNIST: one array, plain or compressed by gzip.

Two zero bytes, a byte for the type of the numbers, a byte for the number of axes, the length of
each axis as a big-endian whole number of four bytes, and the numbers, big-endian, row by row.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
from typing import Any
from zlib import error as BadStream  # noqa: N812 (a class, as its use shows)

import numpy as np
from numpy.typing import NDArray

from dynamics.validation import InvalidRequest

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
LARGEST = 2**31
"""Bytes of an array; nothing larger is read."""


def read(path: str | os.PathLike[str]) -> NDArray[np.generic]:
    """The array of an IDX file.

    Parameters
    ----------
    path : path-like
        Its content decides whether it is compressed.

    Returns
    -------
    array
        Of the type and the shape that the file says.

    Raises
    ------
    InvalidRequest
        If it cannot be read, is no IDX file, or is shorter or longer than it says.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            compressed = file.read(2) == GZIP
        with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
            kind, shape = _header(file.read(4), file, name)
            size = math.prod(shape) * np.dtype(kind).itemsize
            if size > LARGEST:
                raise InvalidRequest(f"file={name!r} says it has {size:,} bytes; at most 2^31")
            content = file.read(size + 1)
    except (OSError, EOFError, BadStream) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidRequest(
            f"file={name!r} cannot be read ({reason}); it can be a whole IDX file"
        ) from None
    if len(content) != size:
        problem = "is cut short" if len(content) < size else "goes on after its end"
        raise InvalidRequest(
            f"file={name!r} {problem}: shape {shape} takes {size:,} bytes of numbers"
            + (f", there are {len(content):,}" if len(content) < size else "")
        )
    return np.frombuffer(content, dtype=kind).reshape(shape)


def _header(magic: bytes, file: Any, name: str) -> tuple[str, tuple[int, ...]]:
    """Type and shape, from the first bytes on."""
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not magic[3]:
        raise InvalidRequest(f"file={name!r} is no IDX file: it begins with {magic.hex(' ')!r}")
    lengths = file.read(4 * magic[3])
    if len(lengths) < 4 * magic[3]:
        raise InvalidRequest(f"file={name!r} is cut short: it ends within its header")
    return TYPES[magic[2]], struct.unpack(f">{magic[3]}I", lengths)
