"""The scalars of the reduced problem: row types of parameters, and the state that they make."""

from __future__ import annotations

from functools import lru_cache

from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.problem import Layout
from dynamics.validation import refuse
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import row_types

MOST_PATCHES = 2**13
"""Patches whose row types are found in some seconds; that time grows as their square."""


@lru_cache(maxsize=64)
def rows_of(parameters: Parameters) -> Rows:
    """The row types of parameters, computed once; sizes at which that takes minutes are refused."""
    if parameters.P > MOST_PATCHES:
        left = max(0, MOST_PATCHES - (parameters.C_global or 0))
        near = f"about {MOST_PATCHES}, with areas in proportion"
        if parameters.family == "one_cluster" and left >= parameters.C_local:
            near = str(parameters.C_global + left // parameters.C_local * parameters.C_local)
        refuse(
            "P",
            parameters.P,
            "takes minutes before the first step",
            f"at most {MOST_PATCHES:,}",
            near,
        )
    return Rows(parameters, row_types(parameters.area_ids))


def layout_of(rows: Rows) -> Layout:
    """A state of one scalar for each name."""
    names = rows.scalars
    return Layout(names, ((),) * len(names), groups=("Q",) * len(names))
