"""Figures 1b, 3 and 4 of Jelassi, Sander, Li (2022), and phase planes of the reduced problem.

The paper draws D = 16 patches on a 4 x 4 grid, numbered row by row from 1, in L = 4 sets of C = 4.
Figures 1a, 5 and later show networks trained on images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.analysis.phase_portrait import portrait, sentence, summary
from dynamics.plotting.portrait import portraits
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.positional_attention import pictures
from dynamics.verdicts.positional_attention.grid import SHOWN
from theory.papers.positional_attention.samples import SignalSets

DRAWS = 1000
"""Data points among which Figure 3 seeks one like that of the paper."""
WORDS = {0: "0", 1: "1", -1: "\N{MINUS SIGN}1"}
EMPIRICAL_RUN = {"samples": 16_000, "eta": 0.02, "steps": 20_000, "dtype": "float32"}
PLANES = {"gamma-rho": ("gamma", "rho"), "alpha-gamma": ("alpha", "gamma")}
BOTH = "both"
GRID, COARSE = 32, 8
"""Cells at the first look: where a gradient takes microseconds, and where it takes milliseconds."""


def partitions(system: System, request: FigureRequest) -> Drawing:
    """Figure 1b: (1) spatially localised sets, (2) sets of the same sizes drawn at random.

    No options. ``data``: ``localised`` and ``random``, the set of each patch; ``columns``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    request.options({})
    parameters = request.make_parameters(system)
    near, columns = pictures.localised(parameters)
    far = near.shuffled(np.random.default_rng(request.seed))
    with page(5.6, 2.9 * max(0.6, near.size / columns**2), ncols=2) as (figure, axes):
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
        titles = ("(1) spatially localised sets", "(2) sets drawn at random")
        for panel, partition, title in zip(axes, (near, far), titles, strict=True):
            pictures.patches(panel, partition.labels, columns)
            panel.set_title(title)
    caption = (
        f"Figure 1b. Partitions of D = {parameters.D} patches, numbered row by row, into sets of "
        f"C = {parameters.C}, a colour each: (1) spatially localised, (2) drawn at random (seed "
        f"{request.seed}). Definition 2.1 covers both."
    )
    state(axes, system, parameters, "D", "C", seed=request.seed)
    labels = {"localised": near.labels.tolist(), "random": far.labels.tolist()}
    return Drawing(axes, labels | {"columns": columns}, caption)


