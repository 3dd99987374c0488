"""Reduced programs: the kernel beside what it replaces, a new size."""

import time

import numpy as np
import pytest
from positional_sum import exact_program

import dynamics
from dynamics import loops
from dynamics.loops import compiled
from dynamics.loops.kernels.program import List, rows_of
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


def test_kernel_beside_the_hand_built_one(capsys):
    """One gradient of the exact sum alone and in a loop of order parameters; the same numbers."""
    system, run = dynamics.load_system("positional_attention"), compiled(rows_of)
    lines = []
    for (D, C), repeats in {(9, 3): 2000, (16, 4): 200, (32, 8): 10}.items():
        began = time.perf_counter()
        program, weights, _ = exact_program(D, C)
        made = time.perf_counter() - began
        outputs = program.outputs["gradient"].astype(np.int64)
        arrays = (program.instructions, program.index.astype(np.uint32), program.count, outputs)
        given = np.concatenate([weights, program.constants])
        listed = List(given, *arrays, program.size)
        problem = system.ReducedPopulation(system.Parameters(D=D, C=C), expectation="exact")
        states = np.tile([0.3, 1.2, -0.1], (8, 1))
        out, width = np.empty((8, 3)), len(problem.order_names)

        def of(listed, states=states, out=out):
            run(states, listed, out)
            return out.copy()

        one = microseconds(lambda of=of, listed=listed: of(listed), repeats) / 8
        model = problem.loop_data
        hand = (
            microseconds(
                lambda model=model, states=states, width=width: loops.order_rows(
                    model, states, True, width
                ),
                repeats,
            )
            / 8
        )
        np.testing.assert_allclose(out[0], problem.gradient(states[0]), rtol=1e-13)
        lines.append(
            f"  D={D:<3} C={C} {program.operations:7} operations, made in {made:5.2f} s: "
            f"{one:8.2f} us, in a loop of order parameters {hand:7.2f} us; ratio {one / hand:.2f}"
        )
    with capsys.disabled():
        print("\ngradient of positional attention's exact sum", *lines, sep="\n")


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
