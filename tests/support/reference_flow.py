"""Flows by SciPy at 1e-12: a state between two steps is integrated to, not interpolated."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq


class Reference:
    """A flow by Radau or DOP853; its rows are what is seen of each state."""

    def __init__(self, problem, horizon, method="Radau", seen=lambda state: state):
        self.problem, self.seen = problem, seen
        self.options = {"method": method, "rtol": 1e-12, "atol": 1e-15}
        solved = solve_ivp(self.rate, (0.0, horizon), problem.initial_state, **self.options)
        assert solved.status == 0
        self.times, self.states = solved.t, solved.y.T
        self.rows = np.array([seen(state) for state in self.states])

    def rate(self, _, state):
        return -self.problem.gradient(state)

    def at(self, time):
        k = int(np.searchsorted(self.times, time, side="right")) - 1
        if time == self.times[k]:
            return self.rows[k]
        span = (self.times[k], time)
        return self.seen(solve_ivp(self.rate, span, self.states[k], **self.options).y[:, -1])

    def root(self, function, low, high):
        return brentq(lambda t: function(self.at(t)), low, high, xtol=1e-14 * high, rtol=1e-14)

    def first(self, function, begin=0.0, counts=False):
        """The first time from begin on at which a function is positive, or 0 where that counts."""
        if begin is None:
            return None
        value = function(self.at(begin))
        holds = np.array([function(row) for row in self.rows]) > 0
        after = np.searchsorted(self.times, begin, side="right")
        if value > 0 or (value == 0 and (counts or holds[after])):
            return begin
        later = after + np.flatnonzero(holds[after:])
        if not later.size:
            return None
        k = later[0]
        return self.root(function, max(begin, self.times[k - 1]), self.times[k])
