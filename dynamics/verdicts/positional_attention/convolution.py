r"""Figure 2: Gaussian patches with labels of a cubic convolution; which models fit and associate.

The paper finds that "ViTs do not always learn patch association" without spatial structure in the
data, from P^T P of a model that fits. The label is the sign of :math:`\sum_\ell z_\ell^3`, where
:math:`z_\ell` is the sum of <w*, X_i> over the patches i of set l. The paper's model (T) with p = 3
represents this label in many ways, because one row of A for each set suffices. The result therefore
depends on the parametrization and the update rule:

- With (T), free A and Adam the model fits; few rows associate (one specialist row for each set).
- With A = P^T P and Adam the model fits from most starts, and every row associates within some
  hundred steps. From other starts the model stays at the linear rule sign(Z) for 10,000 steps,
  where Z is the sum of all <w*, X_i>.
- With (T), free A and gradient descent the model stays at the linear rule, without association.

Adam moves every entry by about eta in each step, even if its gradient is small. A model therefore
fits with Adam where gradient descent would need too many steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.plotting import style
from dynamics.plotting.arrays import matrix_entries, number_patches, true_sets
from dynamics.results.outcome import DIVERGED, HORIZON
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Literal, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, state, stated
from dynamics.verdicts.positional_attention.figures import localised, patches
from dynamics.verdicts.wording import in_percent, share_of
from theory.papers.positional_attention.samples import Convolution
from theory.symmetry import Partition

QUICK = {
    "samples": 16_000, "seeds": 1, "gram_seeds": 8, "gram_steps": 10_000, "adam_eta": 3e-3,
    "adam_steps": 10_000, "gd_eta": 0.02, "gd_steps": 20_000, "dtype": "float32",
}  # fmt: skip
THOROUGH = {"seeds": 3, "gram_seeds": 24, "adam_steps": 100_000, "gd_steps": 45_000}
CLAIMED = QUICK | {"samples": 8000, "gram_steps": 1500, "adam_steps": 5000}
"""Options of the figure with which the claim is measured in less than half a minute."""
FITS = 0.5
"""A model fits if its error, divided by the error of sign(Z), is below this."""
DRAWS, RECORDS = 1_000_000, 80
LOOKS = {
    3: ((style.BLUE, "-"), (style.VERMILION, "-"), (style.GREEN, "--")),
    4: ((style.BLUE, "-"), (style.VERMILION, "-"), (style.ORANGE, "-."), (style.GREEN, "--")),
}
"""Number of kinds of runs -> colour and dash of each kind."""


class Kind(NamedTuple):
    """A parametrization, A = P^T P (``gram``) or all entries of A free, with an update rule."""

    label: str
    gram: bool
    rule: str


KINDS = {
    "T_adam": Kind("(T), $A$ free, Adam", False, "adam"),
    "gram_adam": Kind("$A = P^\\top P$, Adam", True, "adam"),
    "T_gd": Kind("(T), $A$ free, gradient descent", False, "gd"),
}


def fit(
    system: System, name: str, parameters: Any, seed: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Train a model of one kind; return an entry of the data ``cases`` of the figure `convolution`.

    `name`: name of the kind in `KINDS`; `options`: options of Figure 2. The entry's ``associated``
    is True if every row is associated at the end.
    """
    kind, law = KINDS[name], Convolution(localised(parameters)[0])
    given = {"law": law, "dtype": options["dtype"], "feature": "random"}
    make: Any = GramEmpirical if kind.gram else system.FullEmpirical
    problem = make(parameters, options["samples"], seed, **given)
    eta, steps = options[f"{kind.rule}_eta"], options[f"{'gram' if kind.gram else kind.rule}_steps"]
    record = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(int))
    run = descend(problem, eta, steps, kind.rule, record=record)
    share = run["patch_association"]
    return {
        "seed": seed, "steps": run.steps.tolist(), "test_error": run["test_error"].tolist(),
        "patch_association": share.tolist(), "A": problem.matrices(run.states[-1:])[0].tolist(),
        "associated": bool(share[-1] == 1.0 and run.outcome.kind == HORIZON),
        "outcome": str(run.outcome), "diverged": run.outcome.kind == DIVERGED,
    }  # fmt: skip


