"""Metrics on turns, and the rows that come of them."""
