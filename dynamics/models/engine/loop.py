"""Steps of an update rule, traced by JAX: the counterpart of `dynamics.loops.kernels.advance`.

One compiled function takes up to `STEPS` steps, computes the order parameters of each step, stores
the states of recorded steps, and stops at the last finite state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.cache import compiled_program, jax
from dynamics.loops import Updates
from theory.law import FloatArray
from theory.update_rules import UpdateRule

STEPS = 1024
"""Maximum number of training steps in one compiled call; a longer run makes several calls."""
RECORDED_NUMBERS = 1 << 18
"""Approximate maximum count of numbers in the states recorded by one compiled call."""


class Loop:
    """Compiled steps of update rules, up to the last finite state.

    `gradient` is a function of state and data; `row` returns the order parameters as a function of
    state, gradient and data; `batched` selects the samples of one step. With `rows_of_all`, order
    parameters use all samples instead of the samples of the step.
    """

    def __init__(
        self,
        gradient: Callable[..., Any],
        row: Callable[..., Any],
        size: int,
        batched: Callable[..., Any] | None = None,
        rows_of_all: bool = False,
    ) -> None:
        self._rows_of_all = rows_of_all
        self.records = max(16, min(STEPS, RECORDED_NUMBERS // size))
        self._gradient, self._row, self._batched = gradient, row, batched
        self._compiled: dict[Any, Any] = {}

    def _of_rule(self, rule: UpdateRule) -> Any:
        """Compiled steps of an update rule; the constants of the rule are arguments."""
        if rule.key not in self._compiled:

            def steps(*arguments: Any) -> Any:
                return self._steps(rule, *arguments)

            self._compiled[rule.key] = compiled_program(steps)
        return self._compiled[rule.key]

    def _at(self, k: Any, batches: Any, data: Any) -> Any:
        return data if self._batched is None else self._batched(data, batches[k])

    def _steps(
        self, rule: UpdateRule, state: Any, given: Any, count: Any, slots: Any, batches: Any,
        data: Any,
    ) -> Any:  # fmt: skip
        """Take at most `STEPS` steps, up to the last finite state; traced by JAX."""
        zero, size = jax.numpy.zeros((), jax.numpy.int64), given["eta"].shape[0]

        def tracked(now: Any, slope: Any, here: Any) -> Any:
            return self._row(now[:size], slope, data if self._rows_of_all else here)

        # XLA updates slices in place, but not scatters.
        def step(carry: Any) -> Any:
            k, now, _, rows, records = carry
            here = self._at(k, batches, data)
            after, slope = taken(rule, now, self._gradient(now[:size], here), k, given)
            row = tracked(now, slope, here)[None, :]
            rows = jax.lax.dynamic_update_slice(rows, row, (k, zero))
            records = jax.lax.dynamic_update_slice(records, now[None, :], (slots[k], zero))
            finite = jax.numpy.isfinite(after).all()
            return k + finite, jax.numpy.where(finite, after, now), finite, rows, records

        shape = jax.eval_shape(
            lambda s: tracked(s, s[:size], self._at(0, batches, data)), state
        ).shape
        records = jax.numpy.zeros((self.records + 1, state.shape[0]))
        begin = (zero, state, jax.numpy.array(True), jax.numpy.zeros((STEPS, *shape)), records)
        done = jax.lax.while_loop(lambda c: (c[0] < count) & c[2], step, begin)
        return done[1], done[0], done[3], done[4]

    def advance(
        self,
        state: FloatArray,
        updates: Updates,
        span: tuple[int, int],
        buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
        data: Any,
        batches: NDArray[np.int64] | None = None,
    ) -> int:
        """Take the steps of a span in place; returns the number of the step reached.

        `state` has the entries, then the memory of the update rule; `batches`, shape (steps, B),
        has the samples of each step.
        """
        steps = self._of_rule(updates.rule)
        first, _ = span
        tracked, record_steps, stored = buffers
        step, done = first, 0
        now: Any = state
        with jax.enable_x64(True):
            for low, high, update in updates.parts(*span):
                while step < high:
                    stop = min(high, step + STEPS)
                    due = record_steps[done : done + self.records + 1]
                    if due.size > self.records:
                        stop = min(stop, int(due[-1]))
                    due = due[due < stop]
                    slots = np.full(STEPS, self.records, dtype=np.int64)
                    slots[due - step] = np.arange(due.size)
                    index: Any = None
                    if batches is not None:
                        index = np.zeros((STEPS, batches.shape[1]), dtype=np.int64)
                        index[: stop - step] = batches[step - first : stop - first]
                    factors = np.zeros(STEPS)
                    factors[: stop - step] = update.factors[step - low : stop - low]
                    given = update._asdict() | {"factors": factors, "first": step}
                    given |= {"program": None, "numbers": updates.rule.numbers}
                    now, taken_steps, *arrays = steps(now, given, stop - step, slots, index, data)
                    reached = step + int(taken_steps)
                    rows, records = map(np.asarray, arrays)
                    rows = rows[: min(reached + 1, stop) - step]
                    tracked[step - first : step - first + len(rows)] = rows
                    count = int((due <= reached).sum())
                    stored[done : done + count] = records[:count]
                    done += count
                    step = reached
                    if reached < stop:
                        state[:] = np.asarray(now)
                        return step
        state[:] = np.asarray(now)
        return step


def taken(rule: UpdateRule, now: Any, slope: Any, k: Any, given: Any) -> tuple[Any, Any]:
    """State after a step, and minus its change per unit of time; traced by JAX.

    `now` has the entries, then the memory of the update rule; `k` is the number of the step in this
    call, from 0. `given` has the fields of `dynamics.loops.kernels.update.Update`, and in addition
    ``first``, the number of the first step of this call, and ``numbers``, the constants of the
    rule.
    """
    size, rate = slope.shape[0], given["eta"] * given["factors"][k]
    if rule.plain:
        return now - rate * slope, slope * given["share"]
    entries, memory = now[:size], list(now[size:].reshape(rule.memory, size))
    moves = given["moves"]
    slope = slope + given["weight_decay"] * entries
    norm = jax.numpy.sqrt(jax.numpy.where(moves, given["sizes"] * slope**2, 0.0).sum())

    def one(gradient: Any, kept: Any, entry: Any, step: Any, eta: Any) -> Any:
        numbers = given["numbers"]
        return rule.apply(gradient, kept, entry, step, eta, jax.numpy, norm, numbers)

    step = given["first"] + k + 1.0 - given["rested"]
    change, kept = jax.vmap(one)(slope, memory, entries, step, rate)
    change = jax.numpy.where(moves, change, 0.0)
    kept = [jax.numpy.where(moves, new, old) for new, old in zip(kept, memory, strict=True)]
    per_time = jax.numpy.where(rate > 0, -change / jax.numpy.where(rate > 0, rate, 1.0), slope)
    return jax.numpy.concatenate([entries + change, *kept]), per_time * given["share"]
