"""Proof of the classes of a model: gradients that are identical where entries are tied.

The risk is read with every trained entry an input of its own. With the entries of a class tied to
one number of the field, entries at rest at their start, and equal weights of the law one unknown,
the classes are closed exactly where the gradients of all entries of a class are one number (with
their signs), and an entry never moves exactly where its gradient is 0. This holds for every state,
real constant and weight, kinks included (`theory.program.identities`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.models.engine.functions import class_embedding
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk
from dynamics.validation import InvalidRequest
from theory.closure.partition import EntryClasses
from theory.law import FloatArray
from theory.program import UnreadPrimitive, field
from theory.program.field import Triples
from theory.program.identities import Identities

SAME_WEIGHT = 1e-13
"""Relative difference up to which two weights of a law are one unknown."""


@dataclass(frozen=True)
class Proof:
    """What an evaluation in the field says of classes.

    Attributes
    ----------
    weights : str
        ``"unknown"``: for every law with the same equal weights; ``"given"``: at the law's own;
        ``""`` where the risk is in closed form.
    closed : int
        Classes whose gradients are one number.
    frozen : int
        Entries at rest whose gradient is 0.
    leaving : tuple of int
        Entries whose gradient leaves their class, in order.
    """

    weights: str
    closed: int
    frozen: int
    leaving: tuple[int, ...]

    @property
    def holds(self) -> bool:
        """Whether the classes are proved."""
        return not self.leaving

    def document(self, names: Sequence[str]) -> dict[str, Any]:
        """The proof as plain values, with a sentence.

        Parameters
        ----------
        names : sequence of str
            Of the first entry that leaves; empty where none does.
        """
        plural = "" if self.closed == 1 else "es"
        text = f"proved in every state: the gradient is one expression in each of {self.closed} "
        text += f"class{plural}"
        if self.frozen:
            text += f", and 0 for {self.frozen} entries"
        if self.weights:
            own = "any law with the same equal weights" if self.weights == "unknown" else "this law"
            text += f", for {own}"
        if not self.holds:
            text = f"refuted: {names[0]} leaves its class, or moves"
            if len(self.leaving) > 1:
                text += f", and {len(self.leaving) - 1} more entries"
        return {
            "grade": "proved" if self.holds else "refuted",
            "weights": self.weights,
            "classes": self.closed,
            "frozen": self.frozen,
            "leaving": len(self.leaving),
            "text": f"{text} (identities modulo three primes; error probability below 1e-9)",
        }


def prove(made: Realization, classes: EntryClasses, seed: int = 1) -> Proof:
    """Evaluate the gradient of every entry where the entries of each class are tied.

    Parameters
    ----------
    made : Realization
    classes : EntryClasses
    seed : int
        Of the random numbers of the classes.

    Raises
    ------
    InvalidRequest
        If the loss has no program, or the law is known by draws, which have no symmetry.
    """
    if made.only_sampled:
        raise InvalidRequest(
            f"prove needs the law, and that of {made.model.name} is known by draws, which do not "
            "have its symmetry; the symmetry itself is stated by the model"
        )
    each = EntryClasses(np.arange(made.flat_start.size), np.ones(made.flat_start.size),
                        np.zeros(made.flat_start.size))  # fmt: skip
    names = [made.entry_name(k) for k in range(made.flat_start.size)]
    try:
        risk = ReducedRisk(made.program, made.data, class_embedding(each), names)
    except UnreadPrimitive as error:
        raise InvalidRequest(f"prove: {error}") from None
    identities = Identities(risk.values, risk.gradient)
    generator = np.random.default_rng(seed)
    weights = risk.numbers(made.data)[len(risk.reals) :]
    tied = _tied(risk, classes, generator)
    found = _judged(classes, identities.at(*_with_weights(risk, tied, weights, generator)))
    how = "unknown" if weights.size else ""
    if found[2] and weights.size:
        given = risk.values.constants(weights)
        inputs = np.concatenate([risk.scalars, risk.weights])
        triples = np.concatenate([tied, risk.values.triples[given]])
        found, how = _judged(classes, identities.at(inputs, triples)), "given"
    return Proof(how, *found)


def _random(generator: np.random.Generator, count: int) -> Triples:
    draws = [generator.integers(1, int(prime), count) for prime in field.PRIMES]
    return np.stack(draws, axis=-1).astype(np.uint64).reshape(-1, 3)


def _tied(risk: ReducedRisk, classes: EntryClasses, generator: np.random.Generator) -> Triples:
    """Triples of the entries: of their classes with their signs, or of their start."""
    start = risk.values.constants(classes.start)
    triples = risk.values.triples[start].copy()
    moving = classes.labels >= 0
    own = _random(generator, classes.count)[classes.labels[moving]]
    negative = (classes.signs[moving] < 0)[:, None]
    triples[moving] = np.where(negative, field.negative(own), own)
    return triples


def _with_weights(
    risk: ReducedRisk, tied: Triples, weights: FloatArray, generator: np.random.Generator
) -> tuple[np.ndarray, Triples]:
    """Entries and weights with their triples; equal weights have one."""
    order = np.argsort(weights)
    near = np.diff(weights[order]) <= SAME_WEIGHT * np.abs(weights[order][1:])
    label = np.zeros(weights.size, dtype=np.int64)
    label[order] = np.cumsum(np.r_[False, ~near])[: weights.size]
    own = _random(generator, int(label.max(initial=0)) + 1)[label]
    return np.concatenate([risk.scalars, risk.weights]), np.concatenate([tied, own])


def _judged(classes: EntryClasses, gradient: Triples) -> tuple[int, int, tuple[int, ...]]:
    """Closed classes, entries at rest with gradient 0, and the entries that leave."""
    signed = np.where((classes.signs < 0)[:, None], field.negative(gradient), gradient)
    moving = classes.labels >= 0
    expected = np.zeros_like(signed)
    expected[moving] = signed[classes.first[classes.labels[moving]]]
    off = (signed != expected).any(axis=1)
    start = classes.signs * classes.start  # a class must hold where training begins
    off |= moving & (start != start[classes.first][classes.labels])
    split = np.unique(classes.labels[off & moving])
    rest = int((~off & ~moving).sum())
    return classes.count - split.size, rest, tuple(np.flatnonzero(off).tolist())
