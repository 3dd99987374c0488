"""Expressions of kernels as JavaScript, with the kind of their values."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce

from dynamics.explorer.kinds import NOTHING, NUMBER, Array, Kind, Tuple

RESERVED = frozenset((
    "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger",
    "default", "delete", "do", "else", "enum", "eval", "export", "extends", "finally", "for",
    "function", "if", "implements", "import", "in", "instanceof", "interface", "let", "new",
    "null", "package", "private", "protected", "public", "return", "static", "super", "switch",
    "this", "throw", "try", "typeof", "var", "void", "while", "with", "yield", "row", "part",
    "zeros", "larger", "smaller",
))  # fmt: skip
"""Names that a variable cannot have."""
FUNCTIONS = {
    "abs": "Math.abs", "cos": "Math.cos", "exp": "Math.exp", "expm1": "Math.expm1",
    "float": "", "floor": "Math.floor", "isfinite": "Number.isFinite", "log1p": "Math.log1p",
    "sin": "Math.sin", "sqrt": "Math.sqrt",
}  # fmt: skip
"""Function of Python -> of JavaScript."""
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "===", ast.NotEq: "!==",
    ast.Is: "===", ast.IsNot: "!==",
}  # fmt: skip

Printed = tuple[str, Kind]
"""Text of an expression, and the kind of its value."""


class NotPrinted(ValueError):
    """Raised for a statement or an expression that cannot be printed as JavaScript."""


class Source(ABC):
    """Functions and constants that an expression may name.

    Parameters
    ----------
    source : str
        Text of a generated file, or of kernels.
    supplied : mapping
        Name -> text of a function in JavaScript.
    """

    def __init__(self, source: str, supplied: Mapping[str, str]) -> None:
        self.supplied = supplied
        self.definitions: dict[str, ast.FunctionDef] = {}
        self.numbers: dict[str, float] = {}
        for node in ast.parse(source).body:
            match node:
                case ast.FunctionDef():
                    self.definitions[node.name] = node
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Constant(value=int() | float() as value)
                ):
                    self.numbers[name] = value

    @abstractmethod
    def called(self, name: str, kinds: tuple[Kind, ...]) -> Printed:
        """Name in JavaScript of a function for arguments of these kinds, and what it returns."""


def spelled(name: str) -> str:
    """A name as JavaScript allows it."""
    return f"{name}_" if name in RESERVED else name


def entry_of(text: str, kind: Tuple, k: int) -> Printed:
    """Entry k of a tuple.

    Parameters
    ----------
    text : str
        The tuple in JavaScript.
    kind : Tuple
    k : int
    """
    return text + (f".{kind.names[k]}" if kind.names else f"[{k}]"), kind.entries[k]


def entries_of(text: str, kind: Kind) -> str:
    """All entries of an array as one typed array; of another value the text itself.

    Parameters
    ----------
    text : str
        The array in JavaScript.
    kind : Kind
    """
    return f"{text}.data" if isinstance(kind, Array) and kind.axes > 1 else text


class Expressions:
    """Prints the expressions of one function for arguments of certain kinds.

    Parameters
    ----------
    kernels : Source
        What it may call.
    definition : ast.FunctionDef
    kinds : tuple of Kind
        Of its arguments.
    """

    def __init__(
        self, kernels: Source, definition: ast.FunctionDef, kinds: tuple[Kind, ...]
    ) -> None:
        self.kernels, self.definition = kernels, definition
        self.arguments = [argument.arg for argument in definition.args.args]
        if len(self.arguments) != len(kinds):
            raise self.refused(definition, f"is called with {len(kinds)} arguments")
        self.kinds: dict[str, Kind] = dict(zip(self.arguments, kinds, strict=True))
        self.result: Kind = NOTHING
        self.lines: list[str] = []
        self.companions: dict[str, None] = {}
        self.depth = 1
        self.temporaries = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("  " * self.depth + text)

    def refused(self, node: ast.AST, why: str) -> NotPrinted:
        """The error that names the line."""
        text = ast.unparse(node).splitlines()[0]
        return NotPrinted(f"{self.definition.name}: {text}: {why}")

    def temporary(self, text: str) -> str:
        """A constant that holds a value."""
        self.temporaries += 1
        name = f"${self.temporaries}"
        self.line(f"const {name} = {text};")
        return name

    def condition(self, node: ast.expr) -> str:
        """Text of a condition, without its outer parentheses."""
        text = self.number(node)
        return text[1:-1] if text.startswith("(") and text.endswith(")") else text

    def number(self, node: ast.expr) -> str:
        """Text of an expression that is a number.

        Raises
        ------
        NotPrinted
            If it is none.
        """
        text, kind = self.value(node)
        if kind != NUMBER:
            raise self.refused(node, "is no number")
        return text

    def value(self, node: ast.expr) -> Printed:
        """Text and kind of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.refused(node, "is not covered")
        printed: Printed = method(node)
        return printed

    def _constant(self, node: ast.Constant) -> Printed:
        if isinstance(node.value, bool):
            return str(node.value).lower(), NUMBER
        if isinstance(node.value, int | float):
            whole = float(node.value).is_integer() and abs(node.value) < 1e15
            return repr(int(node.value) if whole else node.value), NUMBER
        raise self.refused(node, "is no number")

    def _name(self, node: ast.Name) -> Printed:
        if node.id in self.kinds:
            return spelled(node.id), self.kinds[node.id]
        if node.id in self.kernels.numbers:
            return repr(self.kernels.numbers[node.id]), NUMBER
        raise self.refused(node, "is unknown")

    def _tuple(self, node: ast.Tuple) -> Printed:
        printed = [self.value(each) for each in node.elts]
        return f"[{', '.join(text for text, _ in printed)}]", Tuple(tuple(k for _, k in printed))

    def _unaryop(self, node: ast.UnaryOp) -> Printed:
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!"}.get(type(node.op))
        if sign is None:
            raise self.refused(node, "is not covered")
        return f"({sign}{self.number(node.operand)})", NUMBER

    def _binop(self, node: ast.BinOp) -> Printed:
        left, right = self.number(node.left), self.number(node.right)
        if type(node.op) in BINARY:
            return f"({left} {BINARY[type(node.op)]} {right})", NUMBER
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left} / {right})", NUMBER
        if isinstance(node.op, ast.Pow):
            return f"Math.pow({left}, {right})", NUMBER
        raise self.refused(node, "is not covered")

    def _boolop(self, node: ast.BoolOp) -> Printed:
        sign = " && " if isinstance(node.op, ast.And) else " || "
        return f"({sign.join(map(self.number, node.values))})", NUMBER

    def _compare(self, node: ast.Compare) -> Printed:
        sides = [self.value(side)[0] for side in (node.left, *node.comparators)]
        signs = [COMPARED[type(sign)] for sign in node.ops]
        pairs = zip(sides, signs, sides[1:], strict=False)
        return f"({' && '.join(f'{a} {sign} {b}' for a, sign, b in pairs)})", NUMBER

    def _ifexp(self, node: ast.IfExp) -> Printed:
        text, kind = self.value(node.body)
        other = self.value(node.orelse)[0]
        return f"({self.number(node.test)} ? {text} : {other})", kind

    def _attribute(self, node: ast.Attribute) -> Printed:
        text, kind = self.value(node.value)
        if isinstance(kind, Tuple) and node.attr in kind.names:
            return entry_of(text, kind, kind.names.index(node.attr))
        if isinstance(kind, Array) and node.attr == "size":
            return f"{entries_of(text, kind)}.length", NUMBER
        if isinstance(kind, Array) and node.attr == "shape" and kind.axes > 1:
            return f"{text}.shape", Tuple((NUMBER,) * kind.axes)
        raise self.refused(node, "is not covered")

    def _subscript(self, node: ast.Subscript) -> Printed:
        text, kind = self.value(node.value)
        if isinstance(kind, Tuple):
            return self._of_tuple(node, text, kind)
        if not isinstance(kind, Array):
            raise self.refused(node, "is no array")
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(index, ast.Slice) for index in indices):
            return self._slice(node, text, kind, indices)
        numbers = list(map(self.number, indices))
        left = kind.axes - len(numbers)
        if kind.axes == 1:
            return f"{text}[{numbers[0]}]", NUMBER
        flat = numbers[0]
        for axis, number in enumerate(numbers[1:], 1):
            length = f"{text}${axis}" if f"{text}$" in self.companions else f"{text}.shape[{axis}]"
            flat = f"({flat} * {length} + {number})"
        if left == 0:
            entries = f"{text}$" if f"{text}$" in self.companions else f"{text}.data"
            return f"{entries}[{flat[1:-1]}]", NUMBER
        if len(numbers) > 1 and left == 1:
            width, first = f"{text}.shape[{kind.axes - 1}]", self.temporary(flat)
            rows = f"{text}.data.subarray({first} * {width}, ({first} + 1) * {width})"
            return rows, Array(1, kind.whole)
        for number in numbers:
            kind = Array(kind.axes - 1, kind.whole)
            text = f"{'row' if kind.axes == 1 else 'part'}({text}, {number})"
        return text, kind

    def _of_tuple(self, node: ast.Subscript, text: str, kind: Tuple) -> Printed:
        index = node.slice
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            return entry_of(text, kind, index.value)
        raise self.refused(node, "tuples have constant indices")

    def _slice(
        self, node: ast.Subscript, text: str, kind: Array, indices: list[ast.expr]
    ) -> Printed:
        *leading, last = indices
        if any(isinstance(index, ast.Slice) for index in leading) or not (
            isinstance(last, ast.Slice) and last.step is None
        ):
            raise self.refused(node, "is not contiguous")
        inner: Kind = kind
        if leading:
            text, inner = self.value(ast.Subscript(node.value, ast.Tuple(leading), ast.Load()))
        if not isinstance(inner, Array) or inner.axes > 1:
            raise self.refused(node, "is not covered")
        first, *stop = [self.number(end) if end else "0" for end in (last.lower, last.upper)]
        ends = ", ".join([first, *stop] if last.upper else [first])
        return f"{text}.subarray({ends})", inner

    def _call(self, node: ast.Call) -> Printed:
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, "is not covered")
        name = node.func.id
        printed = [self.value(argument) for argument in node.args]
        texts = [text for text, _ in printed]
        if name in ("min", "max"):
            function = "smaller" if name == "min" else "larger"
            return reduce(lambda text, other: f"{function}({text}, {other})", texts), NUMBER
        if name in FUNCTIONS and name not in self.kernels.definitions:
            return f"{FUNCTIONS[name]}({', '.join(texts)})", NUMBER
        if name not in self.kernels.definitions and name not in self.kernels.supplied:
            raise self.refused(node, "is unknown")
        own, kind = self.kernels.called(name, tuple(k for _, k in printed))
        return f"{own}({', '.join(texts)})", kind