def linear_error(partition: Partition, seed: int, draws: int = DRAWS) -> float:
    """Error of the rule sign(Z), with the sum Z of all values, by draws (standard error 3e-4)."""
    sizes = np.array([members.size for members in partition.sets])
    sums = np.random.default_rng(seed).standard_normal((draws, sizes.size)) * np.sqrt(sizes)
    return float((np.sign(sums.sum(axis=1)) != np.sign((sums**3).sum(axis=1))).mean())


@claim(
    "Figure 2", "largest share of rows associated, A free, Adam", "<=", 0.5, laws=None,
    varies=("seed",), again=False,
    also=(Also("of_linear", "<", FITS, "test error over that of sign(Z), A free"),),
    literal=Literal(
        "without", ">=", 1.0, "share of seeds that fit and do not associate, A = P^T P",
        "{gram}: what fits associates",
    ),
    words="N={samples:,}, A free: test error {error:.4f} (sign(Z) {linear:.4f}), {value:.0%} of "
    "the rows associated after {steps:,} steps",
    picture=Picture("steps of Adam", "test error"),
)  # fmt: skip
def figure_2(case: Case) -> dict[str, Any]:
    """Error and association of models trained on Gaussian patches, A free and A = P^T P."""
    parameters = case.system.Parameters(D=16, C=4, omega=1e-3)
    linear = linear_error(localised(parameters)[0], case.seed)
    seeds = {"T_adam": 3 if case.thorough else 1, "gram_adam": 24 if case.thorough else 3}
    options = QUICK if case.thorough else CLAIMED
    free, gram = (
        [fit(case.system, name, parameters, case.seed + k, options) for k in range(count)]
        for name, count in seeds.items()
    )
    fitted = [run for run in gram if run["test_error"][-1] < FITS * linear]
    error = max(run["test_error"][-1] for run in free)
    return {
        "value": max(run["patch_association"][-1] for run in free), "error": error,
        "of_linear": error / linear, "linear": linear, "samples": options["samples"],
        "steps": options["adam_steps"], "gram": _by_share(gram),
        "without": sum(not run["associated"] for run in fitted) / len(gram),
        "curves": {kind.label: (run["steps"][1:], run["test_error"][1:])
                   for kind, run in zip(KINDS.values(), (free[0], gram[0]), strict=False)},
    }  # fmt: skip


def _end(run: Mapping[str, Any]) -> str:
    if run["diverged"]:
        return str(run["outcome"])
    return f"{run['test_error'][-1]:.4f}, {run['patch_association'][-1]:.0%}"


def _by_share(runs: list[dict[str, Any]]) -> str:
    """Text on the seeds of A = P^T P: how many associate all rows or none, and their errors."""
    there = [run["test_error"][-1] for run in runs if run["associated"]]
    words = f"A = P^T P, Adam: {len(there)} of {len(runs)} seeds associate every row, "
    words += in_percent(len(there), len(runs))
    if there:
        words += f", with errors {min(there):.4f} to {max(there):.4f}"
    others = [f"{run['seed']} ({_end(run)})" for run in runs if not run["associated"]]
    return words + (f"; the others are seeds {', '.join(others)}" if others else "")


def convolution(system: System, request: FigureRequest) -> Drawing:
    """Figure 2: test error, sets, and learned A of each kind of model.

    Options: ``samples``, ``seeds`` (number, starting at the request's), ``gram_seeds`` and
    ``gram_steps`` (for A = P^T P), ``adam_eta``, ``adam_steps``, ``gd_eta``, ``gd_steps``,
    ``dtype``. The data are ``linear_error``, ``sets``, ``associated`` (share of seeds of A = P^T P
    and its 95 % interval), and ``cases``: name -> a dict for each seed with ``seed``, ``steps``,
    ``test_error``, ``patch_association``, ``associated``, ``A``, ``outcome``, ``diverged``.
    """
    options = request.options(QUICK, THOROUGH)
    parameters = request.make_parameters(system, omega=1e-3)
    partition, columns = localised(parameters)
    fits = {
        name: [
            fit(system, name, parameters, seed, options)
            for seed in request.seeds(options["gram_seeds" if kind.gram else "seeds"])
        ]
        for name, kind in KINDS.items()
    }
    gram = fits["gram_adam"]
    data = {"sets": partition.labels.tolist(), "cases": fits}
    data["linear_error"] = linear_error(partition, request.seed)
    data["associated"] = share_of(sum(run["associated"] for run in gram), len(gram))
    axes = _picture(data, looks(fits), columns)
    state(axes, system, parameters, "D", "C", "p", "nu", "beta", "omega")
    return Drawing(axes, data, _caption(data, parameters, options))


