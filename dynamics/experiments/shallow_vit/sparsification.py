r"""Token sparsification: Remark 2, Figures 5 and 8.

A fifth of the tokens have noise of standard deviation 1 per coordinate. Training and test samples
lose the same share of their tokens: at random, those of no discriminative pattern first, or those
farthest from their pattern first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import curve
from dynamics.experiments.shallow_vit.runs import plot, sizes_of
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.empirical.sparsification import SPARSIFIERS
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

LAW: dict[str, Any] = {"alpha_star": 0.3, "alpha_confusion": 0.1, "m": 300, "data": "fixed_disc"}
TRAINING: dict[str, Any] = {"samples": 20, "noisy_share": 0.2, "noisy_std": 1.0}
ETA, STEPS = 0.2, 400
REMOVED = (0.0, 0.2, 0.5)
ALL_REMOVED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SHARE = 0.2
"""Share of tokens removed where the order of the sparsifiers is compared: all noisy ones can go."""
SEEDS, MORE_SEEDS = 5, 10
FEW_SEEDS = 3
"""Where only the order of the rules is asked for."""
WORDS = {"random": "at random", "irrelevant": "irrelevant first", "noisiest": "noisiest first"}


def losses(
    system: System, parameters: Any, word: str, removed: Sequence[float], seeds: Sequence[int]
) -> FloatArray:
    """Test loss at the end, shape (removed, seeds)."""
    found = np.empty((len(removed), len(seeds)))
    for i, share in enumerate(removed):
        for j, seed in enumerate(seeds):
            problem = system.FullEmpirical(
                parameters, seed=seed, sparsify=word, removed=share, **TRAINING
            )
            found[i, j] = descend(problem, ETA, STEPS, record=[STEPS])["test_loss"][-1]
    return found


def order(system: System, protocol: Protocol, given: Any = None, **law: Any) -> Mapping[str, float]:
    """Mean test loss with nothing removed (``"none"``) and with `SHARE` removed by each rule."""
    parameters = given or system.Parameters(**(LAW | law))
    seeds = range(protocol.seed, protocol.seed + FEW_SEEDS)
    found = {"none": losses(system, parameters, "random", (0.0,), seeds)}
    found |= {word: losses(system, parameters, word, (SHARE,), seeds) for word in SPARSIFIERS}
    return {word: float(values.mean()) for word, values in found.items()}


def remark_2(system: System, protocol: Protocol) -> Finding:
    """Test loss as more tokens are removed, by each rule."""
    quantity = "test loss with irrelevant tokens removed, over that with none removed"
    law = protocol.parameters or system.Parameters(**LAW)
    shares = ALL_REMOVED if protocol.thorough else REMOVED
    seeds = range(protocol.seed, protocol.seed + (MORE_SEEDS if protocol.thorough else SEEDS))
    found = {word: losses(system, law, word, shares, seeds) for word in SPARSIFIERS}
    means = {word: values.mean(axis=1) for word, values in found.items()}
    start = float(means["random"][0])
    best = {word: float(values[1:].min()) for word, values in means.items()}
    if start == 0:
        ratio, holds = float("nan"), None
        reason = "nothing is left to gain: the test loss is 0 with all tokens"
    else:
        ratio = float(means["irrelevant"][-1]) / start
        helps = [best[word] < min(start, best["random"]) for word in ("irrelevant", "noisiest")]
        holds = bool(all(helps) and means["random"][-1] >= means["irrelevant"][-1])
        reason = "; ".join(
            f"{WORDS[word]}: {', '.join(f'{v:.2g}' for v in values)}"
            for word, values in means.items()
        )
        reason = f"test loss with {', '.join(f'{s:.0%}' for s in shares)} removed, {reason}"
    curves = [curve(WORDS[word], shares, values) for word, values in means.items()]
    drawn = plot("share of tokens removed", f"test loss, mean of {len(seeds)} seeds", curves)
    table = {word: values.tolist() for word, values in found.items()}
    evidence = {"parameters": sizes_of(law), "table": table, "plot": drawn}
    return Finding(holds, quantity, ratio, 1.0, reason, evidence)
