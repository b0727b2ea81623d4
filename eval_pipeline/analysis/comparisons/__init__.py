"""Comparisons of a suite's evaluations: between model versions, and over time."""
