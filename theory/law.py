"""Checked results of a model's functions: laws of samples, named arrays, and errors.

A `Law` holds all samples, stacked in arrays, and their probabilities; all samples have the same
structure. The message of a `ModelError` is one line, with the line number of the user's file.
"""

from __future__ import annotations

import numbers
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ModelError(ValueError):
    """Invalid model; the message is one line.

    Examples
    --------
    >>> from theory import Model
    >>> Model(start=lambda w0=0.1: {"w": [w0]})
    Traceback (most recent call last):
        ...
    theory.law.ModelError: a model needs law and loss, or risk, or sample, loss and symmetry
    """


@contextmanager
def blamed(role: str, path: Path | None) -> Iterator[None]:
    """Turn an error of the function `role` into a `ModelError` with the line of the model file."""
    try:
        yield
    except (ModelError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too
        location = line_of(error, path)
        raise ModelError(f"{role} raises {error_text(error)}{location}") from error


def error_text(error: BaseException) -> str:
    """Type of an error and the first line of its message."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    lines = said.strip().splitlines()
    return type(error).__name__ + (f": {lines[0][:160]}" if lines else "")


def line_of(error: BaseException, path: Path | None) -> str:
    """Text `` (my.py, line 7)`` with the last line of the model file in an error's traceback."""
    if path is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f" ({path.name}, line {lines[-1]})" if lines else f" ({path.name})"


def line_of_function(function: Any, path: Path | None) -> str:
    """Text `` (my.py, line 7)`` with the first line of a function of the model file."""
    code = getattr(function, "__code__", None)
    if path is None or code is None:
        return ""
    return f" ({path.name}, line {code.co_firstlineno})"


FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """Finite data law: samples, stacked in arrays, and their probabilities.

    The probabilities `weights`, shape (N,), sum to 1. The arrays in `samples` have shape (N, ...).
    """

    weights: FloatArray
    samples: Any

    @property
    def size(self) -> int:
        """Number of samples N."""
        return int(self.weights.size)


def stacked(samples: list[Any], role: str) -> Any:
    """Stack samples of one structure into arrays with a leading axis.

    Raises ModelError if two samples differ in structure or shape, or if a sample contains anything
    but finite numbers. The message names `role`, the function that returned the samples.
    """
    first = samples[0]
    if isinstance(first, Mapping):
        for k, sample in enumerate(samples):
            if not isinstance(sample, Mapping) or sample.keys() != first.keys():
                raise ModelError(f"{role}: sample {k} has different parts from sample 0")
        return {name: stacked([s[name] for s in samples], f"{role}, {name}") for name in first}
    if isinstance(first, (tuple, list)) and not _is_row(first):
        for k, sample in enumerate(samples):
            if not isinstance(sample, (tuple, list)) or len(sample) != len(first):
                raise ModelError(f"{role}: sample {k} has different parts from sample 0")
        parts = [stacked([s[j] for s in samples], f"{role}, {j}") for j in range(len(first))]
        return tuple(parts)
    arrays = [_array(f"{role}: sample {k}", sample) for k, sample in enumerate(samples)]
    for k, array in enumerate(arrays):
        if array.dtype.kind not in "biuf":
            raise ModelError(f"{role}: sample {k} holds {array.dtype}, not numbers")
        if array.shape != arrays[0].shape:
            raise ModelError(
                f"{role}: the shape of a sample changes, from {arrays[0].shape} to {array.shape} "
                f"(sample {k})"
            )
    whole = np.stack(arrays)
    if whole.dtype.kind == "f":
        whole = whole.astype(np.float64)
        if not np.isfinite(whole).all():
            raise ModelError(f"{role}: a sample holds a number that is not finite")
    return whole


def leading_axis(
    drawn: Any, count: int, like: Any = None, place: str = "", role: str = "samples"
) -> Any:
    """Check that samples have one leading axis, and the parts and shapes of a law's samples.

    The arrays `drawn` have shape (count, ...), and `like` holds samples of the law. The message of
    a ModelError contains `role` (function and part) and `place` (its line).
    """
    usual = drawn if like is None else like
    if isinstance(usual, (Mapping, tuple, list)):
        given, keys = _keys(drawn), _keys(usual)
        if set(given) != set(keys):
            found = ", ".join(given) or type(drawn).__name__
            raise ModelError(f"{role} gives {found}; a sample has {', '.join(keys)}{place}")
        parts = {
            name: leading_axis(
                drawn[key], count, None if like is None else like[key], place, f"{role}, {name}"
            )
            for name, key in keys.items()
        }
        return parts if isinstance(usual, Mapping) else tuple(parts.values())
    array = _array(role, drawn)
    shape = (count, *(array.shape[1:] if like is None else like.shape[1:]))
    if array.shape != shape:
        raise ModelError(
            f"{role} gives the shape {array.shape} for {count} samples; it can be {shape}{place}"
        )
    kind = array.dtype if like is None else like.dtype
    if array.dtype.kind not in "biuf" or not np.can_cast(array.dtype, kind, "same_kind"):
        raise ModelError(f"{role} gives {array.dtype}; a sample has {kind}{place}")
    array = array.astype(np.float64 if kind.kind == "f" else kind)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"{role} gives a number that is not finite{place}")
    return array


