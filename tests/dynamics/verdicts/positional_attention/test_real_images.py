"""Section 6 on real images: the figure, its flags, and its claims, on small images."""

import json
import os
import signal
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from small_images import write_bars

import dynamics
from dynamics import plotting
from dynamics.cli import main
from dynamics.images import protocol
from dynamics.images.networks import Convolution, Transformer
from dynamics.images.protocol import Trained
from dynamics.images.training import Run
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import image_figure, real_images
from dynamics.verdicts.positional_attention.real_images import Plan

SYSTEM = dynamics.load_system("positional_attention")
SMALL = {"seeds": 2, "steps": (4, 8), "samples": 96, "tests": 40, "patch": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bars(tmp_path_factory.mktemp("bars"))


@pytest.fixture(scope="module")
def drawing(folder):
    return draw(SYSTEM, "images", options=SMALL | {"data": folder})


def options(folder):
    words = ["figure", "positional_attention", "images", "--data", folder]
    for name, entry in (SMALL | {"seeds": 1, "steps": 4}).items():
        words += ["--option", f"{name}={entry}"]
    return words


def test_the_figure_has_a_table_with_standard_errors(drawing):
    table = [row for row in drawing.table if "original" in row]
    rows = [(row["network"], row["steps"]) for row in table]
    assert len(rows) == len(set(rows)) == 10
    for row in table:
        original, moved, drop = (
            tuple(map(float, row[name].split(" ± "))) for name in ("original", "shuffled", "drop")
        )
        assert drop[0] == pytest.approx(original[0] - moved[0], abs=2e-4)
        assert all(error >= 0 for _, error in (original, moved, drop))
        assert ("vanilla - positional" in row) == row["network"].startswith("positional")
    values = drawing.data["vanilla, start 0.02, original"]["accuracy"]
    accuracies = np.array(values)[:, drawing.data["records"].index(4)]
    assert table[0]["original"] == str(protocol.estimate(accuracies))


def test_the_table_has_association_before_training_beside_that_after(drawing):
    rows = [row for row in drawing.table if "pixels" in row]
    cases = [(row["network"], row["pixels"], row["neighbours in"]) for row in rows]
    assert len(cases) == len(set(cases)) == 4 * 3
    assert {row["network"] for row in rows} == {
        f"{kind}, start {spread}" for kind in ("vanilla", "positional") for spread in ("0.02", "1")
    }
    for row in rows:
        letters = ("<p,p>", "A") if row["network"].startswith("positional") else ("<p,p>",)
        names = [f"p {letter} at {steps}" for letter in letters for steps in (0, 4, 8)]
        assert list(row)[3:] == names
        assert all(0 < row[name] <= 1 for name in names)
    runs = drawing.data["positional, start 0.02, shuffled"]
    for column, which, kind in (("p <p,p>", "gram", "p_value"), ("p A", "scores", "either")):
        values = [series[kind] for series in runs[which]]
        for steps in (0, 8):
            record = drawing.data["records"].index(steps)
            expected = protocol.combined_p_value([each[record] for each in values])
            (row,) = (r for r in rows if cases[rows.index(r)] == (
                "positional, start 0.02", "shuffled", "original"))  # fmt: skip
            corrected = row[f"{column} at {steps}"]  # by Holm's correction over the table
            assert expected <= corrected <= min(1.0, 54 * expected)


def test_the_figure_draws_what_it_has_in_its_table(drawing):
    accuracy, contrast, p_value, *maps = drawing.axes
    drawn = [line.get_xdata()[0] for line in accuracy.lines if len(line.get_xdata()) == 1]
    table = [
        100 * float(row[key].split()[0])
        for row in drawing.table
        if "original" in row
        for key in ("original", "shuffled")
    ]
    assert {round(x, 2) for x in drawn} >= {round(x, 2) for x in table}
    assert contrast.get_xlabel() == p_value.get_xlabel() == "steps"
    assert [panel.get_title() for panel in maps] == [
        "start", "learned, original pixels", "learned on shuffled pixels", "the same, moved back",
    ]  # fmt: skip
    for panel in maps:
        field = np.ma.filled(panel.images[0].get_array(), np.nan)
        assert np.argwhere(np.isnan(field)).tolist() == [[2, 2]]


def test_shuffled_pixels_alone(folder, tmp_path):
    drawing = draw(SYSTEM, "images", options=SMALL | {"data": folder, "permuted": 1, "seeds": 1})
    assert all("original" not in row for row in drawing.table)
    plotting.write(drawing.axes, tmp_path / "picture.png")


def test_the_command_resumes_and_then_removes_what_it_kept(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made, kept = [], tmp_path / "results" / ".figure-positional_attention-images.checkpoints"
    original = protocol.train_trial

    def stopped(*words, **more):
        if len(made) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        made.append(words[1].name)
        return original(*words, **more)

    monkeypatch.setattr(protocol, "train_trial", stopped)
    assert main(options(folder)) == 130
    assert "--resume goes on" in capsys.readouterr().err
    written = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert len(written) == 4
    monkeypatch.setattr(protocol, "train_trial", original)
    assert main([*options(folder), "--resume", "--json"]) == 0
    shown = capsys.readouterr()
    assert f"resumes 4 runs of {kept.relative_to(tmp_path)}" in shown.err
    resumed = json.loads(shown.out)
    assert not kept.exists()
    assert main([*options(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"] == resumed["table"]
    assert main([*options(folder), "--resume"]) == 2
    assert "there is nothing to resume" in capsys.readouterr().err


def test_runs_of_an_earlier_figure_are_dropped_and_nothing_else(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "kept"
    own.mkdir()
    (own / "mine.txt").write_text("of the user")
    plan = Plan(folder, 1, 1, (4,), seeds=(0,), spreads=(0.02,), samples=64, tests=40)
    real_images.train_all(plan, own)
    before = {path.name: path.stat().st_mtime_ns for path in own.glob("*.checkpoint")}
    more = SMALL | {"data": folder, "checkpoints": str(own), "seeds": 1, "spreads": 0.02}
    draw(SYSTEM, "images", options=more)
    assert len(before) == 6
    assert (own / "mine.txt").exists()
    assert all(path.stat().st_mtime_ns > before[path.name] for path in own.glob("*.checkpoint"))


def test_another_protocol_is_not_resumed(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "results" / ".figure-positional_attention-images.checkpoints"
    plan = Plan(folder, 1, 1, (4,), seeds=(0,), samples=96, tests=40)
    real_images.train_all(plan, kept)
    assert main([*options(folder), "--option", "samples=64", "--resume"]) == 2
    assert "samples=96 there and 64 here" in capsys.readouterr().err


def test_flags_of_the_figure_are_refused_elsewhere(capsys):
    assert main(["figure", "positional_attention", "4", "--permuted"]) == 2
    assert "--permuted is an option of figure images, not of 4" in capsys.readouterr().err
    assert main(["figure", "positional_attention", "images", "--D", "9"]) == 2
    assert "no parameters" in capsys.readouterr().err
    assert main(["figure", "positional_attention", "images", "--data", "digitz"]) == 2
    assert "data='digitz' is not a folder" in capsys.readouterr().err


def test_impossible_options_are_refused(folder):
    for wrong, word in (
        ({"patch": 3}, "patch=3"),
        ({"shuffle": 4}, "shuffle=4"),
        ({"seeds": 0}, "seeds"),
    ):
        with pytest.raises(InvalidRequest, match=word):
            draw(SYSTEM, "images", options=SMALL | {"data": folder} | wrong)


CLAIMS = ("Figure 1a", "Figure 5a", "Figure 5c", "Figure 7")


def made_up(plan, drop=0.1, gap=0.0, learned=1.0, follows=True, noise=0.002):
    """Trials without training: accuracies and positions that the claims would have."""
    grid, runs = 8, {}
    for name, network in plan.networks(1).items():
        for moved in (False, True):
            runs[name, moved] = [
                _run(network, name, moved, seed, plan, drop, gap, learned, follows, noise, grid)
                for seed in plan.seeds
            ]
    return real_images.Trials(plan, 1, 1, None, runs)


def _run(network, name, moved, seed, plan, drop, gap, learned, follows, noise, grid):
    random = np.random.default_rng([seed, moved])
    level = 0.9 - gap * name.startswith("positional")
    level -= drop / (plan.shuffle or 1) * moved * isinstance(network, Convolution)
    order = np.random.default_rng(seed).permutation(grid**2) if moved else np.empty(0, int)
    scatter = noise * isinstance(network, Transformer) + 0.002 * isinstance(network, Convolution)
    own = np.random.default_rng([seed, moved, *name.encode()])
    accuracy = level + scatter * own.normal(size=len(plan.records))
    trial, variance = protocol.Trial(network, seed, int(moved)), own.random((grid, grid))
    run = Trained(trial, None, accuracy, order, grid, variance)
    if isinstance(network, Transformer):
        start = random.normal(size=(grid**2, network.width))
        near = run.near(as_shuffled=not follows)
        end = start + (0.5 * learned * near @ start if network.spread < 0.5 else 0.0)
        positions = np.stack([start] * (len(plan.records) - 1) + [end]).astype(np.float32)
        weights = network.start(grid, 1, 10, seed).items()
        thetas = {n: np.stack([array] * len(plan.records)) for n, array in weights}
        thetas["position"] = positions
        run = replace(run, run=Run(np.array(plan.records), None, thetas))
    return run


def test_drops_are_counted_in_standard_errors():
    trials = made_up(Plan())
    table = list(islice(image_figure.rows(trials), 10))
    for row in table:
        pair = (trials.accuracies(row["network"], moved, row["steps"]) for moved in (False, True))
        drops = np.subtract(*pair)
        expected = drops.mean() / (drops.std(ddof=1) / len(drops) ** 0.5)
        assert row["drop / error"] == pytest.approx(expected)
        assert (row["drop / error"] > 20) == (row["network"] == "convolution")


def words_of(monkeypatch, **changes):
    monkeypatch.setattr(real_images, "train_once", lambda plan: made_up(plan, **changes))
    return {v.claim.source: v.word.split(",")[0] for v in dynamics.verify(SYSTEM, claims=CLAIMS)}


def test_claims_hold_where_the_networks_do_as_the_paper_says(monkeypatch):
    assert set(words_of(monkeypatch).values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"drop": 0.0}, {"Figure 5a"}),
        ({"gap": 0.2}, {"Figure 7"}),
        ({"learned": 0.0}, {"Figure 1a", "Figure 5c"}),
        ({"follows": False}, {"Figure 5c"}),
    ],
)
def test_claims_do_not_hold_where_they_do_not(changes, lost, monkeypatch):
    found = words_of(monkeypatch, **changes)
    assert {source for source, word in found.items() if word != "holds"} == lost
    few = {"Figure 1a", "Figure 5c"} if "learned" in changes else set()
    for source in lost:
        missing = "with so few trials" if source in few else "at this step size"
        assert found[source] == f"not decidable {missing}"


def test_noise_decides_nothing(monkeypatch):
    """Seeds that scatter by more than what is to be excluded show no equality.

    That transformers do not depend on the order of the patches is no matter of trials.
    """
    found = words_of(monkeypatch, noise=0.2)
    assert found["Figure 7"] == "not decidable with so few trials"
    assert found["Figure 5a"] == "holds"


@pytest.mark.parametrize("kind", ["vanilla", "positional"])
def test_a_transformer_does_not_see_the_order_of_its_patches(kind, monkeypatch):
    assert real_images.change_by_shuffling(kind, 0) < 1e-5
    forward = Transformer.forward

    def ordered(self, theta, tokens, present=None):
        """Tokens that know where they are beside their positions."""
        return forward(self, theta, tokens * np.linspace(1, 2, 64)[None, :, None], present)

    monkeypatch.setattr(Transformer, "forward", ordered)
    assert real_images.change_by_shuffling(kind, 0) > real_images.EXACT
    assert words_of(monkeypatch)["Figure 5a"] == "not decidable at this step size"


def test_a_limit_of_a_mean_is_that_of_student():
    """Of ten means of five, one in twenty is above its limit; here by scipy's own interval."""
    values = np.array([0.1, -0.2, 0.3, 0.05, 0.0])
    expected = ttest_1samp(values, 0.0).confidence_interval(0.9).high
    assert protocol.estimate(values).upper == pytest.approx(expected, rel=1e-12)
    assert protocol.estimate([0.1]).upper == np.inf


def test_claims_on_images_have_no_parameters_and_need_their_packages(monkeypatch):
    verdict = dynamics.verify(SYSTEM, SYSTEM.Parameters(D=8, C=2), ["Figure 7"])[0]
    assert (verdict.holds, "without such parameters" in verdict.finding.reason) == (None, True)
    real_images.train_once.cache_clear()

    def missing(*_):
        raise InvalidRequest("images need scikit-learn, which is not installed")

    monkeypatch.setattr(real_images.datasets, "load", missing)
    verdict = dynamics.verify(SYSTEM, None, ["Figure 5a"])[0]
    assert verdict.word.startswith("not decidable without a measurement")
    assert "scikit-learn" in verdict.finding.reason
