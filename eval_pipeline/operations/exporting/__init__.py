"""Evaluations written in the forms of other tools (docs/recorded-answers.md)."""
