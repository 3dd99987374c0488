"""Read IDX files (MNIST) and pickled batches of CIFAR without running code from the file.

An IDX file is one array, plain or compressed by gzip. The header has two zero bytes, a byte for the
data type, a byte for the number of axes, and a big-endian 4-byte integer for the length of each
axis. The data follow the header, big-endian and in row-major order.

A batch of CIFAR in the "python version" is a pickle, which can call any importable function.
`read_cifar` permits only the functions that build arrays of numbers.
"""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from typing import Any
from zlib import error as BadStream  # noqa: N812 (it is a class)

import numpy as np
from numpy.typing import NDArray

from dynamics.validation import InvalidRequest, one_line

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
LONGEST = 120
"""Maximum number of characters of an error's reason in a message; a longer one is shortened."""


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.generic]:
    """Read the array of an IDX file, plain or compressed by gzip.

    Raises InvalidRequest if the file cannot be read, is not an IDX file, or its length differs
    from the length in the header.
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
    """Data type of an array; raises UnpicklingError for types other than numbers."""
    kind = np.dtype(_text(name))
    if kind.kind not in "iuf":
        raise pickle.UnpicklingError(f"an array of {kind}, which are not numbers")
    return kind


def _encode(text: str, _: Any) -> bytes:
    """Encode text as bytes; Python 3 stores bytes as text in pickles of protocol 2."""
    return text.encode("latin1")


def _empty(*_: Any) -> NDArray[Any]:
    """Empty array; the pickle sets its shape and data afterwards."""
    return np.empty(0, np.uint8)


def _buffer(content: Any, kind: np.dtype[Any], shape: Any, *_: Any) -> NDArray[Any]:
    """Array from a buffer, as numpy pickles it in protocol 5."""
    return np.frombuffer(content, kind).reshape(shape)


CORES = ("numpy.core", "numpy._core")
NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _kind,
    ("_codecs", "encode"): _encode,
    **{(f"{core}.multiarray", "_reconstruct"): _empty for core in CORES},
    **{(f"{core}.numeric", "_frombuffer"): _buffer for core in CORES},
}
"""Names that a pickle may refer to; any other name is an error."""


class _Reader(pickle.Unpickler):
    """Unpickler that resolves only the names in `NAMES`."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"it calls {module}.{name}, which is not permitted")
        return NAMES[module, name]


def read_cifar(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the entries of a CIFAR batch by name: ``data``, and ``labels`` or ``fine_labels``.

    Raises InvalidRequest if the file cannot be read, is not a pickled batch, or contains objects
    other than numpy arrays and plain values.
    """
    try:
        with open(path, "rb") as file:
            content = _Reader(file, encoding="bytes").load()
        return {_text(key): entry for key, entry in content.items()}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except Exception as error:  # a damaged or hostile pickle can raise any exception
        reason = one_line(str(error) or type(error).__name__, LONGEST)
    raise InvalidRequest(f"file={os.fspath(path)!r} is not a batch of CIFAR: {reason}")


def _text(key: Any) -> str:
    """Text of a pickled key, which is bytes if Python 2 wrote the pickle."""
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
