"""A small model on this machine."""
