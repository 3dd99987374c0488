"""Derivation of a model as a page: equal entries, data law, risk, one training step.

The printed risk and steps are read from the traced program that training runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import sympy

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.expressions import Expressions, exact_weights, rate_names, symbol
from dynamics.models.engine.first_integrals import first_integrals
from dynamics.models.engine.realization import Realization
from dynamics.validation import InvalidRequest
from theory.closure import DECLARED, Closure
from theory.closure.regime import PLAIN, Regime
from theory.law import select_samples
from theory.notation import latex_of
from theory.page import HandWritten, Page, Section
from theory.program.field import MAX_DENOMINATOR
from theory.program.symbolic import LONG
from theory.rendering import (
    BY_THE_FLOW,
    MOST_SCALARS,
    closure_sections,
    law_equations,
    multiplicities,
)
from theory.rule_page import SPELLED, rule_section
from theory.update_rules import GD, UpdateRule

MOST_WRITTEN = 5000
"""The page prints the formula of a risk with at most this number of operations."""
SHOWN_CLASSES = 6
STEP, GRADIENT = "Gradient descent", "Gradient of an entry of each scalar"
"""Headings of the page sections on a training step and on the gradient."""
Integrals = Sequence[tuple[sympy.Expr, float]]
"""First integrals of the gradient flow, with their values at the start."""
ByRule = Callable[[bool], Section] | None
"""Function that returns the page section of an update rule; its argument says whether gradients are
printed. None stands for gradient descent."""
MOST_EQUATIONS, MOST_STEPS, MOST_CONSERVED = 9, 4, 3
"""Maximum numbers of equations of a risk, of training steps and of conserved sums on the page of
`defining`."""


def page(
    definition: Definition,
    parameters: Any,
    eta: tuple[float, ...],
    eliminate: bool = False,
    rule: UpdateRule = GD,
    by_array: bool = False,
) -> Page:
    """Derivation of a model at some parameters.

    With `eliminate`, conserved linear combinations are substituted into risk and steps, or
    InvalidRequest is raised if training conserves none. `by_array` says whether arrays are trained
    in separate stages.
    """
    made, closure = definition.reduction(parameters, regime=Regime.of(rule, by_array))
    names = [made.entry_name(k) for k in range(closure.classes.labels.size)]
    constants = ", ".join(f"{name} = {value}" for name, value in made.constants.items())
    sections = [Section("Constants", (constants,))] if constants else []
    if not closure.scalars:
        return _page(made, closure, [*sections, *closure_sections(closure, names)])
    found, by_rule = _expressions(made, closure, eta, eliminate), _by_rule(rule, by_array)
    sections += closure_sections(closure, names, () if by_rule else _integrals(found))
    sections += [*_samples(made, closure), *_recursion(made, closure, eta, found, by_rule)]
    return _page(made, closure, sections)


def _by_rule(rule: UpdateRule, by_array: bool) -> ByRule:
    return None if rule.plain and not by_array else partial(rule_section, rule, by_array)


def _page(made: Realization, closure: Closure, sections: Sequence[Section]) -> Page:
    model, letters = made.model, (*made.shapes, *closure.names, *made.constants)
    spelled = SPELLED | {name: latex_of(name, made.shapes) for name in letters}
    return Page(model.title or model.name, model.source, tuple(sections), spelled)


def defining(
    definition: Definition,
    parameters: Any,
    eta: tuple[float, ...],
    rule: UpdateRule = GD,
    by_array: bool = False,
) -> Page:
    """Page with the defining equations of a model at some parameters: law, risk, one step."""
    made, closure = definition.reduction(parameters, regime=Regime.of(rule, by_array))
    if not closure.scalars:
        return _page(made, closure, [_law_of(made, closure)])
    found, by_rule = _expressions(made, closure, eta), _by_rule(rule, by_array)
    sections = [_law_of(made, closure, () if by_rule else _integrals(found))]
    sections += _risk_and_step(made, closure, eta, found, by_rule)
    return _page(made, closure, sections)


def _integrals(found: Expressions | str) -> Integrals:
    return () if isinstance(found, str) else first_integrals(found)


def _risk_and_step(
    made: Realization,
    closure: Closure,
    eta: tuple[float, ...],
    found: Expressions | str,
    by_rule: ByRule,
) -> Iterator[Section]:
    """Yield sections on the risk and a step; with a stop_gradient, also on the step's direction."""
    step = by_rule(False) if by_rule else _descent(made, closure, eta, MOST_STEPS)
    if isinstance(found, str):
        yield from (Section("Risk", (found,)), step)
        return
    more = f"{found.operations} operations; attdyn derive prints them"
    risk = field = Section("Risk", (more,))
    if found.operations <= LONG:
        risk, field, *_ = _written(found, MOST_STEPS, by_rule)
    yield risk if len(risk.equations) <= MOST_EQUATIONS else Section("Risk", (more,))
    if found.follows_a_field:
        long = not field.equations or len(field.equations) > MOST_EQUATIONS
        words = "a step follows no gradient of `R`; attdyn derive prints its direction"
        field = Section(GRADIENT if by_rule else STEP, (words,)) if long else field
        if by_rule:
            yield field
        step = by_rule(True) if by_rule else field
    yield step


