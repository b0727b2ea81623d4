"""Runs of code: in the sandbox, measured, and compared with the gold."""
