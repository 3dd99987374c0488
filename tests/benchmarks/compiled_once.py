"""A command of ``attdyn`` in this process, and what it compiled: ``python compiled_once.py WORDS``.

Standard error ends in lines of "seconds of CPU, function, title of its file", longest
first, each without what is compiled for it and listed itself, and the CPU seconds and the seconds
of the whole.
"""

import sys
import time

from numba.core import event


class Compilations(event.Listener):
    """CPU seconds of every function that Python calls."""

    def __init__(self):
        self.began, self.seconds, self.depth = 0.0, {}, 0

    def on_start(self, event):
        if self.depth == 0:
            self.began = time.process_time()
        self.depth += 1

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            function = event.data["dispatcher"].py_func
            title = (function.__globals__.get("__doc__") or "").split("\n")[0]
            key = function.__name__, title
            self.seconds[key] = self.seconds.get(key, 0.0) + time.process_time() - self.began


def main(words):
    began = time.time()
    made = Compilations()
    event.register("numba:compile", made)
    from dynamics.cli import main as command

    code = command(words)
    for (name, title), seconds in sorted(made.seconds.items(), key=lambda item: -item[1]):
        print(f"{seconds:8.2f}  {name:<24} {title}", file=sys.stderr)
    print(f"{sum(made.seconds.values()):8.2f}  compiled", file=sys.stderr)
    print(f"{time.process_time():8.2f}  CPU seconds in all", file=sys.stderr)
    print(f"{time.time() - began:8.2f}  seconds in all", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
