"""Masked image modelling: verdicts are measured and flip with the dynamics; maps and figures."""

import dataclasses

import naive
import numpy as np
import pytest
from verdicts import verdicts

import dynamics
from dynamics import plotting
from dynamics.cli.verify import separated
from dynamics.experiments.figure import draw
from dynamics.experiments.masked_image_modeling import maps
from dynamics.experiments.masked_image_modeling.paper_formulas import stated
from dynamics.experiments.masked_image_modeling.runs import NEGATIVE, POSITIVE, SLIGHT, along
from dynamics.experiments.verify import checks
from dynamics.systems.masked_image_modeling.full.population import FullPopulation
from dynamics.systems.masked_image_modeling.reduced.attention import attention_map
from dynamics.systems.masked_image_modeling.reduced.population import ReducedPopulation
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("masked_image_modeling")
TWO_PHASES = SYSTEM.Parameters(**POSITIVE)
SMALLER = SYSTEM.Parameters(P=512, C_global=288, C_local=16)


class Turned(ReducedPopulation):
    """Phi_0 of the local row moves against its gradient."""

    def __init__(self, parameters):
        super().__init__(parameters)
        shares = self._data[4][1].copy()
        shares[self.rows.references[1]] *= -1
        law = (self._data[4][0], shares, *self._data[4][2:])
        self._data = (*self._data[:4], law, *self._data[5:])


class Heavier(FullPopulation):
    """One masked image counts too much: masks are no longer uniform."""

    def __init__(self, parameters):
        super().__init__(parameters)
        *images, weight = self._data[1]
        tilted = weight * np.where(np.arange(weight.size) == 0, 3.0, 1.0)
        self._data = (self._data[0], (*images, tilted / tilted.sum()), *self._data[2:])


def test_every_claim_has_a_check_and_nothing_else_has():
    assert set(checks(SYSTEM)) == {claim.source for claim in SYSTEM.claims}


def test_a_turned_phi_0_flips_what_rests_on_it():
    """Both signs at one size; what does not rest on Phi_0 stays."""
    wrong = dataclasses.replace(SYSTEM, ReducedPopulation=Turned)
    resting = (
        "Section 5.1, monotone",
        "Lemma 5.3",
        "Section 5.2, intuition",
        "Theorem F.3, local areas",
    )
    assert verdicts(SYSTEM, *resting, parameters=TWO_PHASES) == [True] * 4
    assert verdicts(wrong, *resting, parameters=TWO_PHASES) == [False] * 4
    others = ("Theorem F.3, global areas", "Equation (4.1)")
    assert verdicts(wrong, *others, parameters=TWO_PHASES) == [True, True]


def test_masks_that_are_not_uniform_flip_the_lemmas():
    wrong = dataclasses.replace(SYSTEM, FullPopulation=Heavier)
    lemmas = ("Lemma A.8", "Lemma 5.1", "Lemma 5.2", "Equation (5.1)")
    small = SYSTEM.Parameters(P=8, C_global=4, C_local=2, masked=3)
    assert verdicts(SYSTEM, *lemmas, parameters=small) == [True] * 4
    assert verdicts(wrong, *lemmas, parameters=small) == [False] * 4


def test_what_the_paper_says_and_does_not_hold():
    """Section 8 of the derivation, each at the size where it is seen."""
    false = (
        "Section 5.2, stage 1",
        "Section 5.2, separation",
        "Theorem F.3, frozen",
    )
    assert verdicts(SYSTEM, *false, parameters=TWO_PHASES) == [False] * 3
    slight = SYSTEM.Parameters(**SLIGHT[1])
    assert verdicts(SYSTEM, "Theorem F.3, local areas", parameters=slight) == [False]
    tiny = SYSTEM.Parameters(P=12, C_global=8, C_local=2, masked=3)
    assert verdicts(SYSTEM, "Section 5.4, PP", "Lemma A.9", parameters=tiny) == [False, False]
    map_size = SYSTEM.Parameters(P=256, C_global=128, C_local=4)
    assert verdicts(SYSTEM, "Section 6", parameters=map_size) == [False]


def test_verdicts_of_a_negative_gap():
    parameters = SYSTEM.Parameters(**NEGATIVE)
    assert verdicts(SYSTEM, "Theorem F.4", parameters=parameters) == [True]
    assert verdicts(SYSTEM, "Theorem F.4", parameters=TWO_PHASES) == [None]
    assert verdicts(SYSTEM, "Lemma 5.3", parameters=parameters) == [None]


def test_sizes_that_decide_nothing():
    alone = SYSTEM.Parameters(P=8, C_global=4, C_local=1, masked=3)
    claims = ("Section 5.1, monotone", "Theorem 4.1, loss", "Section 6")
    assert verdicts(SYSTEM, *claims, parameters=alone) == [None] * 3
    assert verdicts(SYSTEM, "Lemma 5.1", parameters=TWO_PHASES) == [None]


def test_statements_are_the_slope_of_the_loss():
    """By central differences of the loss from the vectors, patch by patch."""
    areas, latents = [[0, 0, 1, 1, 2]], [(0.7, 0.4), (1.3, 0.6)]
    values, odds = zip(*latents, strict=True)
    parameters = SYSTEM.Parameters(
        family="custom", areas=areas, masked=2, z=list(values), odds=list(odds)
    )
    draws = np.random.default_rng(0)
    phi, ups = draws.normal(size=(5, 3)), draws.normal(size=(5, 5))
    found = stated(parameters, phi, ups)
    for p in (0, 2):
        row = (phi[p], ups[p])
        loss = naive.masked_patch(areas, p, 2, latents, row)
        alpha, beta = naive.masked_rates(areas, p, 2, latents, row)
        assert found.loss[p] == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(found.alpha[p], alpha, atol=1e-9)
        np.testing.assert_allclose(found.beta[0, p], beta, atol=1e-9)


