"""Paired comparisons of models on the same turns, and the correction for several of them."""
