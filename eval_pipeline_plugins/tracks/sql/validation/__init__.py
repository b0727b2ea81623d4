"""Checks SQL text without running it."""
