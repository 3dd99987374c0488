"""The library of published models, a file each; `dynamics.load_system` takes their names.

A library model is a module here whose name does not begin with an underscore and which defines
``start``, as every model file does; other modules turn model files into systems.
"""
