r"""The loop of gradient descent on arrays: steps in one compiled call, with records and tracking.

The array twin of `dynamics.kernels.advance`: :math:`z^{(t+1)} = z^{(t)} - \eta\, g(z^{(t)})`, with
the order parameters of every step for the events, the states at recorded steps, and the check that
the next state is finite. One compiled function takes any number of steps up to `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STEPS = 1024
"""Steps of one compiled call, at most."""
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
    """

    def __init__(
        self,
        gradient: Callable[..., Any],
        row: Callable[..., Any],
        size: int,
        batched: Callable[..., Any] | None = None,
    ) -> None:
        import jax

        self.records = max(16, min(STEPS, RECORDED_NUMBERS // max(1, size)))
        self._gradient, self._row, self._batched = gradient, row, batched
        self._compiled = jax.jit(self._steps)

    def _steps(self, state: Any, eta: Any, count: Any, slots: Any, batches: Any, data: Any) -> Any:
        """At most `STEPS` steps: state, steps taken, tracked rows, records; traced."""
        import jax
        import jax.numpy as jnp

        def at(k: Any) -> Any:
            return data if self._batched is None else self._batched(data, batches[k])

        width = jax.eval_shape(lambda s: self._row(s, s, at(0)), state).shape[0]
        rows = jnp.zeros((STEPS, width))
        records = jnp.zeros((self.records + 1, state.shape[0]))

        def going(carry: Any) -> Any:
            k, finite = carry[0], carry[2]
            return (k < count) & finite

        def step(carry: Any) -> Any:
            k, now, _, rows, records = carry
            here = at(k)
            slope = self._gradient(now, here)
            rows = rows.at[k].set(self._row(now, slope, here))
            records = records.at[slots[k]].set(now)
            proposal = now - eta * slope
            finite = jnp.isfinite(proposal).all()
            moved = jnp.where(finite, proposal, now)
            return k + finite.astype(k.dtype), moved, finite, rows, records

        begin = (jnp.zeros((), jnp.int64), state, jnp.array(True), rows, records)
        k, now, _, rows, records = jax.lax.while_loop(going, step, begin)
        return now, k, rows, records

    def advance(
        self,
        state: FloatArray,
        eta: FloatArray,
        span: tuple[int, int],
        buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
        data: Any,
        batches: NDArray[np.int64] | None = None,
    ) -> int:
        """Take the steps of a span in place; see `dynamics.kernels.advance`.

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
            none = jax.numpy.zeros((STEPS, 1), dtype=np.int64)
            while step < last:
                stop = min(last, step + STEPS)
                due = record_steps[done : done + self.records + 1]
                if due.size > self.records and due[-1] < stop:
                    stop = int(due[-1])
                due = due[due < stop][: self.records]
                slots = np.full(STEPS, self.records, dtype=np.int64)
                slots[due - step] = np.arange(due.size)
                index: Any = none
                if batches is not None:
                    index = np.zeros((STEPS, batches.shape[1]), dtype=np.int64)
                    index[: stop - step] = batches[step - first : stop - first]
                now, taken, rows, records = self._compiled(
                    now, eta, stop - step, slots, index, data
                )
                reached = step + int(taken)
                count = min(reached + 1, stop) - step
                tracked[step - first : step - first + count] = np.asarray(rows)[:count]
                seen = due[due <= reached]
                kept[done : done + seen.size] = np.asarray(records)[: seen.size]
                done += seen.size
                step = reached
                if reached < stop:
                    break
        state[:] = np.asarray(now)
        return step
