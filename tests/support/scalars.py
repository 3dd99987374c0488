"""Problems whose flow is known, in scalars of other names."""

from dataclasses import dataclass

import numpy as np

from dynamics.problem import Layout


@dataclass(frozen=True)
class Nothing:
    """No parameters."""


class Scalars:
    """A problem made of a gradient and a start."""

    system, view, parameters = "toy", "reduced", Nothing()
    events, order_names, settings = (), (), {}
    has_jacobian, flows = False, True

    def __init__(self, names, gradient, start, bound=None):
        self.layout = Layout(names, ((),) * len(names), names)
        self.state_names, self._gradient, self._bound = names, gradient, bound
        self.initial_state = np.array(start, dtype=float)

    def gradient(self, state):
        return np.array(self._gradient(*np.asarray(state, dtype=float)), dtype=float)

    def gradient_error(self, state):
        return None if self._bound is None else np.array(self._bound(*state))

    def observables(self, state):
        return {}

    def order_parameters(self, state, gradient=None):
        return np.empty(0)


def wells():
    """The field (x - x^3, -y): sinks at (-1, 0) and (1, 0), a saddle at the origin."""
    return Scalars(("x", "y"), lambda x, y: (x**3 - x, y), (0.1, 1.0))
