"""How far gradient descent breaks a law that the flow keeps."""

import numpy as np


def break_by_descent(law, run, rates):
    """Largest change of a law along a run at each rate, and the power of the rate it goes with.

    `run` is a function from a learning rate to the scalars of a run, shape (records, count).
    """
    changes = np.array([float(np.abs(law.at(run(eta)) - law.value).max()) for eta in rates])
    if (changes <= 0).any():
        return changes, float("nan")
    return changes, float(np.polyfit(np.log(rates), np.log(changes), 1)[0])
