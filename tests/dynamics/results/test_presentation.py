"""What results are shown with: it travels with them, and every result is a few lines."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from scalars import wells

import dynamics
import theory
from dynamics import plotting, registry
from dynamics.analysis.phase_portrait import portrait
from dynamics.attention_maps import measure
from dynamics.phase_diagrams import select, threshold
from dynamics.presentation import Origin, Panel, PlotDescription, Presentation
from dynamics.results.formulas import mathml, plain, plain_text
from dynamics.verdicts.figure import Drawing
from theory.notation import Notation, NotationEntry

OWN = Presentation(
    "a title",
    Notation(
        "a paper",
        (NotationEntry("w", "ω", r"\omega_1", "weight", (("even", True),), "D x D"),),
    ),
    PlotDescription(
        (Panel((("w", 3), ("risk", 0)), True, "D/2", "two\nlines", ("one", "other")),),
        (("first", None, "T"), ("second", "T", None)),
        {"T": "$T$"}, {"U": "$U$"}, ("w",), {"second": "alone"},
    ),
    {"T": r"w \geq 1"},
    Origin("/a/model.py", {"loss": "12ab"}),
)  # fmt: skip


@pytest.mark.parametrize("shown", [OWN, Presentation.empty("nothing")])
def test_plain_values_and_back(shown):
    again = Presentation.from_json(json.loads(json.dumps(shown.to_json())))
    assert again == shown
    assert again.notation.source == shown.notation.source
    assert list(again.notation.values()) == list(shown.notation.values())
    assert again.to_json() == shown.to_json()
    assert Presentation.from_attributes(shown.attributes()) == shown


def test_loaded_results_are_drawn_without_any_registry(system, tmp_path, monkeypatch):
    for name in ("load_system", "load_unchanged", "_named", "system_names", "built_in_names"):
        monkeypatch.setattr(registry, name, None)
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    compared = dynamics.compare(reduced, full, eta=0.02, steps=300)
    overlaid = dynamics.overlay(reduced, [0.05, 0.02], time=20.0)
    compared, overlaid = (
        dynamics.load(dynamics.save(result, tmp_path / name))
        for name, result in (("compared", compared), ("overlaid", overlaid))
    )
    panels = plotting.comparison(compared)
    assert panels[0].get_ylabel() == r"$\alpha$"
    labels = [text.get_text() for text in plotting.deviation(compared).get_legend().get_texts()]
    assert set(labels) == {r"$\alpha$", r"$\gamma$", r"$\rho$"}
    below = plotting.overlay(overlaid)
    assert [panel.get_ylabel() for panel in below[:2]] == [r"$\alpha$", r"$\gamma$"]


@pytest.fixture(scope="module")
def results():
    """One of each, of small runs."""
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    run = dynamics.descend(full, eta=0.02, steps=100)
    sweep = dynamics.sweep(system, {"D": 8, "C": "2,3,4", "q": "0.2:0.6:3", "time": 50}, workers=0)
    evidence = {"table": [{"D": 8}] * 999}
    finding = dynamics.Finding(None, "spread of A", np.nan, 1e-12, "too large", evidence)
    claim, plane = system.claims[0], portrait(wells(), 5.0)
    return [
        run, *run.events.values(), dynamics.flow(reduced, 10.0),
        dynamics.compare(reduced, full, eta=0.02, steps=100),
        dynamics.overlay(reduced, [0.02, 0.01], time=2.0),
        sweep, select(sweep.dataset, "risk", "q", "C"), plane, *plane.nullclines.values(),
        system, claim, finding, dynamics.Verdict(claim, finding),
        measure(np.full((2, 3, 16, 16), 1 / 16)), threshold([1, 2, 3, 4], [0, 0, 5, 5], [5] * 4),
        theory.classes(theory.Partition.contiguous((2, 3))), system.derivation(),
        Drawing(np.empty(3, object), {"rows": np.zeros(999)}, "A caption. " * 99),
    ]  # fmt: skip


def test_a_result_is_a_few_lines_and_a_small_table(results):
    for result in results:
        assert len(repr(result)) < 600, repr(result)
        assert len(repr(result).splitlines()) <= 8
        assert "object at 0x" not in repr(result)
        assert len(result._repr_html_()) < 2000
    shown = repr(results[0])
    for word in ("positional_attention, full population", "D=8, C=2", "T0 0.56", "not T1, event"):
        assert word in shown


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"G \geq D/2", "G ≥ D/2"),
        (r"\frac{a + b}{c}", "(a + b)/c"),
        (r"M^{-1}", "M^(−1)"),
        (r"\gamma > \max_t |\rho|", "γ > max_t|ρ|"),
        (r"\mathrm{softmax}_l(X k)", "softmax_l(X k)"),
        (r"W_{l+1}^T", "W_(l+1)^T"),
        (r"\dot\alpha", "α̇"),
        (r"\alpha \text{ rises again}", "α rises again"),
        (r"\{-1, 1\}^D", "{−1, 1}^D"),
    ],
)
def test_a_formula_as_text(latex, text):
    assert plain(latex) == text


def test_formulas_in_words():
    assert plain_text("of $D$ patches, ``risk`` and `G`") == "of D patches, risk and G"


HOSTILE = "<script>alert(6)</script>"


@pytest.mark.parametrize(
    "latex",
    [
        rf"\text{{{HOSTILE}}}", rf"\mbox{{{HOSTILE}}}", rf"\textbf{{{HOSTILE}}} & x",
        r"\href{javascript:alert(6)}{x}", r"\style{x}{y}", r"\class{x}{y}", r"\color{red}{x}",
        rf"\unicode{{3c}} {HOSTILE}", rf"\verb|{HOSTILE}|", r"\def\x{\x\x} \x", r"\text{\x01}",
        rf"\left( {HOSTILE}", "{" * 5000, r"\text{&lt;script&gt;}", r"a \\\href{b}{c}",
    ],
)  # fmt: skip
def test_a_hostile_formula_is_text(latex):
    tree = ElementTree.fromstring(mathml(latex))
    assert {element.tag.rpartition("}")[2][:1] for element in tree.iter()} == {"m"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert names <= {"display", "displaystyle", "scriptlevel", "mathvariant", "stretchy"}


def test_a_formula_with_an_unknown_command_is_its_source():
    assert mathml(r"\mystery{a} < b") == r"<math><mtext>\mystery{a} &lt; b</mtext></math>"
    assert plain(r"\mystery{a}") == r"\mystery{a}"
