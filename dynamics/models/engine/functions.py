"""Compiled functions of one program, shared by all problems with the same static constants.

``payload`` is the pair of data and embedding; both are arguments of what is compiled, so that
problems at other real constants, or with other classes of the same sizes, compile nothing new.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from dynamics.models.engine.loop import Loop
from dynamics.models.engine.program import Program

Columns = tuple[tuple[str, Any], ...]
"""Order parameters: ("state", k), ("rate", k), ("seen", name), ("seen_rate", name), ("risk",)."""
WATCHED: Columns = (("rate", 0),)
"""The rate that is watched for oscillations, which every problem tracks."""


class Functions:
    """Gradient, risk, observables and the loop of gradient descent of one kind of problem.

    Parameters
    ----------
    program : Program
    reduced : bool
        Whether the state are coordinates of the embedding, or every entry.
    columns : Columns
        Order parameters of the event rules.
    size : int
        Entries of a state.
    batched : bool
        Whether each step has samples of its own.
    """

    def __init__(
        self, program: Program, reduced: bool, columns: Columns, size: int, batched: bool
    ) -> None:
        self.program, self.reduced, self.columns = program, reduced, columns
        self.size, self.batched = size, batched

    def flat(self, state: Any, payload: Any) -> Any:
        """Every entry; traced."""
        return payload[1].lift(state) if self.reduced else state

    def slope(self, state: Any, payload: Any) -> Any:
        """What a step subtracts, divided by eta; traced."""
        data, embedding = payload
        if not self.reduced:
            return self.program.value_and_gradient(lambda z: z, state, data)[1]
        return self.program.value_and_gradient(embedding.lift, state, data)[1] * embedding.share

    def row(self, state: Any, slope: Any, payload: Any) -> Any:
        """Order parameters at a state; traced."""
        import jax
        import jax.numpy as jnp

        if not self.columns:
            return state[:0]
        data, embedding = payload
        scalars = state if self.reduced else embedding.project(state)
        rates = -slope if self.reduced else -embedding.along(slope)
        seen: dict[str, Any] = {}
        moving: dict[str, Any] = {}
        kinds = {kind for kind, _ in self.columns}
        if kinds & {"seen", "seen_rate"}:
            velocity = embedding.tangent(-slope) if self.reduced else -slope
            observe = lambda flat: self.program.observed(flat, data)  # noqa: E731
            flat = self.flat(state, payload)
            if "seen_rate" in kinds:
                seen, moving = jax.jvp(observe, (flat,), (velocity,))
            else:
                seen = observe(flat)
        values = []
        for kind, key in self.columns:
            if kind == "state":
                values.append(scalars[key])
            elif kind == "rate":
                values.append(rates[key])
            elif kind == "risk":
                values.append(self.program.risk(self.flat(state, payload), data))
            else:
                values.append((seen if kind == "seen" else moving)[key])
        return jnp.stack([jnp.asarray(value, dtype=state.dtype) for value in values])

    def observed(self, state: Any, payload: Any) -> dict[str, Any]:
        """Risk, what the model observes, and the coordinates of a full state; traced."""
        import jax.numpy as jnp

        data, embedding = payload
        flat = self.flat(state, payload)
        found = {
            "risk": self.program.risk(flat, data),
            "observed": self.program.observed(flat, data),
        }
        if not self.reduced:
            inside = embedding.project(flat)
            found["scalars"] = inside
            found["outside"] = jnp.abs(flat - embedding.lift(inside)).max()
        return found

    @cached_property
    def compiled_slope(self) -> Any:
        """`slope`, compiled on first call; the order parameters are no part of it."""
        return slope_of(self.program, self.reduced)

    @cached_property
    def compiled_row(self) -> Any:
        """`row`, compiled on first call."""
        import jax

        return jax.jit(self.row)

    @cached_property
    def compiled_rows(self) -> Any:
        """(states, payload) -> slopes and rows of many states, compiled on first call."""
        import jax

        def one(state: Any, payload: Any) -> Any:
            slope = self.slope(state, payload)
            return slope, self.row(state, slope, payload)

        def many(states: Any, payload: Any) -> Any:
            return jax.lax.map(lambda state: one(state, payload), states)

        return jax.jit(many)

    @cached_property
    def compiled_observed(self) -> Any:
        """(states, payload) -> `observed` of many states, compiled on first call."""
        import jax

        return jax.jit(
            lambda states, payload: jax.lax.map(lambda s: self.observed(s, payload), states)
        )

    @cached_property
    def compiled_jacobian(self) -> Any:
        """Derivative of `slope` by the state, compiled on first call."""
        import jax

        return jax.jit(jax.jacfwd(self.slope))

    @cached_property
    def compiled_product(self) -> Any:
        """(state, direction, payload) -> Jacobian of `slope` times the direction."""
        import jax

        def product(state: Any, direction: Any, payload: Any) -> Any:
            return jax.jvp(lambda s: self.slope(s, payload), (state,), (direction,))[1]

        return jax.jit(product)

    @cached_property
    def loop(self) -> Loop:
        """Gradient descent."""
        batched = _samples_of_a_step if self.batched else None
        return Loop(self.slope, self.row, self.size, batched)


def _samples_of_a_step(payload: Any, index: Any) -> Any:
    """Payload with the samples of one step, equally weighted; an index of -1 is no sample."""
    import jax
    import jax.numpy as jnp

    data, embedding = payload
    there = index >= 0
    weights = jnp.where(there, 1.0 / there.sum(), 0.0)
    samples = jax.tree.map(lambda part: part[jnp.maximum(index, 0)], data.samples)
    return data._replace(weights=weights, samples=samples), embedding


@lru_cache(maxsize=256)
def slope_of(program: Program, reduced: bool) -> Any:
    """(state, payload) -> what a step subtracts, divided by eta; compiled on first call."""
    import jax

    return jax.jit(Functions(program, reduced, (), 0, False).slope)


@lru_cache(maxsize=256)
def functions_of(
    program: Program, reduced: bool, columns: Columns, size: int, batched: bool = False
) -> Functions:
    """The functions of a program; the same object for the same arguments."""
    return Functions(program, reduced, columns, size, batched)
