"""A second process that compiles beside this one, before the first run of all.

The loops over steps, the gradient of a model and its Hessian are compiled one after the other, in
some ten seconds on one core, when nothing has been compiled before. They need nothing of each
other; so where a loop has no machine code yet, another process compiles the loops and the later
entries of the models of the run, while this one begins with the first. A command begins it before
it loads the system, with the first loop. What the other one is at, this one waits for, and the
other way round (`dynamics.codegen.compile_lock`). The second process is told of data by their types
alone, ends when it has no more to do, and is missed by nobody: what it could not do is compiled
here, as on a machine with one core.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.codegen import compile_lock, generated_file
from dynamics.codegen.addresses import AddressedModel, entries_of
from dynamics.codegen.folder import cache_directory
from dynamics.codegen.loops import compiled_loop, loop_source
from dynamics.process_settings import SAFE_PATH, cores

LOOPS_OF_FLOWS = (
    "integrate",
    "along",
    "order_rows",
    "order_along",
    "carry_gradient",
)
LOOPS_OF_DESCENT = ("advance",)
LATER = ("hessian", "summary", "order_parameters")
"""Entries of the first model, whose gradient this process compiles."""
OTHERS = ("gradient", "order_parameters")
"""Entries of the other models, which are trained after it."""
KINDS = "biufcV"
"""Of the numbers in arrays, as numpy names them, and of records of them."""
OWN = __name__.partition(".")[0]
"""The package whose modules the second process imports."""
NUMBERS = ("bool", "int64", "float64")
"""Of numpy, which compiled code takes like those of Python."""
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.stdin.readline())
from dynamics.codegen.compile_beside import work
work(sys.stdin)
"""

NAME = "the second process"
"""What the lock is known by that a process takes which begins one, and holds until its end."""

_once = threading.Lock()
"""Taken for good by the first call that begins a process, or cannot."""
_waiting: list[subprocess.Popen[bytes]] = []
"""The process, while it waits for `compile_beside`."""


def compile_beside(
    models: Sequence[AddressedModel | None], loops: Sequence[str]
) -> subprocess.Popen[bytes] | None:
    """Begin to compile loops, and entries of models, in a second process.

    It is begun where a model is compiled, there is another core, the first loop has no machine code
    on disk, and neither this process nor another that runs has begun one; or it was begun before
    (`compile_loop_beside`).

    Parameters
    ----------
    models : sequence of AddressedModel or None
        In the order in which they are trained; None has no compiled functions.
    loops : sequence of str
        Names of `dynamics.codegen.loops.compiled_loop` that training calls.

    Returns
    -------
    Popen or None
        The process, if it was begun.
    """
    known = [model for model in models if model is not None]
    if not known:
        return None
    try:
        process: subprocess.Popen[bytes] | None = _waiting.pop()
    except IndexError:
        process = _begun(loops[0])
    if process is None:
        return None
    tasks = [_task(model, name) for model in known[1:] for name in OTHERS]
    tasks += [{"loop": loops[0]}]
    tasks += [_task(model, name) for model in known[:1] for name in LATER]
    tasks += [{"loop": name} for name in loops[1:]]
    assert process.stdin is not None
    with suppress(OSError), process.stdin:
        _tell(process, filter(None, tasks))
    return process


def compile_loop_beside(loop: str) -> None:
    """Begin to compile a loop in a second process, while the models of the run are being made.

    It then waits for `compile_beside`, and ends with this process at the latest.

    Parameters
    ----------
    loop : str
        Name of `dynamics.codegen.loops.compiled_loop`.
    """
    if (process := _begun(loop)) is not None:
        _waiting.append(process)
        with suppress(OSError):
            _tell(process, [{"loop": loop}])


def expect_no_more() -> None:
    """Let a process that waits for tasks end; for a process that trains no models itself."""
    while _waiting:
        with suppress(OSError, IndexError):
            stream = _waiting.pop().stdin
            assert stream is not None
            stream.close()


