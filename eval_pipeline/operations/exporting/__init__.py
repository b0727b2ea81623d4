"""Exports evaluations in the formats of other tools (docs/recorded-answers.md)."""