def test_an_attention_map_is_that_of_single_scores():
    """Against loops over queries and keys, with every Q entry read by its class."""
    parameters = SYSTEM.Parameters(P=10, C_global=4, C_local=3, masked=4)
    problem = SYSTEM.ReducedPopulation(parameters)
    state = np.random.default_rng(2).normal(size=problem.layout.size)
    found = attention_map(problem.rows, state, z=1.2)
    values = dict(zip(problem.layout.names, state, strict=True))
    area = parameters.area_ids[0].tolist()
    for p in range(10):
        keys = []
        for q in range(10):
            if area[p] == 0:
                place = "own" if area[q] == 0 else "local"
                ups, phi = f"global_Ups_{place}", f"global_Phi_{place}"
            else:
                place = "own" if area[q] == area[p] else "other" if area[q] else "global"
                ups = f"local_Ups_{place}"
                phi = f"local_Phi_{'target' if place == 'own' else place}"
            row = "local" if area[p] else "global"
            ups = f"{row}_Ups_self" if p == q else ups
            keys.append(np.exp(values[ups] + 1.2 * values[phi]))
        np.testing.assert_allclose(found[p], np.array(keys) / sum(keys), rtol=1e-12)


def test_the_diversity_of_the_specification():
    parameters = SYSTEM.Parameters(**maps.USUAL)
    problem = SYSTEM.ReducedPopulation(parameters)
    run = dynamics.descend(problem, 1.0, 455, record=[0, 1, 165, 455])
    found = maps.measured(problem.rows, run, 10, 30)
    assert found["time"].tolist() == [0, 1, 165, 455]
    assert found["diversity"][0] == 0
    np.testing.assert_allclose(found["diversity"][1:], 50.228, atol=5e-4)
    assert found["total_variation"] == pytest.approx([0, 0.012, 0.380, 0.670], abs=6e-4)


def test_the_family_along_p_has_the_exponents():
    for P in (512, 4096, 65_536):
        parameters = along(SYSTEM, P)
        assert parameters.kappa_c == pytest.approx(0.9, abs=0.01)
        assert parameters.kappa_s == pytest.approx(0.3, abs=0.02)


def test_figures_show_what_was_measured(tmp_path):
    small = {"P": 256, "C_global": 128, "C_local": 4}
    phases = draw(SYSTEM, "phases", given=small, options={"steps": 400})
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**small)), 1.0, 400)
    np.testing.assert_array_equal(phases.axes[0].lines[0].get_ydata(), run["Phi_m"][1:])
    np.testing.assert_array_equal(phases.axes[1].lines[1].get_ydata(), -run["alpha_0"][1:])
    np.testing.assert_array_equal(phases.axes[2].lines[3].get_ydata(), run["local_masked"][1:])
    diversity = draw(SYSTEM, "diversity", given=small, options={"maps": 5, "keys": (4,)})
    np.testing.assert_array_equal(
        diversity.axes[1].lines[0].get_ydata(), diversity.data["variation"]
    )
    scaling = draw(SYSTEM, "scaling", options={"sizes": (512, 1024)})
    assert scaling.data["limit"] == pytest.approx(4 / 3, rel=1e-4)
    assert scaling.axes.lines[1].get_ydata() == pytest.approx([1.33, 1.29], abs=0.02)
    for name, drawing in (("p", phases), ("d", diversity), ("s", scaling)):
        assert plotting.write(drawing.axes, tmp_path / f"{name}.png").stat().st_size > 10_000


def test_the_plane_agrees_with_training():
    drawing = draw(SYSTEM, "gap", given={"P": 256}, options={"local": 3, "core": 6})
    boundary, trained = drawing.data["boundary"], drawing.data["trained"]
    assert len(boundary) == 3
    np.testing.assert_array_equal(trained[:, 2], trained[:, 3])
    assert set(trained[:, 2]) == {0.0, 1.0}
    for kappa_s, places, ratios in drawing.data["rows"]:
        assert (np.diff(places) > 0).all()
        assert (np.diff(ratios) > 0).all()
        assert kappa_s <= 0.5


def test_names_with_commas_are_asked_for_as_they_are_written():
    known = [claim.source for claim in SYSTEM.claims]
    text = "lemma 5.1,Section 5.1,monotone, Theorem 4.1, Loss,Lemma 9"
    names = ["lemma 5.1", "Section 5.1, monotone", "Theorem 4.1, Loss", "Lemma 9"]
    assert separated(text, known) == names
    assert separated(",".join(known), known) == known


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("phases", {"family": "two_cluster_grid"}, "is not what this figure is about"),
        ("phases", {"P": 8, "C_global": 4, "C_local": 1}, "no local patch with a mate"),
        ("gap", {"C_local": 4}, "C_local is an axis"),
        ("5", {}, "known are phases, gap, diversity, scaling"),
    ],
)
def test_what_cannot_be_drawn_is_refused(name, given, told):
    with pytest.raises(InvalidRequest, match=told):
        draw(SYSTEM, name, given=given)
