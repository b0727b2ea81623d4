"""Tracks: kinds of tasks, one package each; `base` contains their common protocol."""
