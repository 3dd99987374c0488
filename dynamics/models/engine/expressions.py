"""Risk and descent steps of a model as SymPy expressions and as standalone Python files."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.functions import class_embedding
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk, reduced_risk
from dynamics.validation import InvalidRequest
from theory.closure import Closure
from theory.law import FloatArray
from theory.program import NoProgram, field, source, symbolic
from theory.program.evaluate import order
from theory.program.numbering import SAME_FLOAT
from theory.program.operations import CODE
from theory.program.symbolic import Parts, decimal

STOP = CODE["stop"]


def exact_weights(weights: FloatArray) -> list[Fraction]:
    """Weights of a law as exact fractions, with small denominators if these equal the floats."""
    near = [Fraction(w).limit_denominator(field.MAX_DENOMINATOR) for w in weights.tolist()]
    pairs = zip(near, weights.tolist(), strict=True)
    if sum(near) == 1 and all(abs(simple - Fraction(w)) <= SAME_FLOAT * w for simple, w in pairs):
        return near
    return [field.simplest(w) for w in weights.tolist()]


def symbol(name: str) -> sympy.Symbol:
    """SymPy symbol of a scalar, a real constant or a learning rate."""
    return sympy.Symbol(name, real=True)


class Expressions:
    """Risk and descent steps of a model as SymPy expressions in its scalars and real constants.

    The expressions contain the results of the model's functions `law`, `fixed` and `start` as
    numbers. With `eliminate`, each conserved linear combination of scalars eliminates one of them:
    `eliminated` maps it to its expression in the scalars that remain in `names`. `rates` has the
    letter of the learning rate of each scalar; `given_numbers` has the real constants, then the
    weight of each class of samples. Raises InvalidRequest if the law can only be sampled, if no
    scalar moves, or if an operation cannot be traced.
    """

    def __init__(
        self, made: Realization, closure: Closure, eta: tuple[float, ...], eliminate: bool = False
    ) -> None:
        name = made.model.name
        if made.only_sampled:
            raise InvalidRequest(
                f"the law of {name} can only be sampled: its risk has no expression"
            )
        if not closure.scalars:
            raise InvalidRequest(f"nothing moves: the gradient of {name} vanishes at its start")
        self.made, self.closure, self.eta = made, closure, eta
        data = made.representatives(closure.sample_groups)
        embedding = class_embedding(closure.classes)
        try:
            self.table: ReducedRisk = reduced_risk(made.program, data, embedding, closure.names)
        except NoProgram as error:
            raise InvalidRequest(str(error)) from None
        self.given_numbers = self.table.numbers(data)
        self.eliminated = _eliminated(closure) if eliminate else {}
        if eliminate and not self.eliminated:
            raise InvalidRequest(f"eliminate: training of {name} conserves no linear combination")
        scalars = {
            int(k): symbol(n) for k, n in zip(self.table.scalars, closure.names, strict=True)
        }
        self.given: dict[int, Any] = {k: self.eliminated.get(s, s) for k, s in scalars.items()}
        self.given |= {k: symbol(n) for n, k in self.table.reals.items()}
        weights = map(decimal, exact_weights(self.given_numbers[len(self.table.reals) :]))
        self.given |= dict(zip(self.table.weights.tolist(), weights, strict=True))
        left = [k for k, s in enumerate(scalars.values()) if s not in self.eliminated]
        self._left = np.array(left, dtype=np.int64)
        self.names = tuple(closure.names[k] for k in left)
        rates = rate_names(made, closure, eta)
        self.rates = tuple(rates[k] for k in left)

    @property
    def follows_a_field(self) -> bool:
        """Whether the risk has a stop_gradient, so that steps do not follow its true gradient."""
        values = self.table.values
        return bool((values.code[order(values, [self.table.risk], ())] == STOP).any())

    @property
    def real_constants(self) -> dict[sympy.Symbol, float]:
        """SymPy symbol of each real constant -> value of the constant."""
        names = self.table.reals
        return {symbol(n): x for n, x in zip(names, self.given_numbers.tolist(), strict=False)}

    @cached_property
    def operations(self) -> int:
        """Number of operations in the formula of the risk; each term of a sum counts."""
        return symbolic.operations(self.table.values, [self.table.risk], self.given)

    def slopes(self, count: int | None = None) -> list[int]:
        """Ids in `table` of the gradient per entry for the first `count` scalars (default: all)."""
        return [int(v) for v in self.table.gradient[self._left[:count]]]

    def whole(self, roots: Sequence[int]) -> list[sympy.Expr]:
        """SymPy expressions of the values with the ids `roots` in `table`, simplified if short."""
        found = symbolic.expressions(self.table.values, roots, self.given, decimal)
        return [symbolic.simplified(expression) for expression in found]

    def risk(self) -> sympy.Expr:
        """Population risk as a SymPy expression."""
        return self.whole([self.table.risk])[0]

    def recursion(self) -> dict[str, sympy.Expr]:
        """Name of a scalar -> expression of its value after one descent step."""
        steps = zip(self.names, self.rates, self.whole(self.slopes()), strict=True)
        return {name: symbol(name) - symbol(rate) * slope for name, rate, slope in steps}

    def written(self, most: int) -> tuple[Parts, sympy.Expr, Parts, list[sympy.Expr]]:
        """Risk, and its gradient for the first `most` scalars, with common subexpressions named.

        Returns named subexpressions of the risk, the risk, those of the gradient, the gradient.
        """
        values, roots = self.table.values, [self.table.risk, *self.slopes(most)]
        taken = (*self.closure.names, *self.made.constants)
        if symbolic.operations(values, roots, self.given) <= symbolic.LONG:
            parts, (risk, *slopes) = symbolic.common_parts(self.whole(roots), taken)
        elif self.operations <= symbolic.SHORT_PAGE:
            (risk,) = self.whole(roots[:1])
            parts, slopes = symbolic.named_parts(values, roots[1:], self.given, taken, decimal)
        else:
            parts, (risk, *slopes) = symbolic.named_parts(values, roots, self.given, taken, decimal)
        used, first = set(risk.free_symbols), []
        for name, part in reversed(parts):
            if name in used:
                first.append((name, part))
                used |= part.free_symbols
        later = [part for part in parts if part not in first]
        return first[::-1], risk, later, slopes

    def as_python(self) -> str:
        """Text of a Python file that computes the risk and a descent step with numpy alone."""
        model, table = self.made.model, self.table
        start = self.closure.classes.start[self.closure.classes.first]
        constants = ", ".join(f"{k}={v!r}" for k, v in self.made.constants.items())
        title = f"{model.name} on its scalars{f', at {constants}' if constants else ''}."
        eta = self._rates_of_scalars()
        reals = {k: name for name, k in table.reals.items()}
        scalars = dict(zip(table.scalars.tolist(), self.closure.names, strict=True))
        return source.function_file(
            table.values, table.risk, table.gradient, (scalars, reals, self._given_numbers()),
            start.tolist(), eta if len(set(eta)) > 1 else eta[:1], title,
        )  # fmt: skip

    def document(self) -> dict[str, Any]:
        """JSON document of the program for risk and gradient, with the values of its inputs."""
        table = self.table
        program = table.program({"risk": np.array([table.risk]), "gradient": table.gradient})
        start = self.closure.classes.start[self.closure.classes.first]
        return {
            "model": self.made.model.name,
            "constants": dict(self.made.constants),
            "scalars": list(self.closure.names),
            "start": start.tolist(),
            "eta": self._rates_of_scalars(),
            "given": self.given_numbers.tolist(),
            "program": program.document(),
        }

    def _given_numbers(self) -> dict[int, float]:
        """Id in `table` of each real constant and each weight of a sample class -> its number."""
        inputs = [*self.table.reals.values(), *self.table.weights.tolist()]
        return dict(zip(inputs, self.given_numbers.tolist(), strict=True))

    def _rates_of_scalars(self) -> list[float]:
        groups = list(dict.fromkeys(self.made.group_of_arrays().values()))
        rates = self.eta if len(self.eta) > 1 else self.eta * len(groups)
        by_array = {a: rates[groups.index(g)] for a, g in self.made.group_of_arrays().items()}
        return [by_array[array] for array in arrays_of(self.made, self.closure)]


def arrays_of(made: Realization, closure: Closure) -> list[str]:
    """Name of the trained array that contains the first entry of a scalar, for each scalar."""
    return [made.entry_position(int(entry))[0] for entry in closure.classes.first]


def rate_names(made: Realization, closure: Closure, eta: tuple[float, ...]) -> list[str]:
    """Letter of the learning rate of each scalar: ``eta``, or one letter per parameter group."""
    if len(eta) == 1:
        return ["eta"] * closure.scalars
    groups = made.group_of_arrays()
    return [f"eta_{groups[array]}" for array in arrays_of(made, closure)]


def _eliminated(closure: Closure) -> dict[sympy.Symbol, sympy.Expr]:
    """Eliminated scalar -> its expression in the others, from conserved linear combinations."""
    start = closure.classes.start[closure.classes.first]
    symbols = [symbol(name) for name in closure.names]
    rows = []
    for law in closure.laws:
        if law.degree == 1 and law.exact:
            terms = [(f, k) for f, (k,) in zip(law.fractions, law.terms, strict=True)]
            kept = sum((f * field.simplest(float(start[k])) for f, k in terms), Fraction(0))
            rows.append(
                sum(sympy.Rational(f) * symbols[k] for f, k in terms) - sympy.Rational(kept)
            )
    if not rows:
        return {}
    (solution,) = sympy.linsolve(rows, symbols[::-1])
    found = zip(symbols[::-1], solution, strict=True)
    return {s: value for s, value in found if s != value}


def expressions_of(definition: Definition, parameters: Any = None) -> Expressions:
    """Expressions of a model at some parameters, or at its default parameters for None."""
    given = definition.Parameters() if parameters is None else parameters
    made, closure = definition.reduction(given)
    return Expressions(made, closure, made.rates())
