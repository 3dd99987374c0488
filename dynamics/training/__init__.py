"""Training: gradient descent and gradient flow, with events, records, checkpoints and progress."""
