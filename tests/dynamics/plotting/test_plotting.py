"""Pictures of runs are checked through the data of their artists."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.plotting import style
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def result():
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(**system.default_runs["compare"].parameters)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    return dynamics.compare(*problems, eta=0.1, steps=9000)


def lines(panel, marked):
    found = [line for line in panel.lines if len(line.get_xdata()) > 2]
    return [line for line in found if (line.get_linestyle() == "None") == marked]


def test_reduced_is_lines_and_full_is_markers(result):
    axes = plotting.comparison(result)
    names = [["alpha"], ["gamma", "rho"], ["G", "alpha_G"], ["risk"]]
    for panel, shown in zip(axes, names, strict=True):
        assert panel.get_xscale() == "log"
        for name, line in zip(shown, lines(panel, marked=False), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), result.reduced[name][1:])
        for name, line in zip(shown, lines(panel, marked=True), strict=True):
            assert set(line.get_ydata()) <= set(result.full[name])
            assert len(line.get_xdata()) > 15
    assert axes[0].get_ylabel() == r"$\alpha$"


def test_events_are_marked_where_they_are(result):
    axes = plotting.comparison(result)
    verticals = {line.get_xdata()[0] for line in axes[0].lines if len(set(line.get_xdata())) == 1}
    events = result.reduced.events
    assert {events[name].time for name in ("T0", "T1", "T1_paper", "event_III")} <= verticals
    assert {"Event I", r"$\min\,\alpha$"} <= {text.get_text() for text in axes[0].texts}
    for panel in axes:
        begins = [shade.get_paths()[0].vertices[:, 0].min() for shade in panel.collections]
        assert begins[1:] == [events["T0"].time, events["T1"].time, events["event_III"].time][::2]


def test_attention_shows_the_sets_and_every_moment(result):
    axes = plotting.attention(result.full)
    assert [panel.get_title().split(":")[0] for panel in axes][2:] == ["$T_0$", "$T_1$", "end"]
    shown = axes[-1].images[0].get_array()
    np.testing.assert_array_equal(shown.data, result.full["A"][-1])
    assert np.array_equal(shown.mask, np.eye(9, dtype=bool))
    norms = [panel.images[0].norm for panel in axes[1:]]
    assert all(norm is norms[0] for norm in norms)
    assert (norms[0].vmin, norms[0].vmax) == (-np.abs(shown).max(), np.abs(shown).max())
    # Entries at T0 are a thousandth of those at the end, and yet their sets are seen.
    early = np.ma.compressed(norms[0](axes[2].images[0].get_array()))
    assert np.ptp(early) > 0.1


def above(axes):
    return np.ravel(axes)[0].figure.get_suptitle()


def test_every_picture_of_runs_states_the_parameters(result, seeds):
    run = result.reduced
    ones = np.ones(len(run.time))
    stability = plotting.stability(run, run, 0.05 * ones)
    np.testing.assert_array_equal(stability[0].lines[0].get_ydata(), 0.05 * ones[run.time >= 0.1])
    assert stability[0].lines[1].get_ydata()[0] == 0.1
    for axes, size in (
        (plotting.training(run), 9), (plotting.comparison(result), 9), (stability, 9),
        (plotting.deviation(result), 9), (plotting.attention(result.full), 9),
        (plotting.several({"one": run, "other": result.full}, ["alpha"]), 9),
        (plotting.transverse_growth(TransverseGrowth(run.time, ones, ones), run), 9),
        (plotting.realistic(seeds), 8), (plotting.comparison(seeds), 8),
    ):  # fmt: skip
        assert f"$D = {size}$" in above(axes)
        assert rf"$\nu = {style.number(run.parameters['nu'])}$" in above(axes)
    assert "$N = 80$" in above(plotting.training(seeds.full))


def test_deviation_is_logarithmic_and_of_the_farthest_states(result, monkeypatch):
    axes = plotting.deviation(result)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    drawn = [line.get_ydata().max() for line in axes.lines if line.get_marker() != "None"]
    assert drawn == [result.deviation[name] for name in ("alpha", "gamma", "rho")]
    monkeypatch.setattr("dynamics.plotting.runs.MOST_STATES", 1)
    (line,) = (x for x in plotting.deviation(result).lines if x.get_marker() != "None")
    assert line.get_ydata().max() == max(result.deviation.values())


@pytest.fixture(scope="module")
def seeds():
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=8, C=2)
    problems = [system.FullEmpirical(parameters, 80, seed) for seed in range(3)]
    return dynamics.compare(system.ReducedPopulation(parameters), problems, 0.02, 400)


def test_seeds_are_a_median_and_a_band(seeds):
    axes = plotting.comparison(seeds)
    solid, dotted = axes[0].lines[:2]
    rows = np.stack([run["alpha"][1:] for run in seeds.fulls])
    np.testing.assert_array_equal(dotted.get_ydata(), np.median(rows, axis=0))
    np.testing.assert_array_equal(solid.get_ydata(), seeds.reduced["alpha"][1:])
    assert "3 seeds" in axes[0].figure.legends[0].get_texts()[1].get_text()


def test_evidence_draws_curves_and_lines_and_negative_values():
    curve = {"label": "c", "x": [1, 10], "y": [-1e-3, 10.0]}
    plot = {
        "x_label": "x", "y_label": "y", "x_scale": "log", "y_scale": "symlog",
        "curves": [curve], "lines": [{"label": "bound", "y": 1.0}],
        "parameters": {"D": 8, "nu": 1e-3}, "letters": {"D": "D", "nu": r"\nu"},
    }  # fmt: skip
    verdict = SimpleNamespace(
        evidence={"plot": plot}, word="does not hold here", claim=SimpleNamespace(source="Lemma 1")
    )
    axes = plotting.evidence(verdict)
    assert axes.get_yscale() == "symlog"
    assert above(axes) == r"$D = 8$, $\nu = 10^{-3}$"
    assert axes.get_title(loc="left") == "Lemma 1: does not hold here"
    assert [line.get_label() for line in axes.lines] == ["c", "bound"]
    plot["curves"][0]["y"] = [1e-3, 10.0]
    plot["lines"].append({"label": "no place on a logarithm", "y": 0.0})
    axes = plotting.evidence(verdict)
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["c", "bound"]
    plot["curves"][0]["errors"] = [1e-4, 2.0]
    (bars,) = plotting.evidence(verdict).containers
    low, high = bars.lines[2][0].get_segments()[1][:, 1]
    assert (low, high) == pytest.approx((8.0, 12.0))
    verdict.evidence = {}
    assert plotting.evidence(verdict) is None


@pytest.mark.parametrize("width", [2, 1e3, "wide", float("nan")])
def test_a_width_that_no_page_has_is_refused(width):
    with pytest.raises(InvalidRequest, match="width="), plotting.look(width=width):
        pass


def test_a_title_has_two_lines_and_the_caption_all_constants(result, tmp_path):
    many = {f"c{k}": k for k in range(130)}
    axes = plotting.training(
        replace(result.reduced, parameters=dict(result.reduced.parameters) | many)
    )
    assert above(axes).count("\n") == 1
    assert above(axes).endswith("(all in the caption)")
    plotting.write(axes, tmp_path / "p.png")
    caption = (tmp_path / "p.caption.txt").read_text(encoding="utf-8")
    assert "$D = 9$" in caption
    assert all(f"{k}$" in caption for k in range(130))


def test_no_name_of_an_event_overlaps_another_or_leaves_the_page(result):
    with plotting.look(linear=True, width=8.6):
        axes = plotting.training(result.reduced)
    axes[0].figure.draw_without_rendering()
    names = [text.get_window_extent() for text in axes[0].texts if text.get_text()]
    assert len(names) >= 5
    assert not any(one.overlaps(other) for one, other in itertools.combinations(names, 2))
    assert max(name.x1 for name in names) < axes[0].figure.bbox.x1


def test_a_picture_of_some_of_the_scalars_says_so():
    model = dynamics.Model(
        start=lambda: {"w": np.linspace(1, 2, 120)}, risk=lambda theta, xp: xp.sum(theta["w"] ** 4)
    )
    many = dynamics.descend(model.ReducedPopulation(model.Parameters()), 1e-3, 3)
    assert above(plotting.training(many)).splitlines()[-1] == "shown: 30 of 120 scalars"


@pytest.mark.parametrize(
    ("risk", "drawn"),
    [
        ([0.25, 1e-9, 1e-15, 3e-17, 1e-17, 3e-17, -1e-17], 5),
        ([0.25, 1e-9, 1e-15, 3e-17, 0.0, 0.0, 3e-17], 4),
        ([0.25, 1e-5, 1e-12, 1e-18, 1e-24, 1e-30, 2e-31], 7),  # of squares
        ([-1e-21, -1e-18, -1e-12, -1e-6, -0.1, -0.2, -0.25], 7),  # from a saddle
        ([0.25, 1e-9, 1e-17, 1e-9, 0.2, 0.1, 0.1], 7),
    ],
)
def test_a_risk_is_drawn_to_the_rounding_of_its_terms(result, risk, drawn):
    run, cut = result.reduced, slice(1, 1 + len(risk))
    short = replace(
        run, steps=run.steps[cut], time=run.time[cut], states=run.states[cut], events=run.events,
        observables={n: s[cut] for n, s in run.observables.items()} | {"risk": np.array(risk)},
    )  # fmt: skip
    (line, *_) = plotting.training(short)[-1].lines
    assert np.isfinite(line.get_ydata()).sum() == drawn
    np.testing.assert_array_equal(line.get_ydata()[:drawn], np.abs(risk)[:drawn])


def test_a_run_that_diverged_is_drawn_while_it_is_finite(system):
    run = dynamics.descend(
        system.ReducedPopulation(system.Parameters(D=9, C=3)), eta=1.0, steps=100
    )
    assert run.outcome.kind == "diverged"
    axes = plotting.training(run)
    for line in (line for panel in axes for line in panel.lines):
        values = np.asarray(line.get_ydata(), float)
        assert np.nanmax(np.abs(values), initial=0.0) < 1e6
    assert above(axes).splitlines()[-1].startswith("diverged at $")
    assert axes[-1].get_xlim()[1] < run.time[-1]
