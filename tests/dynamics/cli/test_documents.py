"""Pictures, pages and documents as users see them: whatever a request leads to can be drawn."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import dynamics


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
def test_almost_constant_curves_are_drawn(call, words):
    code, out, _ = call(*words.split(), "--json", "--out", "x")
    files = json.loads(out)["files"]
    assert code in (0, 1)
    assert files
    assert all((Path("x") / name).stat().st_size > 1000 for name in files)


def test_format_width_and_time_are_chosen(call):
    words = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "3", "--out", "x"]
    code, out, _ = call(*words, "--format", "svg", "--width", "8.6", "--linear", "--json")
    assert (code, json.loads(out)["files"]) == (0, ["training.svg"])
    assert 'width="243.7' in Path("x/training.svg").read_text()
    assert call(*words, "--format", "pdf", "--force")[0] == 0
    assert [path.suffix for path in Path("x").glob("training.*")] == [".pdf"]


def test_the_gallery_has_a_page_on_a_library_model(call):
    assert call("gallery", "single_location", "--out", "page")[:2] == (
        0, "page     page/index.html\n"
    )  # fmt: skip
    page, html = (
        Path("page", f"index.{end}").read_text(encoding="utf-8") for end in ("md", "html")
    )
    for part in (
        "def loss(theta, sample, xp):", "closes on 2 scalars of 8 entries", "**holds:**",
        "$$\n\\hat y = \\sum_l", "![plane](figure-plane.png)", "## The recursion",
        r"\kappa' &= \kappa - \frac{2 \eta \nu",
    ):  # fmt: skip
        assert part in page
    pictures = [line.partition("](")[2][:-1] for line in page.splitlines() if line[:2] == "!["]
    assert len(pictures) == html.count('<img src="data:image/png;base64,') == 3
    assert all((Path("page") / name).stat().st_size > 10_000 for name in pictures)
    assert "<math" in html
    assert not any(part in html for part in (":math:", "<math><mtext>"))


TEX = next((t for t in ("tectonic", "pdflatex", "lualatex", "xelatex") if shutil.which(t)), None)


@pytest.mark.long
@pytest.mark.skipif(TEX is None, reason="there is no TeX")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("positional_attention", {}),
        ("positional_attention", {"p": 5, "random_sets": "mixed"}),
        ("masked_image_modeling", {}),
        ("masked_image_modeling", {"family": "two_cluster_grid"}),
        ("shallow_vit", {}),
        ("shallow_vit", {"data": "iid", "loss": "linear"}),
        ("softmax_icl", {"N": 4}),
    ],
)
def test_documents_compile(tmp_path, name, given):
    system = dynamics.load_system(name)
    made = system.derivation(system.Parameters(**given) if given else None)
    (tmp_path / "page.tex").write_text(made.as_latex(standalone=True))
    flags = [] if TEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([TEX, *flags, "page.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    if not given:
        assert "Overfull" not in done.stdout
