"""Dagster is told of what commands did without it."""
