"""The type of a paper's statement: what is said, under which hypothesis, what would falsify it.

A `Claim` never carries a verdict. Where a statement can be proved by computation for a case with
all symbols free, `proof` does so and returns the evidence; measured verdicts belong to `dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Evidence:
    """What a symbolic check found.

    Attributes
    ----------
    holds : bool or None
        Whether the statement came out true; None where computation alone cannot decide it.
    case : str
        The case that was computed, with the symbols that were free.
    findings : tuple of str
        What was compared and what came out, a line each.
    """

    holds: bool | None
    case: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

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
    """

    source: str
    statement: str
    hypothesis: str
    falsified_by: str
    proof: Callable[[], Evidence] | None = field(default=None, compare=False)
