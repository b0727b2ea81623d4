"""Metrics of a suite, those on recovery, and the table that they fill."""
