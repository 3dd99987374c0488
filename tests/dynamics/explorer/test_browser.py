"""The page of positional attention in a browser: what a reader does with it, as in Python."""

import csv
import io
import math
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from browser import Tab, chromium

import dynamics
from dynamics.explorer import write_page

pytestmark = pytest.mark.browser
SYSTEM = dynamics.load_system("positional_attention")


def problem(**changes):
    return SYSTEM.ReducedPopulation(
        SYSTEM.Parameters(**SYSTEM.default_runs["compare"].parameters | changes)
    )


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "positional_attention.html"
    write_page("positional_attention", path)
    return path.as_uri()


@pytest.fixture
def tab(browser, address):
    """The page at rest; nothing is complained of, or asked for from outside."""
    opened = Tab(browser, address)
    opened.rests()
    yield opened
    assert opened.complaints == []
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "blob", "data"}
    opened.context.close()


def scalars(tab):
    """Alpha, gamma and rho at the chosen time, as the page shows them."""
    texts = tab.page.locator("#values > span").all_inner_texts()[:3]
    return [float(text.split("=")[1].replace("−", "-")) for text in texts]


def rows(tab, name, folder):
    return list(csv.DictReader(io.StringIO(tab.download(f"#csv-{name}", folder).read_text())))


def charts(tab):
    labels = [one.get_attribute("aria-label") or "" for one in tab.page.locator("button").all()]
    return [label for label in labels if label.endswith(" as SVG")]


def picture(tab, label, folder):
    path = tab.download(f'button[aria-label="{label}"]', folder)
    return ElementTree.parse(path).getroot()


def test_nothing_can_be_fetched(browser, address):
    tab = Tab(browser, address)
    tab.rests()
    word = tab.page.evaluate("fetch('https://example.org/').then(() => 'fetched', () => 'refused')")
    assert word == "refused"
    assert any("Content Security Policy" in line for line in tab.complaints)
    tab.context.close()


def test_events_follow_a_dragged_slider_as_python_computes_them(tab):
    before = tab.cell("T1", 0)
    tab.press_on("q", 0.5)
    for share in (0.45, 0.4, 0.35):
        tab.move_to(share)
    tab.expect('tr[data-event="T1"]').to_contain_text("on release")
    tab.page.mouse.up()
    tab.expect("#control-q-number").not_to_have_value("0.5")
    q = float(tab.page.locator("#control-q-number").input_value())
    tab.expect("#command-flow").to_contain_text(f"--q {q}")
    tab.rests()
    assert f"q={q}" in tab.page.url
    assert tab.cell("T1", 0) != before
    assert "±" in tab.page.locator('tr[data-event="T1"] td').first.inner_text()
    path = dynamics.flow(problem(q=q), time=1e4)
    run = dynamics.descend(problem(q=q), eta=0.03, steps=40000)
    for event in ("T0", "T1", "T1_paper"):
        assert tab.cell(event, 0) == pytest.approx(path.events[event].time, rel=1e-6), event
        assert tab.cell(event, 1) == run.events[event].step, event
        assert tab.cell(event, 2) == pytest.approx(0.03 * run.events[event].step)


def test_a_refused_value_is_explained_beside_its_control_and_mended(tab):
    before = tab.cell("T1", 0)
    tab.type_into("q", "2")
    tab.expect("#control-q-refusal").to_contain_text("q=2")
    tab.expect("#control-q-number").to_have_attribute("aria-invalid", "true")
    assert tab.cell("T1", 0) == before  # what was shown stays
    tab.type_into("q", "0.5")
    tab.expect("#control-q-refusal").to_be_empty()
    for text in ("", "three", "1e999"):
        tab.type_into("nu", text)
        tab.expect("#control-nu-refusal").to_contain_text("nu")
    tab.type_into("steps", "2.5")
    tab.expect("#control-steps-refusal").to_contain_text("whole number")
    tab.page.get_by_role("button", name="use steps = 3").click()
    tab.expect("#control-steps-refusal").to_be_empty()
    tab.expect("#control-steps-number").to_have_value("3")


def test_an_address_restores_the_picture_and_history_works(browser, tab):
    tab.type_into("q", "0.25")
    tab.type_into("eta", "0.02")
    tab.page.locator("#linear").check()
    tab.page.locator("#axis-x").select_option("alpha")
    tab.page.locator("#time").fill("600")
    tab.rests()
    tab.expect("#command-descent").to_contain_text("--eta 0.02")
    again = Tab(browser, tab.page.url)
    again.rests()
    for one in ("#events", "#command-flow", "#command-descent", "#moment", "#values"):
        assert again.page.locator(one).inner_text() == tab.page.locator(one).inner_text(), one
    again.expect("#control-q-number").to_have_value("0.25")
    again.expect("#linear").to_be_checked()
    again.expect("#axis-x").to_have_value("alpha")
    again.type_into("q", "0.75")
    again.expect("#command-flow").to_contain_text("--q 0.75")
    again.page.go_back()
    again.expect("#control-q-number").to_have_value("0.25")
    again.expect("#command-flow").to_contain_text("--q 0.25")
    assert again.complaints == []
    again.context.close()


