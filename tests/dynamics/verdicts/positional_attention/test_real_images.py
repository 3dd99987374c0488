"""Section 6 on real images: the figure, its flags, and its claims, on small images."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.cli import main
from dynamics.images import protocol
from dynamics.images.networks import Convolution, Transformer
from dynamics.images.protocol import Trained
from dynamics.images.training import Run
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.positional_attention import real_images

SYSTEM = dynamics.load_system("positional_attention")
SMALL = {"seeds": 2, "steps": (4, 8), "samples": 96, "tests": 40, "patch": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bars(tmp_path_factory.mktemp("bars"))


def options(folder):
    given = (SMALL | {"seeds": 1, "steps": 4}).items()
    words = ["figure", "positional_attention", "images", "--data", folder]
    return words + [f"--option={name}={entry}" for name, entry in given]


def test_the_figure_has_a_table_of_errors_and_of_corrected_association(folder):
    drawing = draw(SYSTEM, "images", options=SMALL | {"data": folder})
    table = [row for row in drawing.table if "original" in row]
    assert len({(row["network"], row["steps"]) for row in table}) == len(table) == 10
    shown = set()
    for row in table:
        original, moved, drop = (
            tuple(map(float, row[name].split(" ± "))) for name in ("original", "shuffled", "drop")
        )
        assert drop[0] == pytest.approx(original[0] - moved[0], abs=2e-4)
        shown |= {round(100 * original[0], 2), round(100 * moved[0], 2)}
    values = drawing.data["vanilla, start 0.02, original"]["accuracy"]
    accuracies = np.array(values)[:, drawing.data["records"].index(4)]
    assert table[0]["original"] == str(protocol.estimate(accuracies))
    lines = drawing.axes[0].lines
    assert shown <= {round(x, 2) for line in lines for x in line.get_xdata()[:1]}
    (row,) = [
        row for row in drawing.table if "pixels" in row
        and [*row.values()][:3] == ["positional, start 0.02", "shuffled", "original"]
    ]  # fmt: skip
    runs = drawing.data["positional, start 0.02, shuffled"]
    for column, which, kind in (("p <p,p>", "gram", "p_value"), ("p A", "scores", "either")):
        for steps in (0, 8):
            record = drawing.data["records"].index(steps)
            expected = protocol.combined_p_value([each[kind][record] for each in runs[which]])
            corrected = row[f"{column} at {steps}"]  # by Holm's correction over the table
            assert expected <= corrected <= min(1.0, 54 * expected)


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["4", "--permuted"], "--permuted is an option of figure images, not of 4"),
        (["images", "--D", "9"], "no parameters"),
        (["images", "--data", "digitz"], "data='digitz' is not a folder"),
        (["images", "--option=patch=3"], "patch=3"),
        (["images", "--option=shuffle=3", "--option=patch=1"], "shuffle=3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words, told, folder, capsys):
    given = [] if "--permuted" in words or "--data" in words else ["--data", folder]
    assert main(["figure", "positional_attention", *words, *given]) == 2
    assert told in capsys.readouterr().err


CLAIMS = ("Figure 1a", "Figure 5a", "Figure 5c", "Figure 7")


def made_up(plan, **changes):
    """Trials without training: accuracies and positions that the claims would have."""
    runs = {
        (name, moved): [_run(network, name, moved, seed, plan, **changes) for seed in plan.seeds]
        for name, network in plan.networks(1).items()
        for moved in (False, True)
    }
    return real_images.Trials(plan, 1, 1, None, runs)


def _run(network, name, moved, seed, plan, drop=0.1, gap=0.0, learned=1.0, follows=True,
         noise=0.002):  # fmt: skip
    random, grid = np.random.default_rng([seed, moved]), 8
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


def words_of(monkeypatch, **changes):
    monkeypatch.setattr(real_images, "train_once", lambda plan: made_up(plan, **changes))
    return {v.claim.source: v.word.split(",")[0] for v in dynamics.verify(SYSTEM, claims=CLAIMS)}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, set()),
        ({"drop": 0.0}, {"Figure 5a"}),
        ({"gap": 0.2}, {"Figure 7"}),
        ({"learned": 0.0}, {"Figure 1a", "Figure 5c"}),
        ({"follows": False}, {"Figure 5c"}),
        ({"noise": 0.2}, {"Figure 7"}),  # equality is excluded by nothing
    ],
)
def test_claims_hold_where_the_networks_do_as_the_paper_says(changes, lost, monkeypatch):
    found = words_of(monkeypatch, **changes)
    if "noise" in changes:
        found = {source: found[source] for source in ("Figure 5a", "Figure 7")}
    assert {source for source, word in found.items() if word != "holds"} == lost
    few = {"learned", "noise"} & set(changes) and lost - {"Figure 5a"}
    for source in lost:
        missing = "with so few trials" if few else "at this step size"
        assert found[source] == f"not decidable {missing}"


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


def test_claims_on_images_need_their_packages(monkeypatch):
    def missing(*_):
        raise InvalidRequest("images need scikit-learn, which is not installed")

    monkeypatch.setattr(real_images.datasets, "load", missing)
    verdict = dynamics.verify(SYSTEM, None, ["Figure 5a"])[0]
    assert verdict.word.startswith("not decidable without a measurement")
    assert "scikit-learn" in verdict.finding.reason
