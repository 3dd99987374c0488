"""Experiments on masked image modelling: a check for every claim, the figures of the paper."""
