"""Experiments of Li, Wang, Liu, Chen (2023): a check for every claim, the figures of the paper."""
