"""Closure of a model: entries that stay equal, linear space of training, conserved quantities.

A risk traced by JAX is stored as a table of the distinct values in its computation
(`theory.program`), and its gradient is evaluated exactly, in a finite field. From exact gradients,
`refinement` finds the classes of equal entries, `linear` finds the smallest linear space, and
`conservation` finds the conserved quantities. The gradient of a model that cannot be traced is
compared in floats at some states (`checked`); this closure is checked, not proved. For a stated
symmetry, `orbits` computes the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from theory.closure.conservation import ConservationLaw
from theory.closure.linear import LinearSpace
from theory.closure.partition import EntryClasses, SampleClasses
from theory.summary import summarized


@summarized
@dataclass(frozen=True)
class Closure:
    """Result of the search for equal entries in a model, at given constants.

    Attributes
    ----------
    classes : EntryClasses
        Classes of trained entries that stay equal.
    space : LinearSpace
        Linear space in which the values of the classes stay.
    sample_groups : SampleClasses or None
        Classes of samples with equal losses on the classes of entries; None without a finite law.
    laws : tuple of ConservationLaw
        Quantities conserved by training.
    names : tuple of str
        Name of each scalar.
    residual : float
        Largest gradient component outside the classes in floats at a few random states, relative to
        the largest component.
    grade : str
        ``proved``, ``checked at N states``, ``stated`` or ``declared`` by the model.
    scope : str
        Laws and constants for which the closure is proved, in words.
    remarks : tuple of str
        Messages for the user.
    shapes : mapping
        Shape of each trained array, in the order of the entries.
    """

    classes: EntryClasses
    space: LinearSpace
    sample_groups: SampleClasses | None
    laws: tuple[ConservationLaw, ...]
    names: tuple[str, ...]
    residual: float
    grade: str
    scope: str = ""
    remarks: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """Number of trained entries; for a declared reduction, the sum of the declared sizes."""
        return int(sum(self.classes.declared) or self.classes.labels.size)

    @property
    def scalars(self) -> int:
        """Number of classes of entries that move."""
        return self.classes.count

    @property
    def frozen(self) -> int:
        """Number of entries that never move."""
        return int((self.classes.labels < 0).sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of entries of each class, in the order of the scalars."""
        return tuple(int(n) for n in self.classes.sizes)

    @property
    def free(self) -> int:
        """Dimension of the linear space in which the scalars stay."""
        return self.space.free

    @property
    def conserved(self) -> tuple[str, ...]:
        """Conserved quantities as text, written with the names of the scalars."""
        return tuple(law.text(self.names) for law in self.laws)

    @property
    def samples(self) -> int:
        """Number of samples of the data law; 0 if the risk is in closed form."""
        return 0 if self.sample_groups is None else int(self.sample_groups.labels.size)

    @property
    def sample_classes(self) -> int:
        """Number of classes of samples with equal losses."""
        return 0 if self.sample_groups is None else self.sample_groups.count

    def labels(self) -> dict[str, Any]:
        """Nested lists for each array, which hold the signed number of the scalar of each entry.

        Scalars are numbered from 1. A negative number marks an entry equal to minus its scalar; 0
        marks an entry that never moves. The mapping is empty for more than `MOST_LABELLED` entries,
        and for a declared reduction, whose entries are unknown.
        """
        if self.classes.declared or self.entries > MOST_LABELLED:
            return {}
        nested, first = {}, 0
        numbers = (self.classes.labels + 1) * np.where(self.classes.signs < 0, -1, 1)
        for name, shape in self.shapes.items():
            count = int(np.prod(shape, dtype=int))
            nested[name] = numbers[first : first + count].reshape(shape).tolist()
            first += count
        return nested

    def document(self) -> dict[str, Any]:
        """Closure as plain values, for JSON."""
        return {
            "entries": self.entries,
            "scalars": self.scalars,
            "names": list(self.names),
            "sizes": list(self.sizes),
            "frozen": self.frozen,
            "free": self.free,
            "conserved": list(self.conserved),
            "laws": [
                {"law": text, "degree": law.degree, "exact": law.exact, "value": law.value}
                for text, law in zip(self.conserved, self.laws, strict=True)
            ],
            "samples": self.samples,
            "sample_classes": self.sample_classes,
            "residual": self.residual,
            "grade": self.grade,
            "scope": self.scope,
            "proof": self.proof,
            "remarks": list(self.remarks),
            "labels": self.labels(),
        }

    @property
    def proof(self) -> str:
        """Sentence that states how the closure was proved, or the check made instead of a proof."""
        if self.grade == DECLARED:
            return f"declared by the model; {self.scope}"
        if self.grade == STATED:
            return "the symmetry is stated by the model, and not proved"
        if self.grade != PROVED:
            return f"{self.grade}, not proved"
        each = "the class" if self.scalars == 1 else f"each of {self.scalars} classes"
        text = f"proved in every state: one gradient in {each}"
        if self.frozen:
            text += f", and 0 for {self.frozen} entr{'y' if self.frozen == 1 else 'ies'}"
        scope = f", {self.scope}" if self.scope else ""
        return f"{text}{scope} (modulo three primes; error probability below 1e-9)"

    def summary(self) -> str:
        """Summary, as ``closes on 3 scalars of 82 entries (sizes 1, 18, 54; 9 never move)``."""
        return closure_lines(self.document())[0]


