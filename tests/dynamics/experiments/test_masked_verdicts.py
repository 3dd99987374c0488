"""Masked image modelling: what decides a verdict is what it prints, and reasons follow numbers."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import dynamics
from dynamics.experiments.masked_image_modeling.runs import trained
from theory.systems.masked_image_modeling.data_law import unavoidable_error

SYSTEM = dynamics.load_system("masked_image_modeling")
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
ONE_PHASE = {"P": 12, "C_global": 4, "C_local": 4, "masked": 3}


def law(**given):
    return SYSTEM.Parameters(**given)


def test_two_phases_begin_above_one_and_cross_it_once():
    """As the events say: E0 at the start, and E2 later; not a rise from below, nor a return."""
    two, one = (trained(SYSTEM, law(**given)) for given in (SMALL, ONE_PHASE))
    assert (two.two_phases, two.crossings) == (True, 1)
    assert two.run.events["E0"].time == 0 < two.run.events["E2"].time
    assert (one.two_phases, one.crossings, one.run.events["E0"]) == (False, 0, None)
    for rho, crossings in (([2.0, 0.5, np.nan], 1), ([2.0, 0.5, 2.0], 2), ([0.5, 2.0, 2.0], 1)):
        series = dict(two.run.observables) | {"rho": np.array(rho)}
        again = dataclasses.replace(two, run=dataclasses.replace(two.run, observables=series))
        assert again.crossings == crossings


@pytest.mark.parametrize(
    "given", [SMALL, {"family": "custom", "areas": "0,0,0,1,1,2;0,1,1,0,2,0", "masked": 3}]
)
def test_floors_are_the_unavoidable_errors(given):
    """By the theory, with the own area of every cluster counted by hand."""
    parameters = law(z="0.5,1.5", odds="0.25,0.75", **given)
    rows, second = SYSTEM.ReducedPopulation(parameters).rows, Fraction(7, 4)
    for kind, floor in zip(rows.types, rows.floors, strict=True):
        p = int(kind.patches[0])
        sizes = [int((areas == areas[p]).sum()) for areas in parameters.area_ids]
        expected = float(unavoidable_error(parameters.P, parameters.masked, sizes, second))
        assert floor == pytest.approx(expected, rel=1e-14)
