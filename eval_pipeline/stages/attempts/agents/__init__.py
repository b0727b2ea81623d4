"""Attempts of agents: our own loop, and programs of the user's own."""
