"""The page of positional attention in a browser, against what Python computes."""

import pytest
from browser import Tab, chromium

import dynamics
from dynamics.explorer import write_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "positional_attention.html"
    write_page("positional_attention", path)
    return path


@pytest.fixture
def tab(browser, path):
    opened = Tab(browser, path.as_uri())
    opened.rests()
    yield opened
    assert opened.complaints == []
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "blob", "data"}
    opened.context.close()


def test_dragging_q_moves_the_events_as_python_computes_them(tab):
    before = tab.cell("T1", 0)
    tab.press_on("q", 0.5)
    for share in (0.45, 0.4, 0.35):
        tab.move_to(share)
    tab.page.mouse.up()
    tab.expect("#control-q-number").not_to_have_value("0.5")
    q = float(tab.page.locator("#control-q-number").input_value())
    tab.expect("#command-flow").to_contain_text(f"--q {q}")
    tab.rests()
    assert tab.cell("T1", 0) != before
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(**system.default_runs["compare"].parameters | {"q": q})
    problem = system.ReducedPopulation(parameters)
    path = dynamics.flow(problem, time=1e4)
    run = dynamics.descend(problem, eta=0.03, steps=40000)
    for event in ("T0", "T1", "T1_paper"):
        assert tab.cell(event, 0) == pytest.approx(path.events[event].time, rel=1e-6), event
        assert tab.cell(event, 1) == run.events[event].step, event


def scalars(tab):
    """Alpha, gamma and rho at the chosen time, as the page shows them."""
    texts = tab.page.locator("#values > span").all_inner_texts()[:3]
    return [float(text.split("=")[1].replace("−", "-")) for text in texts]


def test_presets_are_what_they_are_called(tab):
    def settle(preset):
        tab.page.get_by_role("button", name=preset).click()
        tab.expect("#status").not_to_contain_text("descent")
        tab.rests()
        return scalars(tab)

    _, gamma, rho = settle("association lost at q = .8")
    assert gamma < rho
    tab.expect("#control-random_sets").to_have_value("any")
    assert "q=0.8" in tab.page.url
    _, gamma, rho = settle("the paper's law")
    assert gamma > rho
    assert tab.cell("T1", 0) > 0
    assert tab.cell("event_III", 0) == "falls to the horizon"
    settle("three events")
    assert tab.cell("T0", 0) < tab.cell("T1", 0) < tab.cell("event_III", 0)


def test_sets_of_another_size_come_with_the_patches_that_they_divide(tab):
    tab.type_into("D", "10")
    tab.expect("#control-C-number").to_have_value("5")
    tab.expect("#command-flow").to_contain_text("--D 10 --p 3 --nu 0.001 --beta 1 --C 5")
    tab.rests()
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=10, C=5, random_sets="mixed"))
    expected = dynamics.flow(problem, time=1e4).states[-1]
    assert scalars(tab) == pytest.approx(expected, rel=1e-3)
    tab.type_into("D", "8")
    tab.expect("#control-C-number").to_have_value("4")
    tab.page.locator("#control-C").press("Home")
    tab.expect("#control-C-number").to_have_value("2")
    tab.expect("#control-C-refusal").to_be_empty()
