"""A process that runs blocks: one line of JSON in, one line out, until its input ends.

Started by `dynamics.sweep.crew`. Points are run beside the main thread, which watches the input:
when the sweep is gone, however it went, its workers go at once.
"""

from __future__ import annotations

import os
import sys
import threading
from queue import SimpleQueue
from typing import TextIO

from dynamics.sweep.points import answer_text
from dynamics.systems import load_system


def main(system: str) -> None:
    """Serve until the input ends.

    Parameters
    ----------
    system : str
        Name of the system that will be asked for, loaded before the first request comes.
    """
    # What libraries print goes to stderr; the answers have the pipe to themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_serve, args=(system, requests, answers), daemon=True).start()
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _serve(system: str, requests: SimpleQueue[str], answers: TextIO) -> None:
    try:
        load_system(system)
        while True:
            answers.write(answer_text(requests.get()) + "\n")
            answers.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
