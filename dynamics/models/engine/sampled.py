"""Options of training on samples: mini-batches, and single or double precision."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from dynamics.cache import jax
from dynamics.models.engine.program import Data, data_of, on_device
from dynamics.parameter_fields import STRICT, refusing, whole, word
from dynamics.training.minibatches import MiniBatches
from theory.law import Law

BATCH = "samples of a mini-batch (default: all)"
DTYPE = "float64 (default) or float32, of samples and their sums"
"""Help texts of the options `batch` and `dtype`."""


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class Training:
    """Options of training on samples.

    `batch` is the number of samples of a mini-batch, by default all; the samples are reshuffled
    every epoch. `dtype` is the precision of the samples and of sums over samples.
    """

    batch: whole(1, optional=True) = None  # type: ignore[valid-type]
    dtype: word("float64", "float32") = "float64"  # type: ignore[valid-type]

    @property
    def changed(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        fields = dataclasses.fields(self)
        held = {field.name: getattr(self, field.name) for field in fields}
        return {f.name: held[f.name] for f in fields if held[f.name] != f.default}

    def minibatches(self, seed: Any, samples: int) -> MiniBatches | None:
        """Mini-batches of a run on a number of samples, or None if every step uses all samples."""
        if self.batch is None or self.batch >= samples:
            return None
        drawn = seed if isinstance(seed, int) else int(seed.integers(2**62))
        return MiniBatches(drawn, samples, self.batch)

    def data(
        self,
        law: Law,
        fixed: Mapping[str, Any],
        reals: Mapping[str, Any],
        held_out: Law | None = None,
    ) -> Data:
        """Samples, untrained arrays and real constants as JAX arrays, in the chosen precision."""
        data = data_of(law, fixed, reals, held_out)
        return on_device(data if self.dtype == "float64" else jax.tree.map(_single, data))


def _single(part: Any) -> NDArray[Any]:
    """Array copy of a number or an array; floats become single precision."""
    array = np.asarray(part)
    return array.astype(np.float32) if array.dtype.kind == "f" else array