def _law_of(made: Realization, closure: Closure, integrals: Integrals = ()) -> Section:
    """Section on the data law, the scalars of the closure, and conserved quantities."""
    if not made.program.has_law:
        words = "the population risk is given in closed form: nothing is sampled"
    elif closure.grade == DECLARED:
        words = closure.remarks[0]
    elif made.only_sampled:
        words = f"the law can only be sampled: its mean is over {closure.samples} draws"
    else:
        words = f"{closure.samples} samples, all of them enumerated"
        if closure.sample_classes != closure.samples:
            words += f"; on the scalars below they have {closure.sample_classes} different losses"
    if made.held_out is not None:
        words += f"; {made.held_out.size} samples of a held-out law, not used in training"
    conserved = tuple(
        f"training keeps `{text} = {law.value:.6g}`"
        for text, law in zip(closure.conserved, closure.laws, strict=True)
        if law.exact and law.degree == 1
    )
    said = (BY_THE_FLOW,) if integrals else ()
    return Section(
        "Data law and reduction",
        (words, closure.summary(), closure.proof, *conserved[:MOST_CONSERVED], *said),
        tuple(law_equations(integrals[:MOST_CONSERVED])),
    )


def _samples(made: Realization, closure: Closure) -> Iterator[Section]:
    groups = closure.sample_groups
    if groups is None or made.law is None:
        return
    weights = groups.summed(made.law.weights)
    fractions = exact_weights(weights)
    order = np.argsort(-weights, kind="stable")
    lines = [f"{groups.labels.size} samples, with {groups.count} different losses on these scalars"]
    for k in order[:SHOWN_CLASSES]:
        members = int((groups.labels == k).sum())
        sample = sample_text(select_samples(made.law.samples, int(groups.first[k])))
        simple = fractions[k].denominator <= MAX_DENOMINATOR
        chance = str(fractions[k]) if simple else f"{weights[k]:.6g}"
        lines.append(f"P = {chance}: {members} samples like {sample}")
    if groups.count > SHOWN_CLASSES:
        lines.append(f"and {groups.count - SHOWN_CLASSES} more")
    yield Section("Classes of samples", tuple(lines))


