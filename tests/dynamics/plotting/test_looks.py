"""Width, time axes, titles and limits of pictures, through the data of their artists."""

from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.models.engine.definition import plot_description
from dynamics.plotting import captions, style
from dynamics.plotting.runs import training
from dynamics.results.comparison import Comparison
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("positional_attention")


@pytest.fixture(scope="module")
def run(system):
    law = system.Parameters(D=9, C=3, random_sets="mixed")
    return dynamics.descend(system.ReducedPopulation(law), eta=0.1, steps=9000)


@pytest.fixture(scope="module")
def compared(system):
    law = system.Parameters(D=4, C=2)
    return dynamics.compare(system.ReducedPopulation(law), system.FullPopulation(law), 0.1, 50)


def title(axes):
    return np.ravel(axes)[0].figure.get_suptitle()


@pytest.mark.parametrize("width", [8.6, 17.8])
def test_pictures_have_the_width_that_is_asked_for(run, compared, width):
    with plotting.look(width=width):
        drawn = [training(run), plotting.deviation(compared), plotting.attention(compared.full)]
    for axes in drawn:
        figure = np.ravel(axes)[0].figure
        assert figure.get_figwidth() == pytest.approx(width / 2.54)
        figure.draw_without_rendering()
    assert np.ravel(training(run))[0].figure.get_figwidth() == 6.4


def test_panels_side_by_side_are_no_narrower_than_can_be_read():
    """In 8.6 cm the labels of four panels lay upon each other, and of two the titles."""
    with plotting.look(width=8.6) as chosen:
        assert style.new_figure(11.0, 2.7)[0].get_figwidth() == pytest.approx(8.6 / 2.54)
        assert chosen.needed == 0
        wide = style.new_figure(11.0, 2.7, ncols=4)[0].get_figwidth()
        assert chosen.needed == wide == 8.0
        assert style.new_mosaic(6.0, 5.0, [["a", "b", "c", "d"]])[0].get_figwidth() == 6.0


def test_the_legend_of_classes_is_whole_in_a_narrow_picture():
    many = {
        "labels": {"w": list(range(1, 33))}, "names": [f"w_{k}" for k in range(32)],
        "sizes": [1] * 32, "scalars": 32, "entries": 32, "frozen": 0,
    }  # fmt: skip
    for width in (8.6, 17.8):
        with plotting.look(width=width):
            figure = plotting.entry_classes(many)[0, 0].figure
        figure.draw_without_rendering()
        legend, page = figure.legends[0].get_window_extent(), figure.bbox
        assert legend.y0 >= 0, width
        assert legend.x0 >= 0, width
        assert legend.y1 <= page.y1
        assert figure.get_figwidth() == pytest.approx(width / 2.54)


def test_legends_cover_no_curve_and_names_stay_inside_a_narrow_picture(system):
    """A legend lay on the curve of alpha G, and T1 of the paper beyond the right end."""
    law = system.Parameters(D=9, C=3, random_sets="mixed")
    long = dynamics.descend(system.ReducedPopulation(law), eta=0.02, steps=100_000)
    with plotting.look(width=8.6):
        axes = training(long)
    axes[0].figure.draw_without_rendering()
    for panel in axes:
        if (legend := panel.get_legend()) is not None:
            box = legend.get_window_extent()
            assert not any(
                line.get_path().transformed(line.get_transform()).intersects_bbox(box, False)
                for line in style.labelled(panel).values()
            )
    (aside,) = [text for text in axes[0].texts if "paper" in text.get_text()]
    assert aside.get_window_extent().x1 < axes[0].figure.bbox.x1


@pytest.mark.parametrize("width", [2, 1e3, "wide", float("nan")])
def test_a_width_that_no_page_has_is_refused(width):
    with pytest.raises(InvalidRequest, match="width="), plotting.look(width=width):
        pass


def test_linear_time_begins_at_the_start(run):
    with plotting.look(linear=True):
        axes = training(run)
    assert {panel.get_xscale() for panel in axes} == {"linear"}
    assert axes[-1].get_xlim() == (0.0, run.time[-1])
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), run["alpha"])
    axes[0].figure.draw_without_rendering()
    names = [text for text in axes[0].texts if text.get_text().startswith(("Event", "$"))]
    boxes = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_a_title_has_the_constants_of_the_problem(system, run):
    assert title(training(run)).startswith("$D = 9$")
    assert not any(letter in title(training(run)) for letter in ("sigma", "omega", "$d ="))
    law = system.Parameters(D=4, C=2)
    sampled = dynamics.descend(system.FullEmpirical(law, samples=10), 0.1, 5)
    assert r"\omega" in title(training(sampled))


