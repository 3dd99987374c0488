"""The realistic problem beside the idealised one: N^-1/2, and Theorem 4.2 where it is seen."""

import numpy as np
import pytest

import dynamics
from dynamics.results.power_law import exponent
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import realistic

SYSTEM = dynamics.load_system("positional_attention")
NOISE_FREE = SYSTEM.Parameters(D=8, C=2, d=1, sigma=0.0)


def test_deviation_falls_with_the_number_of_samples():
    slopes = exponents(NOISE_FREE, (1000, 4000, 16_000), range(12))
    assert set(slopes) == {"alpha", "gamma", "rho"}
    assert all(abs(slope + 0.5) < 0.3 for slope in slopes.values())


def exponents(parameters, counts, seeds):
    distances = realistic.deviation(SYSTEM, parameters, counts, seeds)
    means = {name: realistic.root_mean_square(part) for name, part in distances.items()}
    return {name: exponent(counts, mean) for name, mean in means.items()}


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(8, 2), (16, 4)])
def test_deviation_falls_as_the_root_of_the_number_of_samples(sizes, capsys):
    """RMS over 16 seeds after 200 steps, N = 1e3 ... 1e5: exponent -1/2 within 0.15."""
    parameters = SYSTEM.Parameters(D=sizes[0], C=sizes[1], d=1, sigma=0.0)
    counts = (1000, 3162, 10_000, 31_623, 100_000)
    slopes = exponents(parameters, counts, range(16))
    with capsys.disabled():
        print(f"\nD={sizes[0]} C={sizes[1]}: exponents of N {slopes}")
    assert all(abs(slope + 0.5) < 0.15 for slope in slopes.values())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_enough_samples_associate_every_row(seed, capsys):
    """D=16 C=4 d=16 q=0.25 N=16000 eta=0.02, 20 000 steps, random start: Theorem 4.2 is seen."""
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 16_000, seed)
    run = dynamics.descend(problem, 0.02, 20_000, record=np.array([1000, 5000, 20_000]))
    ends = [float(run[name][-1]) for name in ("patch_association", "test_error", "cosine")]
    with capsys.disabled():
        print(
            f"\nN=16000 seed {seed}: associated {ends[0]:.0%}, test error {ends[1]:.2%}, "
            f"cosine {ends[2]:.4f}"
        )
    assert ends[0] == 1.0
    assert ends[1] < 0.01


def test_few_samples_are_memorised():
    """N=500, else the same: fitted without the sets, and the report says why."""
    from dynamics.cli.report import table

    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 500, 0)
    run = dynamics.descend(problem, 0.02, 10_000, record=np.array([100, 10_000]))
    assert run["error"][-1] < 0.002
    assert run["patch_association"][-1] < 0.7
    assert run["test_error"][-1] > 0.008
    assert "memorised: the 500 samples" in table(SYSTEM, run)


def test_a_rate_above_the_limit_is_replaced():
    steep = SYSTEM.Parameters(D=16, C=4, q=0.5, p=5)
    assert realistic.stable_rate(SYSTEM, SYSTEM.Parameters(D=16, C=4, q=0.25)) == 0.02
    assert realistic.stable_rate(SYSTEM, steep) < 0.02


def test_phase_has_a_cell_for_every_n_and_q():
    law = SYSTEM.Parameters(D=8, C=2)
    found = realistic.association_grid(
        SYSTEM, law, (50, 100), (0.2, 0.5), (0, 1), realistic.Schedule(time=2.0)
    )
    assert found["association"].shape == (2, 2, 2)
    assert (found["test_error"] > 0).all()
    assert found["linear_error"][0] < found["linear_error"][1]


def test_figures_over_samples_show_every_cell_and_exponent():
    drawing = draw(SYSTEM, "deviation", options={"samples": (100, 400, 1600), "seeds": 2})
    texts = drawing.axes.get_legend().get_texts()
    assert f"{drawing.data['exponents']['alpha']:.2f}" in texts[0].get_text()
    options = {"samples": (50, 100), "chances": (0.2, 0.5), "time": 2.0}
    drawing = draw(SYSTEM, "phase", SYSTEM.Parameters(D=8, C=2), options=options)
    texts = [text.get_text() for text in drawing.axes[0].texts]
    assert texts == [f"{share:.2f}" for share in drawing.data["association"].ravel()]
