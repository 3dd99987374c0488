"""Data and embedding of a reduced problem, and the names of its scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.embedding import Embedding, class_embedding
from dynamics.models.engine.program import Data
from theory.closure import EntryClasses, SampleClasses
from theory.law import gathered
from theory.model import check_name
from theory.model_error import ModelError

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization

FloatArray = NDArray[np.float64]


def representative_data(made: Realization, groups: SampleClasses | None) -> Data:
    """One sample of each class, with the probability of all; the whole data without classes."""
    import jax

    if groups is None or made.law is None:
        return made.data
    with jax.enable_x64(True):
        samples = gathered(made.law.samples, groups.first)
        return made.data._replace(
            weights=jax.numpy.asarray(groups.summed(made.law.weights)),
            samples=jax.tree.map(jax.numpy.asarray, samples),
        )


def reduced_payload(
    made: Realization, classes: EntryClasses, groups: SampleClasses | None
) -> tuple[Data, Embedding]:
    """Data and embedding of the problem on the scalars."""
    import jax

    with jax.enable_x64(True):
        embedding = jax.tree.map(jax.numpy.asarray, class_embedding(classes))
    return representative_data(made, groups), embedding


def scalar_names(made: Realization, classes: EntryClasses) -> tuple[str, ...]:
    """Name of each scalar: as the model says, else by the first entry of its class.

    Raises
    ------
    ModelError
        If a name is of a constant, or names two scalars.
    """
    names = [_first_entry_name(made, int(entry)) for entry in classes.first]
    taken = dict.fromkeys((*made.constants, *made.seen_names))
    given: dict[int, str] = {}
    for name, entry in made.model.table("names", made.constants).items():
        place = entry if isinstance(entry, (tuple, list)) else (entry,)
        check_name("names", name, taken)
        if not place or not isinstance(place[0], str):
            raise ModelError(f"names: {name} = {entry!r} is no entry, as ('A', 0, 1)")
        number = made.entry_number(str(place[0]), *place[1:])
        label = int(classes.labels[number])
        if label >= 0:
            given.setdefault(label, name)
    for label, name in given.items():
        names[label] = name
    for name in names:
        if name in taken:
            raise ModelError(f"{name!r} is a scalar and something else; rename the array or that")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"names: {twice!r} is the name of two scalars; give them others")
    return tuple(names)


def second_names(made: Realization, classes: EntryClasses) -> tuple[str, ...]:
    """Remarks on entries that the model names and that have no scalar of that name.

    Of two names of entries that stay equal the first is used; an entry that never moves has none.
    """
    remarks: list[str] = []
    first: dict[int, str] = {}
    for name, entry in made.model.table("names", made.constants).items():
        place = entry if isinstance(entry, (tuple, list)) else (entry,)
        label = int(classes.labels[made.entry_number(str(place[0]), *place[1:])])
        if label < 0:
            remarks.append(f"names: {name} never moves, and is no scalar")
        elif first.setdefault(label, name) != name:
            remarks.append(f"names: {name} stays equal to {first[label]}, whose name is used")
    return tuple(remarks)


def _first_entry_name(made: Realization, entry: int) -> str:
    array, position = made.entry_position(entry)
    return "_".join([array, *map(str, position)])
