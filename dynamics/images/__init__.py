"""Real images: data sets, small networks, their training, and what is measured of their positions.

Section 6 of Jelassi, Sander, Li (2022), Section 4.2 of Li et al. (2023) and Section 6 of Huang et
al. (2024) are about networks that people train on images. Here are small versions of them that two
cores train in seconds to minutes.

An image is an array (height, width, channels). A transformer cuts it into D square patches of the
same side, embeds each linearly, and gives the j-th a trained position :math:`p_j`
(`dynamics.images.networks`). Training is Adam on the mean cross-entropy of mini-batches
(`dynamics.images.training`). Shuffling an image at the grid size s moves its blocks of s x s pixels
to other places, the same for all images; a transformer whose patches fit into the blocks sees the
same patches in another order, and so trains to the same accuracy in law: with the order of its
start changed likewise, to the same numbers.

Nothing downloads: the digits are in the wheel of scikit-learn, Fashion-MNIST in Debian's package
``dataset-fashion-mnist``, and `dynamics.images.datasets` reads folders as torchvision lays them.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamics.validation import InvalidRequest


def require(module: str, package: str) -> Any:
    """A module of the extra ``images``.

    `module`: what is imported; `package`: what it is called where it is installed from. Raises
    InvalidRequest if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"images need {package}, which is not installed: pip install -e '.[images]'"
        ) from None
