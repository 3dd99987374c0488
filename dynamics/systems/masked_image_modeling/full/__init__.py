"""The population problem of masked image modelling with every trained entry."""
