"""A small sweep that tests run, damage and interrupt."""

import dynamics

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.2:0.6:3", "nu": "1e-3,1e-2", "time": 50}
