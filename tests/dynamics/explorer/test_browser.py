"""The page in a browser: what a reader does with it, on a toy model of the tests."""

import csv
import io
import math
from urllib.parse import unquote
from xml.etree import ElementTree

import mock_model
import pytest
from browser import Tab, chromium

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def address(tmp_path):
    return mock_model.write(tmp_path / "toy.html")


@pytest.fixture
def tab(browser, address):
    opened = Tab(browser, address)
    opened.rests()
    yield opened
    assert opened.complaints == []
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "blob", "data"}
    opened.context.close()


def test_the_three_events_by_flow_and_by_descent(tab):
    times = [tab.cell(event, 0) for event in ("T0", "T1", "late_event")]
    assert times == sorted(times)
    for event, time in zip(("T0", "T1", "late_event"), times, strict=True):
        step, descended = tab.cell(event, 1), tab.cell(event, 2)
        assert descended == pytest.approx(0.1 * step)
        assert descended == pytest.approx(time, rel=0.02)
    tab.expect("footer").to_contain_text("tolerance 10⁻⁶")
    tab.expect("footer").to_contain_text("one step size η = 0.1")
    assert "±" in tab.page.locator('tr[data-event="T1"] td').first.inner_text()


def test_nothing_can_be_fetched(browser, address):
    tab = Tab(browser, address)
    tab.rests()
    word = tab.page.evaluate("fetch('https://example.org/').then(() => 'fetched', () => 'refused')")
    assert word == "refused"
    assert any("Content Security Policy" in line for line in tab.complaints)
    tab.context.close()


def test_the_flow_follows_a_dragged_slider_and_descent_its_release(tab):
    before = tab.cell("T1", 0)
    tab.press_on("q", 0.5)
    for share in (0.6, 0.7, 0.8):
        tab.move_to(share)
    tab.expect('tr[data-event="T1"]').to_contain_text("on release")
    tab.expect("#control-q-number").not_to_have_value("0.5")
    tab.page.mouse.up()
    tab.rests()
    q = float(tab.page.locator("#control-q-number").input_value())
    assert 0.75 < q < 0.85
    assert tab.cell("T1", 0) < before
    assert tab.cell("T1", 1) == pytest.approx(10 * tab.cell("T1", 0), rel=0.02)
    assert f"q={q}" in tab.page.url
    assert f"--q {q}" in tab.page.locator("#command-flow").inner_text()


def test_a_refused_value_is_explained_beside_its_control_and_mended_by_a_button(tab):
    before = tab.cell("T1", 0)
    tab.type_into("q", "2")
    tab.expect("#control-q-refusal").to_contain_text("q = 2 must be above 0 and below 1")
    tab.expect("#control-q-number").to_have_attribute("aria-invalid", "true")
    assert tab.cell("T1", 0) == before  # what was shown stays
    tab.page.get_by_role("button", name="use q = 0.999").click()
    tab.expect("#control-q-refusal").to_be_empty()
    tab.expect("#control-q-number").to_have_value("0.999")
    tab.rests()
    for text in ("", "three", "1e999"):
        tab.type_into("D", text)
        tab.expect("#control-D-refusal").to_contain_text("D")
    tab.type_into("D", "8")
    tab.expect("#control-D-refusal").to_be_empty()
    tab.type_into("steps", "2.5")
    tab.expect("#control-steps-refusal").to_contain_text("whole number")


def test_an_address_restores_the_picture_and_history_works(browser, tab):
    tab.type_into("q", "0.25")
    tab.type_into("eta", "0.2")
    tab.page.locator("#linear").check()
    tab.page.locator("#axis-x").select_option("y")
    tab.page.locator("#time").fill("600")
    tab.rests()
    tab.expect("#command-descent").to_contain_text("--eta 0.2")
    again = Tab(browser, tab.page.url)
    again.rests()
    for one in ("#events", "#command-flow", "#command-descent", "#moment", "#values"):
        assert again.page.locator(one).inner_text() == tab.page.locator(one).inner_text(), one
    again.expect("#control-q-number").to_have_value("0.25")
    again.expect("#linear").to_be_checked()
    again.expect("#axis-x").to_have_value("y")
    again.type_into("q", "0.75")
    again.expect("#command-flow").to_contain_text("--q 0.75")
    again.page.go_back()
    again.expect("#control-q-number").to_have_value("0.25")
    again.expect("#command-flow").to_contain_text("--q 0.25")
    again.page.go_forward()
    again.expect("#command-flow").to_contain_text("--q 0.75")
    assert again.complaints == []
    again.context.close()


def test_a_preset_sets_its_controls_and_puts_others_on_their_defaults(tab):
    tab.type_into("q", "0.25")
    tab.page.get_by_role("button", name="a late start").click()
    for name, value in {"D": "24", "nu": "0.002", "time": "5000", "q": "0.5"}.items():
        tab.expect(f"#control-{name}-number").to_have_value(value)
    tab.expect("#command-flow").to_contain_text("--D 24")
    tab.expect("#command-flow").to_contain_text("--time 5000")
    assert "nu=0.002" in tab.page.url


