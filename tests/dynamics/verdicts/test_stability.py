"""The stability of the reduced populations that a verdict rests on."""

from math import nan

import pytest

import dynamics
from dynamics.cli import main
from dynamics.results.stability import Stability
from dynamics.verdicts import stability as module
from dynamics.verdicts.cases import descent, flow_to
from dynamics.verdicts.claim import claim
from dynamics.verdicts.findings import Finding, Protocol
from dynamics.verdicts.stability import Trained, stability_of, with_stability


def finding(*trained, holds=True):
    return Finding(holds, "share", 0.2, 0.5, "small", trained=tuple(trained))


@pytest.mark.parametrize(
    ("run", "noted"),
    [
        (flow_to(5.0), [(5.0, None)]),
        (descent(0.1, 20), [(pytest.approx(2.0), 0.1)]),
        (descent(0.1, 20, "FullPopulation"), []),
        (None, []),
    ],
)
def test_a_claim_notes_the_reduced_runs_it_measures_or_names(run, noted):
    system = dynamics.load_system("single_location")
    laws = [system.Parameters(L=L) for L in (2, 3)]
    other = Trained(laws[0], 7.0)
    check = claim("any", "risk", "<=", 1.0, laws=({"L": 2}, {"L": 3}), run=run)
    measure = lambda case: {"value": 0.0} if noted else {"value": 0.0, "trained": (other, other)}  # noqa: E731
    expected = [Trained(law, *each) for law in laws for each in noted] or [other]
    assert list(check(measure)(system, Protocol()).trained) == expected


LIMITED = Stability(9.0, 1e9, 4.0, (6.0, 5.0, 7.0))


def test_a_verdict_speaks_of_the_time_to_which_the_classes_hold(monkeypatch):
    system = dynamics.load_system("positional_attention")
    table = {
        1.0: Stability(1.0, 2.0, 1.0, where="at D=8"), 2.0: Stability(2.0, where="too large"),
        9.0: LIMITED,
    }  # fmt: skip
    monkeypatch.setattr(module, "stability_of", lambda _, law, horizon, eta=None: table[horizon])

    def found(*horizons, holds=True):
        return with_stability(system, finding(*(Trained(None, h) for h in horizons), holds=holds))

    assert (found(1.0).word, found(1.0).reason, found().stability) == ("holds", "small", None)
    limited = found(1.0, 9.0)
    assert (limited.word, limited.stability) == ("holds to time 5", LIMITED)
    assert limited.reason.startswith("small; the classes hold to time 5: from three starts")
    assert found(9.0, holds=False).word == "does not hold here to time 5"
    counted = found(1.0, 2.0).stability
    assert (counted.where, counted.growth) == ("at D=8; not measured at 1 of 2 sizes", 2.0)
    assert (found(2.0).word, found(2.0).stability.measured) == ("holds", False)
    monkeypatch.setattr(module, "stability_of", lambda *_: LIMITED)
    law = system.Parameters(D=8, C=2)
    (verdict,) = dynamics.verify(system, law, claims=["Section 4.1, gamma and rho"])
    assert verdict.word == "holds to time 5"
    assert verdict.document()["stability"] == LIMITED.document()


def test_a_paper_says_what_is_known_of_it():
    system = dynamics.load_system("positional_attention")
    found = stability_of(system, system.Parameters(D=8, C=2), 1e4)
    assert (found.where, found.limited) == ("transverse growth at D=8, C=2", False)
    assert 10 < found.growth < 1e3
    large = stability_of(system, system.Parameters(D=64, C=4), 1e4)
    assert not large.measured
    assert "D=64, C=4" in large.where
    other = dynamics.load_system("shallow_vit")
    assert stability_of(other, other.Parameters(), nan) is None  # every state is on patterns


def test_a_model_is_measured_at_the_size_of_its_file_and_scalars_have_nothing_to_leave():
    system = dynamics.load_system("sparse_parity")
    found = stability_of(system, system.Parameters(D=51), 2.0, 0.2)
    assert found.where == "at D=8, half=6, k=3, the size of the model file"
    assert found.until == pytest.approx(2.0)
    system = dynamics.load_system("linear_icl")
    assert stability_of(system, system.Parameters(rank=1, D=2, heads=2), 1.0) is None


def test_a_description_of_a_model_says_until_when_its_scalars_are_stable(capsys):
    for name, said in (("single_location", True), ("positional_attention", False)):
        assert main(["describe", name]) == 0
        assert ("Stability\n    the classes hold to time 300" in capsys.readouterr().out) is said
