"""Imports answers recorded elsewhere as model versions (docs/recorded-answers.md)."""
