"""The realistic problem of positional attention at small sizes."""

import dynamics

SYSTEM = dynamics.load_system("positional_attention")


def problem(size=8, set_size=2, depth=5, samples=20, degree=3, seed=1, **options):
    parameters = SYSTEM.Parameters(D=size, C=set_size, d=depth, p=degree, omega=0.08, nu=0.1)
    return SYSTEM.FullEmpirical(parameters, samples, seed, **options)
