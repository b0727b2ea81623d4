"""Reads the results of code as values and tables, and compares them."""
