"""The page on verdicts: words, numbers and formulas as they are, nothing from the network."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import dynamics
from dynamics.cli import main, verify
from dynamics.cli.arguments import CommandRequest
from dynamics.results.hypertext import html
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.rules import applied
from dynamics.verdicts.verdict_report import markdown
from theory.claims import Claim

COMMAND = "attdyn verify some_system"


def verdict(claim, **changed):
    entries = {"holds": True, "quantity": "n_* | alpha_*", "measured": 0.125, "bound": 0.5}
    finding = Finding(**entries | {"reason": "a < b_* and <i>", "relation": "<="} | changed)
    return dynamics.Verdict(claim, applied(claim, finding))


def page_of(*verdicts):
    text = markdown("A paper & its claims", verdicts, COMMAND, {"Lemma 1": "lemma_1.png"})
    return text, html("A paper & its claims", text)


LEMMA = Claim("Lemma 1", "$a_1 < b$ [ours]", "``fixed`` law", "a $b$ below $a_1$", reading="mean")


def test_a_section_has_everything_a_referee_asks():
    literal = Finding(False, "largest", 3.0, 1.0, "the largest is 3")
    text, document = page_of(verdict(LEMMA, literal=literal))
    for part in (
        "> $a_1 < b$ \\[ours\\]", "*Assumes:* `fixed` law", "below $a_1$",
        "**Holds, as read here.**", "measured 0.125, claimed \\<= 0.5",
        "Read as: mean; a \\< b\\_\\*",
        "**Literal words: does not hold here.** Largest: measured 3, claimed 1. The largest is 3.",
        "![Evidence for Lemma 1](lemma_1.png)", f"`{COMMAND} --claims 'Lemma 1'`",
    ):  # fmt: skip
        assert part in text
    assert "a &lt; b_* and &lt;i&gt;" in document
    assert "<math" in document
    assert "A paper &amp; its claims" in document
    assert 'href="#lemma-1"' in document
    assert 'id="lemma-1"' in document
    text, _ = page_of(verdict(LEMMA, literal=literal), verdict(replace(LEMMA, reading="")))
    assert "On the literal words: 1 *does not hold here*; 1 *holds*." in text
    assert "On another reading: 1 *holds, as read here*." in text
    text, _ = page_of(verdict(LEMMA, holds=None, measured=float("nan"), bound=float("nan")))
    assert "measured nan, claimed -." in text


def test_a_note_is_one_line_whatever_it_holds():
    note = (
        "a\n\n~~~\n<script>alert(6)</script> $\\text{<b>}$ [x](javascript:a) &lt;i&gt; ![y](z.png)"
    )
    text, document = page_of(verdict(LEMMA, reason=note, quantity=note))
    assert "~~~\n" not in text
    assert "&lt;script&gt;" in document
    assert "&amp;lt;i" in document
    for part in ("<script", "<b>", "<img", 'href="javascript'):
        assert part not in document


@pytest.mark.parametrize(
    "subject", ["deep_linear", str(Path(__file__).parents[2] / "support/models/two_samples.py")]
)
def test_a_verdict_on_a_model_is_repeated_by_what_loads_the_model(subject):
    request = CommandRequest("verify", {}, dynamics.load_system(subject))
    text = verify._report(request, [verdict(LEMMA)])[0]["verdicts.md"]
    (command,) = re.findall(r"^Repeat: `(.*)`$", text, re.MULTILINE)
    assert shlex.split(command) == ["attdyn", "verify", subject, "--claims", "Lemma 1"]


@pytest.mark.parametrize("name", ["positional_attention", "masked_image_modeling", "shallow_vit"])
def test_every_claim_of_every_paper_becomes_html_without_latex(name):
    claims = dynamics.load_system(name).claims
    _, document = page_of(*map(verdict, claims))
    addresses = re.findall(r'(?:src|href)="([^"]*)"', document)
    assert all(re.match(r"#|\w+\.png$", address) for address in addresses)
    assert len({address for address in addresses if address[0] == "#"}) == len(claims)
    assert not re.findall(r"\\[a-zA-Z]+", document)
    assert "Content-Security-Policy" in document


def test_a_report_is_written_whole_and_again(tmp_path, capsys):
    folder = tmp_path / "report"
    words = ["verify", "positional_attention", "--D", "16", "--C", "4", "--claims", "Theorem 3.1"]
    words += ["--out", str(tmp_path / "out"), "--report", str(folder)]
    for _ in range(2):
        assert main(words) == 0
    assert "report" in capsys.readouterr().out
    names = {"summary.json", "verdicts.html", "verdicts.md", "theorem_3_1.png"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "verdicts.html").read_text().count('<img src="data:image/png;base64,') == 1
    assert main([*words[:-1], str(tmp_path / "out")]) == 2
    assert "two folders" in capsys.readouterr().err
