"""Real images: data sets, small networks, training, and measurements of trained positions.

Small versions of the networks of Section 6 of Jelassi, Sander, Li (2022), Section 4.2 of Li et al.
(2023) and Section 6 of Huang et al. (2024); two cores train one in seconds to minutes.

An image is an array (height, width, channels). A transformer cuts it into D square patches, embeds
each linearly, and gives the j-th a trained position :math:`p_j` (`dynamics.images.networks`).
Training is Adam on mini-batches (`dynamics.images.training`). Shuffling at grid size s permutes
blocks of s x s pixels, in the same way in all images. If patches fit into the blocks, a transformer
sees the same patches in another order, so its accuracy has the same distribution.

Nothing is downloaded: the digits are in scikit-learn, Fashion-MNIST in Debian's package
``dataset-fashion-mnist``, and `dynamics.images.datasets` reads folders in the layout of
torchvision.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamics.validation import InvalidRequest


def require(module: str, package: str) -> Any:
    """Import a module of the optional dependencies ``images``.

    `module`: name to import; `package`: name for pip. Raises InvalidRequest if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"images need {package}, which is not installed: pip install -e '.[images]'"
        ) from None
