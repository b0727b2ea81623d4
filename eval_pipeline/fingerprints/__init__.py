"""Fingerprints: hashes of the source code that computes a result, with the versions of the libraries it uses."""

UNKNOWN_CODE = "unknown code"
"""Stands for the code of files that do not record which code made them (those of 0.1.0)."""
