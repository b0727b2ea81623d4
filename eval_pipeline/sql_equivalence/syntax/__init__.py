"""Texts of SQL: parsed, the tables they read, whether two are the same."""
