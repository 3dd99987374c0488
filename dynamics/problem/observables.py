"""Observables of many records as columns, and of one as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynamics.problem.layout import FloatArray


def columns_of(rows: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Observables of every record as arrays; NaN where a record lacks one.

    Parameters
    ----------
    rows : sequence of mapping
        Name -> value, of each record.
    """
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return {name: np.array([row.get(name, np.nan) for row in rows], float) for name in names}


def record_of(columns: Mapping[str, FloatArray], record: int) -> dict[str, float]:
    """Observables of one record.

    Parameters
    ----------
    columns : mapping
        Name -> values of all records.
    record : int
    """
    return {name: float(values[record]) for name, values in columns.items()}
