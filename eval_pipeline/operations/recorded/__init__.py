"""Bringing in answers that were recorded elsewhere, as model versions (docs/recorded-answers.md)."""
