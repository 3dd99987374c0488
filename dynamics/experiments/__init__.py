"""What needs drivers, systems and pictures together: verdicts on claims, figures of papers.

One folder a system, with the same file names in each: ``checks.py`` (one function a claim),
``figures.py`` (one function a figure). A folder is found by the name of its system.
"""
