"""`import attdyn` is `import dynamics`."""

import sys

import dynamics

sys.modules[__name__] = dynamics
