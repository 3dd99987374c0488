r"""Figure 2: Gaussian patches, labels of a cubic convolution; which models fit, which associate.

The paper: "ViTs do not always learn patch association" without the spatial structure of the data,
by P^T P of a model that fits. With :math:`z_\ell = \sum_{i \in S_\ell} \langle w^\star,
X_i\rangle` the label is the sign of :math:`\sum_\ell z_\ell^3`, and (T) with p = 3 represents it in
many ways: one row of A for each set is enough. What is learned is a matter of parametrization and
optimizer, so each case is in the figure by itself:

- (T), A free, Adam: fits; few rows associate (one specialist row a set);
- A = P^T P, Adam: from most starts it fits and every row associates, within some hundred steps;
  from the others it stays with the linear rule sign(sum of all z) for 10,000 steps;
- (T), A free, gradient descent: stays with the linear rule, not associated.

What A = P^T P learns is a matter of the seed, so the figure has its share of seeds with an
interval, and both kinds: 8 seeds by default, 24 if ``thorough`` (of seeds 0 to 23, 17 associate).
Its runs end after 10,000 steps, which take 15 s on one core. Adam on A free is at its end after
some thousand full-batch steps too, which is the default (about 25 s a run); ``thorough`` goes on to
100,000 with three seeds, about half an hour.

Adam is algorithm 1 of Kingma and Ba (2015) with the averages of its paper, full batch:

.. math::
   m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
   s_t = \beta_2 s_{t-1} + (1 - \beta_2) g_t^2, \qquad
   \theta_t = \theta_{t-1} - \eta\,
   \frac{m_t / (1 - \beta_1^t)}{\sqrt{s_t / (1 - \beta_2^t)} + \epsilon}

Every entry moves by about eta a step however small its gradient is, so Adam finds structure for
which gradient descent has no time; no event of the paper is defined along it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamics.problem import FloatArray, Problem
from dynamics.results.outcome import DIVERGED, HORIZON, INTERRUPTED, Outcome
from dynamics.training.descent import descend
from dynamics.training.progress import interruption
from dynamics.validation import integer, real
from dynamics.verdicts.figure import Drawing, FigureRequest, state, stated
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention import pictures
from dynamics.verdicts.positional_attention.gram import GramEmpirical
from dynamics.verdicts.study import Measurement, Study, measures
from dynamics.verdicts.wording import in_percent, share_of
from theory.papers.positional_attention.samples import Convolution
from theory.symmetry import Partition

if TYPE_CHECKING:
    from dynamics.results.trajectory import Trajectory
    from dynamics.system import System

QUICK = {
    "samples": 16_000,
    "seeds": 1,
    "gram_seeds": 8,
    "gram_steps": 10_000,
    "adam_eta": 3e-3,
    "adam_steps": 10_000,
    "gd_eta": 0.02,
    "gd_steps": 20_000,
    "dtype": "float32",
}
THOROUGH = {"seeds": 3, "gram_seeds": 24, "adam_steps": 100_000, "gd_steps": 45_000}
FITS = 0.5
"""Share of the error of sign(Z) below which a model fits."""
DRAWS = 1_000_000
RECORDS = 80
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Case(NamedTuple):
    """A parametrization and how it is trained."""

    label: str
    gram: bool
    """A = P^T P; else (T), every off-diagonal entry of A."""
    optimizer: str
    """``"adam"`` or ``"gd"``."""


CASES = {
    "T_adam": Case("(T), $A$ free, Adam", False, "adam"),
    "gram_adam": Case("$A = P^\\top P$, Adam", True, "adam"),
    "T_gd": Case("(T), $A$ free, gradient descent", False, "gd"),
}


class Fit(NamedTuple):
    """A run of Adam: what `fit` needs of a `Trajectory`.

    Of a run that diverged the last record is before the divergence.
    """

    steps: np.ndarray
    """Int array, shape (records,)."""
    states: FloatArray
    """Shape (records, entries)."""
    observables: Mapping[str, FloatArray]
    """Name -> shape (records,)."""
    outcome: Outcome


def adam(problem: Problem, eta: float, steps: int, record: Iterable[int] = ()) -> Fit:
    """Train with Adam, full batch.

    Parameters
    ----------
    problem : Problem
    eta : float
        Learning rate.
    steps : int
    record : iterable of int
        Steps to record beside the first and the last.

    Returns
    -------
    Fit
        A run whose next state, or mean square, is not finite ends as diverged at its last finite
        state.
    """
    eta, steps = real("eta", eta, above=0.0), integer("steps", steps, at_least=1)
    state = problem.initial_state
    mean, square = np.zeros_like(state), np.zeros_like(state)
    states, step, kind, due = {0: state}, 0, HORIZON, {steps, *record}
    with interruption() as interrupted, np.errstate(all="ignore"):
        while step < steps:
            if interrupted.is_set():
                kind = INTERRUPTED
                break
            gradient = problem.gradient(state)
            mean = BETA_1 * mean + (1 - BETA_1) * gradient
            square = BETA_2 * square + (1 - BETA_2) * gradient**2
            root = np.sqrt(square / (1 - BETA_2 ** (step + 1)))
            after = state - eta * (mean / (1 - BETA_1 ** (step + 1))) / (root + EPSILON)
            # Where the mean square is infinite the update is 0: such a run has diverged too.
            if not (np.isfinite(after).all() and np.isfinite(root).all()):
                kind = DIVERGED
                break
            state, step = after, step + 1
            if step in due:
                states[step] = state
        states[step] = state
        rows = [problem.observables(recorded) for recorded in states.values()]
    remedy = f"eta={eta:g} is too large; try eta={eta / 4:.2g}" if kind == DIVERGED else ""
    return Fit(
        np.array(list(states)),
        np.array(list(states.values())),
        {name: np.array([row[name] for row in rows]) for name in rows[0]},
        Outcome(kind, step, step * eta, remedy),
    )


def fit(
    system: System, case: Case, parameters: Any, seed: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Train one case.

    Parameters
    ----------
    system : System
    case : Case
    parameters : Parameters
    seed : int
    options : mapping
        Of Figure 2.

    Returns
    -------
    dict
        One entry of ``cases``, see `convolution`; ``associated``: whether every row is, at the end.
    """
    law = Convolution(pictures.localised(parameters)[0])
    make = GramEmpirical if case.gram else system.FullEmpirical
    given = {"law": law, "dtype": options["dtype"], "feature": "random"}
    problem = make(parameters, options["samples"], seed, **given)
    eta = options[f"{case.optimizer}_eta"]
    steps = options["gram_steps" if case.gram else f"{case.optimizer}_steps"]
    record = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(int))
    train: Callable[..., Fit | Trajectory] = adam if case.optimizer == "adam" else descend
    run = train(problem, eta, steps, record=record)
    last = run.states[-1]
    matrix = problem.matrices(last[None])[0]
    share = run.observables["patch_association"]
    return {
        "seed": seed,
        "steps": run.steps.tolist(),
        "test_error": run.observables["test_error"].tolist(),
        "patch_association": share.tolist(),
        "associated": bool(share[-1] == 1.0 and run.outcome.kind == HORIZON),
        "A": np.asarray(matrix).tolist(),
        "outcome": str(run.outcome),
        "diverged": run.outcome.kind == DIVERGED,
    }


