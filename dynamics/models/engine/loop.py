r"""The loop of gradient descent on arrays: steps in one compiled call, with records and tracking.

The array twin of `dynamics.codegen.kernels.advance`:
:math:`z^{(t+1)} = z^{(t)} - \eta\, g(z^{(t)})`, with the order parameters of every step for the
events, the states at recorded steps, and the check that the next state is finite. One compiled
function takes any number of steps up to `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STEPS = 1024
"""Steps of one compiled call, at most."""
SMALL = 64
"""Entries up to which the state of every step is tracked, and records are taken from there."""
RECORDED_NUMBERS = 1 << 18
"""Numbers that the records of one call may hold."""


class Loop:
    """Compiled steps of gradient descent.

    Parameters
    ----------
    gradient : callable
        (state, data) -> gradient; traced.
    row : callable
        (state, gradient, data) -> order parameters, shape (width,); traced.
    size : int
        Entries of a state.
    batched : callable, optional
        (data, index) -> data of the samples of one step; traced.

    Notes
    -----
    Whether every state is finite is looked at once for all steps of a call: a state that is not
    stays so. Only then are the steps taken again one by one, up to the last finite state.
    """

    def __init__(
        self,
        gradient: Callable[..., Any],
        row: Callable[..., Any],
        size: int,
        batched: Callable[..., Any] | None = None,
    ) -> None:
        import jax

        self._small = size <= SMALL
        self.records = STEPS if self._small else max(16, min(STEPS, RECORDED_NUMBERS // size))
        self._gradient, self._row, self._batched = gradient, row, batched
        self._quick = jax.jit(self._steps)
        self._checked = jax.jit(self._first_not_finite)

    def _at(self, k: Any, batches: Any, data: Any) -> Any:
        return data if self._batched is None else self._batched(data, batches[k])

    def _steps(self, state: Any, eta: Any, count: Any, slots: Any, batches: Any, data: Any) -> Any:
        """At most `STEPS` steps: state, whether it is finite, tracked rows, records; traced."""
        import jax
        import jax.numpy as jnp

        zero = jnp.zeros((), jnp.int64)

        def tracked(now: Any, slope: Any, here: Any) -> Any:
            row = self._row(now, slope, here)
            return jnp.concatenate([row, now]) if self._small else row

        # Slices, not scatters: these are updated in place.
        def step(k: Any, carry: Any) -> Any:
            now, rows, records = carry
            here = self._at(k, batches, data)
            slope = self._gradient(now, here)
            row = tracked(now, slope, here)[None, :]
            rows = jax.lax.dynamic_update_slice(rows, row, (k, zero))
            if not self._small:
                records = jax.lax.dynamic_update_slice(records, now[None, :], (slots[k], zero))
            return now - eta * slope, rows, records

        shape = jax.eval_shape(lambda s: tracked(s, s, self._at(0, batches, data)), state).shape
        kept = 0 if self._small else self.records + 1
        begin = (state, jnp.zeros((STEPS, *shape)), jnp.zeros((kept, state.shape[0])))
        now, rows, records = jax.lax.fori_loop(zero, count, step, begin)
        return now, jnp.isfinite(now).all(), rows, records

    def _first_not_finite(self, state: Any, eta: Any, count: Any, batches: Any, data: Any) -> Any:
        """The last finite state, and the number of steps to it; traced."""
        import jax
        import jax.numpy as jnp

        def step(carry: Any) -> Any:
            k, now, _ = carry
            proposal = now - eta * self._gradient(now, self._at(k, batches, data))
            finite = jnp.isfinite(proposal).all()
            return k + finite, jnp.where(finite, proposal, now), finite

        begin = (jnp.zeros((), jnp.int64), state, jnp.array(True))
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
        """Take the steps of a span in place; see `dynamics.codegen.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        span : (first, last)
        buffers : (tracked, record_steps, records)
        data : Data
        batches : int array, shape (last - first, B), optional
            Samples of each step.

        Returns
        -------
        int
            ``last``, or the step whose successor is not finite.
        """
        import jax

        first, last = span
        tracked, record_steps, kept = buffers
        step, done = first, 0
        now: Any = state
        with jax.enable_x64(True):
            while step < last:
                stop = min(last, step + STEPS)
                due = record_steps[done : done + self.records + 1]
                if due.size > self.records and due[-1] < stop:
                    stop = int(due[-1])
                due = due[due < stop][: self.records]
                slots = np.full(0 if self._small else STEPS, self.records, dtype=np.int64)
                if not self._small:
                    slots[due - step] = np.arange(due.size)
                index: Any = None
                if batches is not None:
                    index = np.zeros((STEPS, batches.shape[1]), dtype=np.int64)
                    index[: stop - step] = batches[step - first : stop - first]
                begin, count = now, stop - step
                now, finite, found, records = self._quick(begin, eta, count, slots, index, data)
                reached = stop
                if not finite:
                    now, taken = self._checked(begin, eta, count, index, data)
                    reached = step + int(taken)
                rows = np.asarray(found)[: min(reached + 1, stop) - step]
                width = tracked.shape[1]
                tracked[step - first : step - first + len(rows)] = rows[:, :width]
                seen = due[due <= reached]
                own = rows[seen - step, width:] if self._small else np.asarray(records)[: seen.size]
                kept[done : done + seen.size] = own
                done += seen.size
                step = reached
                if reached < stop:
                    break
        state[:] = np.asarray(now)
        return step
