"""Pictures that only the experiments on positional attention need."""
