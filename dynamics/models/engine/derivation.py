r"""The derivation of a model: its traced loss on the scalars, read into sympy, as a page.

The jaxpr of the loss restricted to the closed space is read by `theory.tracing`; real constants
and, where the loss is small, the entries of the sample are symbols, else the numbers of one sample
of the largest probability. Derivatives are sympy's, of that expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import sympy

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.loss_expression import (
    RENAMED,
    are_trained_by,
    sample_text,
    written_loss,
)
from dynamics.models.engine.realization import Realization, Walk
from dynamics.models.engine.shared_parts import shared_parts
from dynamics.validation import InvalidRequest
from theory.closure import Closure
from theory.law import select_samples
from theory.notation import latex_of
from theory.page import HandWritten, Page, Section
from theory.rendering import MOST_SCALARS, closure_sections, multiplicities

LONGEST = 2400
"""Characters of an expression up to which it is written out."""
SHOWN_CLASSES = 6
MOST_EQUATIONS, MOST_STEPS, MOST_CONSERVED = 9, 4, 3
"""Equations of a loss, steps, and conserved sums on the page of `defining`."""


def page(definition: Definition, parameters: Any, walk: Walk) -> Page:
    """The derivation of a model at some parameters.

    Parameters
    ----------
    definition : Definition
    parameters : Parameters
    walk : Walk
        The run along which the closure is checked.
    """
    made = definition.realization(parameters)
    closure = made.closure(walk)
    names = [made.entry_name(k) for k in range(closure.entries)]
    constants = ", ".join(f"{name} = {value}" for name, value in made.constants.items())
    sections = [Section("Constants", (constants,))] if constants else []
    sections += closure_sections(closure, names)
    if closure.scalars:
        sections += [*_samples(made, closure), *_recursion(made, closure, walk)]
    return _page(made, closure, sections)


def _page(made: Realization, closure: Closure, sections: Sequence[Section]) -> Page:
    model, letters = made.model, (*closure.names, *made.constants)
    spelled = {name: latex_of(name) for name in letters}
    return Page(model.title or model.name, model.source, tuple(sections), spelled)


def defining(definition: Definition, parameters: Any, walk: Walk) -> Page:
    """The defining equations of a model at some parameters: law, loss, one step.

    Derivatives are left to `page`, which takes minutes where the loss is long.

    Parameters
    ----------
    definition : Definition
    parameters : Parameters
    walk : Walk
        The run along which the closure is checked.
    """
    made = definition.realization(parameters)
    closure = made.closure(walk)
    sections = [_law_of(made, closure)]
    if closure.scalars:
        loss, _ = _loss(made, closure)
        if len(loss.equations) > MOST_EQUATIONS:
            more = f"{len(loss.equations)} equations, which attdyn derive prints"
            loss = Section(loss.heading.partition(" (")[0], (more,))
        sections += [loss, _descent(made, closure, walk, MOST_STEPS)]
    return _page(made, closure, sections)


def _law_of(made: Realization, closure: Closure) -> Section:
    """The expectation, and the scalars on which training closes."""
    if not made.program.has_law:
        words = "the population risk is given in closed form: nothing is sampled"
    elif made.only_sampled:
        words = f"the law can only be drawn from: {closure.samples} draws stand for it"
    else:
        words = f"{closure.samples} samples, all of them enumerated"
        if closure.sample_classes != closure.samples:
            words += f"; on the scalars below {closure.sample_classes} losses are different"
    conserved = tuple(
        f"training keeps `{text} = {law.value:.6g}`"
        for text, law in zip(closure.conserved, closure.laws, strict=True)
        if law.exact and law.degree == 1
    )
    return Section(
        "Data law and reduction", (words, closure.summary(), *conserved[:MOST_CONSERVED])
    )


def _samples(made: Realization, closure: Closure) -> Iterator[Section]:
    groups = closure.sample_groups
    if groups is None or made.law is None:
        return
    weights = groups.summed(made.law.weights)
    order = np.argsort(-weights, kind="stable")
    lines = [f"{groups.labels.size} samples; on these scalars {groups.count} losses are different"]
    for k in order[:SHOWN_CLASSES]:
        members = int((groups.labels == k).sum())
        sample = sample_text(select_samples(made.law.samples, int(groups.first[k])))
        lines.append(f"P = {weights[k]:.6g}: {members} samples like {sample}")
    if groups.count > SHOWN_CLASSES:
        lines.append(f"and {groups.count - SHOWN_CLASSES} more")
    yield Section("Classes of samples", tuple(lines))


def _loss(made: Realization, closure: Closure) -> tuple[Section, sympy.Expr | None]:
    """The loss of a sample on the scalars, or the risk, and its expression if there is one."""
    symbols = [sympy.Symbol(name, real=True) for name in closure.names]
    heading, loss = written_loss(made, closure, symbols)
    if loss is None:
        words = "it cannot be written in elementary functions here"
        return Section(heading, (words,)), None
    shared, (short,) = shared_parts([loss])
    left = HandWritten("R", "R") if not made.program.has_law else HandWritten("loss", r"\ell")
    if len(str(short)) + sum(len(str(v)) for _, v in shared) > LONGEST * 4:
        return Section(heading, (f"an expression of {len(str(loss))} characters",)), loss
    used = set().union(*(v.free_symbols for v in (short, *dict(shared).values())))
    letters = _sample_letters(used - set(symbols))
    return Section(heading, (), (*shared, (left, short)), (), letters), loss


def _descent(made: Realization, closure: Closure, walk: Walk, most: int) -> Section:
    """One step of gradient descent, on each of so many scalars; on any of them where more."""
    sentences = []
    if made.only_sampled:
        sentences.append("`R` is the mean loss over the samples that are drawn")
    elif made.program.has_law:
        count = closure.sample_classes
        sentences.append(
            f"`R` is the sum over the {count} classes of samples, of the probability of a class "
            "times the loss of one of its samples"
        )
    group_of, several = made.group_of_arrays(), len(walk.eta) > 1
    arrays = [made.entry_position(int(entry))[0] for entry in closure.classes.first]
    rates = [f"eta_{group_of[array]}" if several else "eta" for array in arrays]
    columns = zip(closure.names, closure.sizes, rates, strict=True)
    steps = [_step(name, count, rate) for name, count, rate in columns]
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
            f"the steps of the first {MOST_SCALARS} of {len(steps)} scalars; from each of the "
            "others, too, its derivative is taken, times the rate over the number of its entries"
        )
    meanings = {"eta": "learning rate"}
    for group, rate in zip(
        dict.fromkeys(group_of.values()), walk.eta if several else (), strict=False
    ):
        meanings[f"eta_{group}"] = f"learning rate of {group}, {rate:g}"
    used = [(letter, meanings[letter]) for letter in dict.fromkeys(rates)]
    letters = (*used, ("R", "risk"), ("'", "the next step"))
    return Section("Gradient descent", tuple(sentences), tuple(steps[:MOST_SCALARS]), (), letters)


def _recursion(made: Realization, closure: Closure, walk: Walk) -> Iterator[Section]:
    """The loss on the scalars, the risk, one step, and the derivatives."""
    section, loss = _loss(made, closure)
    yield section
    yield _descent(made, closure, walk, MOST_SCALARS)
    symbols = [sympy.Symbol(name, real=True) for name in closure.names]
    if loss is None:
        return
    if len(symbols) > MOST_SCALARS:
        words = f"of {len(symbols)} scalars: compiled, not written out"
        yield Section("Derivatives", (words,))
        return
    slopes = [sympy.diff(loss, symbol) for symbol in symbols]
    if not are_trained_by(made, closure, symbols, slopes):
        words = (
            "training follows others than those of the expression: of stop_gradient, or of jumps"
        )
        yield Section("Derivatives", (words,))
        return
    shared, shorts = shared_parts(slopes)
    length = sum(len(str(value)) for _, value in shared) + sum(len(str(s)) for s in shorts)
    of = "R" if not made.program.has_law else "loss"
    if length > LONGEST * 4:
        yield Section("Derivatives", (f"{length} characters; compiled, not written out",))
        return
    rows = [(_slope(of, name), short) for name, short in zip(closure.names, shorts, strict=True)]
    yield Section("Derivatives", (), (*shared, *rows))


def _sample_letters(used: set[sympy.Basic]) -> tuple[tuple[str, str], ...]:
    """Letters of the entries of a sample: of each part, the first one that is used."""
    letters: dict[str, tuple[str, str]] = {}
    for symbol in sorted(used, key=str):
        part, *index = str(symbol).removeprefix(RENAMED).split("_")
        if index and all(map(str.isdigit, index)):
            entry = f"entry [{', '.join(index)}] of {part} of the sample"
            letters.setdefault(part, (str(symbol), entry))
    return tuple(letters.values())


def _step(name: str, count: int, eta: str) -> tuple[HandWritten, HandWritten]:
    """One step of gradient descent on a scalar that stands for some entries, at a rate."""
    letter, share = latex_of(name), "" if count == 1 else f"/{count}"
    rate = latex_of(eta) if count == 1 else rf"\frac{{{latex_of(eta)}}}{{{count}}}"
    right = rf"{letter} - {rate} \frac{{\partial R}}{{\partial {letter}}}"
    return HandWritten(f"{name}'", f"{letter}'"), HandWritten(
        f"{name} - {eta}{share} * dR/d{name}", right
    )


def _slope(of: str, name: str) -> HandWritten:
    letter = "R" if of == "R" else r"\ell"
    return HandWritten(
        f"d{of}/d{name}", rf"\frac{{\partial {letter}}}{{\partial {latex_of(name)}}}"
    )


def size_table(
    definition: Definition,
    grids: Mapping[str, Sequence[int]],
    others: Mapping[str, Any],
    walk: Walk,
) -> Section:
    """Multiplicities at several sizes, as polynomials of the constants.

    Parameters
    ----------
    definition : Definition
    grids : mapping
        Constant -> values.
    others : mapping
        The other constants.
    walk : Walk

    Raises
    ------
    InvalidRequest
        If the model cannot be made at fewer than two of the sizes.
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
            closures[values] = definition.realization(sized).closure(walk)
        except ValueError as error:
            left_out.append(f"{point} is left out: {str(error).splitlines()[0][:120]}")
    if len(closures) < 2:
        raise InvalidRequest(f"sizes: fewer than two can be made; {'; '.join(left_out)}")
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
        often = "has fewer scalars than other sizes: perhaps a coincidence there"
        lines += [f"{point} {often}" for point in fewer]
    elif len(set(counts.values())) > 1:
        lines.append(f"the number of scalars is {number}, {checks} of the sizes being a check")
    rows: list[tuple[Any, Any]] = []
    for name, sizes_of in sizes.items():
        polynomial, checks = multiplicities(sizes_of, names)
        if polynomial is None:
            lines.append(f"{name}: no polynomial is fixed by these {len(sizes_of)} sizes")
        else:
            rows.append((HandWritten(f"n({name})", f"n({latex_of(name)})"), polynomial))
            lines.append(f"n({name}) fits all {len(sizes_of)} sizes, {checks} of them as a check")
    return Section("Multiplicities over sizes", (*lines, *left_out), tuple(rows))
