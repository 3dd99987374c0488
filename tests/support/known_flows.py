"""Models with flows in closed form, and the times of their events."""

import math

import dynamics

HALF = math.pi / 2
CLOCK = {
    "top": "q stops growing",
    "bottom": "q starts growing after top",
    "top2": "q stops growing after bottom",
    "flat": "(s - 2)**3 >= 0",
    "bump": "-(s - 201)*(s - 202) >= 0",
    "bump2": "-(s - 201)*(s - 202) >= 0 after bump",
}
BLOWUP = {"flat": "(w - 1)**5 >= 0", "late": "d_w >= 100", "far": "w >= 1000000"}
TIMES = {"top": HALF, "bottom": 3 * HALF, "top2": 5 * HALF, "flat": 2.0, "bump": 201.0,
         "bump2": 201.0}  # fmt: skip
BLOWUP_TIMES = {"flat": 1.0, "late": 1.9, "far": 2.0 - 1e-6}


def clock(**events):
    """S is the time, and q its sine."""
    return dynamics.Model(
        start=lambda: {"s": 0.0}, risk=lambda theta, xp: -theta["s"], names={"s": "s"},
        observables=lambda theta, xp: {"q": xp.sin(theta["s"])}, events=events or CLOCK,
    )  # fmt: skip


def blowup(**events):
    """W = 1 / (2 - t)."""
    return dynamics.Model(
        start=lambda: {"w": 0.5}, risk=lambda theta, xp: -(theta["w"] ** 3) / 3,
        names={"w": "w"}, events=events or BLOWUP,
    )  # fmt: skip
