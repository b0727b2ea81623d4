"""Checks of suites and evaluations."""
