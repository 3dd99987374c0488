"""Constant arrays of a page, without duplicates, as text that the page's scripts decode."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.printing import script

TYPES: dict[str, type[np.integer[Any]]] = {"u1": np.uint8, "i2": np.int16, "i4": np.int32}


class Tables:
    """Collection of constant arrays without duplicates."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[np.float64]] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, values: Any) -> int:
        """Index of an array in the collection; a new array is added."""
        flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
        number = self._numbers.setdefault(flat.tobytes(), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(flat)
        return number

    @property
    def size(self) -> int:
        """Number of characters of all encoded arrays."""
        return len(self._text([encoded(table) for table in self.arrays]))

    def script(self) -> str:
        """JavaScript that defines ``ENCODED``, which `assets/points.js` decodes."""
        pairs = [encoded(table) for table in self.arrays]
        heads = [(name, len(data)) for name, data in pairs]
        return f"const ENCODED = {script({'arrays': heads, 'data': self._text(pairs)})};"

    @staticmethod
    def _text(pairs: list[tuple[str, bytes]]) -> str:
        return base64.b64encode(zlib.compress(b"".join(data for _, data in pairs), 9)).decode()


def encoded(values: NDArray[np.float64]) -> tuple[str, bytes]:
    r"""Shortest number type that holds an array exactly, and the array's bytes in this type.

    Examples
    --------
    >>> encoded(np.array([0.0, 3.0]))
    ('u1', b'\x00\x03')
    """
    signless = not np.signbit(values[values == 0]).any()
    for name, kind in TYPES.items():
        with np.errstate(invalid="ignore"):
            whole = values.astype(kind)
        if signless and np.array_equal(whole, values):
            return name, whole.tobytes()
    return "f8", np.ascontiguousarray(values).tobytes()
