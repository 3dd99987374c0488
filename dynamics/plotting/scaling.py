"""A fitted power law: measured against fitted, and against each factor by itself."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from dynamics.phase_diagrams.scaling import Scaling
from dynamics.plotting import words
from dynamics.plotting.marks import FEW, logarithmic
from dynamics.plotting.style import BLUE, RC, VERMILION, new_figure
from dynamics.problem import FloatArray


def scaling(result: Scaling) -> Any:
    r"""Measured against fitted; then, for each factor, the quantity with the others divided out.

    The exponent of each factor, with its standard error, stands in the legend of its panel; how
    many runs were used and left out, and why, in the title.

    Parameters
    ----------
    result : Scaling

    Returns
    -------
    array of Axes, shape (1 + factors,)
    """
    count = len(result.factors)
    width = 3.4 * (1 + count) if count < 3 else 2.8 * (1 + count)
    name = words.quantity(result.presentation.notation, result.quantity)
    with mpl.rc_context(RC):
        figure, axes = new_figure(width, 3.7, ncols=1 + count)
        _panel(axes[0], result.fitted, result.measured)
        ends = np.array([result.fitted.min(), result.fitted.max()])
        text = f"$R^2 = {result.r2:.4f}$\nspread {100 * result.spread:.2g} %"
        axes[0].plot(ends, ends, color=VERMILION, lw=1.2, label=text, zorder=1)
        axes[0].set_xlabel(f"fitted {name}")
        axes[0].set_ylabel(f"measured {name}")
        for k, panel in enumerate(axes[1:]):
            _factor(panel, result, k, name)
        for panel in axes:
            panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8, borderpad=0)
        figure.suptitle(_title(result, width), fontsize=8, x=0.01, ha="left")
    return axes


def _factor(panel: Axes, result: Scaling, k: int, name: str) -> None:
    """The quantity against one factor, with the fitted powers of the others divided out."""
    level, exponent = result.levels[:, k], result.exponents[k]
    others = [i for i in range(len(result.factors)) if i != k]
    divided = np.prod(result.levels[:, others] ** result.exponents[others], axis=1)
    _panel(panel, level, result.measured / divided)
    ends = np.array([level.min(), level.max()])
    factor = words.formula(result.presentation.notation, result.factors[k])
    shown = [_decimals(v, result.errors[k]) for v in (exponent, result.errors[k])]
    low, high = (_decimals(v, result.errors[k]) for v in result.intervals[k])
    text = f"exponent ${shown[0]} \\pm {shown[1]}$\n95 %: ${low}$ to ${high}$"
    panel.plot(
        ends, result.prefactor * ends**exponent, color=VERMILION, lw=1.2, label=text, zorder=1
    )
    if len(np.unique(level)) <= FEW:
        panel.xaxis.set_major_locator(FixedLocator(list(np.unique(level))))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel(f"${factor}$")
    product = r"\,".join(_power(result, i) for i in others)
    panel.set_ylabel(rf"{name} $/\;[{product}]$" if product else name)


def _power(result: Scaling, k: int) -> str:
    """A factor with its exponent, as LaTeX without dollar signs."""
    factor = words.formula(result.presentation.notation, result.factors[k])
    base = factor if result.factors[k].isidentifier() else f"({factor})"
    return f"{base}^{{{_decimals(result.exponents[k], result.errors[k])}}}"


def _decimals(value: float, error: float) -> str:
    """A number with as many decimals as its error has to two digits, from 2 to 6."""
    needed = 1 - int(np.floor(np.log10(error))) if error > 0 else 6
    return f"{value:.{min(6, max(2, needed))}f}"


def _panel(panel: Axes, x: FloatArray, y: FloatArray) -> None:
    panel.plot(x, y, "o", color=BLUE, mfc="white", ms=4, zorder=2)
    panel.set_xscale("log")
    panel.set_yscale("log")
    logarithmic(panel.xaxis, float(x.max() / x.min()))
    logarithmic(panel.yaxis, float(y.max() / y.min()))


def _title(result: Scaling, width: float) -> str:
    runs = f"{result.used} runs"
    if result.left_out:
        why = ", ".join(f"{count} {word}" for word, count in result.left_out.items())
        runs += f"; left out: {why}"
    held = words.fixed(result.presentation.notation, result.held, result.derived, width)
    return f"{held}\n{runs}" if held else runs
