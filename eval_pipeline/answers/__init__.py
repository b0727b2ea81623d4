"""Reads the answer in a response: first where it stands, then what it is. Every track reads through this package."""
