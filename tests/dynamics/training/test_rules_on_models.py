"""Reduced against full training by every update rule, on every model.

Rules that divide a gradient by its size amplify its rounding; here eps is too large for that.
"""

from pathlib import Path

import pytest

import dynamics

RULES = {
    "momentum": dynamics.rule("momentum"),
    "nesterov": dynamics.rule("momentum", nesterov=True),
    "adam": dynamics.rule("adam", eps=0.1),
    "adamw": dynamics.rule("adamw", weight_decay=0.01, eps=0.1),
    "normalized": dynamics.rule("normalized", eps=0.1),
}
SUPPORT = Path(__file__).resolve().parents[2] / "support" / "models"
AREAS = {"areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4}
VIT = {
    "M": 4, "m": 12, "d": 4, "L": 43, "alpha_star": 25 / 43, "alpha_confusion": 4 / 43,
    "sigma": 0.0, "delta": 0.0, "noise": 0.0,
}  # fmt: skip
PAPERS = {
    "positional_attention": ({"D": 8, "C": 2}, {}),
    "masked_image_modeling": ({"family": "custom", **AREAS}, {}),
    "shallow_vit": (VIT, {"start": "symmetric"}),
}
DRAWN = {"single_location_gaussian"}
"""Models whose law is drawn: its symmetry holds up to sampling errors."""
KINKED = {"sparse_parity"}
"""Models that start on kinks, on whose side under decay rounding decides."""


def signed():
    """Opposite entries, one that never moves, and one that decay alone moves."""

    def start(u=0.3):
        return {"A": [[u, -u], [-u, u]], "b": [0.0, 0.7], "c": [0.0, -1.0, 1.0]}

    def risk(theta, xp):
        a, b, c = theta["A"].ravel(), theta["b"], theta["c"]
        still = xp.array([1.0, 0.0]) @ b + 0.0 * b[1]
        return (a[0] * a[1] * a[2] * a[3] - 1.0) ** 2 + (still + c[1] * c[2] + 2.0) ** 2 + c[0]

    return dynamics.Model(start=start, risk=risk)


MODELS = {
    **{name: name for name in dynamics.system_names() if name not in DRAWN},
    "README": SUPPORT / "positional.py", "causal_tree": SUPPORT / "causal_tree.py",
    "signed": signed(),
}  # fmt: skip


@pytest.mark.parametrize(
    "title",
    [name if name == "signed" else pytest.param(name, marks=pytest.mark.long) for name in MODELS],
)
def test_reduced_runs_are_those_of_every_entry(title):
    system = dynamics.load_system(MODELS[title])
    law, options = PAPERS.get(title, ({}, {}))
    parameters = system.Parameters(**law)
    reduced = system.ReducedPopulation(parameters, **options)
    full = system.FullPopulation(parameters, **options)
    for name, rule in RULES.items():
        if title in KINKED and rule.decays:
            continue
        found = dynamics.compare(reduced, full, eta=0.01, steps=300, rule=rule)
        assert found.largest_deviation < 1e-11, name
