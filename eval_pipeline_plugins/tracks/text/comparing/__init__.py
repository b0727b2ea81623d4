"""Comparisons of an answer with the expected one, by rules or by a judge."""
