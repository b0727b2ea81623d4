"""Attempts at turns: asking, reading, executing, and the rows that come of it."""
