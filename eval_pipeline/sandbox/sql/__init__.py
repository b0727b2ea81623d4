"""Runs model-written SQL in a child process, read-only and within limits."""
