"""The shallow Vision Transformer: parameters, starts, samples and problems."""
