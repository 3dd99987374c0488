r"""Downstream without the sets: how many samples the feature takes, and training from scratch.

Three ways to know nothing of the sets: v fine-tuned by gradient descent under uniform attention;
the leading direction of all patches, read by uniform attention; v and A trained from scratch.

Under uniform attention with d = D the first two learn one direction. Gradient descent sees the mean
of :math:`y \sum_j X_j`: signal C, noise of length :math:`\sqrt{D}`, which falls on a new
:math:`\sum_j X_j` with :math:`D / \sqrt{N d}` beside :math:`C Z`. So N must grow like
:math:`D^2 / (C^2 d)`, a power of D. The covariance of the patches of one sample has
:math:`w^\star` as its leading direction already, at every D: that power is not one of every
algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import exponent
from dynamics.experiments.positional_attention import frozen_attention
from dynamics.experiments.positional_attention.transfer import (
    Downstream,
    Pool,
    downstream,
    fine_tune,
    medians,
    samples_needed,
)
from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.empirical import sampling
from theory.systems.positional_attention.linear_rules import sign_rule_error

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.systems.positional_attention.parameters import Parameters

ERROR = 0.05
"""What stands for a small test error where samples are counted."""
SAMPLES = (1, 2, 4, 8, 16, 32)
FEW = (1, 2, 4, 8)
SEEDS = 9
"""For what one or two samples decide."""


def leading_errors(task: Downstream, samples: int, seeds: int) -> FloatArray:
    r"""Errors of the leading direction of all patches, read by uniform attention.

    v is the first eigenvector of :math:`\sum_n \sum_j X_j X_j^T`, with the sign for which
    :math:`\sum_n y \langle v, \sum_j X_j\rangle` is positive. It does not know the sets, nor
    learns them. One sample has about C + q(D - C) patches with a feature, an eigenvalue of that
    size over the noise, whose own is at most :math:`(1 + \sqrt{D/d})^2`: one sample is enough at
    every D.

    Parameters
    ----------
    task : Downstream
        Under uniform attention.
    samples, seeds : int
    """
    from scipy.linalg import eigh

    parameters = task.parameters
    every = Pool(np.eye(parameters.D), np.ones(parameters.D))
    found = []
    for k in range(seeds):
        streams = np.random.default_rng([task.seed, k]).spawn(3)
        feature = sampling.unit_vector(parameters.d, streams[0])
        patches = every.draw(task.law, feature, samples, streams[2]).reshape(-1, parameters.d)
        last = [parameters.d - 1] * 2
        value = eigh(patches.T @ patches, subset_by_index=last)[1][:, 0]
        found.append(task.error(value * np.sign((patches @ value).sum()), feature))
    return np.array(found)


def leading_needed(parameters: Parameters, seed: int) -> int | None:
    """Samples with which the median error of `leading_errors` is at most 0.05; None: over 8."""
    task = downstream(parameters, frozen_attention.uniform(parameters), seed)
    return _first(partial(leading_errors, task))


def _first(errors: Callable[..., FloatArray]) -> int | None:
    few = (count for count in FEW if np.median(errors(samples=count, seeds=SEEDS)) <= ERROR)
    return next(few, None)


def one_sample(system: System, sizes: Sequence[tuple[int, int]], seed: int) -> list[dict[str, Any]]:
    """Median error of the leading direction of one sample, along (D, C) with q(D - C) = 2C.

    With C growing, sign(Z) errs less and less: its error is that of a Gaussian beyond sqrt(C/2).
    """
    rows = []
    for D, C in sizes:
        law = system.Parameters(D=D, C=C, q=2 * C / (D - C))
        errors = leading_errors(downstream(law, frozen_attention.uniform(law), seed), 1, SEEDS)
        linear = float(sign_rule_error(D, C, law.q).error)
        row = {"D": D, "C": C, "q": law.q, "linear_error": linear}
        rows.append(row | {"error": float(np.median(errors))})
    return rows


def linear_ladder(system: System, sizes: Sequence[int], seeds: int, seed: int) -> dict[str, Any]:
    """Samples needed for an error of 0.05 along D, at C = 4 and q(D - C) = 4.

    Returns
    -------
    dict
        ``uniform``, ``leading direction``, ``true sets``: for each D a number, or None for more
        than were tried; ``exponent`` in D of the first.
    """
    kinds: dict[str, list[Any]] = {"uniform": [], "leading direction": [], "true sets": []}
    for D in sizes:
        law = system.Parameters(D=D, C=4, q=4 / (D - 4))
        errors = medians(downstream(law, frozen_attention.uniform(law), seed), SAMPLES, seeds)
        kinds["uniform"].append(samples_needed(SAMPLES, errors, ERROR))
        kinds["leading direction"].append(leading_needed(law, seed))
        kinds["true sets"].append(
            _first(partial(fine_tune, law, frozen_attention.block(law), seed=seed))
        )
    known = [(D, n) for D, n in zip(sizes, kinds["uniform"], strict=True) if n is not None]
    return {
        "D": list(sizes),
        "error": ERROR,
        **kinds,
        "exponent": exponent(*zip(*known, strict=True)),
    }


def scratch_rows(system: System, seed: int) -> list[dict[str, Any]]:
    """Test error of v and A trained from scratch, D = 12 and 16, C = 4, q(D - C) = 4, to time 960.

    The samples are of the downstream task: nothing is transferred.
    """
    rows = []
    for D in (12, 16):
        law = system.Parameters(D=D, C=4, q=4 / (D - 4))
        for samples in (500, 1000, 2000):
            _, run = frozen_attention.trained(
                system, law, samples, 960.0, eta=0.04, seed=seed, dtype="float32"
            )
            rows.append({
                "D": D, "C": 4, "q": law.q, "samples": samples,
                "test_error": float(run["test_error"][-1]),
                "association": float(run["patch_association"][-1]),
            })  # fmt: skip
    return rows
