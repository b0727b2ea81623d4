"""Importing data sets as suites."""