def _descent(made: Realization, closure: Closure, eta: tuple[float, ...], most: int) -> Section:
    """Section with the descent step of each scalar, or of a generic one for more than `most`."""
    sentences = []
    if made.only_sampled:
        sentences.append("`R` is the mean loss over the drawn samples")
    elif made.program.has_law:
        sentences.append("`R` is the mean loss over the law")
    several, rates = len(eta) > 1, rate_names(made, closure, eta)
    columns = zip(closure.names, closure.sizes, rates, strict=True)
    steps = [_step(made, name, count, rate) for name, count, rate in columns]
    if most < min(len(steps), MOST_SCALARS):
        sentences.append("`theta` is any of the scalars, `n(theta)` the number of its entries")
        if several:
            sentences.append("`eta` is the learning rate of the parameter group of `theta`")
        rates = ["eta"]
        right = r"\theta - \frac{\eta}{n(\theta)} \frac{\partial R}{\partial \theta}"
        left, any_of = HandWritten("theta'", r"\theta'"), "theta - eta/n(theta) * dR/dtheta"
        steps = [(left, HandWritten(any_of, right))]
    elif len(steps) > MOST_SCALARS:
        sentences.append(
            f"the steps of the first {MOST_SCALARS} of {len(steps)} scalars; a step subtracts from "
            "each scalar its derivative, times the learning rate over the number of its entries"
        )
    letters = (*_rates(made, eta, rates), ("R", "risk"), ("'", "the next step"))
    return Section(STEP, tuple(sentences), tuple(steps[:MOST_SCALARS]), (), letters)


def _expressions(
    made: Realization, closure: Closure, eta: tuple[float, ...], eliminate: bool = False
) -> Expressions | str:
    """Risk and steps as expressions, or a text with the reason why there are none."""
    try:
        return Expressions(made, closure, eta, eliminate)
    except InvalidRequest as error:
        if eliminate:
            raise
        return str(error)


def _recursion(
    made: Realization,
    closure: Closure,
    eta: tuple[float, ...],
    found: Expressions | str,
    by_rule: ByRule,
) -> Iterator[Section]:
    """Yield sections with the risk as a mean over the law and with one training step."""
    if isinstance(found, Expressions) and found.operations <= MOST_WRITTEN:
        if found.eliminated:
            words = "conserved combinations, substituted below"
            yield Section("Eliminated", (words,), tuple(found.eliminated.items()))
        yield from _written(found, MOST_SCALARS, by_rule)
        return
    if isinstance(found, Expressions):
        found = f"{found.operations} operations: too long for this page; --as python writes them"
    yield Section("Risk", (found,))
    yield by_rule(False) if by_rule else _descent(made, closure, eta, MOST_SCALARS)


def _written(found: Expressions, most: int, by_rule: ByRule) -> Iterator[Section]:
    """Yield sections with the risk and the steps of the first `most` scalars."""
    parts, risk, later, slopes = found.written(most)
    sentences, steps = [], []
    if found.operations > LONG:
        sentences.append(
            f"{found.operations} operations: repeated parts are named `t0`, `t1` and "
            "so on; --as python writes a function file"
        )
    yield Section("Risk", tuple(sentences), (*parts, (HandWritten("R", "R"), risk)))
    words = []
    if found.follows_a_field:
        words.append("the loss has stop_gradient: a step follows no gradient of `R`")
    if len(found.names) > most:
        those = "those" if by_rule else "the steps"
        words.append(f"{those} of the first {most} of {len(found.names)} scalars")
    for name, rate, slope in zip(found.names, found.rates, slopes, strict=False):
        letter = latex_of(name, found.made.shapes)
        left, right = HandWritten(f"{name}'", f"{letter}'"), symbol(name) - symbol(rate) * slope
        if by_rule:
            left, right = HandWritten(f"g({name})", f"g({letter})"), slope
        steps.append((left, right))
    if by_rule:
        yield Section(GRADIENT, tuple(words), (*later, *steps))
        yield by_rule(True)
        return
    letters = (*_rates(found.made, found.eta, found.rates), ("'", "the next step"))
    yield Section(STEP, tuple(words), (*later, *steps), (), letters)


