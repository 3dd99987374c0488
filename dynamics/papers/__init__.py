"""Parameters, problems and presentations of the three papers, in addition to their model files."""
