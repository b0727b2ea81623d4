"""Data sets of tasks for agents."""
