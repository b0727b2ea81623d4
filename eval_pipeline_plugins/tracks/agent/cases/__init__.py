"""Reads the files of a suite: its options, worlds and cases."""