def data_point(system: System, request: FigureRequest) -> Drawing:
    """Figure 3: the values of one data point under Assumption 1 with localised sets.

    The first draw of the seed with label +1 and more -1 than +1; where there is none among 1000,
    the first with label +1. No options. ``data``: ``values``, ``sets``, ``signal`` (the patches
    of the signal set), ``label``, ``draw`` (its number), ``columns``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    request.options({})
    parameters = request.make_parameters(system)
    partition, columns = pictures.localised(parameters)
    law = SignalSets(partition, parameters.q, parameters.sigma)
    values, labels, signals = law.draw(DRAWS, np.random.default_rng(request.seed))
    minus, plus = (values == -1).sum(axis=1), (values == 1).sum(axis=1)
    misleading = (labels > 0) & (minus > plus)
    number = int(np.argmax(misleading if misleading.any() else labels > 0))
    point, signal = values[number].astype(int), partition.sets[signals[number]]
    framed = np.isin(np.arange(parameters.D), signal)
    with page(2.9, 3.2 * max(0.6, partition.size / columns**2)) as (figure, panel):
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        pictures.patches(panel, partition.labels, columns, [WORDS[x] for x in point], framed)
        panel.set_title("label $y = +1$")
    which = "with label +1 and more -1 than +1" if misleading.any() else "with label +1"
    caption = (
        f"Figure 3. A data point X under Assumption 1 ({stated(parameters, 'D', 'C', 'q')}): the "
        f"first draw of seed {request.seed} {which} (number {number + 1}). Colours are sets; 1 and "
        f"-1 stand for w* and -w*; the red frame is the signal set. {minus[number]} patches have "
        f"-1 and {plus[number]} have 1."
    )
    data = {
        "values": point.tolist(), "sets": partition.labels.tolist(), "signal": signal.tolist(),
        "label": int(labels[number]), "draw": number + 1, "columns": columns,
    }  # fmt: skip
    state(panel, system, parameters, "D", "C", "q", seed=request.seed)
    return Drawing(panel, data, caption)


def association(system: System, request: FigureRequest) -> Drawing:
    """Figure 4: sets, learned A, test error and cosine against steps, of one run of (E).

    The protocol that associates every row at D = 16 (Theorem 4.2 is a matter of N and q: fewer
    samples memorise). A is shown without its diagonal, which is held at sigma_A. Options:
    ``samples``, ``eta``, ``steps``, ``dtype``. ``data``: ``steps``, ``test_error``, ``cosine``,
    ``patch_association`` along the run, ``sets``, ``A`` at the end, ``bayes_error``, ``outcome``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(EMPIRICAL_RUN)
    parameters = request.make_parameters(system, q=0.25, omega=1e-3)
    partition, _ = pictures.localised(parameters)
    problem = system.FullEmpirical(
        parameters, options["samples"], request.seed, partition, dtype=options["dtype"]
    )
    run = descend(problem, options["eta"], options["steps"], record="log")
    share = run["patch_association"]
    data: dict[str, Any] = {
        name: run[name].tolist() for name in ("test_error", "cosine", "patch_association")
    }
    data |= {"steps": run.steps.tolist(), "sets": partition.labels.tolist()}
    data |= {"A": run["A"][-1].tolist(), "bayes_error": float(run["bayes_error"][-1])}
    data["outcome"] = str(run.outcome)
    failure = f" The run: {run.outcome}." if run.outcome.failed else ""
    law = stated(parameters, "D", "C", "d", "q", "omega")
    caption = (
        f"Figure 4. The realistic problem (E), one run: {law}, N={run.settings['samples']:,}, "
        f"gradient descent with eta={run.settings['eta']}, {run.steps[-1]:,} steps (time "
        f"{run.time[-1]:g}), seed {request.seed}. From left to right: pairs of patches in a common "
        f"set; A at the end, without its diagonal; test error on {run.settings['test_samples']:,} "
        f"fresh samples, {run['test_error'][-1]:.4f} at the end; cosine of v and w*, "
        f"{run['cosine'][-1]:.3f} at the end. Patch association: {share[-1]:.0%} of the rows."
        f"{failure}"
    )
    axes = pictures.association(data)
    more = {"samples": options["samples"], "eta": options["eta"], "seed": request.seed}
    state(axes, system, parameters, *SHOWN, "sigma", "omega", **more)
    return Drawing(axes, data, caption)


def plane(system: System, request: FigureRequest) -> Drawing:
    """Phase planes: (gamma, rho) on alpha's slow manifold, (alpha, gamma).

    alpha relaxes in a time of 0.01 to 1, gamma and rho move over 1e2 to 1e7. In (gamma, rho) alpha
    is slaved and the plane is all there is; rho is not slaved to anything, so in (alpha, gamma) it
    follows the run itself. Options: ``plane`` (one of them, or both), ``time``, ``starts``,
    ``grid``: the number of cells along each side at the first look for nullclines; 0 takes 32, or
    8 where a gradient takes milliseconds.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    quick = {"plane": BOTH, "time": 1e5, "starts": 4, "grid": 0}
    options = request.options(quick, {"grid": 48, "starts": 8})
    name = str(options["plane"])
    if name not in (*PLANES, BOTH):
        refuse("plane", name, "is unknown", ", ".join((*PLANES, BOTH)), BOTH)
    parameters = request.make_parameters(system, D=16, C=4, q=0.5)
    problem = system.ReducedPopulation(parameters)
    exact = problem.settings["expectation"] == "exact"
    grid = options["grid"] or (GRID if exact else COARSE)
    results = [
        portrait(problem, options["time"], pair, starts=options["starts"], grid=grid)
        for pair in (PLANES.values() if name == BOTH else [PLANES[name]])
    ]
    caption = (
        f"Phase planes of the reduced problem ({stated(parameters, *SHOWN)}), "
        f"runs of the whole problem to time {options['time']:g}. "
        f"{' '.join(map(sentence, results))}"
    )
    axes = portraits(results, SHOWN)
    return Drawing(axes, {"-".join(each.plane): summary(each) for each in results}, caption)
