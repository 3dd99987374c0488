"""From expressions to compiled functions, by way of a source file that can be read.

The only module that sees both sympy and numba. A generated file holds, in one text, the functions
printed from sympy expressions, the hand-written kernels they need (their source is copied in) and
the loop of `dynamics.codegen.kernels.advance`. Its name carries a hash of that text and of numba's
version, so a change anywhere gives a new file and nothing stale is ever run; numba caches machine
code beside it, so a second process compiles nothing.

Signatures of what is printed:

- ``tabulate``: ``name(state, constants, latents, out)`` fills ``out[k, i, j, ...]`` with block k at
  every combination of the latent values;
- ``evaluate``: ``name(state, rates, constants, out)`` fills ``out[k]`` with expression k.
"""

from __future__ import annotations

import dis
import getpass
import hashlib
import importlib.util
import inspect
import os
import sys
import tempfile
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

    from theory.reduction import ReducedSystem

THREADED_FROM = 20_000
"""Terms of a sum from which a step is worth sharing among threads."""
LANES = 16
"""Parts into which a threaded sum is cut, whatever the number of threads."""

HEADER = '''"""{title}

Generated from the model; do not edit. State order: {order}.
"""

from math import ceil, copysign, cos, exp, expm1, floor, isfinite, log, log1p, pi, sin, sqrt, tanh

import numpy as np
from numba import njit, prange

STATE_ORDER = {order!r}

# Sums may be reordered, but not 'nnan' and 'ninf'. Reordering folds isfinite to True and removes
# roundings that are meant, so some functions forbid it: in words, because a function that says
# nothing inherits the flags of its caller.
FLAGS = {{"contract", "arcp", "nsz", "reassoc"}}
# Every entry holds all that it calls: of a function that were compiled for itself and again inside
# its caller, roundings would depend on which of the two a process had loaded first.
kernel = njit(cache=True, error_model="numpy", fastmath=FLAGS, forceinline=True)
exact_kernel = njit(cache=True, error_model="numpy", fastmath=False, forceinline=True)
parallel_kernel = njit(cache=True, error_model="numpy", fastmath=FLAGS, parallel=True)
'''


@dataclass(frozen=True)
class CompiledModule:
    """A generated file, imported.

    Attributes
    ----------
    path : Path
        Where the source is.
    source : str
        Its text.
    state_order : tuple of str
        Names of the entries of every ``state`` argument.
    functions : module
        The compiled functions as attributes.
    """

    path: Path
    source: str
    state_order: tuple[str, ...]
    functions: ModuleType

    def __getattr__(self, name: str) -> Any:
        return getattr(self.functions, name)