def test_a_title_has_two_lines_and_the_caption_all_constants(run, tmp_path):
    many = {f"c{k}": k for k in range(130)}
    axes = training(replace(run, parameters=dict(run.parameters) | many))
    assert title(axes).count("\n") == 1
    assert title(axes).endswith("(all in the caption)")
    plotting.write(axes, tmp_path / "p.png")
    caption = (tmp_path / "p.caption.txt").read_text(encoding="utf-8")
    assert "$D = 9$" in caption
    assert all(f"{k}$" in caption for k in range(130))
    plotting.write(training(run), tmp_path / "q.png")
    assert not (tmp_path / "q.caption.txt").exists()


def test_a_picture_of_some_of_the_scalars_says_so(run):
    plot = replace(run.presentation.plot, omission="shown: 30 of 120 scalars")
    part = replace(run, presentation=replace(run.presentation, plot=plot))
    assert title(training(part)).splitlines()[-1] == "shown: 30 of 120 scalars"


def test_what_a_plain_plot_leaves_out_is_counted():
    model = dynamics.Model(
        start=lambda: {"w": np.ones(120)},
        risk=lambda theta, xp: xp.sum(theta["w"] ** 4),
        name="many",
    )
    names = [f"w_{k}" for k in range(120)]
    assert plot_description(model.model, names, (), ()).omission == "shown: 30 of 120 scalars"
    assert plot_description(model.model, names[:12], (), ()).omission == ""


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
def test_a_risk_is_drawn_to_the_rounding_of_its_terms(run, risk, drawn):
    cut = slice(1, 1 + len(risk))
    short = replace(
        run, steps=run.steps[cut], time=run.time[cut], states=run.states[cut], events=run.events,
        observables={n: s[cut] for n, s in run.observables.items()} | {"risk": np.array(risk)},
    )  # fmt: skip
    (line, *_) = training(short)[-1].lines
    assert np.isfinite(line.get_ydata()).sum() == drawn
    np.testing.assert_array_equal(line.get_ydata()[:drawn], np.abs(risk)[:drawn])


def test_a_run_that_diverged_is_drawn_while_it_is_finite(system):
    problem = system.ReducedPopulation(system.Parameters(D=9, C=3))
    run = dynamics.descend(problem, eta=1.0, steps=100)
    assert run.outcome.kind == "diverged"
    with np.errstate(invalid="ignore"):
        assert not np.nanmax(np.abs(run["risk"])) < 1e6
    axes = training(run)
    for panel in axes:
        for line in panel.lines:
            values = np.asarray(line.get_ydata(), float)
            assert np.nanmax(np.abs(values), initial=0.0) < 1e6
    assert title(axes).splitlines()[-1].startswith("diverged at $")
    assert axes[-1].get_xlim()[1] < run.time[-1]


def test_the_legend_of_deviations_is_beside_them_or_absent(compared):
    axes = plotting.deviation(compared)
    axes.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= axes.bbox.x1
    full = replace(compared.full, states=compared.full.states)
    zero = {name: np.zeros_like(row) for name, row in compared.deviations.items()}
    same = Comparison(compared.reduced, full, zero)
    axes = plotting.deviation(same)
    assert axes.get_legend() is None
    assert any("equal to the last bit" in text.get_text() for text in axes.texts)
    axes.figure.draw_without_rendering()


def test_a_vector_is_a_strip_with_its_names():
    labels = {"w": [1, 1, 2, -1, 0, 2]}
    closure = {"labels": labels, "names": ["a", "b"], "sizes": [3, 2]}
    axes = plotting.entry_classes(closure | {"scalars": 2, "entries": 6, "frozen": 1})
    assert axes[0, 0].images[0].get_array().shape == (1, 6)
    written = {text.get_position()[0]: text.get_text() for text in axes[0, 0].texts}
    assert written == {0.5: "a", 2.0: "b", 3.0: "−a", 5.0: "b"}
    box = axes[0, 0].get_window_extent()
    assert box.width > 2 * box.height


def test_a_long_vector_has_rows():
    count = 130
    closure = {"labels": {"w": list(range(1, count + 1))}, "sizes": [1] * count}
    closure |= {"names": [f"w_{k}" for k in range(count)], "frozen": 0}
    axes = plotting.entry_classes(closure | {"scalars": count, "entries": count})
    drawn = axes[0, 0].images[0].get_array()
    assert drawn.shape == (3, 44)
    assert drawn.count() == count
    assert axes[0, 0].get_title() == "w  (130, row by row)"


def test_a_title_is_cut_between_constants():
    held = {f"x{k}": k for k in range(50)}
    figure = plotting.style.new_figure(3.0, 2.0)[0]
    text = captions.fixed({}, held, {}, 3.0)
    cut = captions.cut(figure, text)
    assert len(cut.splitlines()) == 2
    kept = cut.replace("\n", ", ").split(", ")[:-1]
    assert kept == text.replace("\n", ", ").split(", ")[: len(kept)]
