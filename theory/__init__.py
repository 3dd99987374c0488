"""What is true: models, data laws, symmetries and the reduced recursions, derived by sympy.

Floor 0 holds the types (`notation`, `symmetry`, `reduction`, `claims`, `events`), floor 1 the
systems built from them (`theory.systems.<system>`). Nothing here runs a simulation, and nothing
here imports `dynamics`, numba or matplotlib.
"""
