"""Statistics with their uncertainty, as pure functions on numpy arrays (see docs/statistics.md).

A number that cannot be computed from the data is None with a reason, never 0, NaN or infinity.
"""
