"""A full problem of masked image modelling that is wrong, for checks to see."""

import numpy as np

from dynamics.systems.masked_image_modeling.full import FullPopulation


class Heavier(FullPopulation):
    """One masked image counts too much: masks are no longer uniform."""

    def __init__(self, parameters):
        super().__init__(parameters)
        batch = self._data.batch
        tilted = batch.weights * np.where(batch.members == 0, 3.0, 1.0)
        self._data = self._data._replace(batch=batch._replace(weights=tilted / tilted.sum()))
