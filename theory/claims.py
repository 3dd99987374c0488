"""A paper's statement, what would falsify it, and what proofs by computation share.

A `Claim` never carries a verdict. Where a statement can be proved by computation for a case with
all symbols free, `proof` does so and returns the evidence; measured verdicts belong to `dynamics`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import sympy

from theory.summary import summarized


@summarized
@dataclass(frozen=True)
class Evidence:
    """Result of a symbolic check.

    `holds`: whether the statement came out true; None where computation alone cannot decide it;
    `case`: the case that was computed, with the symbols that were free; `findings`: what was
    compared and what came out, a line each.
    """

    holds: bool | None
    case: str
    findings: tuple[str, ...]


@summarized
@dataclass(frozen=True)
class Claim:
    """One statement of a paper; the lines of its texts are joined by single spaces.

    Attributes
    ----------
    source : str
        Where it stands: ``"Lemma 4.1"``.
    statement : str
        The paper's own sentence, in LaTeX.
    hypothesis : str
        What the paper assumes for it.
    falsified_by : str
        The observation that would contradict it.
    proof : callable or None
        Computes `Evidence` symbolically, without assuming the statement.
    one_sided : bool
        The statement is a sufficient condition or a bound: doing better does not contradict it.
    recalled : bool
        The text at hand has lost a formula of the statement, which is derived anew here.
    reading : str
        How the statement is read where its literal words fail or are empty; "" where they stand.
    ours : bool
        The statement is of this project and not of a paper.
    check : callable or None
        System, protocol -> `dynamics.Finding`, of a claim of a model file of one's own.
    """

    source: str
    statement: str
    hypothesis: str
    falsified_by: str
    proof: Callable[[], Evidence] | None = field(default=None, compare=False)
    one_sided: bool = False
    recalled: bool = False
    reading: str = ""
    ours: bool = False
    check: Callable[..., Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Join the lines of every text."""
        for name in ("source", "statement", "hypothesis", "falsified_by", "reading"):
            object.__setattr__(self, name, " ".join(getattr(self, name).split()))


def read_claims(path: Path, *modules: ModuleType) -> tuple[Claim, ...]:
    """The claims of a file: ``[[claim]]`` with the fields of `Claim`, ``[texts]`` they share.

    ``<NAME>`` in a text stands for one of the shared texts.

    `path`: the TOML file; `*modules`: where the proofs are, which a claim names as
    ``module.function``.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    proofs = {module.__name__.rpartition(".")[2]: module for module in modules}

    def whole(text: str) -> str:
        return re.sub(r"<([A-Z]\w*)>", lambda match: whole(table["texts"][match[1]]), text)

    claims = []
    for entry in table["claim"]:
        fields: dict[str, Any] = {
            name: whole(v) if isinstance(v, str) else v for name, v in entry.items()
        }
        if "proof" in fields:
            module, _, function = fields["proof"].partition(".")
            fields["proof"] = getattr(proofs[module], function)
        claims.append(Claim(**fields))
    return tuple(claims)


class Exponential(sympy.Function):  # type: ignore[misc]
    """The exponential, without merging products of several into one."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Its derivative is itself."""
        del argindex
        return self


def softmax(scores: Iterable[Any], exponential: Callable[[Any], Any] = sympy.exp) -> list[Any]:
    """Softmax of explicit scores.

    `exponential`: stands for the exponential.

    Examples
    --------
    >>> softmax([0, 0])
    [1/2, 1/2]
    """
    weights = [exponential(score) for score in scores]
    return [weight / sympy.Add(*weights) for weight in weights]


def count_equal(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Number of pairs of expressions that are equal when expanded.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> count_equal([((x + 1) ** 2, x**2 + 2 * x + 1), (x, -x)])
    1
    """
    return sum(sympy.expand(first - second) == 0 for first, second in pairs)
