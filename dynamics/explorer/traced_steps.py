"""A traced program as a list of steps, before it is printed.

Calls are entered, what follows from constants is computed, equal steps are one, and what no output
needs is left out. The bodies of loops and conditionals are such lists too; they refer to
variables outside by their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from theory.tracing import CALLS, UntracedPrimitive
from theory.tracing.primitives import MOVEMENTS

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr

Operand = int | NDArray[Any]
"""The number of a variable, or a constant."""
Inputs = Sequence[Operand]
EXACT: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
    "select_n": lambda which, *cases: np.choose(which, cases),
}  # fmt: skip
"""Primitives that numpy rounds as JAX does, which compiles a program for each shape."""


@dataclass(frozen=True)
class Kind:
    """Shape and type of a variable."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers or truth values."""
        return np.dtype(self.dtype).kind in "biu"


@dataclass
class Body:
    """Steps with their inputs and outputs.

    Attributes
    ----------
    inputs : list of int
        Variables that whoever runs the steps must supply.
    steps : list of Step
    outputs : list of int or array
    """

    inputs: list[int]
    steps: list[Step]
    outputs: list[Operand]

    def reads(self) -> Counter[int]:
        """How often each variable is read; what a loop reads counts twice."""
        uses = Counter(k for k in self.outputs if isinstance(k, int))
        for step in self.steps:
            uses.update(k for k in step.operands if isinstance(k, int))
            for body in step.bodies:
                inner = body.reads()
                uses.update(inner + Counter([*inner]))
        return uses


@dataclass
class Step:
    """One equation.

    Attributes
    ----------
    primitive : str
    params : mapping
    operands : list of int or array
    operand_kinds : list of Kind
    results : list of int
    kinds : list of Kind
        Of the results.
    bodies : list of Body
        Of a loop or a conditional.
    """

    primitive: str
    params: Mapping[str, Any]
    operands: list[Operand]
    operand_kinds: list[Kind]
    results: list[int]
    kinds: list[Kind]
    bodies: list[Body] = field(default_factory=list)


def steps_of(closed_jaxpr: ClosedJaxpr) -> Body:
    """The steps of a traced program.

    Parameters
    ----------
    closed_jaxpr : jax.extend.core.ClosedJaxpr
        From ``jax.make_jaxpr(f)(*args)`` under ``jax.enable_x64(True)``.

    Raises
    ------
    UntracedPrimitive
        If it has numbers that are not in double precision, which JavaScript has not.
    """
    import jax

    with jax.enable_x64(True):
        reader = _Reader()
        inputs = [next(reader.numbers) for _ in closed_jaxpr.jaxpr.invars]
        outputs = reader.run(closed_jaxpr, list(inputs))
    return _live(Body(inputs, reader.steps, outputs))


def kind_of(aval: Any, primitive: str, also: Sequence[str] = ()) -> Kind:
    """Shape and type of an abstract value.

    Parameters
    ----------
    aval : jax.core.AbstractValue
    primitive : str
        For the message.
    also : sequence of str
        Types of floats beside those in double precision: what is read is exact, what is computed
        would be rounded.

    Raises
    ------
    UntracedPrimitive
        If it holds complex numbers, keys, or floats of another precision.
    """
    dtype = getattr(aval, "dtype", None)
    letter = getattr(dtype, "kind", "?")
    if letter not in "biuf" or (letter == "f" and str(dtype) not in ("float64", *also)):
        raise UntracedPrimitive(primitive, f"a variable of type {dtype}")
    return Kind(tuple(int(n) for n in aval.shape), dtype)


