"""Machine code on disk, in numba's files with a hash at the end of each.

numba unpickles a file and runs what is in it: one that was cut is an error, and a bit that flipped
in the code is not seen. Here each file ends in a hash of all before, which numba does not read. A
file without the right one is removed, with all others of its generated file that are damaged, and
its function is compiled again.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

from dynamics.cache.folder import report, say_compiling
from dynamics.codegen.calls import entry_signature
from dynamics.process_settings import fewer_collections

HASH = 16
"""Bytes of a hash."""


def check_on_load(module: ModuleType) -> None:
    """Let those compiled functions of a generated file that have machine code check it on load."""
    functions: list[Any] = [each for each in vars(module).values() if isinstance(each, Dispatcher)]
    for function in functions:
        if not isinstance(function._cache, NullCache):
            function._cache = CheckedCache(function.py_func)


def compiled_entry(function: Any, data: Any) -> Any:
    """A function of the C signature of entries, compiled or from the cache; it has an ``address``.

    Parameters
    ----------
    function : callable
        Of a generated file.
    data : numba type
    """
    options = {"error_model": "numpy", "fastmath": False}
    entry: Any = CFunc(function, (entry_signature(data).args, numba.void), {}, options)
    entry._cache = CheckedCache(function)
    with fewer_collections():
        entry.compile()
    return entry


def is_whole(path: Path) -> bool:
    """Whether a file ends in the hash of all before.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    content = path.read_bytes()
    return content[-HASH:] == _hash(content[:-HASH])


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=HASH).digest()


class _Damaged(Exception):
    """A file that does not end in the hash of all before."""


class _CheckedFiles(IndexDataCacheFile):
    """numba's index and data of one function; a hash follows the last pickle, and is not read."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue() + _hash(content.getvalue()))

    def _load_index(self) -> Any:
        self._check(Path(self._index_path))
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        self._check(Path(self._data_path(name)))
        return super()._load_data(name)

    def _check(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            if not is_whole(path):
                raise _Damaged(path)


class CheckedCache(FunctionCache):
    """numba's cache of a function, whose files are checked, and removed where they are damaged."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None: then numba compiles it.

        Parameters
        ----------
        sig, target_context
            As of numba.
        """
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # numba unpickles: anything can be raised
            self._remove()
        if found is None:
            say_compiling()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function; where that cannot be done, it is compiled in every process.

        Parameters
        ----------
        sig, data
            As of numba.
        """
        try:
            super().save_overload(sig, data)
        except (OSError, _Damaged) as error:
            report(f"compiled code cannot be kept in {self._cache_path!r} ({error})")

    def _remove(self) -> None:
        """Remove the files of this function, and all damaged ones of its generated file."""
        folder, base = Path(self._cache_path), self._impl.filename_base
        paths = {*folder.glob(f"{base}.nbi"), *folder.glob(f"{base}.*.nbc")}
        others = folder.glob(f"{base.split('.')[0]}.*.nb[ic]")
        removed = False
        for path in (*paths, *others):
            with suppress(OSError):  # another process was faster
                if path in paths or not is_whole(path):
                    path.unlink()
                    removed = True
        if removed:
            report(f"compiled code in {str(folder)!r} is damaged; it is compiled again")
