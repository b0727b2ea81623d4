"""Queries as syntax trees: rewriting them, preparing them to run, and finding what makes their results vary."""
