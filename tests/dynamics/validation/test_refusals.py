import pytest

import dynamics
from dynamics.validation import InvalidRequest, learning_rate, unknown


@pytest.mark.parametrize(
    ("name", "wrong", "near"),
    [
        ("positional_attention", {"random_sets": "mix"}, "mixed"),
        ("shallow_vit", {"output_weights": "per_pos"}, "per_position"),
        ("shallow_vit", {"frozen": "value"}, "values"),
    ],
)
def test_the_nearest_word_is_the_most_similar_one(name, wrong, near):
    with pytest.raises(ValueError, match=f"nearest: {near}( |$)"):
        dynamics.load_system(name).Parameters(**wrong)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [({"start": "symetric"}, "symmetric"), ({"dtype": "float"}, "float64"),
     ({"partition": "rand"}, "random"), ({"partition": "grids"}, "grid")],
)  # fmt: skip
def test_words_of_a_realistic_run_have_their_nearest_too(system, wrong, near):
    with pytest.raises(ValueError, match=f"nearest: {near}( |$)"):
        system.FullEmpirical(system.Parameters(D=16, C=4), samples=4, **wrong)


def test_an_unknown_flag_has_the_nearest_only_if_it_is_near():
    flags = ["--omega", "--eta", "--seed"]
    assert str(unknown("flag", "--omgea", flags)).endswith("; nearest: --omega")
    assert str(unknown("flag", "--learning_rate", flags)).endswith("; nearest: --eta")
    assert str(unknown("flag", "--momentum", flags)).endswith("known are --omega, --eta, --seed")


def test_groups_may_rest_but_not_all():
    assert learning_rate([1, 0], ("a", "b")) == (1.0, 0.0)
    assert learning_rate([0, 1], ("a", "b")) == (0.0, 1.0)
    for refused in ([1, -0.1], 0.0, [0, 0], []):
        with pytest.raises(InvalidRequest, match="is too small"):
            learning_rate(refused, None)
