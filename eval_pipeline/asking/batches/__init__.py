"""Batches: calls that are submitted together and answered later."""
