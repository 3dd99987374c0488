"""One self-contained HTML page on which a model is trained as its constants are moved.

The page has a description of the model, the script of a worker that trains it, and the scripts
that draw: `page`. It needs neither a server nor a network.
"""
