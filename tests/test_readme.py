"""The README's example prints what it says."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_example_prints_what_it_says():
    done = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert done.attempted > 5
    assert done.failed == 0


def test_package_docstring_is_true():
    import dynamics

    assert doctest.testmod(dynamics).failed == 0


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_files_named_in_the_pages_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {
        word.split("`")[0] for word in text.split("`")[1::2] if "/" in word and "<" not in word
    }
    for name in named:
        if name.split("/")[0] in ("theory", "dynamics", "tests", "notebooks"):
            assert (ROOT / name).exists(), name
