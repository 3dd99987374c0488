"""Stored results: whole, as they were, or refused; events and runs as tables."""

import errno
import functools
import itertools
import json
import math
import os
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray
from runs import same

import dynamics
from dynamics.cli import folders, main, report
from dynamics.validation import InvalidRequest


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
    words = "compare positional_attention --D 4 --C 2 --steps 40 --eta 0.02 --out r --csv t.csv"
    assert main([*words.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["csv"] == "t.csv"
    table = pd.read_csv("t.csv", float_precision="round_trip")
    pd.testing.assert_frame_equal(table, dynamics.load("r").to_dataframe(), check_exact=True)
    assert list(table)[:2] == ["time", "step"]


@pytest.fixture(scope="module")
def result(problems):
    return dynamics.compare(*problems, eta=0.02, steps=40)


def test_what_is_saved_is_loaded(result, tmp_path):
    for name in ("reduced", "full"):
        run = getattr(result, name)
        path = dynamics.save(run, tmp_path / name)
        same(dynamics.load(path), run)
    loaded = dynamics.load(dynamics.save(result, tmp_path / "below" / "comparison"))
    same(loaded.reduced, result.reduced)
    same(loaded.full, result.full)
    assert loaded.deviation == result.deviation


def test_equal_runs_give_equal_stores(result, tmp_path):
    stores = []
    for name in ("first", "second"):
        root = dynamics.save(result, tmp_path / name)
        files = sorted(p for p in root.rglob("*") if p.is_file())
        stores.append({str(p.relative_to(root)): p.read_bytes() for p in files})
    assert stores[0] == stores[1]


def test_an_earlier_result_is_replaced_and_anything_else_is_not(result, tmp_path):
    target = dynamics.save(result, tmp_path / "run")
    dynamics.save(result.reduced, target)
    same(dynamics.load(target), result.reduced)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidRequest, match="exists and is not a result"):
        dynamics.save(result, mine)
    assert [p.name for p in mine.iterdir()] == ["thesis.tex"]
    (mine / "zarr.json").write_text('{"node_type": "group"}')
    with pytest.raises(InvalidRequest, match="exists and is not a result"):
        dynamics.save(result, mine)
    (mine / "zarr.json").unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "run"]


def test_a_disk_that_fills_costs_no_earlier_result_and_leaves_nothing(
    result, tmp_path, monkeypatch
):
    target = dynamics.save(result.reduced, tmp_path / "run")
    write = xarray.Dataset.to_zarr

    def full(dataset, folder, **options):
        write(dataset, folder, **options)
        if options["group"] == "full":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(xarray.Dataset, "to_zarr", full)
    with pytest.raises(OSError, match="No space left"):
        dynamics.save(result, target)
    monkeypatch.undo()
    same(dynamics.load(target), result.reduced)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_is_no_result_is_refused(result, tmp_path):
    with pytest.raises(InvalidRequest, match="holds no result"):
        dynamics.load(tmp_path)
    path = dynamics.save(result.reduced, tmp_path / "run")
    described = json.loads((path / "zarr.json").read_text())
    described["attributes"]["format"] = 99
    (path / "zarr.json").write_text(json.dumps(described))
    with pytest.raises(InvalidRequest, match="format 99"):
        dynamics.load(path)
    (path / "zarr.json").write_text("{ half")
    with pytest.raises(InvalidRequest, match="no known format"):
        dynamics.load(path)


def test_dataset_has_named_variables_and_versions(result, tmp_path):
    dataset = result.full.stored()
    assert dataset["A"].dims == ("record", "A_axis_0", "A_axis_1")
    assert dataset["gamma"].dims == ("record",)
    assert json.loads(dataset.attrs["parameters"])["D"] == 4
    path = dynamics.save(result.reduced, tmp_path / "run")
    stored = xarray.open_zarr(path)
    programs = {"attdyn", "numpy", "scipy", "numba", "sympy"}
    assert set(json.loads(stored.attrs["versions"])) == programs


def test_of_two_writers_the_last_one_has_the_folder_whole(result, tmp_path, monkeypatch):
    """The other one writes at each of the moments between the steps of a replacement."""
    steps = {name: getattr(os, name) for name in ("rename", "replace")}
    dynamics.save(result.full, tmp_path / "x")
    for moment in range(4):
        moved = itertools.count()

        def interrupted(name, source, target, *, moment=moment, moved=moved):
            if os.path.isdir(source) and next(moved) == moment:
                dynamics.save(result.full, tmp_path / "x")
            steps[name](source, target)

        with monkeypatch.context() as patch:
            for name in steps:
                patch.setattr(os, name, functools.partial(interrupted, name))
            dynamics.save(result.reduced, tmp_path / "x")
        same(dynamics.load(tmp_path / "x"), result.reduced)
        assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_two_commands_at_once_take_different_folders(tmp_path, monkeypatch):
    """The second trains and writes while the first does, which began with the folder free."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "20"]
    write, codes = folders.write_folder, []

    def raced(*given, **named):
        monkeypatch.setattr(folders, "write_folder", write)
        codes.append(main([*words, "--nu", "2e-3"]))
        return write(*given, **named)

    monkeypatch.setattr(folders, "write_folder", raced)
    monkeypatch.setattr(report, "pictures", lambda result: iter(()))
    assert (main(words), codes) == (0, [0])
    nu = [
        dynamics.load(f"results/run-positional_attention{end}").parameters["nu"]
        for end in ("", "-2")
    ]
    assert nu == [2e-3, 1e-3]


def test_a_flipped_bit_or_a_cut_or_lost_file_is_refused_under_its_name(result, tmp_path):
    store = dynamics.save(result, tmp_path / "x")
    files = sorted(path for path in store.rglob("*") if path.is_file())
    rng, refused, mutations = np.random.default_rng(17), 0, 80
    for _ in range(mutations):
        path = files[rng.integers(len(files))]
        content = bytearray(whole := path.read_bytes())
        place = int(rng.integers(len(content)))
        if rng.random() < 0.7:
            content[place] ^= 1 << int(rng.integers(8))
        else:
            del content[place:]
        path.write_bytes(content)
        try:
            loaded, refusal = dynamics.load(store), ""
        except InvalidRequest as error:
            refusal = str(error)
        if refusal:
            assert path.relative_to(store).as_posix() in refusal
            assert "\n" not in refusal
            refused += 1
        else:  # 1e-5 may become 1E-5
            same(loaded.reduced, result.reduced)
            same(loaded.full, result.full)
        path.write_bytes(whole)
    assert refused > 0.95 * mutations
    same(dynamics.load(store).full, result.full)
    store = dynamics.save(result.reduced, tmp_path / "y")
    group = json.loads((store / "zarr.json").read_text())
    (store / "alpha" / "c" / "0").unlink()
    with pytest.raises(InvalidRequest, match="its alpha/c/0 is missing"):
        dynamics.load(store)
    del group["attributes"]["checksum"]
    (store / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(InvalidRequest, match=r"its zarr\.json is damaged"):
        dynamics.load(store)
