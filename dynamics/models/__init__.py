"""Models of one file, and what turns a file into a system.

A file of this folder that has a function ``start`` is loaded by its name, like a system; a user's
own file by its path. `Model` makes a system of functions that are in no file.
"""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from dynamics.validation import InvalidRequest, refuse

if TYPE_CHECKING:
    from dynamics.system import System


def Model(**functions: Any) -> System:  # noqa: N802 (it stands for what it makes)
    """A system from the functions of a model.

    Parameters
    ----------
    **functions
        ``start``, and ``law`` and ``loss``, or ``risk``, or ``sample``, ``loss`` and ``symmetry``;
        whatever else a model file may hold. See `theory.model.Model`.

    Returns
    -------
    System
        Its sweeps run in this process: other processes cannot find functions without a file.

    Raises
    ------
    InvalidRequest
        In one line, for anything that is wrong with the model.

    Examples
    --------
    >>> import dynamics
    >>> def start(w0=0.1):
    ...     return {"w": [w0, w0]}
    >>> def risk(theta, xp, target=1.0):
    ...     return (theta["w"][0] * theta["w"][1] - target) ** 2 / 2
    >>> system = dynamics.Model(start=start, risk=risk)
    >>> system.closure().summary()
    'closes on 1 scalar of 2 entries (sizes 2)'
    """
    from dynamics.models.engine import system_of
    from dynamics.models.engine.tracing import refusals
    from theory.model import Model as Functions

    allowed = [field.name for field in dataclasses.fields(Functions)]
    for name in functions:
        if name not in allowed:
            near = get_close_matches(name, allowed, 1, 0.0)[0]
            refuse("Model", name, "is not a part of a model", ", ".join(allowed), near)
    if "start" not in functions:
        raise InvalidRequest("a model needs start(...), the trained arrays at step 0")
    with refusals():
        made = Functions(**functions)
    return system_of(made)
