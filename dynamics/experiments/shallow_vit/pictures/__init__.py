"""Pictures that only the experiments on the shallow Vision Transformer need."""
