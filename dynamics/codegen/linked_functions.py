"""Functions that compiled code alone calls: linked into their callers, without machine code.

For every function numba makes optimized code, machine code, a wrapper by which Python calls it, and
a file of its cache. What a generated file defines is called by a few entries, each of which holds
all that it calls: there the rest is work for nothing, half of the time of a compilation. So here a
function is compiled to the code of LLVM from which its callers are linked, which optimize it as
their own. One that Python does call is compiled once more, with all that numba makes
(`callable_function`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import _dynfunc, njit  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering

from dynamics.codegen.machine_code import CheckedCache
from dynamics.codegen.operator_types import remember_operators

_WITHOUT_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_SET_BY_NUMBA = {"nopython", "boundscheck"}


class _LinkedLibrary(JITCodeLibrary):
    """Code of a function, to be linked into its callers; the machine never runs it by itself."""

    def _optimize_final_module(self) -> None:
        """Nothing: callers optimize what they link."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _WholeLibrary(JITCodeLibrary):
    """Code of a function with its own copies of the linked functions that it calls.

    Each library optimizes them for itself, and the linker of a process takes the first of one
    name, whatever their roundings; so they are internal.
    """

    def _optimize_final_module(self) -> None:
        """Make linked functions internal, then optimize."""
        linked_in = [each for each in self._linking_libraries if isinstance(each, _LinkedLibrary)]
        names = {function.name for each in linked_in for function in each.get_defined_functions()}
        for function in self.get_defined_functions():
            if function.name in names:
                function.linkage = "internal"
        super()._optimize_final_module()


# Of all libraries; without linked functions they are as before.
cpu_target.target_context.codegen()._library_class = _WholeLibrary
remember_operators()


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):
    """The pass in which numba makes code of a function, without machine code."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function, and let numba find it for callers."""
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        # What numba knows a compiled function by; its address is none.
        module, name = made.fndesc.lookup_module(), state.func_id.func_name
        known_by = _dynfunc.make_function(module, name, "", 0, made.env, (state.library,))
        state.targetctx.insert_user_function(known_by, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=known_by)
        return True


class _LinkedCompiler(CompilerBase):
    """The passes of numba, the last but one replaced."""

    def define_pipelines(self) -> list[Any]:
        """The one list of passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LinkedLowering if each is NativeLowering else each, text)
            for each, text in passes.passes
        ]
        passes.finalize()
        return [passes]


def linked(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: the function is for compiled code alone.

    Parameters
    ----------
    **options
        Of ``numba.njit``.
    """
    decorator: Any = njit(**{"pipeline_class": _LinkedCompiler, **_WITHOUT_WRAPPERS, **options})
    return decorator


def is_linked(function: Any) -> bool:
    """Whether a compiled function is for compiled code alone."""
    compiler = getattr(function, "_compiler", None)
    return compiler is not None and compiler.pipeline_class is _LinkedCompiler


@cache
def callable_function(function: Any) -> Any:
    """A function of a generated file as Python calls it, with its machine code on disk.

    Parameters
    ----------
    function : numba dispatcher
        Of `linked`.
    """
    left_out = {*_WITHOUT_WRAPPERS, *_SET_BY_NUMBA}
    options = {k: v for k, v in function.targetoptions.items() if k not in left_out}
    made: Any = njit(**options)(function.py_func)
    made._cache = CheckedCache(function.py_func)
    return made
