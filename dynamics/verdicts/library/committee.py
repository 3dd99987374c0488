r"""Committee machines by their overlaps, and the plateau of equal neurons; a figure.

For a student's scaled rows :math:`u = w / \sqrt d` a step of descent on the risk R is :math:`u
\mathrel{-}= (\eta / d)\, \partial R / \partial u`. Runs with equal :math:`\eta / d` and equal
overlaps at the start therefore have equal overlaps at every step, at any d. Students with all rows
equal to :math:`u` have minimum risk if :math:`u = c \sum_r v_r / \sqrt d`, where :math:`v_r` are
the rows of the teacher and :math:`c^2 = 1 / (k (2k - 1))`. This minimum is, with k neurons,

.. math:: R^* = \frac{1}{\pi} \Bigl( \frac{\pi}{6 k} - \arcsin \frac{1}{2 k} \Bigr). \qquad (1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.models import committee
from dynamics.models.overlaps import rows_with_overlaps
from dynamics.plotting import style
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.library.linear_icl import rest
from dynamics.verdicts.library.lines import over_time

if TYPE_CHECKING:
    from dynamics.system import System

PER_STEP, STEPS = 0.2, 5000
"""Learning rate divided by d (first), and number of steps of gradient descent (second)."""
SAME = 1e-10
LONG = 1e4
"""Final time of flows, divided by d."""
DIMENSIONS = (10, 1000, 10**5, 10**7)
FAR = 10**6
"""Dimension d at which the overlaps of random rows are close to symmetric ones."""
NEAR = 0.01
EARLY = 0.1
VISIBLE = 1e5
"""Risks below the plateau's risk divided by this number are rounding and are not drawn."""
SCALE = r"time $/\, d$"


def gram(n: int, k: int, d: float) -> FloatArray:
    """Overlaps of the teacher's k rows and the initial student's n rows, shape (k + n, k + n)."""
    if d == np.inf:
        return np.diag(np.repeat([1.0, committee.SPREAD**2], [k, n]))
    d = int(d)
    W = committee.start(n, d)["W"] / np.sqrt(d)
    return np.block([[np.eye(k), W[:, :k].T], [W[:, :k], W @ W.T]])


def few_rows(system: System, law: Any, overlaps: FloatArray) -> tuple[Any, FloatArray]:
    """Problem in n + k dimensions, and its state with the given overlaps (see `gram`)."""
    small = replace(law, d=law.n + law.k)
    rows = np.sqrt(small.d) * rows_with_overlaps(overlaps)[law.k :]
    return system.ReducedPopulation(small), rows.ravel()


def symmetric_risk(k: int) -> float:
    """Minimum risk of a student with equal neurons, equation (1)."""
    return float((np.pi / (6 * k) - np.arcsin(1 / (2 * k))) / np.pi)


def learned_by_all(law: Any) -> None:
    """Raise Undecided unless student and teacher have equally many neurons, more than one."""
    if not law.n == law.k > 1:
        raise Undecided("the statement assumes n = k > 1 neurons", "law")


@claim(
    "Overlaps", "largest difference of an overlap at d and at n + k dimensions", "<=", SAME,
    laws=({"d": 30}, {"d": 1000}),
    words="{value:.1e} in {count} overlaps over {steps} steps of training all {entries} weights",
    picture=Picture(SCALE, "risk"),
)  # fmt: skip
def by_overlaps(case: Case) -> dict[str, Any]:
    """Difference of overlaps between descent on every weight in d and in n + k dimensions."""
    law, full = case.parameters, case.system.FullPopulation(case.parameters)
    problem, state = few_rows(case.system, law, gram(law.n, law.k, law.d))
    every = descend(full, PER_STEP * law.d, STEPS)
    scale = law.n + law.k
    few = descend(problem, PER_STEP * scale, STEPS, initial=state)
    names = [name for name in few.observables if name.startswith(("Q_", "R_"))]
    return {
        "value": max(np.abs(every[name] - few[name]).max() for name in names), "steps": STEPS,
        "count": len(names), "entries": full.initial_state.size,
        "curves": {
            f"d = {law.d}": (every.time[1:] / law.d, every["risk"][1:]),
            f"{len(state)} weights for d = {law.d}": (few.time[1:] / scale, few["risk"][1:]),
        },
    }  # fmt: skip


@claim(
    "Plateau", "distance of a risk that rests from that of the best symmetric student, relative",
    "<=", NEAR, laws=({}, {"n": 3, "k": 3}), require=learned_by_all, shown=("n", "k"),
    also=(Also("left", "<=", NEAR, "risk at the end over that of the plateau"),),
    words="from the overlaps at d = 10^6 the risk rests within {value:.2g} of {plateau:.6f}, "
    "relative, and ends at {left:.1e} of it",
    picture=Picture(SCALE, "risk"),
)  # fmt: skip
def plateau(case: Case) -> dict[str, Any]:
    """Risk on the plateau and at the end; the start has the overlaps of random rows at d = 10^6."""
    law, level = case.parameters, symmetric_risk(case.parameters.k)
    problem, state = few_rows(case.system, law, gram(law.n, law.k, FAR))
    scale = law.n + law.k
    times = np.geomspace(EARLY, LONG, 1000)
    run = flow(problem, LONG * scale, initial=state, record=times * scale)
    risk, where = run["risk"], f" ({case.label})" if case.label else ""
    value, seen = rest(run.time, np.abs(risk / level - 1)), risk > level / VISIBLE
    return {
        "value": value, "plateau": level, "left": risk[-1] / level, "open": "time",
        "curves": {
            f"risk{where}": (run.time[seen] / scale, risk[seen]),
            f"plateau{where}": (times[[0, -1]], [level] * 2),
        },
    }  # fmt: skip


def dimensions(system: System, request: FigureRequest) -> Drawing:
    """Risk along the flow at several d and at infinity; options ``dimensions``, ``time``."""
    options = request.options({"dimensions": DIMENSIONS, "time": LONG})
    law, end = request.make_parameters(system, ("d",)), float(options["time"])
    scale, level = law.n + law.k, symmetric_risk(law.k)
    times = np.geomspace(EARLY, end, 600)
    curves: dict[str, Any] = {"best student with equal neurons": (times[[0, -1]], [level] * 2)}
    for d in (*options["dimensions"], np.inf):
        problem, state = few_rows(system, law, gram(law.n, law.k, d))
        run = flow(problem, end * scale, initial=state, record=times * scale)
        label = r"\infty" if d == np.inf else style.number(d)
        curves[f"$d = {label}$"] = run.time / scale, run["risk"]
    caption = (
        "Population risk along the gradient flow, from random rows at several dimensions, each run "
        f"by the overlaps of its start with {law.n * scale} weights. All stay at the risk of the "
        f"best student with equal neurons, {level:.5g}: longer at larger dimension, and "
        "at infinity forever."
    )
    look = {"yscale": "log", "xlabel": SCALE, "ylabel": "population risk", "xlim": (EARLY, end)}
    colours = [style.GREY, *mpl.colormaps["viridis"](np.linspace(0, 0.88, len(curves) - 1))]
    look["ylim"] = (level / VISIBLE, 0.3)
    return over_time(title(system, law, "n", "k", width=6.4), curves, caption, colours, **look)


FIGURES = {"dimensions": dimensions}
