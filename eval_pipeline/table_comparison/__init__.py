"""Compares tables: what one must overlook for them to be equal, or how they differ.

Knows no track, no engine and no file format; rows may be plain or Arrow's.
"""
