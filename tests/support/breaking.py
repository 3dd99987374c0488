"""How gradient descent breaks what the flow keeps."""

import numpy as np


def break_by_descent(law, run, rates):
    """Largest change of a law along runs of gradient descent, and its power of eta.

    `run`: function of the learning rate -> scalars of a run to a fixed time, shape (records,
    count).
    """
    changes = np.array([float(np.abs(law.at(run(eta)) - law.value).max()) for eta in rates])
    if (changes <= 0).any():
        return changes, float("nan")
    return changes, float(np.polyfit(np.log(rates), np.log(changes), 1)[0])
