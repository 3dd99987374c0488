"""Real images: data sets, small networks, training, and measurements of trained positions.

The networks are small versions of those in Section 6 of Jelassi, Sander, Li (2022), Section 4.2 of
Li et al. (2023) and Section 6 of Huang et al. (2024). Two cores train one network in seconds to
minutes; nothing is downloaded.

Shuffling at grid size s permutes blocks of s x s pixels, in the same way in all images. If patches
fit into the blocks, a transformer sees the same patches in another order, so its accuracy has the
same distribution.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamics.validation import InvalidRequest


def require(module: str, package: str) -> Any:
    """Import an optional dependency of ``images``, or raise InvalidRequest if not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"images need {package}, which is not installed: pip install -e '.[images]'"
        ) from None
