"""Decides whether an answer is also right on other tables: variants of a turn's tables, each with its right result."""
