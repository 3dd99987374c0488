"""Kernels as JavaScript: the subset of Python that numba compiles, printed for a browser.

The text that is printed is that of the generated file itself (`dynamics.codegen`): expressions that
sympy has printed, and kernels that are copied in. So the page runs what Python runs, operation by
operation, and no second version of a kernel exists. Compiled code may reorder sums and fuse
products; the texts agree to rounding, which the tests measure.

What is not covered is refused by name: slices that are not contiguous, complex numbers, functions
that are not in `FUNCTIONS`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.explorer.kinds import NOTHING, NUMBER, OPAQUE, Array, Kind, Rows, Tuple

RESERVED = frozenset(
    "arguments await break case catch class const continue debugger default delete do else enum "
    "eval export extends finally for function if implements import in instanceof interface let new "
    "null package private protected public return static super switch this throw try typeof var "
    "void while with yield row part parts zeros larger smaller copysign modulo".split()
)
FUNCTIONS = {
    name: f"Math.{name}"
    for name in "exp log log1p expm1 sqrt sin cos tan tanh sinh cosh abs ceil floor".split()
} | {"isfinite": "Number.isFinite", "int": "Math.trunc", "copysign": "copysign", "float": ""}
"""Function of Python -> of JavaScript."""
CONSTANTS = {"nan": "NaN", "inf": "Infinity", "pi": "Math.PI"}
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "===", ast.NotEq: "!==",
    ast.Is: "===", ast.IsNot: "!==",
}  # fmt: skip
ENTRIES = {"int64": "Int32Array", "int32": "Int32Array", "float64": "Float64Array"}
LARGEST_POWER = 4
"""Whole powers up to which a power of a name is a product."""

Printed = tuple[str, Kind]


class NotPrinted(ValueError):
    """What a kernel does that has no text in JavaScript here."""


class Kernels:
    """Functions of generated files, printed as they are asked for.

    Parameters
    ----------
    source : str
        Text of a generated file, or of kernels.
    supplied : mapping, optional
        Name -> text of a function in JavaScript, which is used in place of one of the source. It
        returns a number or nothing.
    records : collection of type
        Named tuples that the source makes.

    Examples
    --------
    >>> from dynamics.explorer.kinds import VECTOR
    >>> kernels = Kernels("def total(a):\\n    s = 0.0\\n    for x in range(a.size):\\n        s += a[x]\\n    return s")
    >>> kernels.function("total", [VECTOR])
    'total'
    >>> print(kernels.text())
    function total(a) {
      let s, x;
      s = 0;
      for (x = 0; x < a.length; x += 1) {
        s += a[x];
      }
      return s;
    }
    """

    def __init__(
        self,
        source: str,
        supplied: Mapping[str, str] | None = None,
        records: Sequence[Any] = (),
    ) -> None:
        self.supplied = dict(supplied or {})
        self.records = {kind.__name__: kind._fields for kind in records}
        self.definitions: dict[str, ast.FunctionDef] = {}
        self.numbers: dict[str, float] = {}
        self._printed: dict[tuple[str, tuple[Kind, ...]], Printed] = {}
        self._texts: list[str] = []
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if isinstance(node.value, ast.Constant) and not isinstance(node.value.value, str):
                    self.numbers[node.targets[0].id] = node.value.value  # type: ignore[assignment]

    def function(self, name: str, kinds: Sequence[Kind]) -> str:
        """Name in JavaScript of a function for arguments of these kinds; it is in `text` then.

        Parameters
        ----------
        name : str
        kinds : sequence of Kind

        Raises
        ------
        NotPrinted
            If it, or one that it calls, does what has no text here.
        """
        return self.called(name, tuple(kinds))[0]

    def called(self, name: str, kinds: tuple[Kind, ...]) -> Printed:
        """Name in JavaScript, and the kind of what it returns."""
        if name in self.supplied:
            if (name, ()) not in self._printed:
                self._printed[name, ()] = (name, NUMBER)
                self._texts.append(self.supplied[name])
            return self._printed[name, ()]
        if (name, kinds) not in self._printed:
            others = sum(known == name for known, _ in self._printed)
            own = spelled(name) + (f"_{others + 1}" if others else "")
            text, result = FunctionPrinter(self, self.definitions[name], kinds).printed(own)
            self._printed[name, kinds] = (own, result)
            self._texts.append(text)
        return self._printed[name, kinds]

    def text(self) -> str:
        """Every function that was asked for, callees before callers."""
        return "\n\n".join(self._texts)


def spelled(name: str) -> str:
    """A name as JavaScript allows it."""
    return f"{name}_" if name in RESERVED else name


class FunctionPrinter(ast.NodeVisitor):
    """Prints one function for arguments of given kinds.

    Parameters
    ----------
    kernels : Kernels
        What it may call.
    definition : ast.FunctionDef
    kinds : tuple of Kind
        Of its arguments.
    """

    def __init__(self, kernels: Kernels, definition: ast.FunctionDef, kinds: tuple[Kind, ...]):
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

    def refused(self, node: ast.AST, why: str) -> NotPrinted:
        """The error that names the line."""
        text = ast.unparse(node).splitlines()[0]
        return NotPrinted(f"{self.definition.name}: {text}: {why}")

    def printed(self, name: str) -> Printed:
        """The text of the function under a name, and the kind of its result."""
        for argument in self.arguments:
            self._companions(argument)
        self.body(self.definition.body)
        local = sorted({*self.kinds, *self.companions} - set(self.arguments))
        head = f"function {name}({', '.join(map(spelled, self.arguments))}) {{"
        declared = [f"  let {', '.join(map(spelled, local))};"] if local else []
        return "\n".join([head, *declared, *self.lines, "}"]), self.result

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("  " * self.depth + text)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Print statements."""
        for statement in statements:
            self.visit(statement)

    def block(self, head: str, statements: Sequence[ast.stmt]) -> None:
        """Print statements in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        self.body(statements)
        self.depth -= 1
        self.line("}")

    def generic_visit(self, node: ast.AST) -> None:
        """Refuse a statement that is not covered."""
        raise self.refused(node, "is not covered")

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:  # noqa: N802, D102
        if not isinstance(node.value, ast.Constant):
            self.line(f"{self.value(node.value)[0]};")

    def visit_Pass(self, node: ast.Pass) -> None:  # noqa: N802, D102
        return

    def visit_Break(self, node: ast.Break) -> None:  # noqa: N802, D102
        self.line("break;")

    def visit_Continue(self, node: ast.Continue) -> None:  # noqa: N802, D102
        self.line("continue;")

    def visit_Return(self, node: ast.Return) -> None:  # noqa: N802, D102
        if node.value is None:
            self.line("return;")
            return
        text, kind = self.value(node.value)
        self.result = kind if self.result == NOTHING else self.result
        self.line(f"return {text};")

    def visit_If(self, node: ast.If) -> None:  # noqa: N802, D102
        self.block(f"if ({self.condition(node.test)})", node.body)
        if node.orelse:
            self.block("else", node.orelse)

    def visit_While(self, node: ast.While) -> None:  # noqa: N802, D102
        self.block(f"while ({self.condition(node.test)})", node.body)

    def visit_For(self, node: ast.For) -> None:  # noqa: N802, D102
        call, target = node.iter, node.target
        ranged = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not ranged or call.func.id not in ("range", "prange"):  # type: ignore[attr-defined]
            raise self.refused(node, "loops are over range")
        if not isinstance(target, ast.Name):
            raise self.refused(node, "loops have one variable")
        numbers = [self.number(argument) for argument in call.args]  # type: ignore[attr-defined]
        first, last, step = ("0", *numbers, "1") if len(numbers) == 1 else (*numbers, "1")[:3]
        name = spelled(target.id)
        self.kinds[target.id] = NUMBER
        if not last.replace(".length", "").replace("_", "").isalnum():
            last = self.temporary(last)
        down = step.startswith("-") or step.startswith("(-")
        sign = ">" if down else "<"
        head = f"for ({name} = {first}; {name} {sign} {last}; {name} += {step})"
        self.block(head, node.body)

    def _companions(self, name: str) -> None:
        """Keep the entries and lengths of an array in variables, so that loops load them once."""
        kind = self.kinds[name]
        if isinstance(kind, Array) and kind.axes > 1:
            own = spelled(name)
            parts = {f"{own}$": "data"} | {f"{own}${k}": f"shape[{k}]" for k in range(1, kind.axes)}
            self.companions |= dict.fromkeys(parts)
            for part, field in parts.items():
                self.line(f"{part} = {own}.{field};")

    def temporary(self, text: str) -> str:
        """A constant that holds a value."""
        self.temporaries += 1
        name = f"$ {self.temporaries}".replace(" ", "")
        self.line(f"const {name} = {text};")
        return name

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802, D102
        target = node.targets[0]
        if len(node.targets) > 1:
            raise self.refused(node, "has several targets")
        if isinstance(target, ast.Tuple):
            self._unpack(target, node.value)
        else:
            self._store(target, *self.value(node.value))

    def _unpack(self, target: ast.Tuple, value: ast.expr) -> None:
        if isinstance(value, ast.Tuple):
            printed = [self.value(each) for each in value.elts]
            if len(printed) > 1:
                printed = [(self.temporary(text), kind) for text, kind in printed]
        else:
            text, kind = self.value(value)
            if not isinstance(kind, Tuple):
                raise self.refused(value, "is no tuple")
            whole = self.temporary(text)
            places = [f".{name}" for name in kind.names] or [
                f"[{k}]" for k in range(len(kind.entries))
            ]
            printed = [(whole + at, k) for at, k in zip(places, kind.entries, strict=True)]
        for each, pair in zip(target.elts, printed, strict=True):
            self._store(each, *pair)

    def _store(self, target: ast.expr, text: str, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = kind
            self.line(f"{spelled(target.id)} = {text};")
            self._companions(target.id)
        elif isinstance(target, ast.Subscript):
            place, of = self.value(target)
            if of == NUMBER:
                self.line(f"{place} = {text};")
            elif isinstance(of, Array):
                flat = place if of.axes == 1 else f"{place}.data"
                other = text if not isinstance(kind, Array) or kind.axes == 1 else f"{text}.data"
                self.line(f"{flat}.{'fill' if kind == NUMBER else 'set'}({other});")
            else:
                raise self.refused(target, "cannot be assigned")
        else:
            raise self.refused(target, "cannot be assigned")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802, D102
        place, kind = self.value(node.target)
        if kind != NUMBER:
            raise self.refused(node, "changes what is no number")
        if type(node.op) in BINARY:
            self.line(f"{place} {BINARY[type(node.op)]}= {self.number(node.value)};")
        else:
            self.line(f"{place} = {self.value(ast.BinOp(node.target, node.op, node.value))[0]};")

    # Expressions

    def condition(self, node: ast.expr) -> str:
        """Text of a condition, without its outer parentheses."""
        text = self.number(node)
        return text[1:-1] if text.startswith("(") and _encloses(text) else text

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
        if node.value is None:
            return "null", NOTHING
        if isinstance(node.value, bool):
            return str(node.value).lower(), NUMBER
        if isinstance(node.value, int | float):
            whole = isinstance(node.value, float) and node.value.is_integer()
            value = int(node.value) if whole and abs(node.value) < 1e15 else node.value
            return repr(value), NUMBER
        raise self.refused(node, "is no number")

    def _name(self, node: ast.Name) -> Printed:
        if node.id in self.kinds:
            return spelled(node.id), self.kinds[node.id]
        if node.id in self.kernels.numbers:
            return repr(self.kernels.numbers[node.id]), NUMBER
        if node.id in CONSTANTS:
            return CONSTANTS[node.id], NUMBER
        raise self.refused(node, "is unknown")

    def _tuple(self, node: ast.Tuple) -> Printed:
        printed = [self.value(each) for each in node.elts]
        return f"[{', '.join(text for text, _ in printed)}]", Tuple(tuple(k for _, k in printed))

    def _unaryop(self, node: ast.UnaryOp) -> Printed:
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!"}.get(type(node.op))
        if sign is None:
            raise self.refused(node, "is not covered")
        text, kind = self.value(node.operand)
        if sign == "-" and kind == Array(1):
            return f"{text}.map((x) => -x)", kind
        return f"({sign}{self.number(node.operand)})", NUMBER

    def _binop(self, node: ast.BinOp) -> Printed:
        left, right = self.number(node.left), self.number(node.right)
        if type(node.op) in BINARY:
            return f"({left} {BINARY[type(node.op)]} {right})", NUMBER
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left} / {right})", NUMBER
        if isinstance(node.op, ast.Mod):
            return f"modulo({left}, {right})", NUMBER
        if isinstance(node.op, ast.Pow):
            power = node.right.value if isinstance(node.right, ast.Constant) else None
            if isinstance(power, int) and 1 < power <= LARGEST_POWER and left.isidentifier():
                return f"({' * '.join([left] * power)})", NUMBER
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
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            if node.attr in CONSTANTS:
                return CONSTANTS[node.attr], NUMBER
            raise self.refused(node, "is not covered")
        text, kind = self.value(node.value)
        if isinstance(kind, Tuple) and node.attr in kind.names:
            return f"{text}.{node.attr}", kind.entries[kind.names.index(node.attr)]
        if isinstance(kind, Rows) and node.attr == "size":
            return f"{text}.length", NUMBER
        if isinstance(kind, Array) and node.attr == "size":
            return f"{text}.length" if kind.axes == 1 else f"{text}.data.length", NUMBER
        if isinstance(kind, Array) and node.attr == "shape":
            shape = f"[{text}.length]" if kind.axes == 1 else f"{text}.shape"
            return shape, Tuple((NUMBER,) * kind.axes)
        raise self.refused(node, "is not covered")

    def _subscript(self, node: ast.Subscript) -> Printed:
        shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        text, kind = self.value(node.value)
        if shape and text.endswith(".length]"):
            return text[1:-1], NUMBER
        if isinstance(kind, Tuple):
            return self._of_tuple(node, text, kind)
        if isinstance(kind, Rows):
            of_numbers = Tuple((NUMBER,) * len(kind.names), kind.names)
            return f"{text}[{self.number(node.slice)}]", of_numbers
        if not isinstance(kind, Array):
            raise self.refused(node, "is no array")
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(index, ast.Slice) for index in indices):
            return self._slice(node, text, kind, indices)
        numbers = [self._position(text, kind, axis, i) for axis, i in enumerate(indices)]
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

    def _position(self, text: str, kind: Array, axis: int, index: ast.expr) -> str:
        """An index, a negative constant counted from the end."""
        number = self.number(index)
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            length = f"{text}.length" if kind.axes == 1 else f"{text}.shape[{axis}]"
            return f"{length} - {self.number(index.operand)}"
        return number

    def _of_tuple(self, node: ast.Subscript, text: str, kind: Tuple) -> Printed:
        index = node.slice
        if isinstance(index, ast.Slice) and isinstance(index.lower, ast.Constant):
            first = int(index.lower.value)  # type: ignore[arg-type]
            if index.upper is None and not kind.names:
                return f"{text}.slice({first})", Tuple(kind.entries[first:])
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            at = f".{kind.names[index.value]}" if kind.names else f"[{index.value}]"
            return text + at, kind.entries[index.value]
        raise self.refused(node, "tuples have constant indices")

    def _slice(
        self, node: ast.Subscript, text: str, kind: Array, indices: list[ast.expr]
    ) -> Printed:
        *leading, last = indices
        whole = not isinstance(last, ast.Slice) or last.step is not None
        if whole or any(isinstance(index, ast.Slice) for index in leading):
            raise self.refused(node, "is not contiguous")
        assert isinstance(last, ast.Slice)
        if leading:
            rows = ast.Subscript(node.value, ast.Tuple(leading), ast.Load())
            text, inner = self.value(rows)
            assert isinstance(inner, Array)
            kind = inner
        ends = [self.number(end) if end else "" for end in (last.lower, last.upper)]
        if not any(ends):
            return text, kind
        first, stop = ends[0] or "0", f", {ends[1]}" if ends[1] else ""
        if kind.axes == 1:
            return f"{text}.subarray({first}{stop})", kind
        return f"parts({text}, {first}{stop})", kind

    def _call(self, node: ast.Call) -> Printed:
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, "is not covered")
        name = node.func.id
        printed = [self.value(argument) for argument in node.args]
        texts = [text for text, _ in printed]
        if name in self.kernels.records:
            names = self.kernels.records[name]
            fields = [f"{n}: {text}" for n, text in zip(names, texts, strict=True)]
            return f"{{ {', '.join(fields)} }}", Tuple(tuple(k for _, k in printed), names)
        if name in ("min", "max"):
            chosen = "smaller" if name == "min" else "larger"
            text = texts[0]
            for other in texts[1:]:
                text = f"{chosen}({text}, {other})"
            return text, NUMBER
        if name == "len" and isinstance(printed[0][1], Tuple):
            return str(len(printed[0][1].entries)), NUMBER
        if name in FUNCTIONS and name not in self.kernels.definitions:
            return f"{FUNCTIONS[name]}({', '.join(texts)})", NUMBER
        if name not in self.kernels.definitions and name not in self.kernels.supplied:
            raise self.refused(node, "is unknown")
        own, kind = self.kernels.called(name, tuple(k for _, k in printed))
        return f"{own}({', '.join(texts)})", kind

    def _method(self, node: ast.Call, function: ast.Attribute) -> Printed:
        if isinstance(function.value, ast.Name) and function.value.id == "np":
            return self._of_numpy(node, function.attr)
        if ast.unparse(function).endswith(".dtype.type"):
            return self.number(node.args[0]), NUMBER
        text, kind = self.value(function.value)
        if not isinstance(kind, Array):
            raise self.refused(node, "is not covered")
        flat = text if kind.axes == 1 else f"{text}.data"
        if function.attr == "reshape":
            if ast.unparse(node.args[0]) == "-1" and len(node.args) == 1:
                return flat, Array(1, kind.whole)
            shape = ", ".join(map(self.number, node.args))
            return f"{{ data: {flat}, shape: [{shape}] }}", Array(len(node.args), kind.whole)
        raise self.refused(node, "is not covered")

    def _of_numpy(self, node: ast.Call, name: str) -> Printed:
        if name in ("empty", "zeros", "ones"):
            text, kind = self.value(node.args[0])
            axes = len(kind.entries) if isinstance(kind, Tuple) else 1
            given = [*node.args[1:], *(word.value for word in node.keywords)]
            dtype = given[0].attr if given and isinstance(given[0], ast.Attribute) else "float64"
            if dtype not in ENTRIES:
                raise self.refused(node, "has entries that are not covered")
            filled = f"zeros({text}, {ENTRIES[dtype]})"
            if name == "ones":
                filled += ".fill(1)" if axes == 1 else ""
                if axes > 1:
                    raise self.refused(node, "is not covered")
            return filled, Array(axes, dtype.startswith("int"))
        if name in FUNCTIONS:
            return f"{FUNCTIONS[name]}({', '.join(map(self.number, node.args))})", NUMBER
        raise self.refused(node, "is not covered")


def _encloses(text: str) -> bool:
    """Whether the first parenthesis closes with the last."""
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return k == len(text) - 1
    return False


__all__ = ["OPAQUE", "Kernels", "NotPrinted", "spelled"]
