"""The population problem of the shallow Vision Transformer with every trained entry."""
