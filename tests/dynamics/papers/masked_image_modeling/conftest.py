import pytest


@pytest.fixture
def system():
    import dynamics

    return dynamics.load_system("masked_image_modeling")


@pytest.fixture
def crossed(system):
    """Two clusters that cross without symmetry: 44 scalars."""
    areas = "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2"

    def made(**options):
        return system.Parameters(family="custom", areas=areas, **options)

    return made
