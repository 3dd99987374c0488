"""One way to take a time."""

import time


def best(function, repeats=7):
    """Least seconds of several calls, after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)
