"""Plain functions on floats and arrays, written in the subset of Python that numba compiles.

They are compiled only as part of a generated file (`dynamics.codegen`), whose name is a hash of
its whole text, so a compiled loop can never keep an older version of a function it calls. Imported
directly they run as ordinary Python, which is how the tests read them slowly.
"""
