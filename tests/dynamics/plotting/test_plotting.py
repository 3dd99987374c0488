"""Pictures are checked through the data of their artists."""

import numpy as np
import pytest
from matplotlib.colors import Normalize

import dynamics
from dynamics import plotting
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.plotting import style
from dynamics.plotting.arrays import matrix_entries
from dynamics.verdicts.positional_attention.transverse_figures import transverse_picture


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
    assert axes[-1].get_xlabel().startswith("time")
    assert axes[0].get_ylabel() == r"$\alpha$"


def test_events_are_marked_where_they_are(result):
    axes = plotting.comparison(result)
    verticals = {line.get_xdata()[0] for line in axes[0].lines if len(set(line.get_xdata())) == 1}
    events = result.reduced.events
    assert {events[name].time for name in ("T0", "T1", "T1_paper", "event_III")} <= verticals
    written = [text.get_text() for text in axes[0].texts]
    assert {"Event I", "Event II", "Event III", r"$\min\,\alpha$"} <= set(written)
    for panel in axes:
        begins = [patch.get_x() for patch in panel.patches]
        assert begins[1:] == [events["T0"].time, events["T1"].time, events["event_III"].time][::2]


def test_an_event_that_is_absent_says_why():
    system = dynamics.load_system("positional_attention")
    run = dynamics.flow(system.ReducedPopulation(system.Parameters(D=9, C=3)), 1e4)
    written = [text.get_text() for text in plotting.training(run)[0].texts]
    assert "no Event III:\nfalls to the horizon" in written


def test_attention_shows_the_sets_and_every_moment(result):
    axes = plotting.attention(result.full)
    assert [panel.get_title().split(":")[0] for panel in axes] == [
        "true sets",
        "start",
        "$T_0$",
        "$T_1$",
        "end",
    ]
    shown = axes[-1].images[0].get_array()
    np.testing.assert_array_equal(shown.data, result.full["A"][-1])
    assert np.array_equal(shown.mask, np.eye(9, dtype=bool))
    norms = [panel.images[0].norm for panel in axes[1:]]
    assert all(norm is norms[0] for norm in norms)
    assert (norms[0].vmin, norms[0].vmax) == (-np.abs(shown).max(), np.abs(shown).max())
    # Entries at T0 are a thousandth of those at the end, and yet their sets are seen.
    early = np.ma.compressed(norms[0](axes[2].images[0].get_array()))
    assert np.ptp(early) > 0.1
    (bar,) = [panel for panel in axes[0].figure.axes if panel not in axes]
    assert bar.get_ylabel() == "logits $A_{ij}$"
    assert "attention" not in " ".join(text.get_text() for text in axes[0].figure.texts)
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == ["1", "4", "6", "9"]


def test_logits_of_one_size_have_a_linear_scale():
    matrices = [np.outer([1, -1, 1], [1, -1, 1]) * size for size in (0.0, 1.0, 4.0)]
    figure, axes = style.new_figure(6.0, 2.0, ncols=3)
    matrix_entries(figure, axes, matrices)
    (norm,) = {panel.images[0].norm for panel in axes}
    assert type(norm) is Normalize
    assert (norm.vmin, norm.vmax) == (-4.0, 4.0)
    empty = style.new_figure(3.0, 2.0, ncols=2)
    matrix_entries(empty[0], empty[1], [np.zeros((3, 3))] * 2)
    assert empty[1][0].images[0].get_clim() == (-1.0, 1.0)


def above(axes):
    return np.ravel(axes)[0].figure.get_suptitle()


def test_every_picture_of_runs_states_the_parameters(result, seeds):
    run = result.reduced
    growth = TransverseGrowth(run.time, np.ones(len(run.time)), np.ones(len(run.time)))
    for axes in (
        plotting.training(run), plotting.comparison(result), plotting.attention(result.full),
        plotting.deviation(result), plotting.realistic(seeds), plotting.comparison(seeds),
        plotting.several({"one": run, "other": result.full}, ["alpha"]),
        plotting.stability(run, run, np.ones(len(run.time))),
        plotting.transverse_growth(growth, run),
    ):  # fmt: skip
        law = run.parameters if axes is not None and "= 9" in above(axes) else None
        law = law or seeds.reduced.parameters
        assert f"$D = {law['D']}$" in above(axes)
        assert rf"$\nu = {style.number(law['nu'])}$" in above(axes)
    assert r"$\eta = 0.1$" in above(plotting.attention(result.full))
    assert "$N = 80$" in above(plotting.training(seeds.full))


def test_runs_side_by_side_state_what_they_share():
    system = dynamics.load_system("positional_attention")
    laws = system.Parameters(D=4, C=2), system.Parameters(D=4, C=2, q=0.25)
    runs = [dynamics.flow(system.ReducedPopulation(law), 10.0) for law in laws]
    words = above(plotting.several({"one": runs[0], "other": runs[1]}, ["alpha"]))
    assert "$D = 4$" in words
    assert "$q" not in words


