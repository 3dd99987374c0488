"""Experiments on positional attention: a check for every claim, the figures of the paper."""