class _Reader:
    """Collects the steps of a program, and numbers their variables."""

    def __init__(self, numbers: Any = None) -> None:
        self.steps: list[Step] = []
        self.numbers = count() if numbers is None else numbers
        self._results: dict[Any, list[int]] = {}

    def run(self, program: Any, inputs: Inputs) -> list[Operand]:
        """The outputs of a jaxpr."""
        from jax.extend.core import Literal

        jaxpr, constants = getattr(program, "jaxpr", program), getattr(program, "consts", ())
        held: dict[Any, Operand] = dict(zip(jaxpr.invars, inputs, strict=True))
        held |= {v: np.asarray(c) for v, c in zip(jaxpr.constvars, constants, strict=True)}

        def operand(variable: Any) -> Operand:
            return np.asarray(variable.val) if isinstance(variable, Literal) else held[variable]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [operand(v) for v in equation.invars])
            held |= dict(zip(equation.outvars, results, strict=True))
        return [operand(v) for v in jaxpr.outvars]

    def _equation(self, equation: Any, operands: list[Operand]) -> Sequence[Operand]:
        name, params = equation.primitive.name, equation.params
        if all(isinstance(value, np.ndarray) for value in operands):
            return _computed(equation, operands)
        if name in CALLS:
            return self.run(params[CALLS[name]], operands)
        kinds = [kind_of(v.aval, name) for v in equation.outvars]
        operand_kinds = [kind_of(v.aval, name, ("float32",)) for v in equation.invars]
        bodies = self._bodies(name, params, operands)
        key = (name, str(params), *map(_key, operands))
        if bodies or key not in self._results:
            self._results[key] = [next(self.numbers) for _ in equation.outvars]
            results = self._results[key]
            self.steps.append(Step(name, params, operands, operand_kinds, results, kinds, bodies))
        return self._results[key]

    def _bodies(self, name: str, params: Any, operands: list[Operand]) -> list[Body]:
        """The bodies of a loop or a conditional."""
        if name == "cond":
            return [self._body(branch, operands[1:], 0) for branch in params["branches"]]
        if name == "while":
            test, body = params["cond_nconsts"], params["body_nconsts"]
            carried = len(operands) - test - body
            return [
                self._body(params["cond_jaxpr"], operands[:test], carried),
                self._body(params["body_jaxpr"], operands[test : test + body], carried),
            ]
        if name == "scan":
            fixed = params["num_consts"]
            return [self._body(params["jaxpr"], operands[:fixed], len(operands) - fixed)]
        return []

    def _body(self, program: Any, outside: Inputs, own: int) -> Body:
        reader = _Reader(self.numbers)
        inputs = [next(self.numbers) for _ in range(own)]
        outputs = reader.run(program, [*outside, *inputs])
        return _live(Body(inputs, reader.steps, outputs))


def _computed(equation: Any, operands: Sequence[Any]) -> list[NDArray[Any]]:
    """Results of an equation whose operands are constants."""
    name, params, kinds = equation.primitive.name, equation.params, equation.outvars
    results: Any = None
    if name in MOVEMENTS:
        results = MOVEMENTS[name](params, *operands)
    elif name in EXACT:
        with np.errstate(all="ignore"):
            results = EXACT[name](*operands)
    elif name == "convert_element_type" and not _rounds(operands[0].dtype, params["new_dtype"]):
        results = operands[0].astype(params["new_dtype"])
    elif name == "iota":
        axis, shape = int(params["dimension"]), params["shape"]
        spread = [n if k == axis else 1 for k, n in enumerate(shape)]
        results = np.broadcast_to(np.arange(shape[axis]).reshape(spread), shape)
    else:
        results = equation.primitive.bind(*operands, **params)
    listed = results if isinstance(results, (list, tuple)) else [results]
    return [np.array(one, v.aval.dtype) for one, v in zip(listed, kinds, strict=True)]


def _rounds(one: Any, other: Any) -> bool:
    """Whether numbers of one type may be no numbers of another."""
    return not np.can_cast(one, other, "safe")


def _key(operand: Operand) -> Any:
    if isinstance(operand, np.ndarray):
        return operand.shape, str(operand.dtype), operand.tobytes()
    return operand


def _live(body: Body) -> Body:
    """The body without steps that no output needs."""
    needed, steps = set(Body([], [], body.outputs).reads()), []
    for step in reversed(body.steps):
        if not needed.isdisjoint(step.results):
            steps.append(step)
            needed.update(Body([], [step], []).reads())
    return Body(body.inputs, steps[::-1], body.outputs)
