"""What Section 6 says of real images, measured on the digits by small networks.

By default 500 steps; thorough is the protocol of the figure ``images``. One learning rate is one
case: what it contradicts is not decided.
"""

from __future__ import annotations

from dynamics.images import protocol
from dynamics.images.networks import CONTROL, POSITIONAL, VANILLA
from dynamics.images.protocol import Estimate
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.images import ERRORS, measured_on_images
from dynamics.verdicts.positional_attention import real_images
from dynamics.verdicts.positional_attention.real_images import Plan, Trials, name_of
from dynamics.verdicts.study import Measurement, Study, measures
from dynamics.verdicts.wording import counted, listed

SMALL = 0.02
"""Spread of the positions at the start from which association is looked for."""
LEVEL = 0.01
"""P-value over all seeds below which there is association."""
DEFICIT = 0.03
"""Accuracy by which positional attention is worse on ImageNet, which the paper calls competing."""
QUICK_STEPS = (250, 500)
SINGLE = ("step size",)
POINTS = "points ± s.e."


def _trials(study: Study) -> Trials:
    """The runs that all claims on images share."""
    seeds = tuple(study.seeds(real_images.SEEDS, real_images.SEEDS))
    steps = real_images.STEPS if study.thorough else QUICK_STEPS
    return measured_on_images(study, real_images.train_once, Plan(steps=steps, seeds=seeds))


def _made(trials: Trials) -> str:
    plan = trials.plan
    return f"{counted(len(plan.seeds), 'seed')}, {plan.steps[-1]:,} steps, digits"


def _curve(study: Study, label: str, estimates: list[Estimate]) -> None:
    """Add a curve of means over seeds, in points of accuracy, with their standard errors."""
    means = [100 * each.mean for each in estimates]
    errors = [100 * each.error for each in estimates]
    study.curve(label, _trials(study).plan.steps, means, errors)


def _association(study: Study, moved: bool, as_shuffled: bool) -> tuple[Trials, dict[str, float]]:
    """P-values over all seeds of both kinds of attention from the small start, in the table."""
    trials = _trials(study)
    p_values = {}
    for kind in (VANILLA, POSITIONAL):
        name = name_of(kind, SMALL)
        series = [
            trials.p_values(name, moved, "gram", record, as_shuffled)
            for record in range(len(trials.plan.records))
        ]
        p_values[kind] = protocol.combined_p_value(series[-1])
        study.curve(f"{kind}{', as shown' if as_shuffled else ''}", trials.plan.records[1:],
                    [protocol.combined_p_value(values) for values in series[1:]])  # fmt: skip
        study.row({"attention": kind, "shuffled": moved, "as shown": as_shuffled},
                  p_start=protocol.combined_p_value(series[0]), p_end=p_values[kind],
                  p_seeds=series[-1])  # fmt: skip
    study.draw("steps", "p-value of association, all seeds", {f"{LEVEL:g}": LEVEL})
    return trials, p_values


@measures("largest p-value that neighbours have more similar positions", "<", LEVEL, single=SINGLE)
def figure_1a(study: Study) -> Finding:
    """Neighbours against others in the Gram matrix of learned positions."""
    trials, p_values = _association(study, moved=False, as_shuffled=False)
    starts = listed(study.column("p_start"), 2)
    other = name_of(VANILLA, max(trials.plan.spreads))
    large = protocol.combined_p_value(trials.p_values(other, False, "gram"))
    reason = (
        f"p-values over {_made(trials)}: vanilla {p_values[VANILLA]:.2g}, positional "
        f"{p_values[POSITIONAL]:.2g}, before training {starts}; where positions start at spread "
        f"{max(trials.plan.spreads):g} they hardly move, and vanilla has {large:.2g}"
    )
    return study.conclude(max(p_values.values()), reason)


