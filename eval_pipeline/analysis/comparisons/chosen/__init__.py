"""Comparisons that people ask for: references, baseline files, matrices, and the causes of a difference."""
