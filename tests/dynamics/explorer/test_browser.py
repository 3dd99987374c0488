"""The page in a browser: what a reader does with it, on a toy model of the tests."""

import csv
import io
import math
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


def test_a_slider_that_is_dragged_to_and_fro_is_let_go_too(tab):
    before = tab.cell("T1", 1)
    tab.press_on("q", 0.5)
    tab.move_to(0.8)
    tab.expect('tr[data-event="T1"]').to_contain_text("on release")
    tab.expect('[data-run="descent"]').to_have_text("step, descent")
    tab.move_to(0.5)
    tab.expect("#control-q-number").to_have_value("0.5")
    tab.page.mouse.up()
    tab.rests()
    assert tab.cell("T1", 1) == before
    for run in ("flow", "descent"):
        tab.expect(f'[data-run="{run}"]').to_contain_text(f"{run} to time ")


def test_a_refused_value_is_explained_beside_its_control_and_mended_by_a_button(tab):
    before = tab.cell("T1", 0)
    tab.type_into("C", "5")
    tab.expect("#control-C-refusal").to_contain_text("C = 5 must divide D = 16; nearest: 4")
    tab.expect("#control-C-number").to_have_attribute("aria-invalid", "true")
    assert tab.cell("T1", 0) == before  # what was shown stays
    tab.page.get_by_role("button", name="use C = 4").click()
    tab.expect("#control-C-refusal").to_be_empty()
    tab.expect("#control-C-number").to_have_value("4")
    tab.rests()
    for text in ("", "three", "1e999"):
        tab.type_into("D", text)
        tab.expect("#control-D-refusal").to_contain_text("D")
    tab.type_into("D", "8")
    tab.expect("#control-D-refusal").to_be_empty()
    tab.type_into("steps", "2.5")
    tab.expect("#control-steps-refusal").to_contain_text("whole number")


def test_the_end_of_a_slider_says_why(tab):
    assert "configurations" not in tab.page.locator("#controls").inner_text()
    tab.page.locator("#control-D").press("End")
    tab.expect("#control-D-note").to_contain_text("D > 24 has more configurations")


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


def test_a_wrong_address_is_said_and_does_no_harm(browser, address):
    tab = Tab(browser, address + "#q=banana&flux=3&p=5&law=none&view.x=z&C=%E0%A4%A")
    tab.expect("#remarks").to_contain_text("q = banana, which is not a number; 0.5 is shown")
    tab.expect("#remarks").to_contain_text("flux, which is not a control")
    tab.expect("#remarks").to_contain_text("law = none, which is none of mixed, any; mixed is")
    tab.expect("#remarks").to_contain_text("view.x = z")
    tab.rests()
    tab.expect("#control-p-number").to_have_value("5")
    assert tab.complaints == []
    tab.context.close()


def test_one_scalar_without_events_has_a_page(browser, tmp_path):
    changes = {"states": mock_model.DESCRIPTION["states"][:1], "plane": None, "matrices": [],
               "events": [], "observables": [], "constants": mock_model.DESCRIPTION["constants"],
               "panels": [{"names": ["x"], "logarithmic": False, "title": "x"}]}  # fmt: skip
    tab = Tab(browser, mock_model.write(tmp_path / "one.html", **changes))
    tab.rests()
    tab.expect("#values").to_contain_text("= 1")
    tab.expect("#figures .card").to_have_count(1)
    assert tab.complaints == []
    tab.context.close()


def test_what_a_worker_throws_is_one_line_and_the_next_request_goes_on(browser, tmp_path):
    path = tmp_path / "failing.html"
    thrown = "if (request.constants.p === 5) throw new Error('no step can be made');"
    script = mock_model.worker().replace(
        "function flow(",
        f"function flow(request) {{ {thrown} return real(request); }}\nfunction real(",
    )
    path.write_text(mock_model.page(mock_model.DESCRIPTION, script), encoding="utf-8")
    tab = Tab(browser, path.as_uri())
    tab.rests()
    tab.type_into("p", "5")
    tab.expect("#alert").to_contain_text("no step can be made")
    tab.type_into("p", "3")
    tab.expect("#alert").to_be_hidden()
    tab.rests()
    tab.context.close()


def test_everything_works_by_keyboard(tab):
    page = tab.page
    page.locator("#control-q").focus()
    page.keyboard.press("ArrowRight")
    tab.expect("#control-q-number").to_have_value("0.501")
    tab.rests()
    page.keyboard.press("Tab")
    tab.expect("#control-q-number").to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2
    page.locator("#time").focus()
    before = page.locator("#moment").inner_text()
    page.keyboard.press("ArrowLeft")
    tab.expect("#moment").not_to_have_text(before)
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter((one) =>"
        " !one.getAttribute('aria-label') && !one.textContent.trim() && !one.labels?.length).length"
    )
    assert unlabelled == 0


def test_the_time_slider_moves_the_values_and_the_matrix(tab):
    late = tab.page.locator("#values").inner_text()
    classes = tab.page.locator(".classes").inner_text()
    tab.page.locator("#time").fill("0")
    tab.expect("#values").not_to_have_text(late)
    tab.expect(".classes").not_to_have_text(classes)
    tab.expect(".classes").to_contain_text("same set: b = ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(browser, address, scheme):
    size = {"width": 360, "height": 740}
    tab = Tab(browser, address, viewport=size, color_scheme=scheme)
    tab.rests()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in paper[4:-1].split(",")) / 3
    assert light > 200 if scheme == "light" else light < 50
    assert tab.complaints == []
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


def test_a_long_descent_shows_its_progress_and_gives_way(tab):
    tab.type_into("steps", "5000000")
    tab.expect("#progress").to_be_visible()
    tab.type_into("steps", "1000")
    tab.rests()
    tab.expect("#command-descent").to_contain_text("--steps 1000")
    tab.expect("#progress").to_be_hidden()


def test_print_is_on_light_paper(browser, address):
    tab = Tab(browser, address, color_scheme="dark")
    tab.rests()
    shade = (
        "(() => { const canvas = document.querySelector('canvas'); const context ="
        " canvas.getContext('2d'); return Math.min(...context.getImageData(canvas.width / 3,"
        " canvas.height / 2, 1, 1).data.slice(0, 3)); })()"
    )
    tab.page.wait_for_function(f"{shade} < 80")
    tab.page.emulate_media(media="print")
    tab.expect("#controls").to_have_css("background-color", "rgb(255, 255, 255)")
    tab.page.wait_for_function(f"{shade} > 200")
    assert (
        tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert not tab.page.locator("#control-q").is_visible()
