"""Tracks: kinds of tasks, one room each; the protocol they share is in `base`."""
