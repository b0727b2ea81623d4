"""Doubts about the gold of a suite."""
