"""Worlds in which tasks are worked on, and solutions that run there."""
