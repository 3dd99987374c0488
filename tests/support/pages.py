"""A printed derivation, read: its equations evaluated as they stand, and its letters looked up."""

import functools
import itertools
import math
import re
from dataclasses import replace

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from theory import page as pages

plain = functools.cache(pages.plain)

ELEMENTARY = {
    "exp": math.exp, "log": math.log, "Max": max, "floor": math.floor,
    "factorial": lambda n: math.factorial(round(n)),
    "binomial": lambda n, k: math.comb(round(n), round(k)),
}  # fmt: skip
WORDS = {
    "exp", "log", "binomial", "floor", "Max", "sum", "prod", "of", "over", "all", "both", "and",
    "with", "if", "else",
}  # fmt: skip
"""What an equation may hold beside letters."""


class Reader:
    """The equations of a page, each left side standing for its right side.

    Parameters
    ----------
    page : Page
    known : dict
        Name -> number, list or nested lists (indices from 0), or function.
    mean : callable
        (function of more known names) -> expectation of what it returns; a ``cache`` among them
        serves several expectations.
    first : int
        Index of the first entry of what is known.
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
                pairs = [
                    (a, b)
                    for a, b in zip(left, arguments, strict=True)
                    if not isinstance(a, sympy.IndexedBase)
                ]
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
        """An expression in numbers.

        ``here`` are the arguments of its left side, and indices of sums.
        """
        if expression.is_Integer:
            return int(expression)
        if expression.is_Number:
            return float(expression)
        if expression.is_Symbol:
            return (
                here[expression] if expression in here else self._rule(expression.name, (), known)
            )
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


TOKEN = re.compile(r"d\w+/d\w+|[A-Za-z]\w*'?")
LETTER = re.compile(
    r"\b(?:[B-HJ-Zb-z]|alpha|beta|gamma|delta|rho|eta|nu|theta|kappa|mu|Lambda|Gamma|Xi|Ups|Phi)\b"
)
"""What is a letter in words too; "a", "A" and "I" are words there."""


AREAS = ("self", "own", "target", "global", "other", "local")
"""Words that are indices."""


def undefined(page):
    """Letters that a page uses and does not define.

    It defines what its sections list, what stands on the left of an equation, and what a sentence
    has between double backticks. Arguments and indices of a left side are bound in its equation,
    indices of a sum in the equation of the sum.
    """
    defined = {name for section in page.sections for name in definitions(section)}
    used = set()
    for section in page.sections:
        for left, right, *_ in section.equations:
            arguments = re.findall(r"[(\[](.*)[)\]]", plain(left))
            bound = indices(plain(left), set()) | {
                t for part in arguments for t in TOKEN.findall(part)
            }
            bound |= set(re.findall(r"(\w+) = [^,()]*\.\.", plain(right)))
            used |= (
                (letters(plain(right), defined) | indices(plain(right), defined)) - bound - WORDS
            )
        texts = (*section.sentences, *(f"`{name}` {text}" for name, text in section.letters))
        for text in texts:
            words, mathematics = split(text)
            used |= set(LETTER.findall(words)) | letters(mathematics, defined) - WORDS
    return used - defined


def definitions(section):
    """Names that a section defines."""
    marked = [part for text in section.sentences for part in text.split("``")[1::2]]
    heads = [plain(left) for left, *_ in section.equations]
    indexed = [plain(left) for left, *_ in section.equations if isinstance(left, sympy.Indexed)]
    names = {name for name, _ in section.letters}
    names |= {TOKEN.findall(text)[0] for text in (*marked, *heads)}
    return names | {base(name) for name in (*marked, *indexed)}


def base(token):
    """A letter without its index."""
    return re.sub(rf"(?<=\w)(?:_(?:[a-z\d]{{1,2}}|[A-Z]|{'|'.join(AREAS)}))+$", "", token)


def letters(text, defined):
    """Names in mathematics; of one with an index its base, where it has no definition itself."""
    found = TOKEN.findall(text)
    return {name if name in defined else base(name) for name in found}


def indices(text, defined):
    """Letters that are indices of what is not defined as it stands."""
    found = [token for token in TOKEN.findall(text) if token not in defined]
    words = [word for token in found for word in token[len(base(token)) + 1 :].split("_")]
    return {letter for word in words if word not in AREAS for letter in word if letter.isalpha()}


def split(text):
    """Words of a sentence, and its mathematics."""
    parts = text.replace("``", "`").split("`")
    return " ".join(parts[::2]), " ".join(parts[1::2])


def check_letters(page):
    """Every letter is defined, and is not when the letters of a section are taken away."""
    assert undefined(page) == set()
    bare = (replace(section, letters=()) for section in page.sections)
    assert undefined(replace(page, sections=tuple(bare)))
