"""Short requests of every kind: whatever they lead to, it can be drawn."""

import json
from pathlib import Path

import pytest

from dynamics.cli import main


@pytest.fixture(autouse=True)
def sketched():
    """These pictures are written as users see them."""


SHORT = [
    "run positional_attention --D 4 --C 2 --steps 3 --eta 1e-9 --alpha0 0.3 --full population",
    # Nothing of a logarithmic panel is positive.
    "compare positional_attention --D 4 --C 2 --nu 3.3 --beta 6.5 --p 5 --q .32 "
    "--random_sets mixed --steps 7 --eta 1.2",
]


@pytest.mark.parametrize("words", SHORT)
def test_almost_constant_curves_are_drawn(capsys, words):
    assert main([*words.split(), "--json", "--out", "x"]) in (0, 1)
    files = json.loads(capsys.readouterr().out)["files"]
    assert files
    assert all((Path("x") / name).stat().st_size > 1000 for name in files)


def test_format_width_and_time_are_chosen(capsys):
    words = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "3", "--out", "x"]
    assert main([*words, "--format", "svg", "--width", "8.6", "--linear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == ["training.svg"]
    assert 'width="243.7' in Path("x/training.svg").read_text()
    assert main([*words, "--format", "pdf", "--force"]) == 0
    assert Path("x/training.pdf").exists()
    assert not Path("x/training.svg").exists()
