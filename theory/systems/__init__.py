"""Systems, one folder each, with the same file names in every one.

`notation`, `data_law`, `model`, `symmetry`, `recursion`, `claims`, `events`.
"""
