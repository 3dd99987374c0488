"""Wrong requests end in one line that says what is allowed, before anything large is made."""

import time

import pytest

import dynamics
from dynamics.validation import InvalidRequest
from theory.symmetry import Partition

PA, MIM, VIT = "positional_attention", "masked_image_modeling", "shallow_vit"
REDUCED, FULL, SAMPLES = "ReducedPopulation", "FullPopulation", "FullEmpirical"
PARAMETERS = [
    (MIM, {"family": "three"}, "family='three' is unknown"),
    (MIM, {"P": 256, "C_global": 100, "C_local": 7}, "nearest: 6"),
    (MIM, {"C_local": 5}, "areas do not partition the patches"),
    (MIM, {"masked": 0}, "masked=0 masks nothing"),
    (MIM, {"d": 288}, "d=288 has no room for 33 features and 256 positions"),
    (MIM, {"z": "0.5,1.5", "odds": "0.5,0.6"}, "sums to 1.1"),
    (MIM, {"z": "0.5,1.5", "odds": 1.0}, "has 1 entries; odds can be 2 probabilities"),
    (MIM, {"z": 0}, "z=0 is too small"),
    (MIM, {"z": (1.0, 1.0)}, "has a value twice"),
    (MIM, {"T": 3}, "T=3 does not fit family='one_cluster'"),
    (MIM, {"family": "custom"}, "has no cluster"),
    (MIM, {"family": "custom", "areas": "0,0,2,2"}, "does not partition 4 patches in cluster 1"),
    (MIM, {"family": "custom", "areas": "0,nan,1,1"}, "areas='0,nan,1,1' is not a list of whole"),
    (MIM, {"family": "custom", "areas": [[0, 0, 1, 1]], "P": 5}, "P=5 does not fit"),
    (MIM, {"family": "two_cluster_grid", "b10": 6}, "b10=6 is not a multiple of C_local=4"),
    (MIM, {"family": "two_cluster_grid", "b11": 0, "b10": 0}, "leaves no global area"),
    (PA, {"random_sets": "mixd"}, "random_sets can be any, mixed; nearest: mixed"),
    (VIT, {"M": 2}, "M=2 is too small"),
    (VIT, {"alpha_star": 0.05}, "gives 3 of 50 tokens, no strict majority over the 3"),
    (VIT, {"alpha_star": 0.5, "alpha_confusion": 0.5}, "nearest: 0.5 with alpha_confusion=0"),
    (VIT, {"alpha_star": 0.7, "alpha_confusion": 0.4}, "sum to more than 1; alpha_confusion can"),
    (VIT, {"alpha_star": 0.97, "alpha_confusion": 0.03}, "to more than L=50 tokens"),
    (VIT, {"margin": 0}, "margin=0 is too small"),
    (VIT, {"d": 4}, "d=4 has no room for M=5 patterns"),
    (VIT, {"data": "images"}, "data='images' is unknown; data can be fixed, fixed_disc, iid"),
    (VIT, {"loss": "square"}, "loss can be hinge, linear"),
    ("committee", {"d": 10**6}, "nearest: d=2500"),
    ("committee", {"n": 10**6}, "nearest: n=20"),
    ("deep_linear", {"D": 10**6}, "nearest: D=316"),
    ("linear_icl", {"D": 10**6}, "nearest: D=316"),
    ("linear_icl", {"N": 2**63}, "N can be at most 9,223,372,036,854,775,807"),
    ("merged_staircase", {"D": 10**6}, "nearest: D=20"),
    ("single_location_gaussian", {"d": 10**6}, "nearest: d=100"),
    ("single_location_gaussian", {"L": 10**6}, "nearest: L=125"),
    ("softmax_icl", {"N": 10**6}, "nearest: N=500"),
    ("topic_model", {"T": 10**6}, "nearest: T=30"),
]


@pytest.mark.parametrize(("name", "given", "said"), PARAMETERS)
def test_wrong_parameters_are_refused_in_one_line(name, given, said):
    system = dynamics.load_system(name)
    with pytest.raises(InvalidRequest) as caught:
        system.Parameters(**given)
    told = str(caught.value)
    assert said in told
    assert "\n" not in told
    assert "nearest: " in told
    if name not in (PA, MIM, VIT) and "nearest" in said:
        assert told.endswith(said)
        constant, number = said.removeprefix("nearest: ").split("=")
        assert system.Parameters(**given | {constant: int(number)})


def test_a_whole_number_that_is_no_size_may_be_large():
    assert dynamics.load_system("linear_icl").Parameters(seed_0=2**40, N=10**12).N == 10**12


def sets(*sizes):
    return {"partition": Partition.contiguous(sizes)}


