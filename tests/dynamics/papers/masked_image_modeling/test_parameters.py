"""Every wrong request ends in one line that says what is allowed."""

import dataclasses
import json

import numpy as np
import pytest

from dynamics.validation import InvalidRequest

WRONG = [
    ({"family": "three"}, "family='three' is unknown"),
    ({"P": 256, "C_global": 100, "C_local": 7}, "nearest: 6"),
    ({"C_local": 5}, "areas do not partition the patches"),
    ({"P": 8, "C_global": 8}, "leaves nothing of P=8"),
    ({"masked": 0}, "masked=0 masks nothing"),
    ({"masked": 256}, "masked=256 masks all patches; masked can be 1 to 255 patches"),
    ({"d": 288}, "d=288 has no room for 33 features and 256 positions"),
    ({"z": "0.5,1.5", "odds": "0.5,0.6"}, "sums to 1.1"),
    ({"z": "0.5,1.5", "odds": 1.0}, "has 1 entries; odds can be 2 probabilities"),
    ({"z": 0}, "z=0 is too small"),
    ({"z": [1.0, -1.0]}, "z=-1.0 is too small"),
    ({"z": (1.0, 1.0)}, "has a value twice"),
    ({"z": 1e200}, "z=1e+200 is too large; z can be a finite number at least 0.001 and at most"),
    ({"z": [1.0, 1e-200]}, "z=1e-200 is too small"),
    ({"z": "one"}, "z='one' is not a list of numbers"),
    ({"T": 3}, "T=3 does not fit family='one_cluster'"),
    ({"family": "custom"}, "has no cluster"),
    ({"family": "custom", "areas": "0,0,2,2"}, "does not partition 4 patches in cluster 1"),
    ({"family": "custom", "areas": "0,0,1,1;0,1"}, "does not partition 4 patches in cluster 2"),
    ({"family": ["a"]}, "family=['a'] is unknown"),
    ({"family": None}, "family=None is unknown"),
    ({"family": "custom", "areas": "0,x"}, "is not a list of whole numbers"),
    ({"family": "custom", "areas": "0,inf,1,1"}, "areas='0,inf,1,1' is not a list of whole"),
    ({"family": "custom", "areas": "0,nan,1,1"}, "areas='0,nan,1,1' is not a list of whole"),
    ({"family": "custom", "areas": "0,1e300"}, "does not partition 2 patches in cluster 1"),
    ({"family": "custom", "areas": [[0, 10**400]]}, "is not a list of whole numbers"),
    ({"family": "custom", "areas": "0,0,-1,1"}, "does not partition 4 patches in cluster 1"),
    ({"family": "custom", "areas": [[0, 0, 1, 1]], "P": 5}, "P=5 does not fit"),
    ({"family": "two_cluster_grid", "b10": 6}, "b10=6 is not a multiple of C_local=4"),
    ({"family": "two_cluster_grid", "b11": 0, "b10": 0}, "leaves no global area"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_wrong_parameters_are_refused_in_one_line(system, given, said):
    with pytest.raises(InvalidRequest) as caught:
        system.Parameters(**given)
    told = str(caught.value)
    assert said in told
    assert "\n" not in told
    assert "nearest:" in told


def test_families_fill_in_what_follows(system):
    one = system.Parameters()
    assert (one.P, one.C_global, one.C_local, one.masked, one.d) == (256, 128, 4, 128, 289)
    assert one.Delta == pytest.approx(0.5)
    grid = system.Parameters(family="two_cluster_grid")
    assert (grid.P, grid.K, grid.features, grid.C_global, grid.masked) == (40, 2, 14, 16, 20)
    custom = system.Parameters(family="custom", areas="0,0,1,1;0,1,0,1")
    assert custom.areas == ((0, 0, 1, 1), (0, 1, 0, 1))
    for parameters in (one, grid, custom):
        assert parameters.features == sum(row.max() + 1 for row in parameters.area_ids)
        sizes = [np.bincount(row) for row in parameters.area_ids]
        assert sizes[0][0] == parameters.C_global
        assert parameters.C_local in sizes[0][1:]


def test_rows_of_one_kind_are_numbered(system):
    def names(areas):
        from dynamics.papers.masked_image_modeling.scalars import rows_of

        rows = rows_of(system.Parameters(family="custom", areas=areas))
        letters = rows.notation
        assert all(letters.label(name) for name in rows.scalars)
        assert all("local\\ 1" in letters[n].latex for n in rows.scalars if "local_1" in n)
        return rows.names

    assert names("0,0,0,0,1,1,2,2,2") == ("global", "local_1", "local_2")
    assert names("0,0,0,0,1,1,2,2") == ("global", "local")
    # Areas of one size in every cluster: a patch is as good in a local area as in a global one.
    assert names("0,0,1,1") == names("0,0,1,1;0,1,0,1;0,1,1,0") == ("patch",)


@pytest.mark.long
def test_what_a_family_has_not_is_no_parameter_of_it(system, tmp_path, capsys):
    from dynamics.cli import main

    for words in ([], ["--family", "custom", "--areas", "0,0,0,0"]):
        out = ["--steps", "3", "--force", "--out", str(tmp_path / "run")]
        assert main(["run", "masked_image_modeling", *words, *out]) == 0
        told = capsys.readouterr().out.splitlines()[1]
        shown = {part.split("=")[0] for part in told.split(", ") if "=" in part}
        assert not shown & {"b11", "b10", "T"}
        assert ("areas" in shown) == bool(words)
        assert ("C_local" in shown) != bool(words)
    one = system.Parameters()
    assert (one.b11, one.b10, one.T, one.areas) == (None, None, None, ())
    assert system.Parameters(b11=0, T=0, areas=()) == one


@pytest.mark.long
def test_sizes_that_were_not_asked_for_are_not_refused(tmp_path, capsys):
    from dynamics.cli import main

    how = ["--steps", "3", "--force", "--out", str(tmp_path / "run")]
    words = ["masked_image_modeling", "--family", "custom", "--areas", "0,0,0,0,1,2,2,2"]
    assert main(["compare", *words, *how]) == 0
    assert "P=8, C_global=4, C_local=3" in capsys.readouterr().out
    empirical = ["--full", "empirical", "--samples", "20"]
    assert main(["run", *words, *empirical, *how]) == 0
    assert main(["compare", "masked_image_modeling", "--areas", "0,0,1,1", *how]) == 2
    assert "does not fit family='one_cluster'" in capsys.readouterr().err


def test_parameters_survive_json(system):
    for given in ({}, {"z": "0.7,1.3"}, {"family": "custom", "areas": "0,0,1,1"}):
        made = system.Parameters(**given)
        assert system.Parameters(**json.loads(json.dumps(dataclasses.asdict(made)))) == made


RENAMED = (
    ("0,0,0,0,0,0,1,1,1,1,2,2", "0,0,0,0,0,0,2,2,2,2,1,1"),
    ("0,0,0,0,1,2,2,2", "0,0,0,0,2,1,1,1"),
    ("0,0,0,0,0,0,0,0;0,0,0,0,1,1,1,1", "0,0,0,0,1,1,1,1;0,0,0,0,0,0,0,0"),
)


@pytest.mark.parametrize(("areas", "renamed"), RENAMED)
def test_sizes_and_gaps_are_those_of_the_row_that_rho_is_about(system, areas, renamed):
    made = [system.Parameters(family="custom", areas=one, masked=1) for one in (areas, renamed)]
    assert len({(one.C_global, one.C_local, one.Delta) for one in made}) == 1
    for parameters in made:
        problem = system.ReducedPopulation(parameters)
        near = problem.rows.views[0]
        cluster = problem.rows.types[near.row].clusters[near.cluster]
        own = next(area for area in cluster if area.phi == near.own)
        assert sum(number for _, number in own.cells) == parameters.C_local
        gap = np.log(problem.rho0) / np.log(parameters.P)
        assert parameters.Delta_eff == pytest.approx(gap, rel=1e-10)


def test_no_threshold_is_passed_at_the_start_because_an_area_is_taken_for_another(system):
    import dynamics

    for areas, size in (
        ("0,0,0,0,0,0,0,0;0,0,0,0,1,1,1,1", 4),
        ("0,0,0,0,1,2,2,2", 3),
    ):
        parameters = system.Parameters(family="custom", areas=areas)
        assert parameters.C_local == size
        run = dynamics.descend(system.ReducedPopulation(parameters), eta=1.0, steps=5)
        assert not run.events["E4p"]
        assert np.isfinite(run["A_m"]).all()


def test_without_local_areas_nothing_is_said_of_a_local_row(system):
    import dynamics

    parameters = system.Parameters(family="custom", areas="0,0,0,0")
    assert parameters.C_local is None
    assert np.isnan([parameters.kappa_s, parameters.Delta, parameters.Delta_eff]).all()
    problems = (
        system.ReducedPopulation(parameters),
        system.FullPopulation(parameters),
        system.FullEmpirical(parameters, samples=5),
    )
    for problem in problems:
        run = dynamics.descend(problem, eta=1.0, steps=300)
        for name in ("rho", "alpha_m", "alpha_0", "Phi_m", "Phi_0", "A_m", "gap"):
            assert np.isnan(run[name]).all()
        assert np.isfinite(run["A_g"]).all()
        reached = {name for name, event in run.events.items() if event}
        assert reached == {"E4_global", "E5_global"}
    result = dynamics.compare(*problems[:2], eta=1.0, steps=300)
    assert max(result.deviation.values()) < 1e-12


@pytest.mark.parametrize("z", [1e-3, 1e3, "1e-3,1e3"])
def test_latents_at_the_ends_of_their_range_are_run(system, z):
    import dynamics

    parameters = system.Parameters(P=12, C_global=8, C_local=2, masked=3, z=z)
    assert np.isfinite([parameters.Delta_eff, *parameters.odds]).all()
    problem = system.ReducedPopulation(parameters)
    assert np.isfinite(list(problem.observables(problem.initial_state).values())).all()
    run = dynamics.descend(problem, eta=1.0, steps=20)
    assert run.outcome.kind
