"""Evaluations whose cases were drawn by known probabilities (docs/adaptive.md)."""
