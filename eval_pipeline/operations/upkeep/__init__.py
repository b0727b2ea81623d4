"""Keeping a home whole and small: completing, checking, repairing, pruning, removing."""
