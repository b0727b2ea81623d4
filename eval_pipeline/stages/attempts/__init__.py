"""Attempts at turns: asking, parsing, executing, and the resulting rows."""
