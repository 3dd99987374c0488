"""Sizes that neither fit nor end are refused before anything of their size is made."""

import time

import pytest

import dynamics
from dynamics.validation import InvalidRequest

TOO_LARGE = [
    ("positional_attention", None, {"D": 10**6, "C": 2}, {}, "nearest: 16384"),
    ("positional_attention", "population", {"D": 10**6, "C": 2}, {}, "1e+300 configurations"),
    ("positional_attention", "empirical", {"D": 10**6, "C": 2}, {}, "nearest: 6688"),
    ("positional_attention", "empirical", {}, {"samples": 10**8}, "nearest: 4194304"),
    ("masked_image_modeling", None, {"P": 10**6, "C_global": 9, "C_local": 17}, {},
     "nearest: 8186"),
    ("masked_image_modeling", None,
     {"family": "two_cluster_grid", "b10": 10**6, "C_local": 10**6, "T": 10**6}, {},
     "P can be a size that needs at most 8.2e+03"),
    ("shallow_vit", None, {"M": 10**6}, {}, "M can be"),
    ("shallow_vit", "population", {"d": 10**6}, {}, "nearest: 4096"),
    ("shallow_vit", None, {"m": 10**6, "M": 1000}, {}, "nearest: 33554"),
    ("shallow_vit", "empirical", {}, {"samples": 10**8}, "samples can be"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "full", "sizes", "options", "said"), TOO_LARGE)
def test_a_size_that_does_not_fit_is_refused_at_once(name, full, sizes, options, said):
    system = dynamics.load_system(name)
    parameters, began = system.Parameters(**sizes), time.process_time()
    with pytest.raises(InvalidRequest) as caught:
        system.problem(parameters, full, options)
    assert said in str(caught.value), str(caught.value)
    assert time.process_time() - began < 2


LIBRARY = [
    ("committee", {"d": 10**6}, "nearest: d=2500"),
    ("committee", {"n": 10**6}, "nearest: n=20"),
    ("deep_linear", {"D": 10**6}, "nearest: D=316"),
    ("linear_icl", {"D": 10**6}, "nearest: D=316"),
    ("merged_staircase", {"D": 10**6}, "nearest: D=20"),
    ("single_location_gaussian", {"d": 10**6}, "nearest: d=100"),
    ("single_location_gaussian", {"L": 10**6}, "nearest: L=125"),
    ("softmax_icl", {"N": 10**6}, "nearest: N=500"),
    ("topic_model", {"T": 10**6}, "nearest: T=30"),
]


@pytest.mark.parametrize(("name", "sizes", "said"), LIBRARY)
def test_a_library_model_that_does_not_fit_is_refused_with_the_nearest_size(name, sizes, said):
    system = dynamics.load_system(name)
    with pytest.raises(InvalidRequest) as caught:
        system.Parameters(**sizes)
    assert str(caught.value).endswith(said), str(caught.value)
    constant, number = said.removeprefix("nearest: ").split("=")
    assert system.Parameters(**sizes | {constant: int(number)})


def test_a_whole_number_that_is_no_size_may_be_large():
    system = dynamics.load_system("linear_icl")
    assert system.Parameters(seed_0=2**40, N=10**12).N == 10**12
    with pytest.raises(InvalidRequest, match="N can be at most 9,223,372,036,854,775,807"):
        system.Parameters(N=2**63)
