"""Pictures of tests that look at no picture: drawn whole, but small and without a layout."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def sketched(monkeypatch):
    """Figures are written in a quarter of the time."""
    whole = Figure.savefig

    def savefig(figure, *arguments, **options):
        figure.set_layout_engine(None)
        whole(figure, *arguments, **options | {"dpi": 40})

    monkeypatch.setattr(Figure, "savefig", savefig)
