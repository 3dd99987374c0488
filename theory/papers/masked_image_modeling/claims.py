"""Claims of Huang, Wen, Chi, Liang (2024), read from `claims.toml`."""

from pathlib import Path

from theory.claims import read_claims
from theory.papers.masked_image_modeling import information_gap, lemmas

CLAIMS = read_claims(Path(__file__).with_suffix(".toml"), information_gap, lemmas)