@measures("largest p-value that original neighbours are associated", "<", LEVEL, single=SINGLE)
def figure_5c(study: Study) -> Finding:
    """Neighbours of the original image and of the shuffled one, in networks on shuffled pixels."""
    _, shuffled = _association(study, moved=True, as_shuffled=True)
    trials, original = _association(study, moved=True, as_shuffled=False)
    least = min(shuffled.values())
    reason = (
        f"p-values over {_made(trials)}, on shuffled pixels: neighbours of the original image "
        f"vanilla {original[VANILLA]:.2g}, positional {original[POSITIONAL]:.2g}; neighbours of "
        f"the image as shown {shuffled[VANILLA]:.2g} and {shuffled[POSITIONAL]:.2g}"
    )
    also = Measurement("least p-value that shown neighbours are associated", least, ">=", LEVEL)
    return study.conclude(max(original.values()), reason, also)


@measures("drop of the convolution by shuffling, in standard errors", ">", ERRORS, single=SINGLE)
def figure_5a(study: Study) -> Finding:
    """Accuracy on original minus that on shuffled pixels, in pairs of one seed."""
    trials = _trials(study)
    last, drops = trials.plan.steps[-1], {}
    for name in trials.names:
        pairs = [((name, False), (name, True), steps) for steps in trials.plan.steps]
        drops[name] = trials.difference(*pairs[-1])
        _curve(study, name, [trials.difference(*pair) for pair in pairs])
        study.row({"network": name}, drop=drops[name].mean, standard_error=drops[name].error,
                  errors=drops[name].errors)  # fmt: skip
    study.draw("steps", f"drop of accuracy by shuffling ({POINTS})", {"0": 0.0}, y_scale="linear")
    others = [drop for name, drop in drops.items() if name != CONTROL]
    attention = max(abs(drop.errors) for drop in others)
    words = "; ".join(f"{name} {drop}" for name, drop in drops.items())
    also = Measurement(
        "drop of a transformer by shuffling, in standard errors", attention, "<", ERRORS
    )
    reason = f"drop of the accuracy over {_made(trials)}: {words}"
    convolution, most = drops[CONTROL], max(drop.upper for drop in others)
    if study.met(convolution.errors) and also.met and not most < convolution.mean:
        reason += f"; with these seeds a transformer may drop by {most:.3f} (95 %), no less"
        return study.conclude(convolution.errors, reason, holds=None, missing="trials", steps=last)
    return study.conclude(convolution.errors, reason, also, steps=last)


@measures("largest accuracy of vanilla minus positional attention", "<=", DEFICIT, single=SINGLE)
def figure_7(study: Study) -> Finding:
    """The gap between both attentions on original pixels, in pairs of one seed."""
    trials = _trials(study)
    plan, last = trials.plan, {}
    for spread in plan.spreads:
        vanilla, positional = ((name_of(kind, spread), False) for kind in (VANILLA, POSITIONAL))
        gaps = [trials.difference(vanilla, positional, steps) for steps in plan.steps]
        last[spread] = gaps[-1]
        _curve(study, f"start {spread:g}", gaps)
        for steps, gap in zip(plan.steps, gaps, strict=True):
            study.row({"start": spread, "steps": steps}, gap=gap.mean, standard_error=gap.error)
    levels = {"3 points": 100 * DEFICIT}
    study.draw("steps", f"vanilla - positional, accuracy ({POINTS})", levels, y_scale="linear")
    words = "; ".join(f"start {spread:g}: {gap}" for spread, gap in last.items())
    reason = f"vanilla minus positional over {_made(trials)}: {words}"
    largest = max(gap.mean for gap in last.values())
    low, high = max(gap.lower for gap in last.values()), max(gap.upper for gap in last.values())
    if low <= DEFICIT < high:
        reason += f"; with these seeds it is between {low:.3f} and {high:.3f} (95 % each)"
        return study.conclude(largest, reason, holds=None, missing="trials")
    return study.conclude(largest, reason)
