"""Verdicts on claims, and figures, of papers.

The folder of a paper defines ``CHECKS`` (claim -> function) and ``FIGURES`` (name -> function). The
file of a published model in `library` defines functions marked `claim`, and ``FIGURES``.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dynamics.library import built_in_names

if TYPE_CHECKING:
    from dynamics.system import System


def verdicts_of(system: System, kind: str) -> Mapping[str, Callable[..., Any]]:
    """Checks (`kind` is ``"checks"``) or figures (``"figures"``) of a system, by name."""
    own = {claim.source: claim.check for claim in system.claims if claim.check is not None}
    if own:
        return own if kind == "checks" else {}
    if system.in_library:
        name = f"{__name__}.library.{system.name}"
        if importlib.util.find_spec(name) is None:
            return {}
        module = importlib.import_module(name)
        if kind == "checks":
            from dynamics.verdicts.claim import checks_of

            return checks_of(module)
    elif system.origin is None and system.name in built_in_names():
        module = importlib.import_module(f"{__name__}.{system.name}")
    else:
        return {}
    table: Mapping[str, Callable[..., Any]] = getattr(module, kind.upper())
    return table
