"""Estimates from samples: drawn turns, reviewed turns, several tries of one turn."""
