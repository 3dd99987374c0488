r"""The closure of a model: entries that stay equal, the space of training, conserved quantities.

The risk is a list of distinct numbers (`theory.program`). A closure is found by a few exact
evaluations of its gradient in a finite field: `refinement` finds classes of equal entries, `linear`
the smallest linear space, `conservation` constants of motion. A model without such a list is
checked in floats at some states (`checked`), and its grade says so. `orbits` has the classes of a
symmetry that a model states. A closure that does not reduce is a result.
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
    """Closed description of the training of a model at some constants.

    Attributes
    ----------
    classes : EntryClasses
        Which trained entries stay equal.
    space : LinearSpace
        The linear space in which their values stay.
    sample_groups : SampleClasses or None
        Which samples have equal losses there; None without a finite law.
    laws : tuple of ConservationLaw
        Quantities that training conserves.
    names : tuple of str
        Name of each scalar.
    residual : float
        Largest part of the gradient outside the classes in floats, relative to the gradient, at a
        few random states.
    grade : str
        ``proved``, ``checked at N states``, ``stated`` or ``declared`` by the model.
    scope : str
        For which laws and constants it is proved, in words.
    remarks : tuple of str
        What the user should know.
    shapes : mapping
        Trained array -> its shape, in the order of the entries.
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
        """Trained entries; those that its scalars stand for, of a declaration."""
        return int(sum(self.classes.declared) or self.classes.labels.size)

    @property
    def scalars(self) -> int:
        """Classes of entries that move."""
        return self.classes.count

    @property
    def frozen(self) -> int:
        """Entries that never move."""
        return int((self.classes.labels < 0).sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """Entries of each class, in the order of the scalars."""
        return tuple(int(n) for n in self.classes.sizes)

    @property
    def free(self) -> int:
        """Dimension of the linear space in which the scalars stay."""
        return self.space.free

    @property
    def conserved(self) -> tuple[str, ...]:
        """Conserved quantities, in the names of the scalars."""
        return tuple(law.text(self.names) for law in self.laws)

    @property
    def samples(self) -> int:
        """Samples of the law; 0 where the risk is in closed form."""
        return 0 if self.sample_groups is None else int(self.sample_groups.labels.size)

    @property
    def sample_classes(self) -> int:
        """Classes of samples with equal losses."""
        return 0 if self.sample_groups is None else self.sample_groups.count

    def labels(self) -> dict[str, Any]:
        """Array -> nested lists: the scalar of each entry, negative where the sign is.

        Scalars are numbered from 1; 0 is an entry that never moves. Empty for many entries, and
        for those of a declaration, which are not known.
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
        """The closure as plain values."""
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
        """Sentence on what is proved, or on what was checked instead."""
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
        """One line: ``closes on 3 scalars of 82 entries (1, 18, 54; 9 frozen)``."""
        return closure_lines(self.document())[0]


PROVED, STATED, CHECKED = "proved", "stated", "checked at {} states"
DECLARED = "declared"

MOST_LABELLED = 20_000
"""Entries up to which the class of each is listed."""
ROUNDING = 1e-12
"""Part of a gradient outside the classes up to which it is rounding."""
MOST_SHOWN = 12
"""Sizes and laws that a summary lists."""


def closure_lines(document: Mapping[str, Any], laws: bool = True) -> list[str]:
    """A closure in a few lines for a reader, from its plain values.

    `document`: of `Closure.document`; `laws`: whether to list what training conserves; rounding
    breaks it in a run that diverges. Returns list of str: what training closes on; samples; what it
    conserves; what is proved; remarks.
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