def cache_directory() -> Path:
    """Where generated files live: ``ATTDYN_CACHE_DIR``, else the user's cache directory.

    A directory that cannot be written falls back to one under the temporary directory.
    """
    import platformdirs

    chosen = os.environ.get("ATTDYN_CACHE_DIR") or platformdirs.user_cache_dir("attdyn")
    for folder in (Path(chosen), Path(tempfile.gettempdir()) / f"attdyn-{getpass.getuser()}"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise OSError(
        f"no writable directory for generated files; set ATTDYN_CACHE_DIR (tried {chosen})"
    )


def kernel_source(
    *entries: Callable[..., Any], parallel: Collection[Callable[..., Any]] = ()
) -> str:
    """Source of hand-written kernels and of all that they call, callees before callers.

    The functions and the numbers that a kernel reads from its module are followed; a name that is
    None there is supplied by another part of the generated file. A kernel marked
    `dynamics.codegen.kernels.exact` is compiled without any reordering.

    Parameters
    ----------
    *entries : callable
        Plain functions of `dynamics.codegen.kernels` or of a system's kernels. Each takes the place
        of every function of its name.
    parallel : collection of callable
        Those whose ``prange`` loops run in threads.

    Raises
    ------
    ValueError
        If two of the functions, or two of the numbers, have the same name.

    Examples
    --------
    >>> from dynamics.codegen.kernels.logistic import logistic_loss
    >>> print(kernel_source(logistic_loss).splitlines()[1])
    def logistic_loss(margin: float) -> float:
    """
    replaced = {entry.__name__: entry for entry in entries}
    functions: dict[str, Callable[..., Any]] = {}
    numbers: dict[str, float] = {}

    def follow(function: Callable[..., Any]) -> None:
        name = function.__name__
        if functions.setdefault(name, function) is not function:
            raise ValueError(f"two kernels of one file have the name {name}")
        namespace = function.__globals__
        for used in sorted(_globals_of(function.__code__)):
            value = replaced.get(used, namespace.get(used))
            if inspect.isfunction(value) and value not in functions.values():
                follow(value)
            elif isinstance(value, int | float) and numbers.setdefault(used, value) != value:
                raise ValueError(f"two numbers of one file have the name {used}")
        functions[name] = functions.pop(name)

    for entry in entries:
        if entry not in functions.values():
            follow(entry)
    texts = ["\n".join(f"{name} = {value!r}" for name, value in numbers.items()) + "\n"]
    for function in functions.values():
        text = textwrap.dedent(inspect.getsource(function))
        decorator = "exact_kernel" if getattr(function, "exact", False) else "kernel"
        if function in parallel:
            decorator = "parallel_kernel"
        texts.append(f"@{decorator}\n{text[text.index('def ') :]}")
    return "\n\n".join([*_records(functions.values()), *texts[not numbers :]])


def _records(functions: Iterable[Callable[..., Any]]) -> list[str]:
    """Fields of the NamedTuples of the kernels' modules: another order is another file."""
    values = [value for function in functions for value in function.__globals__.values()]
    records = {value.__name__: value._fields for value in values if hasattr(value, "_fields")}
    return [f"# {name}: {', '.join(fields)}\n" for name, fields in sorted(records.items())]


def _globals_of(code: CodeType) -> set[str]:
    """Names that a function reads from its module."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return names.union(*map(_globals_of, inner))


def field_names(*classes: Any) -> str:
    """A comment with the fields of named tuples that kernels are given.

    Compiled code knows fields by their position, so a change of their order must be a change of
    the text that it is cached with.

    Parameters
    ----------
    *classes : type
        Named tuples; those that their fields are annotated with are written too.
    """
    lines, waiting = [], list(classes)
    for kind in waiting:
        lines.append(f"# {kind.__name__}: {', '.join(kind._fields)}")
        fields = typing.get_type_hints(kind).values()
        waiting += [field for field in fields if hasattr(field, "_fields")]
    return "\n".join(lines) + "\n"


def evaluate(name: str, outputs: Sequence[sympy.Expr], system: ReducedSystem) -> str:
    """Source of a function that evaluates expressions of state, rates and definitions.

    Parameters
    ----------
    name : str
        Name of the function.
    outputs : sequence of sympy.Expr
        What ``out[0], out[1], ...`` are.
    system : ReducedSystem
        Supplies the order of state and constants, and the definitions.
    """
    lines = _arguments(system, [f"d_{s.name}" for s in system.state])
    lines += _assignments(_needed(outputs, system))
    temporaries, results = _common(outputs, "t")
    lines += _assignments(temporaries)
    lines += [f"out[{k}] = {_print(result)}" for k, result in enumerate(results)]
    return _function(f"{name}(state, rates, constants, out)", lines)


def tabulate(name: str, blocks: Sequence[str], system: ReducedSystem) -> str:
    """Source of a function that tabulates blocks over all combinations of the latent values.

    What does not depend on the latents is computed once, before the loops.

    Parameters
    ----------
    name : str
        Name of the function.
    blocks : sequence of str
        Names of blocks of the system, in the order of ``out``.
    system : ReducedSystem
        The derivation.
    """
    outputs = [system.blocks[block] for block in blocks]
    temporaries, results = _common(outputs, "t")
    outer, inner = _hoisted(temporaries, {latent.name for latent in system.latents})
    lines = _arguments(system, [])
    lines += _assignments(_needed(outputs, system))
    lines += _assignments(outer)
    arrays = [f"{latent.name}_values" for latent in system.latents]
    lines.append(f"{', '.join(arrays)} = latents")
    indices, indent = [], ""
    for latent, array in zip(system.latents, arrays, strict=True):
        index = f"i_{latent.name}"
        indices.append(index)
        lines.append(f"{indent}for {index} in range({array}.size):")
        indent += "    "
        lines.append(f"{indent}{latent.name} = {array}[{index}]")
    lines += [indent + line for line in _assignments(inner)]
    place = ", ".join(indices)
    lines += [f"{indent}out[{k}, {place}] = {_print(r)}" for k, r in enumerate(results)]
    return _function(f"{name}(state, constants, latents, out)", lines)


def summed(
    name: str,
    outputs: Sequence[sympy.Expr],
    arguments: tuple[Sequence[str], Sequence[str], Sequence[str]],
) -> str:
    """Source of a function that sums expressions over the rows of a table of samples.

    ``name(state, data, out)`` with ``data = (constants, weights, samples, share)`` sets ``out[k]``
    to ``share[k]`` times the weighted sum of expression k. What does not depend on the sample is
    computed once, before the loop.

    Parameters
    ----------
    name : str
        Name of the function.
    outputs : sequence of sympy.Expr
    arguments : (state, constants, sample)
        Names of the entries of the state, of the constants and of the columns of a sample.
    """
    state, constants, sample = arguments
    temporaries, results = _common(outputs, "t")
    outer, inner = _hoisted(temporaries, set(sample))
    lines = ["constants, weights, samples, share = data"]
    lines += [f"{entry} = state[{k}]" for k, entry in enumerate(state)]
    lines += [f"{entry} = constants[{k}]" for k, entry in enumerate(constants)]
    lines += _assignments(outer)
    lines += [f"out[{k}] = 0.0" for k in range(len(outputs))]
    lines.append("for row in range(weights.size):")
    body = ["weight = weights[row]"]
    body += [f"{entry} = samples[row, {k}]" for k, entry in enumerate(sample)]
    body += _assignments(inner)
    body += [f"out[{k}] += weight*({_print(result)})" for k, result in enumerate(results)]
    lines += ["    " + line for line in body]
    lines += [f"out[{k}] *= share[{k}]" for k in range(len(outputs))]
    return _function(f"{name}(state, data, out)", lines)


def selected(columns: Sequence[tuple[str, int]]) -> str:
    """Source of ``order_parameters`` that are states (``"state"``) and rates (``"rate"``)."""
    lines = [
        f"out[{k}] = " + (f"state[{entry}]" if kind == "state" else f"-slope[{entry}]")
        for k, (kind, entry) in enumerate(columns)
    ]
    return _function("order_parameters(state, slope, data, out)", lines)


def build(title: str, state_order: Sequence[str], parts: Sequence[str]) -> CompiledModule:
    """Write a generated file, import it, and return its functions (compiled on first call).

    Parameters
    ----------
    title : str
        First line of the file's docstring.
    state_order : sequence of str
        Names of the entries of ``state``.
    parts : sequence of str
        Sources of the functions, callees before callers.

    Raises
    ------
    OSError
        If no directory for generated files can be written.
    """
    import numba

    order = tuple(state_order)
    text = "\n\n".join([HEADER.format(title=title, order=order), *parts])
    digest = hashlib.sha256(f"{numba.__version__}\n{text}".encode()).hexdigest()[:16]
    name = f"attdyn_generated_{digest}"
    path = cache_directory() / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        _write_whole(path, text)
    if "@parallel_kernel" in text:
        # A caller loaded from the cache does not start the threads its callee needs, and crashes.
        numba.get_num_threads()
    module = sys.modules.get(name) or _import(name, path)
    return CompiledModule(path, text, order, module)


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _write_whole(path: Path, text: str) -> None:
    """Another process sees the whole file or none."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, path)


def _function(signature: str, lines: Sequence[str]) -> str:
    return f"@kernel\ndef {signature}:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _arguments(system: ReducedSystem, rates: Sequence[str]) -> list[str]:
    lines = [f"{s.name} = state[{k}]" for k, s in enumerate(system.state)]
    lines += [f"{s.name} = constants[{k}]" for k, s in enumerate(system.parameters)]
    return lines + [f"{rate} = rates[{k}]" for k, rate in enumerate(rates)]


def _needed(
    outputs: Sequence[sympy.Expr], system: ReducedSystem
) -> list[tuple[sympy.Symbol, sympy.Expr]]:
    """The definitions that the outputs use, shared parts named, exponents shifted."""
    import sympy

    wanted: set[Any] = set().union(*[output.free_symbols for output in outputs])
    names = []
    for symbol in reversed(list(system.definitions)):
        if symbol in wanted:
            names.append(symbol)
            wanted |= system.definitions[symbol].free_symbols
    names.reverse()
    values = [system.definitions[symbol] for symbol in names]
    shift, result = sympy.Symbol("shift", real=True), []
    moved = {s: s - shift for s in system.shift_invariant}
    if moved and any(set(moved) & value.free_symbols for value in values):
        result.append((shift, sympy.Max(*system.shift_invariant)))
        values = [value.subs(moved, simultaneous=True) for value in values]
    temporaries, values = _common(values, "c")
    return result + temporaries + list(zip(names, values, strict=True))


def _hoisted(
    temporaries: Sequence[tuple[Any, Any]], moving: set[str]
) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Temporaries that can be computed before a loop, and those that change within it.

    ``moving`` are the names that change within the loop.
    """
    moving = set(moving)
    inner: list[tuple[Any, Any]] = []
    outer: list[tuple[Any, Any]] = []
    for symbol, value in temporaries:
        depends = {s.name for s in value.free_symbols} & moving
        (inner if depends else outer).append((symbol, value))
        if depends:
            moving.add(symbol.name)
    return outer, inner


def _common(
    expressions: Sequence[sympy.Expr], prefix: str
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], list[sympy.Expr]]:
    import sympy

    names = sympy.numbered_symbols(prefix, real=True)
    return sympy.cse(list(expressions), symbols=names, optimizations="basic", order="none")


def _assignments(pairs: Iterable[tuple[sympy.Symbol, sympy.Expr]]) -> list[str]:
    return [f"{symbol.name} = {_print(value)}" for symbol, value in pairs]


def _print(expression: sympy.Expr) -> str:
    """Python text of an expression; x**-n as a quotient, which gives infinity at 0 and no error."""
    from sympy.printing.pycode import PythonCodePrinter

    class Printer(PythonCodePrinter):  # type: ignore[misc]
        def _print_Pow(self, power: Any, rational: bool = False) -> str:  # noqa: N802
            if power.exp.is_Integer and power.exp < -1:
                return f"(1.0/({self._print(power.base**-power.exp)}))"
            return str(super()._print_Pow(power, rational))

    settings = {"fully_qualified_modules": False, "allow_unknown_functions": True}
    return str(Printer(settings).doprint(expression))