def looks(fits: Mapping[str, list[dict[str, Any]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Label and runs for each line style; runs of A = P^T P are split by their association."""
    groups = []
    for name, kind in KINDS.items():
        for words, associated in (("associated", True), ("not associated", False)):
            runs = [run for run in fits[name] if run["associated"] is associated]
            count = f":\n{len(runs)} of {len(fits[name])} seeds {words}" if kind.gram else ""
            shown = runs if kind.gram else fits[name] * associated
            groups += [(f"{kind.label}{count}", shown)] if shown else []
    return groups


def _caption(data: Mapping[str, Any], parameters: Any, options: Mapping[str, Any]) -> str:
    plain = "; ".join(
        f"{KINDS[name].label.replace('$', '')}: {'; '.join(map(_end, data['cases'][name]))}"
        for name in ("T_adam", "T_gd")
    )
    return (
        f"Figure 2. Gaussian patches in R^{parameters.d}, label the sign of a cubic convolution "
        f"over the sets; {stated(parameters, 'D', 'C')}, N={options['samples']:,}, full batch, "
        f"{options['dtype']}. Left: test error (Adam {options['adam_steps']:,} steps at "
        f"{options['adam_eta']:g}, of P {options['gram_steps']:,}; gradient descent "
        f"{options['gd_steps']:,} at {options['gd_eta']:g}); dotted: sign(Z), "
        f"{data['linear_error']:.4f}. A is of the first seed of each kind. Test error and share of "
        f"rows associated at the end, by seed: {plain}. {_by_share(data['cases']['gram_adam'])}."
    )


def _picture(data: Mapping[str, Any], kinds: Sequence[tuple[str, list[Any]]], columns: int) -> Any:
    matrices = [f"A{k}" for k in range(len(kinds))]
    layout = [["error", "grid", "sets", *["legend"] * (len(kinds) - 2)], ["error", *matrices]]
    sets, ratios = np.array(data["sets"]), (1.7, *(1.0 for _ in kinds))
    with mpl.rc_context(style.RC):
        width = 4.1 + 2.1 * len(kinds)
        figure, named = style.new_mosaic(width, 5.0, layout, width_ratios=ratios)
        panel = named["error"]
        for (label, runs), (colour, dash) in zip(kinds, LOOKS[len(kinds)], strict=True):
            for k, run in enumerate(runs):
                steps, error = np.array(run["steps"]), np.array(run["test_error"])
                visible = (steps > 0) & (error > 0)
                look: dict[str, Any] = {"lw": 0.9} if k else {"lw": 1.6, "label": label}
                panel.plot(steps[visible], error[visible], dash, color=colour, **look)
                if run["diverged"]:
                    panel.plot(steps[-1], error[-1], "x", color=colour, ms=9)
        linear: dict[str, Any] = {"color": style.GREY, "lw": 1.0, "ls": ":"}
        panel.axhline(data["linear_error"], label="linear rule, sign($Z$)", **linear)
        style.logarithmic(panel)
        panel.set(xscale="log", xlabel="steps", ylabel="test error (share of samples)")
        named["legend"].axis("off")
        named["legend"].legend(*panel.get_legend_handles_labels(), loc="center", fontsize=8)
        patches(named["grid"], sets, columns)
        named["grid"].set_title("sets on the grid of patches", fontsize=9)
        true_sets(named["sets"], sets)
        number_patches(named["sets"], len(sets))
        learned = [np.array(run["A"]) for _, (run, *_) in kinds]
        matrix_entries(figure, [named[name] for name in matrices], learned)
        for name, (label, (run, *_)) in zip(matrices, kinds, strict=True):
            share = f"seed {run['seed']}: {run['patch_association'][-1]:.0%} associated"
            words = f"{label.partition(':')[0]}\n{'diverged' if run['diverged'] else share}"
            named[name].set_title(words, fontsize=8)
    return np.array([named[name] for name in ("error", "grid", "sets", *matrices)])
