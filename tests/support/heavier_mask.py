"""A full problem of masked image modelling that is wrong, for checks to see."""

import numpy as np

from dynamics.papers.masked_image_modeling.full import FullPopulation


class Heavier(FullPopulation):
    """One masked image counts too much: masks are no longer uniform."""

    def __init__(self, parameters):
        super().__init__(parameters)
        data, embedding = self.payload
        tilted = np.array(data.weights)
        tilted[0] *= 3.0
        self.payload = data._replace(weights=tilted / tilted.sum()), embedding
