"""The panels of Figure 2: errors on the left, the sets above, the learned matrices below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.experiments.positional_attention.association import number_patches
from dynamics.experiments.positional_attention.pictures.patches import patches
from dynamics.plotting.matrices import entries, true_sets
from dynamics.plotting.style import BLUE, GREEN, GREY, RC, VERMILION, logarithmic, new_mosaic

if TYPE_CHECKING:
    from dynamics.experiments.positional_attention.convolution import Fit

LOOKS = ((BLUE, "-"), (VERMILION, "-"), (GREEN, "--"))
LAYOUT = [["error", "grid", "sets", "legend"], ["error", "0", "1", "2"]]


def panels(
    fits: Mapping[str, Sequence[Fit]],
    labels: Mapping[str, str],
    grid: tuple[np.ndarray, int],
    linear: float,
) -> Any:
    """Draw Figure 2.

    Parameters
    ----------
    fits : mapping
        Case -> one `Fit` a seed; the matrices are those of the first.
    labels : mapping
        Case -> label.
    grid : (int array, shape (D,), int)
        Set of each patch, columns of the grid.
    linear : float
        Error of sign(Z).

    Returns
    -------
    array of Axes
        Errors; grid; sets; one matrix a case.
    """
    with mpl.rc_context(RC):
        figure, named = new_mosaic(10.4, 5.0, LAYOUT, gridspec_kw={"width_ratios": (1.7, 1, 1, 1)})
        panel = named["error"]
        for (name, made), (colour, dash) in zip(fits.items(), LOOKS, strict=True):
            for k, one in enumerate(made):
                shown = (one.steps > 0) & (one.test_error > 0)
                panel.plot(
                    one.steps[shown], one.test_error[shown], dash, color=colour,
                    lw=1.6 if k == 0 else 0.9, label=None if k else labels[name],
                )  # fmt: skip
                if one.diverged:
                    panel.plot(one.steps[-1], one.test_error[-1], "x", color=colour, ms=9)
        panel.axhline(linear, color=GREY, lw=1.0, ls=":", label="linear rule, sign($Z$)")
        panel.set_xscale("log")
        logarithmic(panel)
        panel.set_xlabel("steps")
        panel.set_ylabel("test error (share of samples)")
        named["legend"].axis("off")
        named["legend"].legend(*panel.get_legend_handles_labels(), loc="center", fontsize=8)
        sets, columns = grid
        patches(named["grid"], sets, columns, [str(k + 1) for k in range(len(sets))])
        named["grid"].set_title("sets on the grid of patches", fontsize=9)
        true_sets(named["sets"], sets)
        number_patches(named["sets"], len(sets))
        for k, (name, made) in enumerate(fits.items()):
            one, below = made[0], named[str(k)]
            entries(figure, below, one.matrix)
            number_patches(below, len(sets))
            word = "diverged" if one.diverged else f"{one.patch_association[-1]:.0%} associated"
            below.set_title(f"{labels[name]}\n{word}", fontsize=8)
    return np.array([named[name] for name in ("error", "grid", "sets", "0", "1", "2")])
