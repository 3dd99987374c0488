"""Events of rates: roots on a stretch of the path that is integrated again.

A rule that speaks of rates is evaluated from the gradient at an interpolated state, whose error the
fast direction magnifies. While the state relaxes, the gradient is carried along the path instead,
by the linear equation that it obeys (`dynamics.codegen.kernels.carried_gradient`). Where that
cannot be done the stretch before the event is integrated at a tolerance that is small against what
changes in one relaxation time. On a slow manifold, where the steps are long beside that time, the
rates are derivatives of the path, which do not magnify.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynamics.codegen import loops
from dynamics.problem import FloatArray
from dynamics.training.event_detection import Column
from dynamics.training.event_errors import (
    WALK,
    EventTime,
    accumulated_walk,
    bound_noise,
    gradient_noise,
    root_between,
    root_change,
    state_noise,
    time_width,
    total_change,
)
from dynamics.training.flow_path import CarriedRates, FlowPath, Polynomials, order_rows
from dynamics.training.integration import integrate_again

TIGHT, TIGHTER = 1e-12, 3e-13
"""Relative tolerances of a stretch that is integrated again, by LSODA and by collocation."""
OF_CHANGE = 1e-7
"""Tolerance over what changes in one relaxation time; collocation needs no more."""
RELAXATIONS = 40.0
"""Relaxation times, at most, before and after a first guess that a stretch covers."""
NEARLY, MARGIN = 1.0, 5.0
"""Relaxation times by which errors of one step move a guess, and those of all steps may."""
DERIVATIVE = 50.0
"""Error of the derivative of a polynomial by the width of its step, over that of its values."""
LONGEST = 2.0
"""Relaxation times of a part over which the gradient is carried, at most."""
GAIN = 16.0
"""Error of carrying over steps of twice the width, over that of the width; at least."""
PRECISE = 1e-5
"""Part of its time by which the path may move an event whose rates were carried, as stated; of 35
problems it is moved by at most a ninth of that."""
SENSITIVITY = 10.0
"""Relative change of a time over that of the state before it; of event III it is 7."""
NEGLIGIBLE = 1e-6
"""Part of the largest entry of a state below which the others need no relative precision."""


def rate_event(path: FlowPath, value: Column, guess: float) -> EventTime:
    """The time at which a value that depends on rates becomes positive, near a first guess.

    A rate that has decayed to the error of the gradient leaves its event uncertain: by the change
    that this error and that of the state make in the value, over the slope of the value.

    Parameters
    ----------
    path : FlowPath
    value : callable
        Rows of order parameters -> value.
    guess : float
        The time on the path, whose errors may have moved it.
    """
    # Where nothing relaxes, the time of the event is the time scale.
    relaxation = 1.0 / max(path.problem.curvature(path.at(guess)), 1.0 / max(guess, 1e-300))
    for reach in np.array([NEARLY, MARGIN, RELAXATIONS]) * relaxation:
        carried = _carried(path, guess + reach, relaxation)
        event = None if carried is None else _root_of(carried, value, guess, relaxation)
        if event is None:
            continue
        assert event.time is not None
        if abs(event.time - guess) > reach:
            continue
        event = _of_state(event, path, guess)
        if event.is_within(PRECISE):
            return event
        break
    return _stretch_event(path, value, guess, relaxation)


def _of_state(event: EventTime, path: FlowPath, time: float) -> EventTime:
    """An event with the error that the state of a path has at a time."""
    assert event.time is not None
    assert event.of_path is not None
    shift = SENSITIVITY * accumulated_walk(path, time) * path.rtol * event.time
    return replace(event, uncertainty=event.uncertainty + shift, of_path=event.of_path + shift)


def _stretch_event(path: FlowPath, value: Column, guess: float, relaxation: float) -> EventTime:
    """The root on a stretch before and after a guess, integrated again at a smaller tolerance."""
    problem, compiled = path.problem, isinstance(path.at, Polynomials)
    near = path.at(guess)
    size = np.abs(near)
    # Below this an entry may be rounding, which an integrator that has to resolve it stalls on.
    tight = TIGHTER if compiled else TIGHT
    least = tight * np.maximum(size, NEGLIGIBLE * size.max(initial=1e-12))
    if compiled:
        change = np.abs(problem.gradient(near)) * min(relaxation, guess)
        least = np.maximum(OF_CHANGE * change, least)
    begin = max(0.0, guess - _relaxations(path, near, least) * relaxation)
    if compiled or begin > 0.5 * guess:
        begin = float(path.nodes[np.searchsorted(path.nodes, begin, side="right") - 1])
    else:
        begin = 0.0
    ends = [guess + 0.2 * (guess - begin)]
    if compiled:
        # The errors of the path may bring an event forward: the rule may hold only later.
        ends = [max(ends[0], guess + ahead * relaxation) for ahead in (MARGIN, RELAXATIONS)]
    for end in ends:
        part = integrate_again(path, (begin, end), (tight, least))
        if part is None:
            return EventTime(guess, "", time_width(path, value, guess, rates=True))
        part = replace(part, derivatives=_smoother(part, guess, relaxation))
        if (event := _root_of(part, value, guess, relaxation)) is not None:
            return _of_state(event, path, begin)
    # By the errors of the path alone, where the stretch was made in the same way.
    return EventTime(guess, "", np.inf if compiled else time_width(path, value, guess, rates=True))


def _root_of(part: FlowPath, value: Column, guess: float, relaxation: float) -> EventTime | None:
    """The root of a value nearest to a guess, on a stretch; None where it does not rise through 0.

    Its uncertainty leaves out the error that the state has at the beginning.
    """
    problem, times = part.problem, part.nodes

    def at(time: float) -> float:
        return float(value(part.order(time, rates=True))[0])

    # Outward from the guess, to the nearest step in which the sign changes from below.
    middle = int(np.searchsorted(times, guess))
    for k in sorted(range(1, len(times)), key=lambda k: abs(k - middle)):
        if not at(times[k - 1]) < 0 <= at(times[k]):
            continue
        root = root_between(at, times[k - 1], times[k], guess)
        width = min(0.5 * relaxation, root - times[0], times[-1] - root)
        slope = (at(root + width) - at(root - width)) / (2.0 * width) if width > 0 else np.inf
        if isinstance(part.at, Polynomials) and not part.derivatives and slope > 0:
            # The ends of steps are of higher order than what lies between: one that ends here.
            floor = part.error(np.zeros_like(part.at(root)))
            last = integrate_again(part, (float(times[k - 1]), root), (part.rtol, floor))
            row = None if last is None else order_rows(problem, last.at(root)[None, :], rates=True)
            root -= 0.0 if row is None else float(value(row)[0]) / slope
        error = WALK * _rate_noise(part, value, root)
        shift = bound_noise(problem, value, part.at(root))
        whole, of_path = root_change(error + shift, slope), root_change(error, slope)
        return EventTime(root, "", whole, of_path)
    return None


def _smoother(path: FlowPath, time: float, relaxation: float) -> bool:
    """Whether derivatives of a path err less at a time than gradients at its states.

    A gradient magnifies the error of the state by one over the relaxation time, a derivative of a
    polynomial by `DERIVATIVE` over the width of its step.
    """
    if not isinstance(path.at, Polynomials):
        return False
    return path.at.width(time) > DERIVATIVE * relaxation


def _carried(path: FlowPath, end: float, relaxation: float) -> FlowPath | None:
    """The path until a time, its rates carried from the start; None where that is too far.

    The errors of all states before add up, so that far from the start other rates err less.
    """
    problem, at = path.problem, path.at
    if not isinstance(at, Polynomials) or "hessian" not in at.model.entries:
        return None
    if not 0 < end <= 2 * RELAXATIONS * relaxation:
        return None
    last = min(end, float(path.nodes[-1]))
    nodes = np.append(path.nodes[path.nodes < last], last)
    halves = np.ceil(0.5 * np.diff(nodes) / (LONGEST * relaxation))
    parts = [
        np.linspace(low, high, 2 * int(count), endpoint=False)
        for low, high, count in zip(nodes[:-1], nodes[1:], halves, strict=True)
    ]
    times = np.append(np.concatenate(parts), nodes[-1])
    slopes = loops.carry_gradient(at.model, at.path, times, problem.gradient(at.start))
    if not np.isfinite(slopes).all():
        return None
    carried = CarriedRates(at.path, at.start, at.model, times, slopes)
    return replace(path, nodes=nodes, at=carried, derivatives=True, rows=({}, {}))


def _carried_noise(path: FlowPath, at: CarriedRates, time: float) -> FloatArray:
    """Error of a carried gradient over what counts for one step.

    Of the steps, from twice their width; and what the error of the state changes in J, over all the
    time, which is that of the path.
    """
    k = max(int(np.searchsorted(path.nodes, time)), 1)
    fine = int(np.searchsorted(at.times, path.nodes[k]))
    coarse = loops.carry_gradient(at.model, at.path, at.times[: fine + 1 : 2], at.slopes[0])[-1]
    state, slope = at(time), -at.rate(time)
    error = np.sqrt(k) * path.error(state)

    def images(moves: FloatArray) -> FloatArray:
        return np.array([path.problem.jacobian(state + move) @ slope for move in moves])

    return np.abs(coarse - at.slopes[fine]) / GAIN + time * total_change(images, error)


def _rate_noise(path: FlowPath, value: Column, time: float) -> float:
    """What the error of one step may change in a value that depends on rates."""
    state = path.at(time)
    error = path.error(state)
    if not path.derivatives:
        return state_noise(path.problem, value, state, error)
    at = path.at
    assert isinstance(at, Polynomials)
    slope = -at.rate(time)
    if isinstance(at, CarriedRates):
        of_rate = _carried_noise(path, at, time)
    else:
        of_rate = DERIVATIVE * error / at.width(time)
    return gradient_noise(path.problem, value, (state, slope), of_rate)


def _relaxations(path: FlowPath, state: FloatArray, allowed: FloatArray) -> float:
    """Relaxation times in which the error of the path decays below what is allowed, and more."""
    if not isinstance(path.at, Polynomials):
        return RELAXATIONS
    decay = np.log(max(1.0, float((path.error(state) / allowed).max())))
    return min(RELAXATIONS, decay + MARGIN)