EIGHT, FEW = {"D": 8, "C": 2}, {"P": 8, "C_global": 4}
PROBLEMS = [
    (PA, REDUCED, {}, {"expectation": "guess"}, "expectation='guess' is unknown"),
    (PA, REDUCED, {}, {"tolerance": 0}, "tolerance=0 is too small"),
    (PA, REDUCED, {}, {"samples": 1}, "samples=1 is too small"),
    (PA, REDUCED, {"D": 64}, {"expectation": "exact"}, "77,558,760 configurations at D=64 C=4"),
    (PA, REDUCED, {"D": 10**6, "C": 2}, {}, "nearest: 16384"),
    *((PA, FULL, {"D": 8, "C": 4}, sets(*sizes), "are not the sizes of the sets")
      for sizes in ((2, 2, 2, 2), (2, 2, 4), (4, 4, 4))),
    (PA, FULL, {"D": 10**6, "C": 2}, {}, "1e+300 configurations"),
    (PA, SAMPLES, EIGHT, {"samples": 0}, "samples=0"),
    (PA, SAMPLES, EIGHT, {"samples": 2.5}, "samples=2.5"),
    (PA, SAMPLES, EIGHT, {"batch": 0}, "batch=0"),
    (PA, SAMPLES, EIGHT, {"dtype": "float16"}, "float32"),
    (PA, SAMPLES, EIGHT, {"start": "zero"}, "symmetric"),
    (PA, SAMPLES, EIGHT, sets(4, 3), "partition"),
    (PA, SAMPLES, EIGHT, sets(8), "partition"),
    (PA, SAMPLES, EIGHT | {"q": 1.0, "random_sets": "mixed"}, sets(1, 7),
     "leaves a set of one patch no value"),
    (PA, SAMPLES, {"D": 10**6, "C": 2}, {}, "nearest: 6688"),
    (PA, SAMPLES, {}, {"samples": 10**8}, "nearest: 4194304"),
    (MIM, REDUCED, {"P": 10**6, "C_global": 9, "C_local": 17}, {}, "nearest: 8186"),
    (MIM, REDUCED, {"family": "two_cluster_grid", "b10": 10**6, "C_local": 10**6, "T": 10**6}, {},
     "P can be a size that needs at most 8.2e+03"),
    (MIM, FULL, {"P": 4096, "C_global": 2048, "C_local": 16}, {}, "needs about 1e1231 mask"),
    (MIM, SAMPLES, FEW, {"samples": 0}, "samples=0 is too small"),
    (MIM, SAMPLES, FEW, {"start": "ones"}, "start='ones'"),
    (MIM, SAMPLES, {}, {"samples": 10**8}, "samples=100000000 needs about 1.1e+11 numbers"),
    (MIM, SAMPLES, {"P": 65536, "C_global": 32768, "C_local": 32}, {"samples": 10},
     "d=66561 needs about 5.3e+10 numbers"),
    (VIT, REDUCED, {"M": 10**6}, {}, "M can be"),
    (VIT, REDUCED, {"m": 10**6, "M": 1000}, {}, "nearest: 33554"),
    *((VIT, kind, {"m": 24} | law, options, said) for kind in (REDUCED, FULL)
      for law, options, said in (
        ({"data": "iid", "L": 40, "M": 6, "d": 6}, {}, "1,150,688 count vectors"),
        ({}, {"samples": 0}, "samples=0 is too small"),
        ({}, {"start": "zero"}, "start='zero' is unknown"),
        ({}, {"batch": 4}, "batch=4 needs samples, but none are drawn"),
        ({}, {"expectation": "counts"}, "expectation='counts' is unknown"),
        ({}, {"expectation": "exact", "samples": 8}, "samples=8 are drawn, but"),
        ({}, {"expectation": "sampled"}, "samples=None is not given"),
    )),
    (VIT, FULL, {"d": 10**6}, {}, "nearest: 4096"),
    (VIT, SAMPLES, {}, {"samples": 0}, "samples=0"),
    (VIT, SAMPLES, {}, {"samples": 10**8}, "samples can be"),
    (VIT, SAMPLES, {}, {"batch": 0}, "batch=0"),
    (VIT, SAMPLES, {}, {"test_samples": 0}, "test_samples=0"),
    (VIT, SAMPLES, {}, {"start": -1}, "start=-1"),
    (VIT, SAMPLES, {}, {"start": "symmetric"}, "sigma=0.1 breaks a symmetric start"),
    (VIT, SAMPLES, {"L": 20}, {"sparsify": "random", "removed": 1.0},
     "removes every token of L=20"),
    (VIT, SAMPLES, {}, {"removed": 0.2}, "which tokens to remove first"),
    (VIT, SAMPLES, {}, {"sparsify": "random", "removed": -0.1}, "removed=-0.1"),
    (VIT, SAMPLES, {}, {"noisy_std": -1}, "noisy_std=-1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "law", "options", "said"), PROBLEMS)
def test_wrong_problems_are_refused_at_once_and_in_one_line(name, kind, law, options, said):
    system = dynamics.load_system(name)
    parameters, began = system.Parameters(**law), time.process_time()
    with pytest.raises(InvalidRequest) as caught:
        getattr(system, kind)(parameters, **options)
    told = str(caught.value)
    assert said in told
    assert "\n" not in told
    assert "nearest: " in told
    assert time.process_time() - began < 2
