"""Theory of three papers: letters, network, reduced dynamics, proofs by computation, claims."""
