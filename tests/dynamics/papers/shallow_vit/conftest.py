import pytest


@pytest.fixture
def system():
    import dynamics

    return dynamics.load_system("shallow_vit")
