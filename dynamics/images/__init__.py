"""Real images: data sets, small networks, training, and measurements of trained positions.

The networks are small versions of those in Section 6 of Jelassi, Sander, Li (2022), Section 4.2 of
Li et al. (2023) and Section 6 of Huang et al. (2024). Two cores train one network in seconds to
minutes; nothing is downloaded.

Shuffling with block side s permutes blocks of s x s pixels, in the same way in all images. If each
block consists of whole patches, a transformer sees the same patches in another order. With blocks
of whole patches, shuffled and original images give equal distributions of accuracies over seeds.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamics.validation import InvalidRequest


def require(module: str, package: str) -> Any:
    """Import a module of an optional package; raise InvalidRequest if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"images need {package}, which is not installed: pip install -e '.[images]'"
        ) from None
