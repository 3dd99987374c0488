"""Claims of papers, evidence from symbolic proofs, and functions shared by these proofs.

A `Claim` never carries a verdict. If a statement can be proved symbolically for one case, its
`proof` returns the `Evidence`; measured verdicts belong to `dynamics`.
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

    `holds` is True or False, or None if computation alone cannot decide. `case` describes the
    computed case with its free symbols; `findings` lists each comparison with its result.
    """

    holds: bool | None
    case: str
    findings: tuple[str, ...]


@summarized
@dataclass(frozen=True)
class Claim:
    """One statement of a paper; line breaks in its texts become single spaces.

    Attributes
    ----------
    source : str
        Place in the paper: ``"Lemma 4.1"``.
    statement : str
        The paper's own sentence, in LaTeX.
    hypothesis : str
        Assumptions of the paper.
    falsified_by : str
        Observation that would contradict the statement.
    proof : callable or None
        Computes `Evidence` symbolically, without assuming the statement.
    one_sided : bool
        Whether the statement is a sufficient condition or a bound, which a better result confirms.
    recalled : bool
        Whether a formula of the statement is lost in the available text and derived anew.
    reading : str
        Interpretation used if the literal words fail or are empty; "" for the literal words.
    ours : bool
        Whether the statement is made by this project and not by a paper.
    check : callable or None
        Function (system, protocol) -> `dynamics.Finding`, for a claim of a user's model file.
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
        """Replace line breaks in every text by spaces."""
        for name in ("source", "statement", "hypothesis", "falsified_by", "reading"):
            object.__setattr__(self, name, " ".join(getattr(self, name).split()))


def read_claims(path: Path, *modules: ModuleType) -> tuple[Claim, ...]:
    """Read claims from a TOML file: ``[[claim]]`` has fields of `Claim`, ``[texts]`` shared texts.

    ``<NAME>`` in a text is replaced by the entry of that name in ``[texts]``. A claim names its
    proof as ``module.function``, where `modules` contains the module.
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
    """Exponential function whose products SymPy does not merge."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Derivative of the exponential."""
        del argindex
        return self


def softmax(scores: Iterable[Any], exponential: Callable[[Any], Any] = sympy.exp) -> list[Any]:
    """Softmax of explicit scores, with `exponential` in place of exp.

    Examples
    --------
    >>> softmax([0, 0])
    [1/2, 1/2]
    """
    weights = [exponential(score) for score in scores]
    return [weight / sympy.Add(*weights) for weight in weights]


def count_equal(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Number of pairs of expressions that are equal after expansion.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> count_equal([((x + 1) ** 2, x**2 + 2 * x + 1), (x, -x)])
    1
    """
    return sum(sympy.expand(first - second) == 0 for first, second in pairs)
