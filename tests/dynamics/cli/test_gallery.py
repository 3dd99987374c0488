"""``attdyn gallery``: a page on a model, of the library and of one's own."""

import pytest

from dynamics.cli import main


@pytest.fixture(autouse=True)
def sketched():
    """These pictures are written as users see them."""


def test_a_page_on_a_library_model(tmp_path, capsys):
    out = tmp_path / "page"
    assert main(["gallery", "single_location", "--out", str(out)]) == 0
    page = (out / "index.md").read_text(encoding="utf-8")
    for part in (
        "def loss(theta, sample, xp):", "closes on 2 scalars of 8 entries", "**holds:**",
        "$$\n\\hat y = \\sum_l", "![plane](figure-plane.png)", "## The recursion",
        r"\kappa' &= \kappa - \frac{2 \eta \nu",
    ):  # fmt: skip
        assert part in page
    pictures = [line.partition("](")[2][:-1] for line in page.splitlines() if line[:2] == "!["]
    assert len(pictures) == 3
    assert all((out / name).stat().st_size > 10_000 for name in pictures)
    html = (out / "index.html").read_text(encoding="utf-8")
    assert "<math" in html
    assert ":math:" not in html
    assert html.count('<img src="data:image/png;base64,') == 3
    assert "<math><mtext>" not in html
    assert capsys.readouterr().out == f"page     {out}/index.html\n"
