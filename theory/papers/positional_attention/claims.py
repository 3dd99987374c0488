"""Claims of Jelassi, Sander, Li (2022), read from `claims.toml`."""

from pathlib import Path

from theory.claims import read_claims
from theory.papers.positional_attention import lemmas, separability

CLAIMS = read_claims(Path(__file__).with_suffix(".toml"), lemmas, separability)
