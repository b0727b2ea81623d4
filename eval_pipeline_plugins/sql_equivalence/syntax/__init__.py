"""Parses SQL texts, finds the tables they read, and compares texts."""