def _begun(loop: str) -> subprocess.Popen[bytes] | None:
    """A second process that waits for tasks; None where it would not help, or has been begun."""
    if not (_first_of_all(loop) and _once.acquire(blocking=False)):
        return None
    if not compile_lock.acquire_at_once(cache_directory(), NAME):
        return None
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {SAFE_PATH: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # leaves no zombie
        atexit.register(_end, process)
        with suppress(OSError):
            _tell(process, [list(map(str, sys.path))])
        return process
    return None


def _tell(process: subprocess.Popen[bytes], lines: Iterable[Any]) -> None:
    """Write lines to a process, which reads them one after the other."""
    assert process.stdin is not None
    process.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    process.stdin.flush()


@cache
def _first_of_all(loop: str) -> bool:
    """Whether a loop has no machine code on disk, and a second process can be begun to help."""
    from dynamics.codegen.machine_code import on_disk

    # An application that embeds Python may stand in place of it.
    is_python = Path(sys.executable or "").name.lower().startswith(("python", "pypy"))
    return is_python and cores() > 1 and not on_disk(loop_source(loop))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _task(model: AddressedModel, name: str) -> dict[str, Any] | None:
    """An entry of a model, as text can hold it; None where there is none, or its data have no text.

    Parameters
    ----------
    model : AddressedModel
    name : str
        Of an entry.
    """
    if name not in model.entries:
        return None
    with suppress(TypeError):
        file = model.entries.functions.__file__
        return {"file": file, "entry": name, "data": data_text(model.data)}
    return None


def data_text(data: Any) -> Any:
    """What compiled code knows of data, in lists, texts and numbers: types, not values of arrays.

    Parameters
    ----------
    data : tuple
        Of arrays, numbers and tuples of these, or one of these.

    Raises
    ------
    TypeError
        If the data hold something else, or a tuple of a type that is not of this software: the
        second process would import, and so run, the file that has it.

    Examples
    --------
    >>> data_text((np.zeros(3), 2))
    [':tuple', ['float64', 1, 'C', True], [2]]
    """
    if isinstance(data, tuple):
        kind = type(data)
        if kind is not tuple and kind.__module__.partition(".")[0] != OWN:
            raise TypeError(f"{kind.__qualname__} is a type of {kind.__module__}")
        name = ":tuple" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}"
        return [name, *map(data_text, data)]
    if isinstance(data, np.ndarray) and data.dtype.kind in KINDS and type(data) is np.ndarray:
        flags = data.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        of_records = data.dtype.names is not None
        numbers = [list(field) for field in data.dtype.descr] if of_records else data.dtype.name
        return [numbers, data.ndim, layout, flags.writeable]
    if isinstance(data, np.generic) and data.dtype.name in NUMBERS:
        return [data.item()]
    if type(data) in (bool, int, float):
        return [data]
    raise TypeError(f"a {type(data).__name__} has no text")


def data_like(text: Any) -> Any:
    """Small data of the types that `data_text` has written.

    Parameters
    ----------
    text : list
    """
    first, *rest = text
    if not isinstance(first, str | list):
        return first
    if isinstance(first, list) or ":" not in first:
        return _array_like(first, *rest)
    module, _, name = first.partition(":")
    parts = [data_like(each) for each in rest]
    if not module:
        return tuple(parts)
    kind: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    return kind(*parts)


def _array_like(numbers: Any, axes: int, layout: str, writeable: bool) -> Any:
    """An array of a type of numbers, a number of axes and an order in memory."""
    dtype = np.dtype([tuple(field) for field in numbers] if isinstance(numbers, list) else numbers)
    made: Any = np.zeros((2,) * axes, dtype, order="F" if layout == "F" else "C")
    if layout == "A":
        made = np.zeros((4,) * axes, dtype)[(slice(None, None, 2),) * axes]
    made.flags.writeable = writeable
    return made


def work(lines: Iterable[str]) -> None:
    """Compile what each line asks for, but what another process compiles.

    Parameters
    ----------
    lines : iterable of str
        As `compile_beside` writes them.
    """
    from dynamics.codegen.machine_code import lock_for_compilation

    first = os.getppid()
    for line in lines:
        if os.getppid() != first:  # nobody waits for it any more
            return
        task = json.loads(line)
        with suppress(Exception):  # the first process meets it too, and says what it is
            if "loop" in task:
                if lock_for_compilation(loop_source(task["loop"])):
                    compiled_loop(task["loop"])
                continue
            functions = generated_file(Path(task["file"]))
            if lock_for_compilation(getattr(functions, f"{task['entry']}_entry")):
                entries_of(functions, data_like(task["data"])).address(task["entry"])
