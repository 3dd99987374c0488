"""Events of runs, and runs as tables: a row for each record, in pandas, xarray and CSV."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import dynamics
from dynamics.cli import main

SIZE = ["--D", "4", "--C", "2", "--steps", "40", "--eta", "0.02"]


@pytest.fixture(scope="module")
def problems():
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=4, C=2)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_a_run_is_a_table_of_its_records(problems):
    run = dynamics.descend(problems[0], 0.02, 40)
    table = run.to_dataframe()
    assert len(table) == run.time.size
    assert list(table)[:6] == ["time", "step", "alpha", "gamma", "rho", "risk"]
    assert set(table) == {"time", "step", *run.layout.names, *run.observables}
    for name in set(table) - {"time", "step"}:
        np.testing.assert_array_equal(table[name], run[name])
    assert table["step"].tolist() == run.steps.tolist()
    assert "step" not in dynamics.flow(problems[0], 1.0).to_dataframe()
    assert "A" not in dynamics.descend(problems[1], 0.02, 4).to_dataframe()


def test_records_are_indexed_by_time_and_events_stand_apart(problems):
    run = dynamics.descend(problems[0], 0.02, 40)
    data = run.to_xarray()
    assert set(data.sizes) == {"time"}
    np.testing.assert_array_equal(data["time"], run.time)
    assert float(data["alpha"].sel(time=0.2)) == run["alpha"][list(run.steps).index(10)]
    events = run.events.to_xarray()
    assert events["event"].values.tolist() == list(run.events)
    for name, event in run.events.items():
        row = events.sel(event=name)
        np.testing.assert_equal(float(row["time"]), event.time)
        np.testing.assert_array_equal(row["state"], event.state)
        assert str(row["reason"].values) == event.reason
    assert events["step"].notnull().values.tolist() == [bool(e) for e in run.events.values()]


def test_an_event_that_was_not_reached_is_false_and_says_why(system):
    """T0 is reached at step 28, T1 is not within the 100 steps."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.descend(problem, eta=0.02, steps=100)
    reached, missing = run.events["T0"], run.events["T1"]
    assert (bool(reached), reached.reached, reached.step, reached.reason) == (True, True, 28, "")
    assert (bool(missing), missing.reached, missing.step, missing.horizon) == (
        False, False, None, None
    )  # fmt: skip
    assert math.isnan(missing.time)
    assert missing.reason == run.reasons["T1"] == "not reached by time 2"
    assert missing.state.shape == run.final_state.shape
    assert np.isnan(missing.state).all()
    assert isinstance(run.events, dict)
    assert run.events.get("T2") is None
    assert [name for name, event in run.events.items() if event][:1] == ["T0"]
    with pytest.raises(KeyError, match=r"no event 'T2'; events are T0, T1"):
        run.events["T2"]
    again = pickle.loads(pickle.dumps(run.events))
    assert again["T0"].step == 28


def test_a_comparison_is_a_table_with_both_runs(problems):
    result = dynamics.compare(*problems, eta=0.02, steps=40)
    table = result.to_dataframe()
    assert list(table)[:2] == ["time", "step"]
    for name, series in result.deviations.items():
        np.testing.assert_array_equal(table[f"deviation_{name}"], series)
    np.testing.assert_array_equal(table["reduced_alpha"], result.reduced["alpha"])
    np.testing.assert_array_equal(table["full_alpha"], result.full["alpha"])
    flows = dynamics.compare(*problems, time=1.0).to_dataframe()
    assert "step" not in flows
    assert flows["deviation_rho"].notna().all()


def test_a_run_that_ended_early_leaves_gaps(problems):
    short, long = (dynamics.descend(p, 0.02, n) for p, n in zip(problems, (3, 6), strict=True))
    same = {name: np.zeros(short.time.size) for name in short.layout.names}
    table = dynamics.results.comparison.Comparison(short, long, same).to_dataframe()
    assert table["step"].tolist() == list(range(7))
    assert table["reduced_alpha"].notna().sum() == table["deviation_rho"].notna().sum() == 4


def test_the_command_writes_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "positional_attention", *SIZE, "--out", "r", "--csv", "t.csv", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["csv"] == "t.csv"
    table = pd.read_csv("t.csv", float_precision="round_trip")
    pd.testing.assert_frame_equal(table, dynamics.load("r").to_dataframe(), check_exact=True)
    assert list(table)[:2] == ["time", "step"]
