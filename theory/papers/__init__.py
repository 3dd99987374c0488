"""Papers, one folder each, with the same file names in every one.

`notation` (the table of letters, the events), `model` (the network), `recursion` (the reduction),
`lemmas` (proofs by computation) and `claims`; what only one paper needs has files of its own.
"""
