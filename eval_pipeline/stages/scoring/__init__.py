"""Runs metrics on turns and builds the resulting rows."""
