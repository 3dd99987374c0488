"""The population problem of the shallow Vision Transformer on its few scalars."""