def _rates(
    made: Realization, eta: tuple[float, ...], rates: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of the letter of a learning rate and its meaning."""
    groups = list(dict.fromkeys(made.group_of_arrays().values()))
    meanings = {"eta": "learning rate"}
    for group, rate in zip(groups, eta if len(eta) > 1 else (), strict=False):
        meanings[f"eta_{group}"] = f"learning rate of {group}, {rate:g}"
    return ((letter, meanings[letter]) for letter in dict.fromkeys(rates))


def _step(made: Realization, name: str, count: int, eta: str) -> tuple[HandWritten, HandWritten]:
    """Both sides of a step of gradient descent on a scalar that `count` entries share."""
    letter, share = latex_of(name, made.shapes), "" if count == 1 else f"/{count}"
    rate = latex_of(eta) if count == 1 else rf"\frac{{{latex_of(eta)}}}{{{count}}}"
    right = rf"{letter} - {rate} \frac{{\partial R}}{{\partial {letter}}}"
    return HandWritten(f"{name}'", f"{letter}'"), HandWritten(
        f"{name} - {eta}{share} * dR/d{name}", right
    )


def sample_text(sample: Any) -> str:
    """One-line text of a sample, with rounded numbers."""
    if isinstance(sample, Mapping):
        text = ", ".join(f"{name} {sample_text(part)}" for name, part in sample.items())
    elif isinstance(sample, tuple):
        text = ", ".join(map(sample_text, sample))
    else:
        text = np.array2string(np.asarray(sample), precision=4, separator=" ", threshold=40)
    text = " ".join(text.split())
    return text if len(text) < 120 else text[:117] + "..."


def size_table(
    definition: Definition,
    grids: Mapping[str, Sequence[int]],
    others: Mapping[str, Any],
    regime: Regime = PLAIN,
) -> Section:
    """Section with the number of entries of each scalar as a polynomial in the varied constants.

    `grids` has the values of each varied constant, `others` the values of fixed constants. Raises
    InvalidRequest if the model can be realized at fewer than two sizes.
    """
    names = list(grids)
    where = {
        values: ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        for values in product(*grids.values())
    }
    closures: dict[tuple[int, ...], Closure] = {}
    left_out: list[str] = []
    for values, point in where.items():
        try:
            sized = definition.Parameters(**{**others, **dict(zip(names, values, strict=True))})
            closures[values] = definition.closure(sized, regime=regime)
        except ValueError as error:
            left_out.append(f"{point} is left out: {str(error).splitlines()[0][:120]}")
    if len(closures) < 2:
        raise InvalidRequest(f"sizes: fewer than two are possible; {'; '.join(left_out)}")
    lines = []
    sizes: dict[str, dict[tuple[int, ...], int]] = {}
    for values, closure in closures.items():
        own = list(zip(closure.names, closure.sizes, strict=True))
        for name, count in own:
            sizes.setdefault(name, {})[values] = count
        listed = ", ".join(f"{name} {count}" for name, count in own)
        lines.append(f"{where[values]}: {closure.scalars} of {closure.entries} ({listed})"[:160])
    counts = {values: closure.scalars for values, closure in closures.items()}
    number, checks = multiplicities(counts, names)
    if number is None:
        fewer = [where[values] for values, count in counts.items() if count < max(counts.values())]
        often = "has fewer scalars than other sizes, perhaps by coincidence"
        lines += [f"{point} {often}" for point in fewer]
    elif len(set(counts.values())) > 1:
        lines.append(f"the number of scalars is {number}, with {checks} of the sizes as a check")
    rows: list[tuple[Any, Any]] = []
    for name, sizes_of in sizes.items():
        polynomial, checks = multiplicities(sizes_of, names)
        if polynomial is None:
            lines.append(f"{name}: {len(sizes_of)} sizes do not determine a polynomial")
        else:
            rows.append((HandWritten(f"n({name})", f"n({latex_of(name)})"), polynomial))
            lines.append(f"n({name}) fits all {len(sizes_of)} sizes, {checks} of them as a check")
    return Section("Multiplicities over sizes", (*lines, *left_out), tuple(rows))
