"""Claims of Li, Wang, Liu, Chen (2023), read from `claims.toml`."""

from pathlib import Path

from theory.claims import read_claims
from theory.papers.shallow_vit import attention_limits, conditions, lemmas

CLAIMS = read_claims(Path(__file__).with_suffix(".toml"), attention_limits, conditions, lemmas)
