"""Watching a run: how far it is, for people who look, and their wish that it ends."""
