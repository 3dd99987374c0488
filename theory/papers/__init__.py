"""Theory of three papers; every folder uses the same file names.

`notation` (table of letters, events), `model` (network), `recursion` (reduced dynamics), `lemmas`
(proofs by computation) and `claims`.
"""
