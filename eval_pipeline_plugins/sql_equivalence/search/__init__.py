"""Searches for a database on which two queries differ."""
