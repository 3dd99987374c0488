"""Pages for readers: examples print what they say, files they name exist, links lead on."""

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
ROOMS = ("theory", "dynamics", "tests", "notebooks", "docs")


@pytest.mark.parametrize("page", [p for p in PAGES if ">>> " in (ROOT / p).read_text("utf-8")])
def test_examples_print_what_they_say(page):
    done = doctest.testfile(str(ROOT / page), module_relative=False)
    assert done.attempted > 5
    assert done.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_files_named_in_the_pages_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for word in text.split("`")[1::2]:
        name = word.split("`")[0]
        if name.split("/")[0] in ROOMS and "/" in name and "<" not in name:
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", ["README.md", "docs/own_models.md"])
def test_the_model_in_the_pages_is_the_one_that_is_tested(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    model = re.search(r'```python\n(""".*?)```', text, re.S)[1]
    tested = (ROOT / "tests/support/models/positional.py").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(model)) == ast.dump(ast.parse(tested))
