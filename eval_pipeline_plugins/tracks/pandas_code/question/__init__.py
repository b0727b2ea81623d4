"""Analyses the words of a question to find what it asks for."""