def test_a_legend_names_only_what_is_visible():
    _, axes = style.new_figure(3.0, 3.0)
    axes.plot([0, 1], [0, 1], label="across")
    axes.plot([0, 1], [np.nan, np.nan], label="no value")
    axes.plot([2, 3], [0, 1], label="on the right")
    axes.plot([-1, 0.5], [0.5, 2], label="through a corner, no point inside")
    axes.plot([0.5], [0.5], "o", label="a point")
    axes.axhline(3.0, label="above")
    axes.axhline(0.0, label="on the edge")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    style.legend(axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "across", "a point", "on the edge",
    ]  # fmt: skip
    axes.plot([-0.5, 0.5], [0.5, 1.5], label="corner")
    axes.plot([-0.5, 1.5], [0.2, 1.2], label="from side to side")
    assert list(style.labelled(axes))[-1:] == ["from side to side"]
    axes.set_xlim(10, 11)
    assert "across" not in style.labelled(axes)
    _, axes = style.new_figure(3.0, 3.0)
    axes.plot([1, 1e3], [-50, 20], label="limits that are not known before")
    axes.set_xscale("log")
    style.legend(axes)
    assert len(axes.get_legend().get_texts()) == 1


@pytest.mark.parametrize(("low", "high", "most"), [(3e-10, 1e12, 7), (1e-5, 1.0, 7), (0.05, 5, 8)])
def test_a_logarithmic_axis_has_few_ticks(low, high, most):
    _, axes = style.new_figure(3.0, 1.5)
    axes.set_ylim(low, high)
    style.logarithmic(axes)
    axes.set_ylim(low, high)
    inside = [tick for tick in axes.get_yticks() if low <= tick <= high]
    assert 3 < len(inside) <= most


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.57, 1.35), (0.9, 1.6), (1.02, 1.9), (0.15, 0.4), (0.21, 0.29), (2e-7, 4e-7),
        (2.1e5, 2.3e5), (2.1e-5, 2.2e-5), (2.2e-300, 2.4e-300),
    ],
)  # fmt: skip
def test_a_logarithmic_axis_has_two_numbers_at_least(low, high):
    figure, axes = style.new_figure(3.0, 1.5)
    axes.plot([1.0, 2.0], [low, high])
    style.logarithmic(axes)
    figure.canvas.draw()
    below, above = axes.get_ylim()
    inside = [tick for tick in axes.get_yticks() if below <= tick <= above]
    written = {axes.yaxis.get_major_formatter()(tick, None) for tick in inside}
    assert 2 <= len(inside) == len(written) <= 8
    assert not any(
        "e" in label.replace("mathdefault", "").replace("times", "") for label in written
    )


def test_curvatures_that_are_rounding_are_drawn_as_none():
    system = dynamics.load_system("positional_attention")
    run = dynamics.flow(system.ReducedPopulation(system.Parameters(D=4, C=2)), 10.0)
    noise = 1e-16 * np.cos(np.arange(len(run.time)))
    growth = TransverseGrowth(run.time, noise, 1.0 + np.abs(noise))
    for panel, values in zip(plotting.transverse_growth(growth, run), (noise, noise), strict=True):
        assert np.ptp(panel.get_ylim()) > 1e3 * np.ptp(values)


def test_every_curve_of_a_run_is_named_in_its_panel(result):
    axes = plotting.training(result.reduced)
    for panel, count in zip(axes, (0, 2, 2, 0), strict=True):
        key = panel.get_legend()
        assert len(key.get_texts() if key else []) == count


def test_pictures_on_a_screen_are_1200_pixels_wide(result):
    for axes in (plotting.training(result.reduced), plotting.attention(result.full)):
        figure = np.ravel(axes)[0].figure
        assert figure.get_figwidth() * figure.dpi == pytest.approx(1200)


def test_deviation_is_logarithmic_and_names_the_rounding_unit(result):
    axes = plotting.deviation(result)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert any("rounding unit" in text.get_text() for text in axes.texts)
    drawn = [line.get_ydata().max() for line in axes.lines if line.get_marker() != "None"]
    assert drawn == [result.deviation[name] for name in ("alpha", "gamma", "rho")]


def test_files_are_written(tmp_path):
    axes = style.new_figure(3.0, 2.0)[1]
    for ending in ("png", "svg", "pdf"):
        assert plotting.write(axes, tmp_path / f"run.{ending}").stat().st_size > 1000


def test_a_run_that_diverged_can_be_drawn(tmp_path):
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.descend(problem, eta=1.0, steps=50)
    assert plotting.write(plotting.training(run), tmp_path / "run.png").exists()


def test_stability_shows_limit_rate_and_where_it_is_passed():
    from dynamics.training.stability_limit import limits_along

    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters())
    run, calm = dynamics.descend(problem, 0.04, 60_000), dynamics.flow(problem, time=2400.0)
    limits = limits_along(problem, calm)
    axes = plotting.stability(run, calm, limits)
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), limits[calm.time >= 0.04])
    assert axes[0].lines[1].get_ydata()[0] == 0.04
    assert axes[0].get_xscale() == "log"
    assert axes[1].collections


