"""Pictures that only the experiments on masked image modelling need."""
