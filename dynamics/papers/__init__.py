"""The three papers: parameters, problems and presentations, beyond their model files."""
