"""Pages and docstrings: examples print what they say, files they name exist, links lead on."""

import ast
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from dynamics.registry import load_system

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
ROOMS = ("theory", "dynamics", "tests", "notebooks", "docs")


@pytest.mark.parametrize("page", [p for p in PAGES if ">>> " in (ROOT / p).read_text("utf-8")])
def test_examples_print_what_they_say(page):
    done = doctest.testfile(str(ROOT / page), module_relative=False)
    assert done.attempted > 5
    assert done.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_files_named_in_the_pages_exist_and_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in text.split("`")[1::2]:
        if name.split("/")[0] in ROOMS and "/" in name and "<" not in name:
            assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", ["README.md", "docs/own_models.md"])
def test_the_model_in_the_pages_is_the_one_that_is_tested(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    model = re.search(r'```python\n(""".*?)```', text, re.S)[1]
    tested = (ROOT / "tests/support/models/positional.py").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(model)) == ast.dump(ast.parse(tested))


def test_the_pages_count_the_statements_that_have_a_verdict():
    papers = ("positional_attention", "masked_image_modeling", "shallow_vit")
    claims = {name: load_system(name).claims for name in papers}
    ours = [claim for some in claims.values() for claim in some if "[Ours" in claim.statement]
    count = {name: sum("[Ours" not in one.statement for one in claims[name]) for name in papers}
    said = f"{sum(count.values())} statements of three papers"
    for page in ("README.md", "paper.md", "docs/verdicts.md"):
        assert said in (ROOT / page).read_text(encoding="utf-8")
    text = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    each = "({} of positional attention, {} of masked image modelling, {} of the shallow ViT)"
    assert each.format(*count.values()) in text
    assert len(ours) == 9
    assert "Nine more claims are ours" in text
    notebook = (ROOT / "notebooks/03_realistic.ipynb").read_text(encoding="utf-8")
    assert f"measures {count['positional_attention']} claims of the paper" in notebook


def test_the_line_that_takes_the_step_is_in_the_file_that_the_page_names():
    page = (ROOT / "docs/follow_one_gradient.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ {8}(\S.*)$", page, re.M)
    assert line in (ROOT / "dynamics/loops/kernels/update.py").read_text(encoding="utf-8")


def modules():
    for path in sorted([*ROOT.glob("theory/**/*.py"), *ROOT.glob("dynamics/**/*.py")]):
        if ">>> " in path.read_text(encoding="utf-8") and path.name != "__main__.py":
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules()))
def test_examples_of_docstrings_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("package", ["dynamics", "dynamics.plotting", "theory"])
def test_everything_exported_has_an_example_and_says_its_parameters(package):
    module = import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert ">>> " in (thing.__doc__ or ""), name
        if inspect.isfunction(thing) and len(inspect.signature(thing).parameters) > 1:
            assert "Parameters\n" in inspect.getdoc(thing), name
