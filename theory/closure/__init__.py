r"""What a model closes on: which entries stay equal, in which space training stays, what is kept.

Two stages and a walk. `partition` refines classes of equal entries on the gradient at random
points; `linear` finds the smallest linear space inside; the walk along a run looks for states at
which the gradient leaves the classes, and for samples that part; `conservation` finds what is
constant. Nothing is assumed of the model but its gradient, and no group is declared (where one is,
`orbits` takes it). A closure that does not reduce is a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from theory.closure.conservation import ConservationLaw
from theory.closure.linear import LinearSpace
from theory.closure.partition import EntryClasses
from theory.closure.samples import SampleClasses

__all__ = ["Closure", "ConservationLaw", "EntryClasses", "LinearSpace", "SampleClasses"]


@dataclass(frozen=True)
class Closure:
    """What training of a model at some constants closes on.

    Attributes
    ----------
    classes : EntryClasses
        Which trained entries stay equal.
    space : LinearSpace
        The linear space in which their values stay.
    sample_groups : SampleClasses or None
        Which samples have equal losses there; None without a finite law.
    laws : tuple of ConservationLaw
        What training keeps.
    names : tuple of str
        Name of each scalar.
    residual : float
        Largest part of the gradient outside the classes, relative to the gradient, at fresh random
        states and along the run that was walked.
    floor : float
        The rounding error of the gradient there, in the same unit.
    walked : int
        Steps of gradient descent along which the gradient was looked at.
    remarks : tuple of str
        What the user should know.
    proof : mapping or None
        The residual at many digits, where it was asked for.
    """

    classes: EntryClasses
    space: LinearSpace
    sample_groups: SampleClasses | None
    laws: tuple[ConservationLaw, ...]
    names: tuple[str, ...]
    residual: float
    floor: float
    walked: int
    remarks: tuple[str, ...] = ()
    proof: dict[str, Any] | None = None

    @property
    def entries(self) -> int:
        """Trained entries."""
        return int(self.classes.labels.size)

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

    def document(self) -> dict[str, Any]:
        """The closure as plain values."""
        return {
            "entries": self.entries,
            "scalars": self.scalars,
            "names": list(self.names),
            "sizes": list(self.sizes),
            "frozen": self.frozen,
            "free": self.free,
            "conserved": [
                {"law": text, "degree": law.degree, "exact": law.exact, "value": law.value}
                for text, law in zip(self.conserved, self.laws, strict=True)
            ],
            "samples": self.samples,
            "sample_classes": self.sample_classes,
            "residual": self.residual,
            "floor": self.floor,
            "walked": self.walked,
            "remarks": list(self.remarks),
            "proof": self.proof,
        }

    def summary(self) -> str:
        """One line: ``closes on 3 scalars of 82 entries (1, 18, 54; 9 frozen)``."""
        shown = ", ".join(map(str, self.sizes[:12])) + (", ..." if self.scalars > 12 else "")
        still = f"; {self.frozen} frozen" if self.frozen else ""
        if self.scalars == self.entries:
            line = f"closes on {self.entries} of {self.entries}: no two entries stay equal"
        else:
            line = f"closes on {self.scalars} scalars of {self.entries} entries ({shown}{still})"
        if self.free < self.scalars:
            line += f", {self.free} of them free"
        if self.samples:
            line += f"; {self.samples} samples in {self.sample_classes} classes"
        return line
