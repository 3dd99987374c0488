"""A process that runs blocks: one line of JSON in, one line out, until its input ends.

Started by `dynamics.sweep.worker_pool`. Points are run beside the main thread, which watches the
input:
when the sweep is gone, however it went, its workers go at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import TextIO

from dynamics.registry import load_unchanged
from dynamics.sweep.messages import answer_text, refusal_text
from dynamics.validation import InvalidRequest


def main(reference: str, digests: str = "{}") -> None:
    """Serve until the input ends.

    Parameters
    ----------
    reference : str
        What the system that will be asked for is found by; it is loaded once, before the first
        request comes.
    digests : str
        Hashes of the parts of its model, as JSON; without one for a built-in system.
    """
    # What libraries print goes to stderr; the answers have the pipe to themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: SimpleQueue[str] = SimpleQueue()
    work = (reference, json.loads(digests), requests, answers)
    threading.Thread(target=_serve, args=work, daemon=True).start()
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _serve(
    reference: str, digests: Mapping[str, str], requests: SimpleQueue[str], answers: TextIO
) -> None:
    try:
        refused = ""
        try:
            system = load_unchanged(reference, digests)
        except InvalidRequest as error:
            refused = refusal_text(error)
        while True:
            request = requests.get()
            answers.write((refused or answer_text(request, system)) + "\n")
            answers.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
