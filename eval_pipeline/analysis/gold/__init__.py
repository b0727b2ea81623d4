"""Doubts about the gold answers of a suite."""