def _keys(structure: Any) -> dict[str, Any]:
    """Keys of the parts of a sample, by the names of the parts in messages; empty for an array."""
    if isinstance(structure, Mapping):
        return {str(key): key for key in structure}
    many = len(structure) if isinstance(structure, (tuple, list)) else 0
    return {f"part {k}": k for k in range(many)}


def select_samples(samples: Any, index: Any) -> Any:
    """Samples at an index of the leading axis, which has length N."""
    if isinstance(samples, Mapping):
        return {name: select_samples(part, index) for name, part in samples.items()}
    if isinstance(samples, (tuple, list)):
        return tuple(select_samples(part, index) for part in samples)
    return samples[index]


def _is_row(value: Any) -> bool:
    """Whether a value is a list of real numbers; such a list is read as an array."""
    return isinstance(value, list) and all(isinstance(v, numbers.Real) for v in value)


def own_arrays(sample: Any) -> Any:
    """Copy of a sample with copies of its arrays, since ``law`` may overwrite them."""
    if isinstance(sample, np.ndarray):
        return sample.copy()
    if isinstance(sample, dict):
        return {name: own_arrays(part) for name, part in sample.items()}
    if type(sample) in (list, tuple):
        return type(sample)(map(own_arrays, sample))
    return sample


def numbers_in(sample: Any) -> int:
    """Number of entries of all arrays of a sample, at least 1."""
    parts = sample.values() if isinstance(sample, Mapping) else sample
    if isinstance(sample, (Mapping, tuple, list)):
        return max(1, sum(map(numbers_in, parts)))
    return max(1, int(np.size(sample)))


def pairs(law: Any, role: str = "law") -> Iterable[tuple[Any, Any]]:
    """Yield the (probability, sample) pairs of a law, or raise ModelError for any other item."""
    can = f"{role} can yield (probability, sample) pairs"
    try:
        iterator = iter(law)
    except TypeError:
        raise ModelError(f"{role} gives {type(law).__name__}; {can}") from None
    for pair in iterator:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ModelError(can)
        yield pair[0], pair[1]


def named_arrays(role: str, value: Any) -> dict[str, FloatArray]:
    """Arrays returned by ``start`` or ``fixed`` (the `role` in messages), in double precision."""
    if not isinstance(value, Mapping) or not value:
        given = "an empty dict" if value == {} else type(value).__name__
        raise ModelError(f"{role} gives {given}; {role} can give a dict of arrays")
    arrays = {}
    for name, entry in value.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(f"{role} names an array {name!r}; names are words such as A or W_1")
        array = _array(f"{role}: {name}", entry)
        if array.dtype.kind not in "iuf" or array.size == 0:
            raise ModelError(f"{role}: {name} holds no real numbers")
        if not np.isfinite(array).all():
            raise ModelError(f"{role}: {name} has an entry that is not finite")
        arrays[name] = array.astype(np.float64)
    return arrays


def _array(what: str, entry: Any) -> NDArray[Any]:
    """Copy of a value as an array, or ModelError if NumPy cannot convert it."""
    try:
        return np.array(entry)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{what} is not an array: {error_text(error)}") from None


def is_number(value: Any) -> bool:
    """Whether a value is a real number and not a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
