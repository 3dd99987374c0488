"""Library of model files, and `Model`, a system made from functions.

A file of this folder with a function ``start`` is a model and is loaded by name; a user's own model
file is loaded by path.
"""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from dynamics.validation import InvalidRequest, refuse

if TYPE_CHECKING:
    from dynamics.system import System


def Model(**functions: Any) -> System:  # noqa: N802 (it stands for what it makes)
    """System made from the functions of a model.

    Parameters
    ----------
    **functions
        ``start`` with ``law`` and ``loss``, or with ``risk``, or with ``sample``, ``loss`` and
        ``symmetry``; optionally every other part of a model file, see `theory.model.Model`.

    Returns
    -------
    System
        Its sweeps run in the calling process, since workers can load functions only from files.

    Raises
    ------
    InvalidRequest
        If the model is invalid; the message has one line.

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
