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
    text = markdown("A paper", verdicts, COMMAND, {"Lemma 1": "lemma_1.png"})
    return text, html("A paper", text)


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
    for part in ("a &lt; b_* and &lt;i&gt;", "<math", 'href="#lemma-1"', 'id="lemma-1"'):
        assert part in document
    text, _ = page_of(verdict(LEMMA, literal=literal), verdict(replace(LEMMA, reading="")))
    assert "On the literal words: 1 *does not hold here*; 1 *holds*." in text


def test_a_note_is_one_line_whatever_it_holds():
    note = "a\n\n~~~\n<script> $\\text{<b>}$ [x](javascript:a) &lt;i&gt; ![y](z.png)"
    text, document = page_of(verdict(LEMMA, reason=note, quantity=note))
    assert "~~~\n" not in text
    assert "&lt;script&gt;" in document
    assert "&amp;lt;i" in document
    for part in ("<script", "<b>", "<img", 'href="javascript'):
        assert part not in document


def test_a_verdict_on_a_model_is_repeated_by_what_loads_the_model():
    subject = str(Path(__file__).parents[2] / "support/models/two_samples.py")
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
    names = {"summary.json", "verdicts.html", "verdicts.md", "theorem_3_1.png"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "verdicts.html").read_text().count('<img src="data:image/png;base64,') == 1
    assert main([*words[:-1], str(tmp_path / "out")]) == 2
    assert "two folders" in capsys.readouterr().err
