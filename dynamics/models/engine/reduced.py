"""Gradient descent on the scalars that training closes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.models.engine.problem import ModelProblem, drawn_settings
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, refuse

if TYPE_CHECKING:
    from dynamics.results.trajectory import Trajectory

BACKENDS = ("auto", "arrays", "numba")
LOOKS_ALONG = 24
"""States of a run at which the gradient of every entry is looked at afterwards."""


class ReducedPopulation(ModelProblem):
    """Gradient descent on the scalars that training closes on.

    Parameters
    ----------
    parameters : Parameters
    eta, steps : float, int
        The run along which the closure is looked at; the model's own by default.
    coordinates : str
        ``"classes"``: one value for each class of equal entries; ``"linear"``: directions of the
        smallest linear space; ``"auto"``: the second where it has at most half as many.
    samples, seed : int
        Of the draws, where the law can only be drawn from.
    backend : str
        ``"arrays"``: JAX; ``"numba"``: a generated file; ``"auto"``: the second for runs of
        millions of steps of a model whose gradient is short.

    Raises
    ------
    InvalidRequest
        If the model is wrong, in one line, or nothing moves.
    """

    view = "reduced population"

    def __init__(
        self,
        parameters: Any,
        eta: Any = None,
        steps: Any = None,
        coordinates: str = "auto",
        samples: Any = None,
        seed: Any = 0,
        backend: str = "auto",
    ) -> None:
        made = self.definition.realization(parameters, samples, seed)
        closure = made.closure(self.definition.walk(eta, steps))
        data = made.representatives(closure.sample_groups)
        super().__init__(parameters, made, closure, data, True, coordinates)
        self._compiled = self._chosen(backend, steps)
        self.settings = {
            **self.settings,
            **drawn_settings(made, samples, seed),
            **({"backend": "numba"} if self._compiled else {}),
        }

    def _chosen(self, backend: str, steps: Any) -> Any:
        """The generated file with its data, where the gradient is compiled by numba; else None."""
        from dynamics.models.engine import compiled

        if backend not in BACKENDS:
            refuse("backend", backend, "is unknown", ", ".join(BACKENDS), BACKENDS[0])
        if backend == "numba" and self.coordinates == "linear":
            raise InvalidRequest("backend='numba' is of classes; coordinates can be classes")
        plain = all(kind in ("state", "rate") for kind, _ in self._columns)
        if backend == "numba" and not plain:
            raise InvalidRequest(
                "backend='numba' knows scalars and their rates, and an event speaks of others; "
                "backend can be arrays"
            )
        long_run = self.definition.walk(steps=steps).steps >= compiled.LONG_RUN
        fits = plain and self.coordinates != "linear"
        if backend == "arrays" or (backend == "auto" and not (long_run and fits)):
            return None
        try:
            return compiled.compiled_gradient(self)
        except InvalidRequest:
            if backend == "auto":
                return None
            raise

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step subtracts, divided by eta; see `ModelProblem.gradient`."""
        if self._compiled is None:
            return super().gradient(state)
        module, data = self._compiled
        out = np.empty(self.layout.size)
        module.gradient(self.layout.flatten(state), data, out)
        return out if np.isfinite(out).all() else super().gradient(state)

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`."""
        if self._compiled is None:
            return super().advance(state, eta, first, last, buffers)
        module, data = self._compiled
        before, work = state.copy(), (np.empty_like(state), np.empty_like(state), True)
        reached = int(module.advance(state, eta, first, last, (data, *work, *buffers)))
        if reached == last:
            return last
        state[:] = before
        return super().advance(state, eta, first, last, buffers)

    @property
    def initial_state(self) -> FloatArray:
        """The scalars at step 0; 0 in a linear space."""
        if self.coordinates == "linear":
            return np.zeros(len(self.scalars))
        classes = self.closure.classes
        return np.asarray(classes.start[classes.first])

    def outside(self, vector: FloatArray) -> FloatArray:
        """What of a vector of every entry, shape (n,), lies across the closed space."""
        if self.coordinates == "linear":
            return np.asarray(vector - self._plain.matrix @ (self._plain.matrix.T @ vector))
        return self.closure.classes.residual(vector)

    def leaving(self, run: Trajectory) -> str:
        """Where the gradient of every entry leaves the space along a run; empty if nowhere.

        Of a run no longer than the one that the closure was looked at along, nothing is new.

        Parameters
        ----------
        run : Trajectory
            Of this problem.
        """
        if run.steps.size and run.steps[-1] <= self.closure.walked:
            return ""
        if self.realization.drawn:
            return ""
        chosen = np.unique(np.linspace(0, len(run.time) - 1, LOOKS_ALONG).astype(int))
        found = self.realization.first_leaving(self.closure, self.lift(run.states[chosen]))
        if found is None:
            return ""
        number, entry = found
        return (
            f"the reduction does not hold to the end: at time {run.time[chosen[number]]:.4g} the "
            f"gradient of {self.realization.entry_name(entry)} is another than that of its class; "
            "looked at along gradient descent with these --eta and --steps, the classes are finer"
        )

    def lift(self, states: FloatArray) -> FloatArray:
        """Every trained entry, shape (..., n), of reduced states, shape (..., scalars)."""
        if self.coordinates == "linear":
            return np.asarray(self._plain.offset + np.asarray(states) @ self._plain.matrix.T)
        return self.closure.classes.lift(states)