PROVED, STATED, CHECKED = "proved", "stated", "checked at {} states"
DECLARED = "declared"

MOST_LABELLED = 20_000
"""Maximum number of entries for which `Closure.labels` lists the class of every entry."""
ROUNDING = 1e-12
"""A residual below this value, relative to the largest gradient component, is called rounding."""
MOST_SHOWN = 12
"""Maximum number of class sizes, and of conserved quantities of each degree, that are printed."""


def closure_lines(document: Mapping[str, Any], laws: bool = True) -> list[str]:
    """Lines of text on scalars, samples, conserved quantities and proof, from `Closure.document`.

    Conserved quantities are omitted if `laws` is False, as for a diverging run, where rounding
    breaks them.
    """
    scalars, entries, sizes = document["scalars"], document["entries"], document["sizes"]
    listed = ", ".join(map(str, sizes[:MOST_SHOWN])) + (", ..." if scalars > MOST_SHOWN else "")
    still = f"; {document['frozen']} never move" if document["frozen"] else ""
    if scalars == entries:
        first = f"closes on {entries} of {entries}: no two entries stay equal"
    else:
        plural = "" if scalars == 1 else "s"
        first = f"closes on {scalars} scalar{plural} of {entries} entries (sizes {listed}{still})"
    if document["free"] < scalars:
        first += f", in a linear space of {document['free']}"
    lines = [first]
    if document["samples"]:
        classes = document["sample_classes"]
        lines.append(f"{document['samples']} samples in {classes} class{'es' * (classes != 1)}")
    conserved = document["laws"] if laws else []
    for degree, words in ((1, "kept"), (2, "kept by the flow")):
        exact = [
            f"{law['law']} = {law['value']:.6g}"
            for law in conserved
            if law["exact"] and law["degree"] == degree
        ]
        lines += [f"{words}: {law}" for law in exact[:MOST_SHOWN]]
        if len(exact) > MOST_SHOWN:
            lines.append(f"{words}: {len(exact) - MOST_SHOWN} more")
    decimal = sum(not law["exact"] for law in conserved)
    if decimal:
        lines.append(f"kept: {decimal} more, with decimal coefficients")
    rounding = "rounding level" if document["residual"] < ROUNDING else "more than rounding"
    residual = f"; residual {document['residual']:.1e} ({rounding})"
    lines.append(document["proof"] + residual * (document["grade"] != DECLARED))
    return [*lines, *document["remarks"]]
