"""Results: trajectories, how runs end, how they are shown, and storage on disk."""
