"""Attainment of objectives: how it is computed, compared over weeks and published."""