def test_presets_are_what_they_are_called_and_put_others_on_their_defaults(tab):
    def settle(preset):
        tab.page.get_by_role("button", name=preset).click()
        tab.expect("#status").not_to_contain_text("descent")
        tab.rests()
        return scalars(tab)

    tab.type_into("nu", "0.002")
    _, gamma, rho = settle("association lost at q = .8")
    assert gamma < rho
    tab.expect("#control-nu-number").to_have_value("0.001")
    tab.expect("#control-random_sets").to_have_value("any")
    assert "q=0.8" in tab.page.url
    _, gamma, rho = settle("the paper's law")
    assert gamma > rho
    assert tab.cell("event_III", 0) == "still decreases when the run ends"


def test_the_run_before_stays_as_a_thin_line(tab, tmp_path):
    def lines(width):
        found = picture(tab, charts(tab)[0], tmp_path).findall(".//{*}polyline")
        points = [one.get("points").split() for one in found if one.get("stroke-width") == width]
        return [[float(at.split(",")[1]) for at in line] for line in points if len(line) > 50]

    first = lines("2")
    assert lines("1") == []
    for name, value in (("q", "0.9"), ("eta", "0.05")):  # the second moves no flow
        tab.type_into(name, value)
        tab.rests()
        assert lines("2") != first
        assert lines("1") == [pytest.approx(curve, abs=2) for curve in first]


def test_a_click_in_the_phase_plane_starts_there(browser, tab):
    usual = tab.cell("T1", 0)
    canvas = tab.page.locator('section[aria-label="phase plane"] canvas')
    box = canvas.bounding_box()
    canvas.click(position={"x": 0.5 * box["width"], "y": 0.4 * box["height"]})
    tab.expect(".origin").to_contain_text("from ")
    tab.page.wait_for_url(re.compile("start="))
    tab.rests()
    start = unquote(tab.page.url).partition("start=")[2].split(",")
    tab.expect("#start-note").to_contain_text(f"initial=[{', '.join(start)}]")
    expected = dynamics.flow(problem(), 1e4, initial=[*map(float, start)]).final_state
    assert scalars(tab) == pytest.approx(expected, rel=1e-3)
    again = Tab(browser, tab.page.url)
    again.rests()
    assert again.page.locator("#events").inner_text() == tab.page.locator("#events").inner_text()
    again.context.close()
    tab.page.get_by_role("button", name="usual start").click()
    tab.expect(".origin").to_be_empty()
    tab.rests()
    assert tab.cell("T1", 0) == usual
    assert "start=" not in tab.page.url


def test_sets_of_another_size_come_with_the_patches_that_they_divide(tab):
    tab.type_into("D", "10")
    tab.expect("#control-C-number").to_have_value("5")
    tab.expect("#control-C-note").to_contain_text("which divides D = 10")
    tab.rests()
    expected = dynamics.flow(problem(D=10, C=5), time=1e4).states[-1]
    assert scalars(tab) == pytest.approx(expected, rel=1e-3)
    tab.type_into("D", "8")
    tab.expect("#control-C-number").to_have_value("4")
    tab.page.locator("#control-C").press("Home")
    tab.expect("#control-C-number").to_have_value("2")
    tab.expect("#control-C-refusal").to_be_empty()


def test_on_a_phone_the_picture_is_in_sight_above_the_sliders(browser, address):
    tab = Tab(browser, address, viewport={"width": 360, "height": 740})
    tab.rests()
    tab.page.evaluate("document.getElementById('figures').scrollIntoView()")
    sheet, canvas = tab.page.locator("#controls"), tab.page.locator("canvas").first
    picture = canvas.bounding_box()
    assert picture["y"] > 0
    assert picture["y"] + picture["height"] <= sheet.bounding_box()["y"]
    bottom = sheet.bounding_box()["y"] + sheet.bounding_box()["height"]
    shown = [one.bounding_box() for one in tab.page.locator("#constants .control").all()]
    assert sum(box["y"] + box["height"] <= bottom for box in shown) >= 4
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    tab.page.get_by_role("button", name="hide sliders").click()
    assert sheet.bounding_box()["height"] < 50
    tab.context.close()


def test_curves_and_charts_are_taken_away(tab, tmp_path):
    flow, descent = (rows(tab, name, tmp_path) for name in ("flow", "descent"))
    assert list(flow[0])[:4] == ["time", "alpha", "gamma", "rho"]
    final = [float(flow[-1][name]) for name in ("alpha", "gamma", "rho")]
    assert float(flow[-1]["time"]) == 10_000
    assert float(flow[-1]["risk"]) == pytest.approx(problem().risk(final), rel=1e-9)
    assert int(descent[-1]["step"]) > 39_000
    assert all(math.isclose(float(row["time"]), 0.03 * int(row["step"])) for row in descent)
    assert len(charts(tab)) > 3
    for label in charts(tab):
        root = picture(tab, label, tmp_path)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root.findall(".//{*}text")) > 4, label
        assert not root.findall(".//{*}image")
        assert root.find("{*}title").text


def test_a_model_without_events_says_so_and_names_its_file_without_a_folder(browser, tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(
        'def start():\n    return {"w": [2.0]}\n\n\n'
        'def risk(theta, xp, c=1.0):\n    return c * theta["w"][0] ** 2\n'
    )
    write_page(dynamics.load_system(str(path)), tmp_path / "page.html")
    tab = Tab(browser, (tmp_path / "page.html").as_uri())
    tab.expect("#events").to_contain_text("No events are declared.")
    tab.expect("#command-descent").to_contain_text("attdyn run plain.py")
    assert str(tmp_path) not in tab.page.locator("body").inner_text()
    assert not tab.complaints
    tab.context.close()
