"""Names of the features of a case that was drawn from a population with a known probability."""

STRATUM = "sampled_stratum"
"""The part of the population that the case was drawn from."""
SIZE = "sampled_of"
"""Number of members of that part."""
PROBABILITY = "sampled_probability"
"""Probability with which each of them was drawn."""