def test_the_legend_of_the_stability_limit_is_not_on_its_curve():
    """A limit far above the rate ends at the top on the right."""
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    run, calm = dynamics.descend(problem, 0.1, 100), dynamics.flow(problem, 10.0)
    axes = plotting.stability(run, calm, 20.0 + 3.0 * calm.time)
    figure = axes[0].figure
    figure.canvas.draw()
    box = axes[0].get_legend().get_window_extent()
    for line in axes[0].lines:
        x, y = line.get_data()
        x = np.linspace(*axes[0].get_xlim(), 200) if len(x) == 2 else x
        points = axes[0].transData.transform(np.column_stack([x, np.resize(y, len(x))]))
        assert not ((points >= box.min) & (points <= box.max)).all(axis=1).any()


@pytest.fixture(scope="module")
def across():
    from dynamics.analysis.transverse_stability import transverse
    from dynamics.papers.positional_attention.manifold import Manifold

    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=9, C=3, q=0.6)
    times = np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 120)])
    run = dynamics.flow(system.ReducedPopulation(parameters), 1e5, record=times)
    return transverse(Manifold(parameters), run)


def test_transverse_draws_every_eigenvalue_once_and_marks_the_peak(across):
    axes = transverse_picture(across, omega=1e-3)
    curves = lines(axes[0], marked=False)
    drawn = np.sort([line.get_ydata()[60] for line in curves if line.get_linestyle() == "-"])
    np.testing.assert_array_equal(drawn, across.eigenvalues[61])
    assert len({line.get_color() for line in curves}) == 5
    assert (axes[0].get_xscale(), axes[0].get_yscale()) == ("log", "symlog")
    low, high = axes[0].get_ylim()
    assert low < across.eigenvalues[1:].min() < across.eigenvalues[1:].max() < high
    growth, typical = lines(axes[1], marked=False)
    np.testing.assert_array_equal(growth.get_ydata(), across.amplification[1:])
    np.testing.assert_array_equal(typical.get_ydata(), across.typical[1:])
    assert (axes[1].get_xscale(), axes[1].get_yscale()) == ("log", "log")
    written = " ".join(text.get_text() for panel in axes for text in panel.texts)
    assert f"{across.peak:.0f}" in written
    assert "row competition" in written
    for panel in axes:
        verticals = {line.get_xdata()[0] for line in panel.lines if len(line.get_xdata()) == 2}
        assert {across.run.events[name].time for name in ("T0", "T1")} <= verticals


def test_transverse_of_a_short_run_can_be_drawn(tmp_path):
    """No event, no peak yet, no spread of a random start."""
    from dynamics.analysis.transverse_stability import transverse
    from dynamics.papers.positional_attention.manifold import Manifold

    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=8, C=2)
    run = dynamics.flow(system.ReducedPopulation(parameters), 0.5, record=20)
    drawn = transverse_picture(transverse(Manifold(parameters), run), 0.0)
    assert plotting.write(drawn, tmp_path / "short.svg").exists()


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
    assert axes[0].collections
    assert "3 seeds" in axes[0].figure.legends[0].get_texts()[1].get_text()


def test_realistic_runs_show_association_error_and_cosine(seeds):
    axes = plotting.realistic(seeds)
    shares = np.stack([run["patch_association"][1:] for run in seeds.fulls])
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), np.median(shares, axis=0))
    assert "N = 80" in axes[0].get_title(loc="left").replace("$", "")
    assert plotting.realistic([seeds.full])[0].get_title(loc="left").count("seeds") == 0


def test_evidence_draws_curves_and_lines_and_negative_values():
    from types import SimpleNamespace

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
    assert "does not hold here" in axes.get_title(loc="left")
    plot["curves"][0]["y"] = [1e-3, 10.0]
    plot["lines"].append({"label": "no place on a logarithm", "y": 0.0})
    axes = plotting.evidence(verdict)
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["c", "bound"]
    assert not axes.containers
    plot["curves"][0]["errors"] = [1e-4, 2.0]
    (bars,) = plotting.evidence(verdict).containers
    low, high = bars.lines[2][0].get_segments()[1][:, 1]
    assert (low, high) == pytest.approx((8.0, 12.0))
    plot["curves"] = [{**curve, "label": f"c{number}"} for number in range(24)]
    looks = {(line.get_color(), line.get_linestyle()) for line in plotting.evidence(verdict).lines}
    assert len(looks) == 24 + len(plot["lines"])
    verdict.evidence = {}
    assert plotting.evidence(verdict) is None


def test_no_label_overruns_another_panel():
    system = dynamics.load_system("topic_model")
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), 1.0, 5)
    axes = plotting.training(run)
    axes[0].figure.draw_without_rendering()
    for panel in axes:
        label, box = panel.yaxis.label.get_window_extent(), panel.get_window_extent()
        assert label.height <= box.height
    named = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert r"$A_{\mathrm{to}\ \mathrm{mask}}$" in named
