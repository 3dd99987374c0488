"""Reduced programs: the kernel beside what it replaces, a new size."""

import time

import pytest

import dynamics
from dynamics.models.engine.problem import ModelProblem

pytestmark = pytest.mark.benchmark_run

LIBRARY = ("linear_icl", "deep_linear", "softmax_icl", "topic_model", "induction_head",
           "merged_staircase")  # fmt: skip


def microseconds(function, repeats):
    """Least microseconds of a call, of this thread's own time."""
    function()
    times = []
    for _ in range(15):
        began = time.thread_time()
        for _ in range(repeats):
            function()
        times.append((time.thread_time() - began) / repeats)
    return 1e6 * min(times)


def test_library_beside_arrays_and_at_a_second_size(capsys):
    """One gradient of each model beside JAX's arrays; another size of one in under 2 s."""
    lines = []
    for name in LIBRARY:
        system = dynamics.load_system(name)
        problem = system.ReducedPopulation(system.Parameters())
        state = problem.initial_state + 0.1
        program = microseconds(lambda p=problem, s=state: p.gradient(s), 500)
        arrays = microseconds(lambda p=problem, s=state: ModelProblem.gradient(p, s), 50)
        lines.append(f"  {name:<18}{program:8.1f} us, by arrays {arrays:8.1f} us, called by Python")
    system = dynamics.load_system("softmax_icl")
    system.ReducedPopulation(system.Parameters(K=3))
    began = time.perf_counter()
    problem = system.ReducedPopulation(system.Parameters(K=4))
    problem.gradient(problem.initial_state)
    seconds = time.perf_counter() - began
    with capsys.disabled():
        print("\ngradients of library models", *lines, sep="\n")
        print(f"a second size of softmax_icl: {seconds:.2f} s (limit 2 s, closure included)")
    assert seconds < 2
