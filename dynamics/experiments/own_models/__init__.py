"""Figures that every model of one's own has."""
