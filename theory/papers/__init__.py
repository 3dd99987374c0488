"""Theory of three papers: notation, network, reduced dynamics, proofs by computation, claims."""
