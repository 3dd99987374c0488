"""Reduced programs: the distinct values of a risk, each computed once.

`Values` is the table of distinct values. `read` enters a traced function into the table; `adjoints`
and `tangents` enter derivatives. `build` makes a `Program` of the values that some outputs need. A
program consists of arrays of instructions, which a loop evaluates in order.
"""

from theory.program.derivatives import adjoints, tangents
from theory.program.evaluate import run, run_floats
from theory.program.numbering import ONE, ZERO, Ids, NoProgram, Values
from theory.program.operations import CODE, OPERATIONS
from theory.program.program import Program, build
from theory.program.reading import UnreadPrimitive, named_function, read

__all__ = [
    "CODE",
    "ONE",
    "OPERATIONS",
    "ZERO",
    "Ids",
    "NoProgram",
    "Program",
    "UnreadPrimitive",
    "Values",
    "adjoints",
    "build",
    "named_function",
    "read",
    "run",
    "run_floats",
    "tangents",
]