def test_the_run_before_stays_as_a_thin_line(tab, tmp_path):
    def lines(width):
        path = tab.download('button[aria-label="scalars as SVG"]', tmp_path)
        found = ElementTree.parse(path).getroot().findall(".//{*}polyline")
        points = [one.get("points").split() for one in found if one.get("stroke-width") == width]
        return [[float(at.split(",")[1]) for at in line] for line in points if len(line) > 50]

    first = lines("2")
    assert lines("1") == []
    tab.type_into("q", "0.9")
    tab.rests()
    assert lines("2") != first
    assert lines("1") == [pytest.approx(curve, abs=2) for curve in first]
    second = lines("2")
    tab.type_into("eta", "0.05")  # moves no flow
    tab.rests()
    assert lines("1") == [pytest.approx(curve, abs=2) for curve in first]
    tab.press_on("q", 0.9)
    for share in (0.5, 0.4, 0.3):
        tab.move_to(share)
    tab.page.mouse.up()
    tab.rests()
    assert lines("1") == [pytest.approx(curve, abs=2) for curve in second]


def test_a_click_in_the_phase_plane_starts_there(browser, tab, tmp_path):
    usual = tab.cell("T1", 0)
    canvas = tab.page.locator('section[aria-label="phase plane"] canvas')
    box = canvas.bounding_box()
    canvas.click(position={"x": 0.5 * box["width"], "y": 0.4 * box["height"]})
    tab.expect(".origin").to_contain_text("from x = ")
    tab.rests()
    text = tab.download("#csv-flow", tmp_path).read_text()
    row = next(csv.DictReader(io.StringIO(text)))
    x, y = float(row["x"]), float(row["y"])
    assert f"start={x},{y}" in unquote(tab.page.url)
    assert 0.3 < x < 0.7  # the middle of a run from 0 to 1
    assert 0.3 < y < 0.9
    tab.expect("#start-note").to_contain_text(f"initial=[{x}, {y}]")
    again = Tab(browser, tab.page.url)
    again.rests()
    assert again.page.locator("#events").inner_text() == tab.page.locator("#events").inner_text()
    again.context.close()
    tab.page.get_by_role("button", name="usual start").click()
    tab.expect(".origin").to_be_empty()
    tab.rests()
    assert tab.cell("T1", 0) == usual
    assert "start=" not in tab.page.url


def test_equations_are_aligned_at_their_signs(tab):
    signs = tab.page.locator("mtable mtd:nth-child(2) > mo:first-child")
    first, second = (one.bounding_box()["x"] for one in signs.all())
    assert first == second
    ends = [one.bounding_box() for one in tab.page.locator("mtable mtd:first-child > mi").all()]
    assert len({round(box["x"] + box["width"]) for box in ends}) == 1


def test_a_divisor_follows_what_it_divides(tab):
    tab.type_into("D", "18")
    tab.expect("#control-C-number").to_have_value("3")
    tab.expect("#control-C-note").to_contain_text("Moved from 4 to 3, which divides D = 18")
    tab.expect("#control-C-refusal").to_be_empty()
    tab.expect("#command-flow").to_contain_text("--D 18 --C 3")
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        tab.page.locator("#control-C").press(key)
        seen.append(tab.page.locator("#control-C-number").input_value())
    assert seen == ["2", "3", "6", "9", "9"]
    tab.type_into("C", "7")
    tab.expect("#control-C-number").to_have_value("6")
    tab.expect("#command-flow").to_contain_text("--D 18 --C 6")


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
    tab.page.get_by_role("button", name="show sliders").click()
    tab.expect("#control-q").to_be_visible()
    tab.context.close()


def test_curves_and_charts_are_taken_away(tab, tmp_path):
    text = tab.download("#csv-flow", tmp_path).read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["time", "x", "y", "risk"]
    final = {name: float(value) for name, value in rows[-1].items()}
    assert final["time"] == 1000
    for row in rows:
        x, y = float(row["x"]), float(row["y"])
        assert math.isclose(float(row["risk"]), (1 - x) ** 2 / 2 + (1 - y) ** 2 / 2)
    text = tab.download("#csv-descent", tmp_path).read_text()
    steps = [(float(row["step"]), float(row["time"])) for row in csv.DictReader(io.StringIO(text))]
    assert steps[-1][0] > 4900
    assert all(math.isclose(time, 0.1 * step) for step, time in steps)
    for name in ("scalars", "R: population risk", "attention", "phase plane"):
        path = tab.download(f'button[aria-label="{name} as SVG"]', tmp_path)
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root.findall(".//{*}text")) > 5, name
        assert len(root.findall(".//{*}polyline")) > 5, name
        assert not root.findall(".//{*}image")
        assert root.find("{*}title").text
