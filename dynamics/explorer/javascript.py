"""Kernels as JavaScript: the subset of Python that numba compiles, printed for a browser.

The text that is printed is that of the kernels themselves (`dynamics.codegen.kernels`). So the page
integrates as Python does, operation by operation. Compiled code may reorder sums and fuse products;
the texts agree to rounding, which the tests measure.

What the loops of training do not use is refused by name.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from dynamics.explorer.expressions import (
    BINARY,
    Expressions,
    NotPrinted,
    Printed,
    Source,
    entry_of,
    spelled,
)
from dynamics.explorer.kinds import NOTHING, NUMBER, Array, Kind, Tuple

__all__ = ["Kernels", "NotPrinted"]


class Kernels(Source):
    r"""Functions of a generated file, each printed when `function` first names it.

    Parameters
    ----------
    source : str
        Text of a generated file, or of kernels.
    supplied : mapping, optional
        Name -> text of a function in JavaScript, which replaces the one of the source. It
        returns a number or nothing.

    Examples
    --------
    >>> from dynamics.explorer.kinds import VECTOR
    >>> loop = "    for k in range(a.size):\n        s += a[k]\n"
    >>> kernels = Kernels(f"def total(a):\n    s = 0.0\n{loop}    return s\n")
    >>> kernels.function("total", [VECTOR])
    'total'
    >>> print(kernels.text())
    function total(a) {
      let k, s;
      s = 0;
      for (k = 0; k < a.length; k += 1) {
        s += a[k];
      }
      return s;
    }
    """

    def __init__(
        self,
        source: str,
        supplied: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(source, supplied or {})
        self._printed: dict[tuple[str, tuple[Kind, ...]], Printed] = {}
        self._texts: list[str] = []

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
            others = sum(printed == name for printed, _ in self._printed)
            own = spelled(name) + (f"_{others + 1}" if others else "")
            text, result = FunctionPrinter(self, self.definitions[name], kinds).printed(own)
            self._printed[name, kinds] = (own, result)
            self._texts.append(text)
        return self._printed[name, kinds]

    def text(self) -> str:
        """All functions that have been printed, callees before callers."""
        return "\n\n".join(self._texts)


class FunctionPrinter(Expressions):
    """Prints one function for arguments of certain kinds.

    Parameters
    ----------
    kernels : Kernels
        What it may call.
    definition : ast.FunctionDef
    kinds : tuple of Kind
        Of its arguments.
    """

    def printed(self, name: str) -> Printed:
        """The text of the function under a name, and the kind of its result."""
        for argument in self.arguments:
            self._companions(argument)
        self.body(self.definition.body)
        local = sorted({*self.kinds, *self.companions} - set(self.arguments))
        head = f"function {name}({', '.join(map(spelled, self.arguments))}) {{"
        declared = [f"  let {', '.join(map(spelled, local))};"] if local else []
        return "\n".join([head, *declared, *self.lines, "}"]), self.result

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Print statements."""
        for statement in statements:
            word = type(statement).__name__.lower()
            if isinstance(statement, ast.Break | ast.Continue):
                self.line(f"{word};")
            elif not isinstance(statement, ast.Pass):
                method = getattr(self, f"_{word}", None)
                if method is None:
                    raise self.refused(statement, "is not covered")
                method(statement)

    def block(self, head: str, statements: Sequence[ast.stmt]) -> None:
        """Print statements in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        self.body(statements)
        self.depth -= 1
        self.line("}")

    # Statements

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.line(f"{self.value(node.value)[0]};")

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self.line("return;")
            return
        text, kind = self.value(node.value)
        self.result = kind if self.result == NOTHING else self.result
        self.line(f"return {text};")

    def _if(self, node: ast.If) -> None:
        self.block(f"if ({self.condition(node.test)})", node.body)
        if node.orelse:
            self.block("else", node.orelse)

    def _while(self, node: ast.While) -> None:
        self.block(f"while ({self.condition(node.test)})", node.body)

    def _for(self, node: ast.For) -> None:
        call, target = node.iter, node.target
        ranged = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not ranged or call.func.id != "range":  # type: ignore[attr-defined]
            raise self.refused(node, "loops are over range")
        if not isinstance(target, ast.Name):
            raise self.refused(node, "loops have one variable")
        numbers = [self.number(argument) for argument in call.args]  # type: ignore[attr-defined]
        first, last, step = ("0", *numbers, "1") if len(numbers) == 1 else (*numbers, "1")[:3]
        name = spelled(target.id)
        self.kinds[target.id] = NUMBER
        if not last.replace(".length", "").replace("_", "").isalnum():
            last = self.temporary(last)
        sign = ">" if step.startswith(("-", "(-")) else "<"
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

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if len(node.targets) > 1:
            raise self.refused(node, "has several targets")
        if isinstance(target, ast.Tuple):
            self._unpack(target, node.value)
        else:
            self._store(target, *self.value(node.value))

    def _unpack(self, target: ast.Tuple, value: ast.expr) -> None:
        if isinstance(value, ast.Tuple):
            values = [self.value(each) for each in value.elts]
            printed = [(self.temporary(text), kind) for text, kind in values]
        else:
            text, kind = self.value(value)
            if not isinstance(kind, Tuple):
                raise self.refused(value, "is no tuple")
            whole = self.temporary(text)
            printed = [entry_of(whole, kind, k) for k in range(len(kind.entries))]
        for each, pair in zip(target.elts, printed, strict=True):
            self._store(each, *pair)

    def _store(self, target: ast.expr, text: str, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = kind
            self.line(f"{spelled(target.id)} = {text};")
            self._companions(target.id)
        elif isinstance(target, ast.Subscript):
            part, of = self.value(target)
            if of == NUMBER:
                self.line(f"{part} = {text};")
            else:
                raise self.refused(target, "cannot be assigned")
        else:
            raise self.refused(target, "cannot be assigned")

    def _augassign(self, node: ast.AugAssign) -> None:
        target, kind = self.value(node.target)
        if kind != NUMBER:
            raise self.refused(node, "changes what is no number")
        if type(node.op) in BINARY:
            self.line(f"{target} {BINARY[type(node.op)]}= {self.number(node.value)};")
        else:
            self.line(f"{target} = {self.value(ast.BinOp(node.target, node.op, node.value))[0]};")
