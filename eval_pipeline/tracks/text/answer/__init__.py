"""Extracts the answer from a model's response."""
