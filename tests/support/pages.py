"""A printed derivation, read: its equations evaluated as they stand."""

import functools
import itertools
import math

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

ELEMENTARY = {
    "exp": math.exp, "log": math.log, "Max": max, "floor": math.floor,
    "factorial": lambda n: math.factorial(round(n)),
    "binomial": lambda n, k: math.comb(round(n), round(k)),
}  # fmt: skip


class Reader:
    """The equations of a page, each left side standing for its right side.

    `known`: name -> number, list or nested lists (their first index is `first`), or function;
    `mean`: (function of more known names) -> expectation of what it returns; a ``cache`` among the
    names serves several expectations.
    """

    def __init__(self, page, known, mean=None, first=0):
        self.known, self.mean, self.first = known, mean, first
        self.rules = {}
        for section in page.sections:
            for left, right, *relation in section.equations:
                if isinstance(right, sympy.Basic) and not relation:
                    self.rules.setdefault(_head(left), []).append((_arguments(left), right))
        self.states = {sympy.Symbol(name, real=True) for name in known.get("states", ())}

    def __call__(self, name, *arguments, **known):
        """What a name of the page is worth, with more that is known."""
        return self._rule(name, arguments, self.known | known | {"cache": {}})

    def _rule(self, name, arguments, known):
        if name in known:
            value = known[name]
            if callable(value) and not isinstance(value, sympy.Basic):
                return value(*arguments)
            for index in arguments:
                value = value[int(index) - self.first]
            return value
        key = (name, arguments)
        if key not in known["cache"]:
            rules = [rule for rule in self.rules[name] if len(rule[0]) == len(arguments)]
            if not rules:
                i, j = arguments
                return self._rule(name, (), known)[i - 1, j - 1]
            rules.reverse()
            # Of c_1 and c_k the first one comes first; of two, the last.
            for left, right in sorted(rules, key=lambda rule: sum(map(self._bound, rule[0]))):
                pairs = zip(left, arguments, strict=True)
                pairs = [(a, b) for a, b in pairs if not isinstance(a, sympy.IndexedBase)]
                if all(a == b for a, b in pairs if not self._bound(a)):
                    here = {a: b for a, b in pairs if self._bound(a)}
                    known["cache"][key] = self.value(right, known, here)
                    break
            else:
                raise KeyError(f"{name}{arguments} has no equation")
        return known["cache"][key]

    def _bound(self, argument):
        return isinstance(argument, sympy.Symbol) and argument not in self.states

    def value(self, expression, known, here):
        """An expression in numbers; ``here``: arguments of its left side, and indices of sums."""
        if expression.is_Integer:
            return int(expression)
        if expression.is_Number:
            return float(expression)
        if expression.is_Symbol:
            known_here = expression in here
            return here[expression] if known_here else self._rule(expression.name, (), known)
        if isinstance(expression, sympy.MatrixExpr):
            return self._matrix(expression, known)
        if isinstance(expression, sympy.IndexedBase):
            return self.known.get(str(expression.label), expression)
        if isinstance(expression, (sympy.Sum, sympy.Product)):
            return self._repeated(expression, known, here)
        if isinstance(expression, AppliedUndef) and _head(expression) in ("E", "mean"):
            body = expression.args[0]
            return self.mean(lambda **more: self.value(body, known | {"cache": {}} | more, here))
        if isinstance(expression, (AppliedUndef, sympy.Indexed)):
            parts = _arguments(expression)
            values = [p if p in self.states else self.value(p, known, here) for p in parts]
            return self._rule(_head(expression), tuple(values), known)
        parts = [self.value(part, known, here) for part in expression.args]
        if expression.is_Add:
            return math.fsum(parts)
        if expression.is_Mul:
            return math.prod(parts)
        if expression.is_Pow:
            return parts[0] ** parts[1]
        return ELEMENTARY[expression.func.__name__](*parts)

    def _matrix(self, expression, known):
        if isinstance(expression, sympy.MatrixSymbol):
            name = expression.name
            if name in known or any(not left for left, _ in self.rules[name]):
                return np.asarray(self._rule(name, (), known))
            rows, columns = (self.value(size, known, {}) for size in expression.shape)
            span = itertools.product(range(1, rows + 1), range(1, columns + 1))
            return np.reshape([self._rule(name, place, known) for place in span], (rows, columns))
        if isinstance(expression, sympy.Transpose):
            return self._matrix(expression.arg, known).T
        parts = [self.value(part, known, {}) for part in expression.args]
        if expression.is_MatAdd:
            return sum(parts)
        return functools.reduce(lambda a, b: a @ b if np.ndim(a) * np.ndim(b) else a * b, parts)

    def _repeated(self, expression, known, here):
        spans = []
        for k, *ends in expression.limits:
            first, last = (round(self.value(end, known, here)) for end in ends)
            spans.append([{k: n} for n in range(first, last + 1)])
        places = [functools.reduce(dict.__or__, place) for place in itertools.product(*spans)]
        terms = [self.value(expression.function, known, here | place) for place in places]
        return math.fsum(terms) if isinstance(expression, sympy.Sum) else math.prod(terms)


def _head(left):
    if isinstance(left, sympy.Indexed):
        return str(left.base.label)
    return left.func.__name__ if isinstance(left, AppliedUndef) else left.name


def _arguments(left):
    if isinstance(left, sympy.Indexed):
        return left.indices
    return left.args if isinstance(left, AppliedUndef) else ()


def numbers(parts, total):
    """Every tuple of ``parts`` numbers >= 0 of a sum."""
    spread = itertools.product(range(total + 1), repeat=parts)
    return [counts for counts in spread if sum(counts) == total]
