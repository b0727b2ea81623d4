"""Figures over many turns: aggregates of single evaluations, and comparisons between evaluations."""
