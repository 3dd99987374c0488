"""The notebooks that train for minutes belong to the long validations."""

import pytest

LONG = (
    "02_rare_events.ipynb",
    "03_realistic.ipynb",
    "04_transfer.ipynb",
    "05_phase_diagrams.ipynb",
    "06_masked_image_modeling.ipynb",
    "07_shallow_vit.ipynb",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in LONG:
            item.add_marker("long")
