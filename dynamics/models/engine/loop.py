r"""Steps of gradient descent, traced: the array twin of `dynamics.loops.kernels.advance`.

:math:`z^{(t+1)} = z^{(t)} - \eta\, g(z^{(t)})`, with the order parameters of every step for the
events, the states at recorded steps, and the check that the next state is finite. One compiled
function takes any number of steps up to `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.cache import compiled_program, jax
from theory.law import FloatArray

STEPS = 1024
"""Steps of one compiled call, at most."""
RECORDED_NUMBERS = 1 << 18
"""Numbers that the records of one call may hold."""


class Loop:
    """Compiled steps of gradient descent.

    Parameters
    ----------
    gradient, row, batched : callable
        (state, data) -> gradient; (state, gradient, data) -> order parameters, shape (width,);
        (data, index) -> data of the samples of one step, or None. All are traced.
    size : int
        Entries of a state.
    rows_of_all : bool
        Whether order parameters are those of all samples, not of the samples of the step.

    Notes
    -----
    Whether states are finite is checked once for all steps of a call: one that is not stays so.
    Only then are the steps repeated one by one, up to the last finite state.
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
        self._quick = compiled_program(self._steps)
        self._checked = compiled_program(self._first_not_finite)

    def _at(self, k: Any, batches: Any, data: Any) -> Any:
        return data if self._batched is None else self._batched(data, batches[k])

    def _steps(self, state: Any, eta: Any, count: Any, slots: Any, batches: Any, data: Any) -> Any:
        """At most `STEPS` steps: state, whether it is finite, tracked rows, records; traced."""
        zero = jax.numpy.zeros((), jax.numpy.int64)

        def tracked(now: Any, slope: Any, here: Any) -> Any:
            return self._row(now, slope, data if self._rows_of_all else here)

        # Slices, not scatters: these are updated in place.
        def step(k: Any, carry: Any) -> Any:
            now, rows, records = carry
            here = self._at(k, batches, data)
            slope = self._gradient(now, here)
            # Rates are per unit of time, which is the largest learning rate times steps.
            unit = jax.numpy.maximum(eta.max(initial=0.0), np.finfo(np.float64).tiny)
            row = tracked(now, slope * (eta / unit), here)[None, :]
            rows = jax.lax.dynamic_update_slice(rows, row, (k, zero))
            records = jax.lax.dynamic_update_slice(records, now[None, :], (slots[k], zero))
            return now - eta * slope, rows, records

        shape = jax.eval_shape(lambda s: tracked(s, s, self._at(0, batches, data)), state).shape
        records = jax.numpy.zeros((self.records + 1, state.shape[0]))
        begin = (state, jax.numpy.zeros((STEPS, *shape)), records)
        now, rows, records = jax.lax.fori_loop(zero, count, step, begin)
        return now, jax.numpy.isfinite(now).all(), rows, records

    def _first_not_finite(self, state: Any, eta: Any, count: Any, batches: Any, data: Any) -> Any:
        """The last finite state, and the number of steps to it; traced."""

        def step(carry: Any) -> Any:
            k, now, _ = carry
            proposal = now - eta * self._gradient(now, self._at(k, batches, data))
            finite = jax.numpy.isfinite(proposal).all()
            return k + finite, jax.numpy.where(finite, proposal, now), finite

        begin = (jax.numpy.zeros((), jax.numpy.int64), state, jax.numpy.array(True))
        k, now, _ = jax.lax.while_loop(lambda c: (c[0] < count) & c[2], step, begin)
        return now, k

    def advance(
        self,
        state: FloatArray,
        eta: FloatArray,
        span: tuple[int, int],
        buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
        data: Any,
        batches: NDArray[np.int64] | None = None,
    ) -> int:
        """Take the steps of a span in place; see `dynamics.loops.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        span : (first, last)
        buffers : (tracked, record_steps, records)
        data : Data
        batches : int array, shape (last - first, B), optional
            Samples of each step.

        Returns ``last``, or the step whose successor is not finite.
        """
        first, last = span
        tracked, record_steps, stored = buffers
        step, done = first, 0
        now: Any = state
        with jax.enable_x64(True):
            while step < last:
                stop = min(last, step + STEPS)
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
                begin, reached = now, stop
                now, finite, *arrays = self._quick(begin, eta, stop - step, slots, index, data)
                if not finite:
                    now, steps = self._checked(begin, eta, stop - step, index, data)
                    reached = step + int(steps)
                rows, records = map(np.asarray, arrays)
                rows = rows[: min(reached + 1, stop) - step]
                tracked[step - first : step - first + len(rows)] = rows
                count = int((due <= reached).sum())
                stored[done : done + count] = records[:count]
                done += count
                step = reached
                if reached < stop:
                    break
        state[:] = np.asarray(now)
        return step
