"""Figures over many turns: aggregates of an evaluation, comparisons of several."""