def linear_error(partition: Partition, seed: int, draws: int = DRAWS) -> float:
    """Error of sign(Z), Z the sum of all values, from samples of the sums of the sets.

    Its standard error is 3e-4 at a million draws.

    Parameters
    ----------
    partition : Partition
    seed, draws : int
    """
    sizes = np.array([members.size for members in partition.sets])
    sums = np.random.default_rng(seed).standard_normal((draws, sizes.size)) * np.sqrt(sizes)
    return float((np.sign(sums.sum(axis=1)) != np.sign((sums**3).sum(axis=1))).mean())


def convolution(system: System, request: FigureRequest) -> Drawing:
    """Figure 2.

    Options: ``samples``, ``seeds`` (how many, from the request's on), ``gram_seeds`` and
    ``gram_steps`` (the same of A = P^T P), ``adam_eta``, ``adam_steps``, ``gd_eta``, ``gd_steps``,
    ``dtype``. ``data``: ``linear_error``, ``sets``, ``associated`` (of A = P^T P: the share of
    seeds and its interval, 95 %), and ``cases``: name -> a list, one entry a seed, of ``seed``,
    ``steps``, ``test_error``, ``patch_association``, ``associated``, ``A``, ``outcome``,
    ``diverged``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(QUICK, THOROUGH)
    parameters = request.make_parameters(system, omega=1e-3)
    partition, columns = pictures.localised(parameters)
    fits = {
        name: [
            fit(system, case, parameters, seed, options)
            for seed in request.seeds(options["gram_seeds" if case.gram else "seeds"])
        ]
        for name, case in CASES.items()
    }
    linear, gram = linear_error(partition, request.seed), fits["gram_adam"]
    data = {"linear_error": linear, "sets": partition.labels.tolist(), "cases": fits}
    data["associated"] = share_of(sum(run["associated"] for run in gram), len(gram))
    axes = pictures.convolution(data, kinds(fits), columns)
    state(axes, system, parameters, "D", "C", "p", "nu", "beta", "omega")
    return Drawing(axes, data, _caption(data, parameters, options))


def kinds(fits: Mapping[str, list[dict[str, Any]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Label and runs of what has one look: the seeds of A = P^T P by whether they associate.

    Parameters
    ----------
    fits : mapping
        ``cases`` of `convolution`.
    """
    groups = []
    for name, case in CASES.items():
        if not case.gram:
            groups.append((case.label, fits[name]))
            continue
        for words, associated in (("associated", True), ("not associated", False)):
            runs = [run for run in fits[name] if run["associated"] is associated]
            if runs:
                count = f"{len(runs)} of {len(fits[name])} seeds {words}"
                groups.append((f"{case.label}:\n{count}", runs))
    return groups


