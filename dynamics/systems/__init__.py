"""What a paper has beside the engine: parameters, problems, sums; see `dynamics.models.papers`."""
