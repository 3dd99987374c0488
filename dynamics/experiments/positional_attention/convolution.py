r"""Figure 2: Gaussian patches, labels of a cubic convolution; which models fit, which associate.

The paper: "ViTs do not always learn patch association" without the spatial structure of the data,
shown by P^T P of a model that fits. With :math:`z_\ell = \sum_{i \in S_\ell} \langle w^\star,
X_i\rangle` the label is the sign of :math:`\sum_\ell z_\ell^3`, and (T) with p = 3 represents it in
many ways: one row of A for each set is enough. What is learned is a matter of parametrization and
optimizer, so each is drawn as what it is:

- (T), A free, Adam: fits; few rows associate (one specialist row a set);
- A = P^T P, Adam: fits, and associates;
- (T), A free, gradient descent: stays with the linear rule sign(sum of all z), not associated.

Adam is at its end after some thousand full-batch steps, which is the default (about 25 s a run on
one core); ``thorough`` goes on to 100,000 with three seeds, about half an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.positional_attention.adam import adam
from dynamics.experiments.positional_attention.patches import localised
from dynamics.experiments.positional_attention.pictures.convolution import panels
from dynamics.results.outcome import DIVERGED
from dynamics.systems.positional_attention.empirical.positional_encodings import GramEmpirical
from dynamics.systems.positional_attention.empirical.sampling import Convolution
from dynamics.training.gradient_descent import check_steps, descend
from dynamics.validation import integer

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory
    from theory.symmetry import Partition

QUICK = {
    "samples": 16_000,
    "seeds": 1,
    "adam_eta": 3e-3,
    "adam_steps": 10_000,
    "gd_eta": 0.02,
    "gd_steps": 20_000,
    "dtype": "float32",
}
THOROUGH = {"seeds": 3, "adam_steps": 100_000, "gd_steps": 45_000}
DRAWS = 1_000_000
RECORDS = 80


@dataclass(frozen=True)
class Case:
    """A parametrization and how it is trained.

    Attributes
    ----------
    name, label : str
    gram : bool
        A = P^T P; else (T), every off-diagonal entry of A.
    train : callable
        (problem, eta, steps, record) -> Trajectory.
    optimizer : str
        Which of the options ``<optimizer>_eta`` and ``<optimizer>_steps`` are its.
    """

    name: str
    label: str
    gram: bool
    train: Callable[..., Trajectory]
    optimizer: str


CASES = (
    Case("T_adam", "(T), $A$ free, Adam", False, adam, "adam"),
    Case("gram_adam", "$A = P^\\top P$, Adam", True, adam, "adam"),
    Case("T_gd", "(T), $A$ free, gradient descent", False, descend, "gd"),
)


@dataclass(frozen=True)
class Fit:
    """What one run of a case left.

    Attributes
    ----------
    steps : int array, shape (records,)
    test_error, patch_association : float array, shape (records,)
    matrix : float array, shape (D, D)
        A at the end.
    outcome : str
    diverged : bool
        Then the error is that before the divergence and counts for nothing.
    """

    steps: np.ndarray
    test_error: np.ndarray
    patch_association: np.ndarray
    matrix: np.ndarray
    outcome: str
    diverged: bool


def fit(system: System, case: Case, request: FigureRequest) -> Fit:
    """Train one case.

    Parameters
    ----------
    system : System
    case : Case
    request : FigureRequest
        Its ``parameters``, ``seed`` and options, as of Figure 2.
    """
    options = request.settled(QUICK, THOROUGH)
    parameters = request.law(system, omega=1e-3)
    law = Convolution(localised(parameters)[0])
    make = GramEmpirical if case.gram else system.FullEmpirical
    problem = make(parameters, options["samples"], request.seed, law=law, dtype=options["dtype"])
    steps = check_steps(options[f"{case.optimizer}_steps"])
    record = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(int))
    run = case.train(problem, options[f"{case.optimizer}_eta"], steps, record)
    last = run.final_state
    matrix = problem.matrix(last) if case.gram else problem.layout.part(last, "A")
    return Fit(
        run.steps,
        run["test_error"],
        run["patch_association"],
        matrix,
        str(run.outcome),
        run.outcome.kind == DIVERGED,
    )


def linear_error(partition: Partition, seed: int, draws: int = DRAWS) -> float:
    """Error of sign(Z), Z the sum of all values, from samples of the sums of the sets.

    Its standard error is 3e-4 at a million draws.
    """
    sizes = np.array([members.size for members in partition.sets])
    sums = np.random.default_rng(seed).standard_normal((draws, sizes.size)) * np.sqrt(sizes)
    return float((np.sign(sums.sum(axis=1)) != np.sign((sums**3).sum(axis=1))).mean())


def convolution(system: System, request: FigureRequest) -> Drawing:
    """Figure 2.

    Options: ``samples``, ``seeds`` (how many, from the request's on), ``adam_eta``,
    ``adam_steps``, ``gd_eta``, ``gd_steps``, ``dtype``. ``data``: ``linear_error``, ``sets``, and
    ``cases``: name -> a list, one entry a seed, of ``steps``, ``test_error``,
    ``patch_association``, ``A``, ``outcome``, ``diverged``.
    """
    options = request.settled(QUICK, THOROUGH)
    parameters = request.law(system, omega=1e-3)
    partition, columns = localised(parameters)
    seeds = range(request.seed, request.seed + integer("seeds", options["seeds"], at_least=1))
    fits = {
        case.name: [
            fit(system, case, FigureRequest(parameters, seed, request.options)) for seed in seeds
        ]
        for case in CASES
    }
    linear = linear_error(partition, request.seed)
    labels = {case.name: case.label for case in CASES}
    axes = panels(fits, labels, (partition.labels, columns), linear)
    data = {
        "linear_error": linear,
        "sets": partition.labels.tolist(),
        "cases": {name: [_plain(one) for one in made] for name, made in fits.items()},
    }
    return Drawing(axes, data, _caption(fits, parameters, options, linear))


def _plain(one: Fit) -> dict[str, Any]:
    return {
        "steps": one.steps.tolist(),
        "test_error": one.test_error.tolist(),
        "patch_association": one.patch_association.tolist(),
        "A": one.matrix.tolist(),
        "outcome": one.outcome,
        "diverged": one.diverged,
    }


def _caption(
    fits: dict[str, list[Fit]], parameters: Any, options: dict[str, Any], linear: float
) -> str:
    words = {case.name: case.label.replace("$", "").replace("\\top", "T") for case in CASES}
    found = []
    for name, made in fits.items():
        ends = [
            one.outcome
            if one.diverged
            else f"{one.test_error[-1]:.4f}, {one.patch_association[-1]:.0%}"
            for one in made
        ]
        found.append(f"{words[name]}: {'; '.join(ends)}")
    return (
        f"Figure 2. Gaussian patches in R^{parameters.d}, label the sign of a cubic convolution "
        f"over the sets; D = {parameters.D}, C = {parameters.C}, N = {options['samples']:,}, full "
        f"batch, {options['dtype']}; trained are the entries of A off its diagonal, or P. "
        f"Left: test error on 10,000 fresh samples against steps (Adam "
        f"{options['adam_steps']:,} at {options['adam_eta']:g}; gradient descent "
        f"{options['gd_steps']:,} at {options['gd_eta']:g}); the dotted line is the linear rule "
        f"sign(Z), {linear:.4f}. Upper right: the sets on the grid, and the pairs of patches in a "
        "common set. Lower right: A at the end for each parametrization, without its diagonal. "
        f"Test error and share of rows associated at the end, by seed: {'. '.join(found)}."
    )