def _caption(data: Mapping[str, Any], parameters: Any, options: Mapping[str, Any]) -> str:
    ends = [
        _by_share(case, runs) if case.gram else f"{_plain(case)}: {'; '.join(map(_end, runs))}"
        for case, runs in zip(CASES.values(), data["cases"].values(), strict=True)
    ]
    return (
        f"Figure 2. Gaussian patches in R^{parameters.d}, label the sign of a cubic convolution "
        f"over the sets; {stated(parameters, 'D', 'C')}, N={options['samples']:,}, full "
        f"batch, {options['dtype']}; trained are the entries of A off its diagonal, or P. "
        f"Left: test error on 10,000 fresh samples against steps (Adam "
        f"{options['adam_steps']:,} at {options['adam_eta']:g}, with P^T P "
        f"{options['gram_steps']:,}; gradient descent {options['gd_steps']:,} at "
        f"{options['gd_eta']:g}); the dotted line is the linear rule sign(Z), "
        f"{data['linear_error']:.4f}. Upper right: the sets on the grid, and the pairs of patches "
        "in a common set. Lower right: A at the end, without its diagonal, of the first seed of "
        "each kind. "
        f"Test error and share of rows associated at the end, by seed: {'. '.join(ends)}."
    )


def _plain(case: Case) -> str:
    return case.label.replace("$", "").replace("\\top", "T")


def _end(run: Mapping[str, Any]) -> str:
    if run["diverged"]:
        return str(run["outcome"])
    return f"{run['test_error'][-1]:.4f}, {run['patch_association'][-1]:.0%}"


def _by_share(case: Case, runs: list[dict[str, Any]]) -> str:
    """How many seeds associate every row, with what error, and which do not."""
    there = [run["test_error"][-1] for run in runs if run["associated"]]
    others = [run for run in runs if not run["associated"]]
    words = f"{_plain(case)}: {len(there)} of {len(runs)} seeds associate every row, "
    words += in_percent(len(there), len(runs))
    if there:
        words += f", with errors {min(there):.4f} to {max(there):.4f}"
    if others:
        listed = ", ".join(f"{run['seed']} ({_end(run)})" for run in others)
        words += f"; the others are seeds {listed}"
    return words


@measures("largest share of rows associated, A free, Adam", "<=", 0.5, single=("seed",))
def figure_2(study: Study) -> Finding:
    """Whether a model that fits Gaussian patches associates: with A free, and with A = P^T P."""
    if study.parameters is not None:
        reason = "the patches of this figure are Gaussian: there are no parameters to set"
        raise Undecided(reason, "law")
    parameters, options = study.system.Parameters(D=16, C=4, omega=1e-3), QUICK
    linear = linear_error(pictures.localised(parameters)[0], study.seed)
    seeds = {"T_adam": study.seeds(1, 3), "gram_adam": study.seeds(3, 24)}
    fits = {
        name: [fit(study.system, CASES[name], parameters, seed, options) for seed in some]
        for name, some in seeds.items()
    }
    for name, runs in fits.items():
        for run in runs:
            error, share = run["test_error"][-1], run["patch_association"][-1]
            study.row({"case": name, "seed": run["seed"]}, test_error=error, association=share)
        study.curve(_plain(CASES[name]), runs[0]["steps"][1:], runs[0]["test_error"][1:])
    study.draw("steps of Adam", "test error", {"sign(Z)": linear})
    study.single = () if len(seeds["T_adam"]) > 1 else study.single
    gram = [(run["test_error"][-1] < FITS * linear, run["associated"]) for run in fits["gram_adam"]]
    as_written = sum(fitted and not associated for fitted, associated in gram)
    study.literal = Finding(
        as_written == len(gram), "share of seeds that fit and do not associate, A = P^T P",
        as_written / len(gram), 1.0, f"{_by_share(CASES['gram_adam'], fits['gram_adam'])}: what "
        "fits associates", relation=">=",
    )  # fmt: skip
    free = fits["T_adam"]
    largest = max(run["test_error"][-1] for run in free)
    worst = Measurement("test error over that of sign(Z), A free", largest / linear, "<", FITS)
    ends = "; ".join(map(_end, free))
    reason = f"test error and share of rows associated with A free: {ends} (sign(Z) {linear:.4f})"
    return study.conclude(max(run["patch_association"][-1] for run in free), reason, worst)
