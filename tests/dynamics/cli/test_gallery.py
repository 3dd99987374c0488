"""``attdyn gallery``: a page on a model, of the library and of one's own."""

import pytest

from dynamics.cli import main


@pytest.fixture(autouse=True)
def sketched():
    """These pictures are written as users see them."""


def test_a_page_on_a_library_model(tmp_path, capsys):
    """The file, what closes, every picture, every verdict; the pictures that it names exist."""
    out = tmp_path / "page"
    assert main(["gallery", "single_location", "--out", str(out)]) == 0
    page = (out / "index.md").read_text(encoding="utf-8")
    assert "def loss(theta, sample, xp):" in page
    assert "closes on 2 scalars of 8 entries" in page
    assert "**holds:**" in page
    assert "$$\n\\hat y = \\sum_l" in page
    for line in page.splitlines():
        if line.startswith("!["):
            assert (out / line.partition("](")[2].rstrip(")")).stat().st_size > 10_000
    assert page.count("![") == 3
    assert "![plane](figure-plane.png)" in page
    assert "## The recursion" in page
    assert r"\kappa' &= \kappa - \frac{2 \eta \nu" in page
    html = (out / "index.html").read_text(encoding="utf-8")
    assert "<math" in html
    assert ":math:" not in html
    assert html.count('<img src="data:image/png;base64,') == 3
    assert "<math><mtext>" not in html
    assert capsys.readouterr().out == f"page     {out}/index.html\n"


def test_the_gallery_is_of_models(capsys):
    assert main(["gallery", "shallow_vit"]) == 2
    assert capsys.readouterr().err == "attdyn: shallow_vit is not a model file; gallery needs one\n"
