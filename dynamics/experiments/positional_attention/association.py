"""Figure 4: true sets, learned A, test error and cosine against steps, all from one run of (E).

The protocol that associates every row at D = 16 (Theorem 4.2 is a matter of N and q: fewer samples
memorise). A is drawn without its diagonal, which is held at sigma_A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.positional_attention.patches import localised
from dynamics.plotting.matrices import entries, true_sets
from dynamics.plotting.style import BLUE, GREY, PURPLE, RC, VERMILION, logarithmic, new_figure
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory

QUICK = {"samples": 16_000, "eta": 0.02, "steps": 20_000, "dtype": "float32"}
DECADES = 100.0
"""Up to this ratio a logarithmic axis has room for labels at 1, 2, 5."""


def association(system: System, request: FigureRequest) -> Drawing:
    """Figure 4.

    Options: ``samples``, ``eta``, ``steps``, ``dtype``. ``data``: ``steps``, ``test_error``,
    ``cosine``, ``patch_association`` along the run, ``sets``, ``A`` at the end, ``bayes_error``,
    ``outcome``.
    """
    options = request.settled(QUICK, {})
    parameters = request.law(system, q=0.25, omega=1e-3)
    partition, _ = localised(parameters)
    problem = system.FullEmpirical(
        parameters, options["samples"], request.seed, partition, dtype=options["dtype"]
    )
    run = descend(problem, options["eta"], options["steps"])
    with mpl.rc_context(RC):
        figure, axes = new_figure(
            11.0, 2.7, ncols=4, gridspec_kw={"width_ratios": (1.06, 1.2, 1.3, 1.3)}
        )
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05)
        true_sets(axes[0], partition.labels)
        entries(figure, axes[1], run["A"][-1], location="right")
        axes[1].set_title(f"learned $A$, step {run.steps[-1]:,}", fontsize=9)
        number_patches(axes[0], parameters.D)
        number_patches(axes[1], parameters.D)
        _error(axes[2], run)
        _cosine(axes[3], run)
        for panel in axes[2:]:
            panel.set_xlabel("steps")
    return Drawing(axes, _data(run, partition.labels), _caption(run, request.seed))


def number_patches(panel: Axes, size: int) -> None:
    """Name the axes of a matrix of so many patches, numbered from 1 as in the paper."""
    shown = np.unique(np.linspace(0, size - 1, min(size, 4)).round().astype(int))
    panel.set_xticks(shown, [str(k + 1) for k in shown])
    panel.set_yticks(shown, [str(k + 1) for k in shown])
    panel.set_xlabel("patch $j$")
    panel.set_ylabel("patch $i$")
    panel.spines[:].set_visible(True)


def _error(panel: Axes, run: Trajectory) -> None:
    """Test error; what no draw got wrong has no place on a logarithmic axis."""
    steps, error = run.steps[1:], run["test_error"][1:]
    seen = error > 0
    panel.plot(steps[seen], error[seen], color=BLUE)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylabel("test error, share of samples")
    least = float(run["bayes_error"][-1])
    low = min([*error[seen], least or 1.0])
    if error[seen].max(initial=0.0) < DECADES * low:
        logarithmic(panel)
    if least > 0:
        panel.axhline(least, color=GREY, lw=0.9, ls=":")
        panel.annotate(
            f"Bayes error {least:.2g}", (steps[0], least), (3, 3),
            textcoords="offset points", color=GREY, fontsize=8,
        )  # fmt: skip


def _cosine(panel: Axes, run: Trajectory) -> None:
    steps = run.steps[1:]
    panel.plot(steps, run["cosine"][1:], color=VERMILION, label="cosine of $v$ and $w^\\star$")
    panel.plot(
        steps, run["patch_association"][1:], "--", color=PURPLE, label="rows of $A$ associated"
    )
    panel.set_xscale("log")
    panel.set_ylim(min(0.0, run["cosine"][1:].min()) - 0.04, 1.04)
    panel.set_ylabel("cosine; share of rows")
    panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)


def _data(run: Trajectory, labels: np.ndarray) -> dict[str, Any]:
    series = ("test_error", "cosine", "patch_association")
    return {
        "steps": run.steps.tolist(),
        **{name: run[name].tolist() for name in series},
        "sets": labels.tolist(),
        "A": run["A"][-1].tolist(),
        "bayes_error": float(run["bayes_error"][-1]),
        "outcome": str(run.outcome),
    }


def _caption(run: Trajectory, seed: int) -> str:
    given, share = run.parameters, run["patch_association"]
    whole = run.steps[share == 1]
    when = f", all of them first at step {whole[0]:,}" if whole.size else ""
    went = f" The run: {run.outcome}." if run.outcome.failed else ""
    kept = ("D", "C", "d", "q", "omega")
    law = ", ".join(f"{name} = {given[name]:g}" for name in kept)
    return (
        f"Figure 4. The realistic problem (E), one run: {law}, N = {run.settings['samples']:,}, "
        f"gradient descent with eta = {run.settings['eta']}, {run.steps[-1]:,} steps (time "
        f"{run.time[-1]:g}), seed {seed}. From left to right: the pairs (i, j) of patches in a "
        f"common set; A at the end, without its diagonal, which is held; test error on "
        f"{run.settings['test_samples']:,} fresh samples, {run['test_error'][-1]:.4f} at the end; "
        f"cosine of v and w*, {run['cosine'][-1]:.3f} at the end. Patch association: "
        f"{share[-1]:.0%} of the rows at the end{when}.{went}"
    )
